"""Checks of an answer's text: numbers, words, patterns, JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.evaluation.checks.check import Examiner, Observed
from taskweaver.session.answers.numbers import Number, numbers_in
from taskweaver.utils.text import shorten, unfenced

MOST_CHARS = 100_000
"""Characters of an answer that are looked at."""

_SHOWN_CHARS = 160
_MOST_ROUNDED = 0.01
_ROUNDING_ERROR = 1e-9
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def shown(text: str) -> str:
    """Return the beginning of a text on one line."""
    return shorten(" ".join(text.split()), _SHOWN_CHARS) or "nothing"


@dataclass(frozen=True, slots=True)
class NumberCheck:
    """A number that the answer must contain.

    Attributes:
        value: The number.
        within: Largest difference; None allows the rounding that the answer shows, up to 1 %.
    """

    value: float
    within: float | None = None
    needs_answer = True

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the number is there."""
        if any(map(self._fits, numbers_in(seen.answer[:MOST_CHARS]))):
            return ""
        return f"the number {self.value:g} is not in the answer: {shown(seen.answer)}"

    def _fits(self, number: Number) -> bool:
        sign = math.copysign(1, self.value) if number.sign == 0 else number.sign
        return any(
            abs(sign * reading.value - self.value) <= self._tolerance(reading.step)
            for reading in (*number.readings, *number.plain)
        )

    def _tolerance(self, step: float) -> float:
        if self.within is not None:
            return self.within + _ROUNDING_ERROR
        rounded = min(step / 2, abs(self.value) * _MOST_ROUNDED)
        return rounded + abs(self.value) * _ROUNDING_ERROR


@dataclass(frozen=True, slots=True)
class WordsCheck:
    """A text that the answer must contain, or must not, whatever its case."""

    text: str
    is_wanted: bool
    needs_answer = True

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if (self.text.casefold() in seen.answer.casefold()) == self.is_wanted:
            return ""
        where = "is not in" if self.is_wanted else "must not be in"
        return f"{self.text!r} {where} the answer: {shown(seen.answer)}"


@dataclass(frozen=True, slots=True)
class PatternCheck:
    """A regular expression that the answer must match, or must not."""

    pattern: re.Pattern[str]
    is_wanted: bool
    needs_answer = True

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if (self.pattern.search(seen.answer[:MOST_CHARS]) is not None) == self.is_wanted:
            return ""
        verb = "does not match" if self.is_wanted else "must not match"
        return f"the answer {verb} {self.pattern.pattern!r}: {shown(seen.answer)}"


@dataclass(frozen=True, slots=True)
class JsonCheck:
    """Names and values that the answer must contain as one JSON object."""

    items: Mapping[str, Any]
    needs_answer = True

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the object is there."""
        found = _OBJECT.search(unfenced(seen.answer[:MOST_CHARS]))
        try:
            data = json.loads(found[0]) if found else None
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            return f"the answer is not one JSON object: {shown(seen.answer)}"
        for name, value in self.items.items():
            if name not in data or not _is_same(data[name], value):
                return f"{name!r} of the answer is {data.get(name)!r}, not {value!r}"
        return ""


def _is_same(found: object, wanted: object) -> bool:
    if isinstance(wanted, float | int) and isinstance(found, float | int):
        return math.isclose(found, wanted, rel_tol=1e-6, abs_tol=_ROUNDING_ERROR)
    return found == wanted


@dataclass(frozen=True, slots=True)
class SupportCheck:
    """Every number of the answer must stand in an outcome of the session."""

    needs_answer = True

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if all numbers are supported."""
        if not seen.unsupported:
            return ""
        return f"numbers of the answer stand in no outcome: {', '.join(seen.unsupported)}"


@dataclass(frozen=True, slots=True)
class AnsweredCheck:
    """The round must be answered, or must not be."""

    is_wanted: bool
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if seen.is_answered == self.is_wanted:
            return ""
        return "there is no answer" if self.is_wanted else f"it is answered: {shown(seen.answer)}"


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A statement that a judge compares with the conversation."""

    statement: str
    needs_answer = True

    def problem(self, _: Observed, examiner: Examiner) -> str:
        """Return the judge's reason; empty if the statement agrees."""
        verdict = examiner.judge(self.statement)
        if verdict.is_hit:
            return ""
        return f"the judge denies {self.statement!r}: {shown(verdict.reason)}"
