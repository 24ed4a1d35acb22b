"""Background summaries of old rounds: they change only the text that is read, not the rounds.

One compactor serves all roles of a conversation, or one. When enough rounds, or enough text, are
not covered by its summary, a thread of its own lets a model rewrite the summary with the oldest of
them; the thread ends when nothing is left to do. Rounds still being answered and the newest ones
are never covered. A pass that fails leaves the summary as it was and is tried again some rounds
later. Programs written for the original TaskWeaver pass a model with `chat_completion`, a function
as the logger, and rounds of their own classes, which may lack ids, states and attachments.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast, get_args

from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import (
    CompactedMessage,
    CompactionProvider,
    CompactorConfig,
    Due,
    NoSummaries,
    Pass,
    Schedule,
    SummaryStore,
)
from taskweaver.memory.summary_texts import with_ledger
from taskweaver.memory.type_vars import RoundState
from taskweaver.utils.files import read_yaml
from taskweaver.utils.text import fill, shorten


class Summarizer(Protocol):
    """A model that follows instructions about a text."""

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return the model's answer about `text`."""


class ChatModel(Protocol):
    """A model that answers a chat. The reply is a mapping with the text as ``content``."""

    def chat_completion(self, messages: Any, **options: Any) -> Any:
        """Return the whole reply."""


class Logger(Protocol):
    """A log for a compactor's problems."""

    def warning(self, msg: str, /) -> None:
        """Log a line."""

    def exception(self, msg: str, /) -> None:
        """Log a line and the error being handled."""


