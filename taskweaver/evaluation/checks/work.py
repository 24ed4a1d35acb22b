"""Checks of work: cells, refusals, roles, prompts and values in the kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from taskweaver.evaluation.checks.answers import shown
from taskweaver.evaluation.checks.check import Examiner, Observed

Counted = Literal["calls", "cells", "failed_cells", "figures"]
_FIGURES = (".png", ".svg", ".jpg", ".jpeg", ".pdf")


@dataclass(frozen=True, slots=True)
class CodeCheck:
    """A regular expression that the code that ran must match, or must not."""

    pattern: re.Pattern[str]
    is_wanted: bool
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if (self.pattern.search(seen.code) is not None) == self.is_wanted:
            return ""
        verb = "does not match" if self.is_wanted else "must not match"
        return f"the code that ran {verb} {self.pattern.pattern!r}: {shown(seen.code)}"


@dataclass(frozen=True, slots=True)
class RunCheck:
    """Code must run, or must not."""

    is_wanted: bool
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if bool(seen.cells) == self.is_wanted:
            return ""
        return "no code ran" if self.is_wanted else f"code ran: {shown(seen.code)}"


@dataclass(frozen=True, slots=True)
class RefusalCheck:
    """Code must be refused before it runs, or none may be."""

    is_wanted: bool
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if bool(seen.refusals) == self.is_wanted:
            return ""
        return "no code was refused" if self.is_wanted else f"{seen.refusals} cells were refused"


@dataclass(frozen=True, slots=True)
class CountCheck:
    """Bounds on a number of things.

    Attributes:
        counted: The things.
        least: Smallest number.
        most: Largest number; None for no limit.
    """

    counted: Counted
    least: int = 0
    most: int | None = None
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the number is within the bounds."""
        count = self._count(seen)
        if self.least <= count and (self.most is None or count <= self.most):
            return ""
        bound = f"at least {self.least}" if count < self.least else f"at most {self.most}"
        return f"{self.counted.replace('_', ' ')}: {count}, not {bound}"

    def _count(self, seen: Observed) -> int:
        match self.counted:
            case "calls":
                return len(seen.prompts)
            case "cells":
                return len(seen.cells)
            case "failed_cells":
                return sum(not cell.is_success for cell in seen.cells)
            case "figures":
                return len({name for name in seen.artifacts if name.lower().endswith(_FIGURES)})


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """A role that must take part."""

    alias: str
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if it took part."""
        if self.alias in seen.roles:
            return ""
        return f"{self.alias} took no part; there were {', '.join(sorted(seen.roles))}"


@dataclass(frozen=True, slots=True)
class PromptCheck:
    """A text that a prompt must contain, or that none may contain."""

    text: str
    is_wanted: bool
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the check is met."""
        if any(self.text in prompt for prompt in seen.prompts) == self.is_wanted:
            return ""
        return f"{self.text!r} is in {'no' if self.is_wanted else 'a'} prompt"


@dataclass(frozen=True, slots=True)
class StateCheck:
    """A Python expression that must hold in the kernel at the end."""

    expression: str
    needs_answer = False

    def problem(self, _: Observed, examiner: Examiner) -> str:
        """Return the problem; empty if the expression holds."""
        return examiner.holds(self.expression)
