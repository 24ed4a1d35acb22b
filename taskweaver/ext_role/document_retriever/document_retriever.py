"""The DocumentRetriever: answers with passages of the project's documents."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from dataclasses import asdict, replace
from pathlib import Path

from injector import inject

from taskweaver.ext_role.document_retriever.index import SUFFIXES, DocumentIndex, DocumentPassage
from taskweaver.ext_role.task import TaskRole, for_this_round
from taskweaver.llm.api import LLMApi
from taskweaver.llm.selection.config import embedding_model
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.post import Post
from taskweaver.memory.vectors.embedders import embedder
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import RoleConfig
from taskweaver.utils.text import shorten

_CHARS_PER_TOKEN = 4
_MOST_PROBLEMS = 10


class DocumentRetrieverConfig(RoleConfig):
    """Keys under ``document_retriever.``."""

    def _configure(self) -> None:
        self.folder = Path(self._get_path("index_folder"))
        self.size = self._get_int("size")
        self.target_chars = self._get_int("target_length") * _CHARS_PER_TOKEN
        self.workspace = Path(self.src.get_path("workspace.workspace_path"))


class DocumentRetriever(TaskRole):
    """Looks things up in a folder of documents, without a model."""

    @inject
    def __init__(
        self,
        config: DocumentRetrieverConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.folder, self.size = config.folder, config.size
        name = hashlib.sha256(os.fsencode(config.folder)).hexdigest()[:12]
        file = config.workspace / "document_retriever" / name / "index.sqlite"
        self.index = DocumentIndex(
            file,
            config.folder,
            config.target_chars,
            config.workspace,
            config.src.link_root,
            embedder(embedding_model(config.src), llm_api.get_embedding_list, event_emitter.warn),
        )

    def answer(self, task: Post, proxy: PostEventProxy) -> str:
        """Return the passages that suit the newest message."""
        query = task.message
        if not self.folder.is_dir():
            return (
                f"There is no folder of documents at {self.folder}. Put documents there, or set"
                " document_retriever.index_folder."
            )
        proxy.update_status("looking into the documents")
        try:
            passages, problems = self.index.search(query, self.size, proxy.update_status)
        except (OSError, sqlite3.Error) as error:
            self.logger.exception("the documents could not be searched")
            return f"The documents could not be searched: {error}"
        return "\n\n".join([_found(query, passages), *_unread(problems)])


def _found(query: str, passages: list[DocumentPassage]) -> str:
    asked = shorten(" ".join(query.split()), 200)
    if not passages:
        kinds = ", ".join(sorted(SUFFIXES))
        return f"Nothing was found for: {asked}\nLooked into all {kinds} files of the documents."
    best = max(passage.score for passage in passages) or 1.0  # the rank function has no scale
    scaled = [replace(passage, score=round(passage.score / best, 3)) for passage in passages]
    listed = json.dumps([asdict(passage) for passage in scaled], ensure_ascii=False, indent=1)
    return f"Passages found for: {asked}\n\n{for_this_round(listed)}"


def _unread(problems: list[str]) -> list[str]:
    if not problems:
        return []
    shown = [f"- {shorten(problem, 300)}" for problem in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    return ["\n".join(["Not looked into:", *shown, *([f"- and {more} more"] if more else [])])]
