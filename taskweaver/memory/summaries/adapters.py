"""Models, loggers and rounds of other programs, in the form a compactor works with.

Programs written for the original TaskWeaver pass a model with `chat_completion`, a function as
the logger, and rounds of their own classes, which may lack ids, states and attachments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, get_args

from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.type_vars import RoundState


class Summarizer(Protocol):
    """A model that follows instructions about a text."""

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        """Return the model's answer about `text`."""


class ChatModel(Protocol):
    """A model that answers a chat; its reply is a mapping with the text as ``content``."""

    def chat_completion(self, messages: Any, **options: Any) -> Any:
        """Return the whole reply."""


class Logger(Protocol):
    """A log for a compactor's problems."""

    def warning(self, msg: str, /) -> None:
        """Log a line."""

    def exception(self, msg: str, /) -> None:
        """Log a line and the error being handled."""


class _ChatSummarizer:
    """A `Summarizer` over a `ChatModel`."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

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


class _FunctionLogger:
    """A `Logger` over a function that takes a line, which says that compaction failed."""

    def __init__(self, log: Callable[[str], object]) -> None:
        self._log = log

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
    """Return rounds of any class; one without an id is known by its place."""
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
