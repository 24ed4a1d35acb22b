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
from taskweaver.llm.errors import ModelError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import RoleConfig
from taskweaver.utils.ranking import cosine
from taskweaver.utils.text import shorten

_CHARS_PER_TOKEN = 4
_MOST_PROBLEMS = 10
_RERANKED = 4
"""Passages an embedding model puts in order, per passage of the answer."""


class DocumentRetrieverConfig(RoleConfig):
    """Keys under ``document_retriever.``."""

    def _configure(self) -> None:
        self.folder = Path(self._get_path("index_folder"))
        self.size = self._get_int("size")
        self.target_chars = self._get_int("target_length") * _CHARS_PER_TOKEN
        self.workspace = Path(self.src.get_path("workspace.workspace_path"))
        self.has_embedding = self.src.get_enum("llm.embedding_api_type") != "none"


class DocumentRetriever(TaskRole):
    """Looks things up in a folder of documents, without a model.

    Where an embedding model is configured, it puts the passages the words found in order.
    """

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
        self.llm_api = llm_api if config.has_embedding else None
        name = hashlib.sha256(os.fsencode(config.folder)).hexdigest()[:12]
        file = config.workspace / "document_retriever" / name / "index.sqlite"
        self.index = DocumentIndex(
            file, config.folder, config.target_chars, config.workspace, config.src.link_root
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
            most = self.size * (_RERANKED if self.llm_api else 1)
            passages, problems = self.index.search(query, most, proxy.update_status)
        except (OSError, sqlite3.Error) as error:
            self.logger.exception("the documents could not be searched")
            return f"The documents could not be searched: {error}"
        best = self._reranked(query, passages)[: self.size]
        return "\n\n".join([_found(query, best), *_unread(problems)])

    def _reranked(self, query: str, passages: list[DocumentPassage]) -> list[DocumentPassage]:
        """Order passages by words and meaning, half each, or by words alone without a model."""
        if self.llm_api is None or not passages:
            return passages
        texts = [f"{passage.heading}\n{passage.text}" for passage in passages]
        try:
            asked, *vectors = self.llm_api.get_embedding_list([query, *texts])
        except ModelError as error:
            if error.kind == "cancelled":
                raise
            self.event_emitter.warn(f"Documents were found by words alone: {error}")
            return passages
        best = passages[0].score or 1.0
        mixed = [
            replace(passage, score=round((passage.score / best + cosine(asked, vector)) / 2, 4))
            for passage, vector in zip(passages, vectors, strict=True)
        ]
        return sorted(mixed, key=lambda passage: -passage.score)


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
