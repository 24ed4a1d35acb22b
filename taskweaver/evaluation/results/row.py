"""Rows of results: the outcome of one case, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

Outcome = Literal["passed", "failed", "error", "timeout", "skipped"]
AnsweredBy = Literal["live", "recording", "offline"]
FORMAT = 1
"""Version of the form of a row."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Outcome of a case.

    Attributes:
        case: Name of the case.
        kind: Kind of the case.
        by: Who answered: a ``live`` model, a ``recording`` or the ``offline`` analyst.
        model: Name of the model.
        digest: Hash of the case.
        outcome: ``passed``, ``failed``, or the reason why it was not played to its end: an
            ``error``, its time (``timeout``), or no way to play it (``skipped``).
        score: Share of the checks that are met, from 0 to 1.
        questions: Number of questions that were asked.
        calls: Model calls, without those of a judge.
        prompt_tokens: Tokens read by the model.
        completion_tokens: Tokens written by the model.
        cached_tokens: Tokens among those read that the server had in a cache.
        is_estimated: Whether token counts are estimates.
        judge_calls: Calls of a judge, or of the model that played the user.
        time_s: Time in seconds.
        is_held_out: Whether the case is held out.
        problems: Problems, one for each check that is not met.
        notes: Remarks that do not change the outcome.
        answers: Answers of its questions.
        version: Version of this program.
        at: Time of its end, as ISO 8601.
    """

    case: str
    kind: str
    by: AnsweredBy
    model: str
    digest: str
    outcome: Outcome
    score: float = 0.0
    questions: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    is_estimated: bool = False
    judge_calls: int = 0
    time_s: float = 0.0
    is_held_out: bool = False
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    version: str = ""
    at: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether the case was played to its end."""
        return self.outcome in ("passed", "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a row from plain data; names that are not known are left out.

        Raises:
            ValueError: If it is not the form of a row.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise ValueError(f"is no row of format {FORMAT}")
        values: dict[str, Any] = {}
        for field in fields(cls):
            if field.name in data:
                values[field.name] = _checked(field.name, str(field.type), data[field.name])
        try:
            row = cls(**values)
        except TypeError as error:
            raise ValueError(f"lacks a field: {error}") from error
        if row.outcome not in get_args(Outcome) or row.by not in get_args(AnsweredBy):
            raise ValueError(f"has the outcome {row.outcome!r} by {row.by!r}")
        return row


def _checked(name: str, kind: str, value: object) -> object:
    """Return a value of the type of a field."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "float" if is_number:
            return float(value)  # type: ignore[arg-type]
        case "bool" if isinstance(value, bool):
            return value
        case "tuple[str, ...]" if isinstance(value, list):
            return tuple(map(str, value))
        case "str" | "AnsweredBy" | "Outcome" if isinstance(value, str):
            return value
    raise ValueError(f"has {name} = {value!r}")
