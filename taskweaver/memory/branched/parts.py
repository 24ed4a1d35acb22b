"""Puts the parts of a memory together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.conversation import Summaries, Turns
from taskweaver.memory.branched.erasure import Erasures
from taskweaver.memory.branched.log_files import LogFolder
from taskweaver.memory.branched.operation_log import OperationLog, RowLog
from taskweaver.memory.branched.protocol.audit import Injections
from taskweaver.memory.branched.protocol.render import Renderer
from taskweaver.memory.branched.protocol.updates import Updates
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.compression import Compressor, Prompts
from taskweaver.memory.branched.tiers.search import Reranker
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import TextModel
from taskweaver.memory.branched.upkeep.compare import BranchComparison
from taskweaver.memory.branched.upkeep.consolidation import Consolidation, Pressures
from taskweaver.memory.branched.upkeep.transfer import Transfer
from taskweaver.memory.branched.upkeep.upkeep import Upkeep


class MemoryParts(Tiers):
    """Every part of a memory, each made once, in the order they stand on each other."""

    def __init__(
        self,
        path: Path,
        config: MemoryConfig,
        *,
        llm: TextModel | None,
        rerank: Reranker | None,
        clock: Callable[[], float],
    ) -> None:
        prompts = Prompts(config)
        database = Database(
            path, synchronous=config.synchronous, use_fts=config.use_fts, clock=clock
        )
        logs = (config.log_dir or database.path.parent / "logs").absolute()
        log = _open_log(database, config, logs)
        compressor = Compressor(database, config, prompts, llm, log)
        super().__init__(database, config, log, compressor, rerank)
        self.consolidation = Consolidation(self, prompts, llm)
        self.pressures = Pressures(self, self.consolidation, prompts, llm)
        self.updates = Updates(self, self.consolidation, self.pressures)
        self.renderer = Renderer(self, self.pressures)
        self.comparison = BranchComparison(self)
        self.erasures = Erasures(self, logs)
        self.upkeep = Upkeep(database, self.branches)
        self.transfer = Transfer(database, self.branches)
        self.injections = Injections(database, self.branches)
        self.turns = Turns(database, self.branches)
        self.summaries = Summaries(database, self.branches)


def _open_log(database: Database, config: MemoryConfig, folder: Path) -> OperationLog:
    """Return the logs of a memory; nothing is written, and no folder is made, before a call."""
    most, run = config.memory_log_max_chars, _run_of(database.path)
    if not config.memory_log_enabled:
        return OperationLog(None, None, max_chars=most, run_id=run)
    files = LogFolder(folder)
    return OperationLog(files, RowLog(database, files, run_id=run), max_chars=most, run_id=run)


def _run_of(path: Path) -> str:
    """Return the name of the run a file belongs to: its folder, or the one around ``memory/``."""
    folder = path.absolute().parent
    return folder.parent.name if folder.name == "memory" else folder.name