@dataclass
class _ChatSummarizer:
    """A `Summarizer` over a `ChatModel`."""

    _model: ChatModel

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return the model's answer about `text`.

        Raises:
            ValueError: If the reply holds no text.
        """
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": text},
        ]
        options = {"llm_alias": llm_alias} if llm_alias else {}
        reply = self._model.chat_completion(messages=messages, **options)
        content = reply.get("content") if isinstance(reply, Mapping) else None
        if not isinstance(content, str):
            raise ValueError("the model's reply holds no text")
        return content


@dataclass
class _FunctionLogger:
    """A `Logger` over a function that takes a line, which says that compaction failed."""

    _log: Callable[[str], object]

    def warning(self, msg: str, /) -> None:
        """Log a line."""
        self._log(f"compaction failed: {msg}")

    def exception(self, msg: str, /) -> None:
        """Log a line that ends with the error being handled."""
        error = sys.exception()
        self._log(f"compaction failed: {msg}: {type(error).__name__}: {error}")


def as_summarizer(model: Summarizer | ChatModel) -> Summarizer:
    """Return a model as a `Summarizer`."""
    # Looked up on the class: a stand-in that has every attribute is a ChatModel.
    if hasattr(type(model), "summarize") or not hasattr(model, "chat_completion"):
        return cast("Summarizer", model)
    return _ChatSummarizer(cast("ChatModel", model))


def as_logger(logger: Logger | Callable[[str], object]) -> Logger:
    """Return a logger, or a function that takes a line, as a `Logger`."""
    if hasattr(logger, "warning"):
        return cast("Logger", logger)
    return _FunctionLogger(logger)


def as_rounds(rounds: Sequence[Any]) -> list[Round]:
    """Return rounds of any class, named by place where an id is missing."""
    return [
        item if isinstance(item, Round) else _round(item, number)
        for number, item in enumerate(rounds, 1)
    ]


def _round(item: Any, number: int) -> Round:
    id_, state = getattr(item, "id", None), getattr(item, "state", None)
    return Round(
        id_ if isinstance(id_, str) else f"round {number}",
        str(item.user_query),
        cast("RoundState", state) if state in get_args(RoundState) else "finished",
        [post if isinstance(post, Post) else _post(post) for post in item.post_list],
    )


def _post(item: Any) -> Post:
    attachments = list(getattr(item, "attachment_list", None) or ())
    return Post("", str(item.send_from), str(item.send_to), str(item.message), attachments)


__all__ = [
    "CompactedMessage",
    "CompactionProvider",
    "CompactorConfig",
    "ContextCompactor",
    "Logger",
    "Summarizer",
]

PROMPT_FILE = Path(__file__).with_name("compaction_prompt.yaml")
STOP_WAIT_S = 2.0


class ContextCompactor:
    """Keeps one summary of a role's older rounds. A `CompactionProvider` for `Memory`.

    Attributes:
        config: When rounds are summarised.
        llm_api: The model.
        rounds_getter: Returns the rounds the role sees now; called from any thread.
        logger: Where problems are logged.
    """

    def __init__(  # noqa: PLR0913 - a public constructor: each part is a name of its own
        self,
        config: CompactorConfig,
        llm_api: Summarizer | ChatModel,
        rounds_getter: Callable[[], list[Round]],
        logger: Logger | Callable[[str], object] | None = None,
        llm_alias: str = "",
        summaries: SummaryStore | None = None,
        *,
        window: Callable[[], int] = lambda: 0,
        has_ledger: bool = False,
    ) -> None:
        """Make a compactor, which goes on from a stored summary.

        The logger may be a function that takes a line. An empty `llm_alias` is the usual model;
        without `summaries`, the summary is kept in memory alone. `window` returns the tokens that
        the reader of the rounds takes, 0 for unknown; with a ledger, the program writes files,
        variables and figures into each summary.
        """
        self.rounds_getter = rounds_getter
        self.config = config
        self.llm_api = llm_api
        self._llm_alias = llm_alias
        self.logger = logger or logging.getLogger(__name__)
        self._logger = as_logger(self.logger)
        self._summarizer = as_summarizer(llm_api)
        self._schedule = Schedule(config, window)
        self._has_ledger = has_ledger
        self._passing = threading.Lock()
        self._prompt: tuple[str, str] | None = None
        self._summaries: SummaryStore = summaries or NoSummaries()
        self._compaction = self._summaries.load(config.retain_recent, self._logger.warning)
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._is_noted = False
        self._is_stopped = False

    def get_compaction(self) -> CompactedMessage | None:
        """Return the newest summary, without waiting for one in the making."""
        return self._compaction

    def start(self) -> None:
        """Look for work now. Needed only to begin again after `stop`."""
        with self._lock:
            self._is_stopped = False
        self.notify_rounds_changed()

    def stop(self) -> None:
        """End within `STOP_WAIT_S`. The result of a call that hangs is not used."""
        with self._lock:
            self._is_stopped = True
            worker, self._worker = self._worker, None
        if worker is None or worker is threading.current_thread():
            return
        worker.join(STOP_WAIT_S)
        if worker.is_alive():
            self._logger.warning("a summary was still being made when it was no longer wanted")

    def notify_rounds_changed(self) -> None:
        """Look for work, and start a thread for the work."""
        with self._lock:
            self._is_noted = True
            if self._is_busy_or_off():
                return
        if self._due() is None:
            return
        with self._lock:
            if self._is_busy_or_off():
                return
            # In the caller's context: the calls belong to the round that made them necessary.
            work = copy_context().run
            self._worker = threading.Thread(
                target=work, args=(self._work,), name="compaction", daemon=True
            )
            self._worker.start()

    def compact(self, kept: int, is_wanted: Callable[[], bool] = lambda: True) -> bool:
        """Summarise now all but the newest `kept` rounds, in the caller's thread.

        Where the model cannot do it, the program's part of the summary stands alone.

        Args:
            kept: Number of the newest rounds that stay.
            is_wanted: Whether the caller still waits, asked after each failure.

        Returns:
            Whether the summary covers more rounds than before.
        """
        before = self._compaction
        if not self.config.enabled:
            return False
        with self._passing:
            while (due := self._due(kept)) is not None:
                compaction = self._summarise(due)
                if compaction is None:
                    if not (is_wanted() and self._has_ledger):
                        break
                    compaction = self._finished(Pass(due.covered, due.rounds, ""), None)
                self._store(compaction)
                self._compaction = compaction
        return self._compaction is not before

    def _is_busy_or_off(self) -> bool:
        return self._is_stopped or self._worker is not None or not self.config.enabled

    def _work(self) -> None:
        try:
            while self._is_to_look():
                while self._advance():
                    pass
        finally:
            with self._lock:
                if self._is_current():
                    self._worker = None

    def _is_to_look(self) -> bool:
        """Return whether rounds changed since the last look. If not, the thread is done."""
        with self._lock:
            if not self._is_current():
                return False
            if not self._is_noted:
                # In the same breath, so that no notice is lost between this look and the end.
                self._worker = None
                return False
            self._is_noted = False
            return True

    def _is_current(self) -> bool:
        return self._worker is threading.current_thread()

    def _advance(self) -> bool:
        """Do a pass, if one is due, and return whether the summary is in force now."""
        with self._passing:
            due = self._due()
            return due is not None and self._run(due)

    def _due(self, kept: int | None = None) -> Due | None:
        """Return the rounds of the next pass: the due rounds, or all but the newest."""
        try:
            rounds = as_rounds(self.rounds_getter())
            if kept is not None:
                return self._schedule.due_now(rounds, self._compaction, kept)
            return self._schedule.due(rounds, self._compaction)
        except Exception:
            self._logger.exception("the rounds to summarise cannot be read")
            return None

    def _run(self, due: Due) -> bool:
        """Do one pass, and return whether the summary is in force now."""
        compaction = self._summarise(due)
        if compaction is not None and self._is_current():
            self._store(compaction)
        with self._lock:
            if not self._is_current():
                return False
            if compaction is None:
                self._schedule.failed(due)
                return False
            self._compaction = compaction
            self._schedule.succeeded()
            return True

    def _store(self, compaction: CompactedMessage) -> None:
        """Store a summary before use. A summary that cannot be stored is used all the same."""
        try:
            self._summaries.save(compaction)
        except Exception:
            self._logger.exception("a summary of old rounds could not be stored")

    def _summarise(self, due: Due) -> CompactedMessage | None:
        try:
            todo = self._schedule.next_pass(due)
            summary = self._ask(todo).strip()
        except Exception:
            self._logger.exception("old rounds could not be summarised; they stay as they are")
            return None
        problem = todo.problem_with(summary)
        if problem is None:
            return self._finished(todo, summary)
        self._logger.warning(f"a summary of old rounds is not used: {problem}")
        return None

    def _finished(self, todo: Pass, notes: str | None) -> CompactedMessage:
        """Return the summary of a pass. Without notes of a model, the former notes stay."""
        result = todo.result(todo.previous if notes is None else notes)
        if not self._has_ledger:
            return result
        seen = as_rounds(self.rounds_getter())
        covered = [round_ for round_ in seen if round_.id in result.round_ids]
        kept = shorten(result.summary, self._schedule.notes_chars)
        text = with_ledger(kept, covered, self._schedule.ledger_chars)
        return replace(result, summary=text)

    def _ask(self, todo: Pass) -> str:
        instructions, content = self._prompt or self._load_prompt()
        text = fill(content, PREVIOUS_SUMMARY=todo.previous or "None", content=todo.text)
        return self._summarizer.summarize(instructions, text, self._llm_alias)

    def _load_prompt(self) -> tuple[str, str]:
        self._prompt = packaged = _read_prompt(PROMPT_FILE)
        own = self.config.prompt_template_path
        if own:
            try:
                self._prompt = _read_prompt(Path(own), packaged[0])
            except (OSError, ValueError) as error:
                self._logger.warning(f"the packaged prompt for summaries is used: {error}")
        return self._prompt


def _read_prompt(path: Path, instructions: str = "") -> tuple[str, str]:
    """Return the instructions and the content of a prompt file."""
    data = read_yaml(path)
    content = data.get("content") if isinstance(data, dict) else None
    if not isinstance(content, str) or "{content}" not in content:
        raise ValueError(f"{path} lacks a text `content` with the place {{content}}")
    return str(data.get("instructions") or instructions), content
