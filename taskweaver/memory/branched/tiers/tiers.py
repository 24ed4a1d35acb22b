"""The file, the branches and the tiers on them: the base of the parts above."""

from __future__ import annotations

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.operation_log import OperationLog
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.archival import Archival
from taskweaver.memory.branched.tiers.branches import Branches, Countdown
from taskweaver.memory.branched.tiers.compression import Compressor, PromptedModel
from taskweaver.memory.branched.tiers.core import Core
from taskweaver.memory.branched.tiers.indexing import MemoryIndex
from taskweaver.memory.branched.tiers.recall import Recall
from taskweaver.memory.branched.tiers.search import ArchivalSearch
from taskweaver.memory.branched.types import TextModel
from taskweaver.utils.retrieval import Embedder


class Tiers:
    """All tiers, each made once, the lower tiers first."""

    def __init__(
        self,
        database: Database,
        config: MemoryConfig,
        log: OperationLog,
        llm: TextModel | None,
        embedder: Embedder | None,
    ) -> None:
        self.database = database
        self.config = config
        self.log = log
        self.model = None if llm is None else PromptedModel(llm, config.prompt_dir)
        self.compressor = Compressor(database, config, self.model, log)
        countdown = Countdown(config.consolidation_threshold)
        database.on_undone = countdown.forget
        self.branches = Branches(database, countdown)
        self.archival = Archival(self.branches, config, self.compressor)
        self.core = Core(self.branches, self.archival, config)
        self.index = MemoryIndex(database, embedder)
        self.recall = Recall(self.branches, self.archival, database.has_search)
        self.search = ArchivalSearch(database, self.branches, self.archival, self.index)
