"""Puts the parts of a memory together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.conversation import Summaries, Turns
from taskweaver.memory.branched.erasure import Erasures
from taskweaver.memory.branched.operation_log import OperationLog
from taskweaver.memory.branched.protocol.audit import Injections
from taskweaver.memory.branched.protocol.render import Renderer
from taskweaver.memory.branched.protocol.updates import Updates
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import TextModel
from taskweaver.memory.branched.upkeep.compare import BranchComparison
from taskweaver.memory.branched.upkeep.consolidation import Consolidation, Pressures
from taskweaver.memory.branched.upkeep.transfer import Transfer
from taskweaver.memory.branched.upkeep.upkeep import Upkeep
from taskweaver.utils.retrieval import Embedder


class MemoryParts(Tiers):
    """Every part of a memory, each made once, the lower parts first."""

    def __init__(
        self,
        path: Path,
        config: MemoryConfig,
        *,
        llm: TextModel | None,
        embedder: Embedder | None,
        clock: Callable[[], float],
    ) -> None:
        database = Database(
            path, synchronous=config.synchronous, use_fts=config.use_fts, clock=clock
        )
        logs = (config.log_dir or database.path.parent / "logs").absolute()
        super().__init__(database, config, OperationLog(database, config, logs), llm, embedder)
        self.consolidation = Consolidation(self)
        self.pressures = Pressures(self, self.consolidation)
        self.updates = Updates(self, self.consolidation, self.pressures)
        self.renderer = Renderer(self, self.pressures)
        self.comparison = BranchComparison(self)
        self.erasures = Erasures(self, logs)
        self.upkeep = Upkeep(database, self.branches)
        self.transfer = Transfer(database, self.branches)
        self.injections = Injections(database, self.branches)
        self.turns = Turns(database, self.branches)
        self.summaries = Summaries(database, self.branches)
