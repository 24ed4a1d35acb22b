"""Forms of files of cases: strict models, mistakes in words, and the errors of an evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.text import did_you_mean

T = TypeVar("T")


class StrictForm(BaseModel):
    """A mapping of a file: each name is known, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _worded(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _compiled(value: Any) -> re.Pattern[str]:
    if not isinstance(_worded(value), str):
        raise ValueError("is not a text")
    try:
        return re.compile(_worded(value), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error


Many = Annotated[tuple[T, ...], BeforeValidator(_listed)]
"""A list of values; a value alone is a list of its own."""
Words = Annotated[str, BeforeValidator(_worded), Field(min_length=1)]
"""A text that is not empty; a number counts as one."""
Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]


def mistake(error: ValidationError) -> str:
    """Describe the first mistake: the place in the data, and the problem."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = [name for form in StrictForm.__subclasses__() for name in form.model_fields]
        problem = f"is not known; {did_you_mean(str(first['loc'][-1]), known)}".rstrip("; ")
    elif isinstance(first["input"], str | int | float | None) and first["type"] != "value_error":
        problem += f", not {first['input']!r}"
    return f"{place}: {problem}" if place else problem


@dataclass(eq=False, repr=False)
class EvaluationError(TaskWeaverError):
    """Cases or results cannot be used.

    Attributes:
        source: The file, the case, or a place in it.
        problem: The problem with it.
    """

    source: str
    problem: str

    def __str__(self) -> str:
        """Return the place and the problem."""
        return f"{self.source}: {self.problem}"


class CaseFailed(EvaluationError):
    """A case cannot be played to the end. All further cases are played."""
