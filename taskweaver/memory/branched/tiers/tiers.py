"""The file, its branches and the tiers on them: the base of the parts above."""

from __future__ import annotations

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.operation_log import OperationLog
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.archival import Archival
from taskweaver.memory.branched.tiers.branches import Branches, Countdown
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.tiers.core import Core
from taskweaver.memory.branched.tiers.recall import Recall
from taskweaver.memory.branched.tiers.search import ArchivalSearch, Reranker


class Tiers:
    """Each made once, in the order they stand on each other."""

    def __init__(
        self,
        database: Database,
        config: MemoryConfig,
        log: OperationLog,
        compressor: Compressor,
        rerank: Reranker | None,
    ) -> None:
        self.database = database
        self.config = config
        self.log = log
        self.compressor = compressor
        countdown = Countdown(config.consolidation_threshold)
        database.on_undone = countdown.forget
        self.branches = Branches(database, countdown)
        self.archival = Archival(database, self.branches, config, compressor)
        self.core = Core(database, self.branches, self.archival, config)
        self.recall = Recall(self.branches, self.archival)
        self.search = ArchivalSearch(database, self.branches, self.archival, rerank)
