"""Blocks of a conversation, as data: a terminal draws them, a pipe gets them as plain lines.

`RoundView` turns events into blocks; `draw` and `spell` turn blocks into rich renderables and
into plain lines; no other module of the console knows about appearance.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.text import duration_text


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block that is a text."""

    text: str


class PlanBlock(TextBlock):
    """The Planner's plan, complete."""


class ThoughtBlock(TextBlock):
    """Reasoning of a role before it acts."""


@dataclass(frozen=True, slots=True)
class OrderBlock:
    """A message from one role to another, shown in a few lines.

    Attributes:
        sender: Alias of the role that wrote it.
        receiver: Alias of the role it is for; empty while that is open.
    """

    sender: str
    receiver: str
    text: str


class CodeBlock(TextBlock):
    """A cell that is going to run."""


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Lines running code printed.

    Attributes:
        lines: The lines, without their ends.
        is_error: Whether they went to standard error.
    """

    lines: tuple[str, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class RunBlock:
    """End of a cell's run.

    Attributes:
        is_ok: Whether it ran to its end.
        seconds: Its duration, measured in this process.
    """

    is_ok: bool
    seconds: float


class ValueBlock(TextBlock):
    """The value of a cell's last expression, as text."""


class TracebackBlock(TextBlock):
    """Traceback of a failed cell."""


@dataclass(frozen=True, slots=True)
class FilesBlock:
    """Files a cell made, as paths a person can open."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """A remark by the way."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Answer to the user, as Markdown.

    Attributes:
        gave_up: Whether it says that the task could not be done.
    """

    text: str
    gave_up: bool = False


class FailureBlock(TextBlock):
    """Reason a round failed."""


@dataclass(frozen=True, slots=True)
class SummaryBlock:
    """The last line of a round.

    Attributes:
        is_ok: Whether the round was answered.
        seconds: Its duration.
        tokens: Tokens the models read and wrote; 0 without a model call.
        is_estimated: Whether `tokens` is an estimate.
        cost: Their cost, where a price is configured.
    """

    is_ok: bool
    seconds: float
    tokens: int = 0
    is_estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class FactsBlock:
    """Names and their values, in two columns."""

    rows: tuple[tuple[str, str], ...]


Outcome = (
    OutputBlock
    | RunBlock
    | ValueBlock
    | TracebackBlock
    | FilesBlock
    | NoteBlock
    | FactsBlock
    | FailureBlock
    | SummaryBlock
)
Block = PlanBlock | ThoughtBlock | OrderBlock | CodeBlock | AnswerBlock | Outcome


AnyBlock = TypeVar("AnyBlock", bound=Block)


def steady(block: AnyBlock) -> AnyBlock:
    """Return a block with nothing in its texts that a terminal would obey instead of showing."""
    return replace(
        block, **{part.name: _steady(getattr(block, part.name)) for part in fields(block)}
    )


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        return without_steering(value)
    return tuple(map(_steady, value)) if isinstance(value, tuple) else value


def describe_effort(done: SummaryBlock) -> str:
    """Return time, tokens and cost in a few words: ``4.2 s, 1,204 tokens``."""
    parts = [format_seconds(done.seconds)]
    if done.tokens:
        parts.append(f"{'about ' if done.is_estimated else ''}{done.tokens:,} tokens")
    if done.cost is not None:
        parts.append(f"cost {done.cost:.4f}")
    return ", ".join(parts)


def format_seconds(seconds: float) -> str:
    """Return a duration as people read it: ``0.42 s``, ``12.3 s``, ``2 min 05 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return duration_text(seconds)
