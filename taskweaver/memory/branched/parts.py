"""Puts the parts of a memory together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taskweaver.memory.branched.archival import Archival
from taskweaver.memory.branched.branches import Branches
from taskweaver.memory.branched.compare import Comparison
from taskweaver.memory.branched.compression import Compressor, Prompts
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.consolidation import Consolidation
from taskweaver.memory.branched.core import Core
from taskweaver.memory.branched.database import Database
from taskweaver.memory.branched.digests import Digests
from taskweaver.memory.branched.injections import Injections
from taskweaver.memory.branched.oplog import OperationLog
from taskweaver.memory.branched.pressure import Pressures
from taskweaver.memory.branched.recall import Recall
from taskweaver.memory.branched.render import Renderer
from taskweaver.memory.branched.search import Reranker, Search
from taskweaver.memory.branched.transfer import Transfer
from taskweaver.memory.branched.types import TextModel
from taskweaver.memory.branched.updates import Updates
from taskweaver.memory.branched.upkeep import Upkeep
from taskweaver.memory.branched.values import Values


class Parts:
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
        folder = config.log_dir or path.parent / "logs"
        self.log = OperationLog(
            folder if config.memory_log_enabled else None,
            max_chars=config.memory_log_max_chars,
            run_id=path.resolve().parent.name,
        )
        checks, prompts = Values(redact_secrets=config.redact_secrets), Prompts(config)
        self.database = Database(
            path, synchronous=config.synchronous, use_fts=config.use_fts, clock=clock
        )
        database = self.database
        self.branches = branches = Branches(database)
        self.digests = Digests(branches)
        compressor = Compressor(database, config, prompts, llm)
        self.archival = Archival(database, branches, config, checks, compressor)
        self.core = Core(database, branches, self.archival, config, checks)
        self.recall = Recall(branches, self.digests, self.archival, config, checks)
        self.search = Search(database, branches, self.archival, rerank)
        self.consolidation = Consolidation(
            database, branches, self.recall, self.digests, config, prompts, llm
        )
        self.pressures = Pressures(
            database,
            branches,
            self.core,
            self.recall,
            self.consolidation,
            compressor,
            prompts,
            config,
            llm,
        )
        self.updates = Updates(
            database,
            branches,
            self.core,
            self.recall,
            self.archival,
            self.search,
            self.consolidation,
            self.pressures,
        )
        self.renderer = Renderer(
            database,
            branches,
            self.core,
            self.recall,
            self.digests,
            self.search,
            self.pressures,
            config,
        )
        self.comparison = Comparison(database, branches, self.core, self.recall, self.archival)
        self.upkeep = Upkeep(database, branches)
        self.transfer = Transfer(database, branches)
        self.injections = Injections(database, branches)
