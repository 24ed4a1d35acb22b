"""Checks as values, and the facts of a conversation that they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from taskweaver.memory.reading.cells import ExecutedCell


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """Verdict of a judge.

    Attributes:
        is_hit: Whether the statement agrees with the conversation.
        reason: The judge's reason.
    """

    is_hit: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts of a round, or of all rounds of a case.

    Attributes:
        question: The words of the user.
        answer: Text of the answer; of several rounds that of the last.
        unsupported: Numbers of the answer that stand in no outcome.
        is_answered: Whether each round ended with an answer.
        cells: Cells that ran.
        refusals: Number of cells that were refused before they ran.
        roles: Aliases of the roles that took part.
        artifacts: Names of the files that cells made, relative to `cwd`.
        cwd: Working directory of the session.
        prompts: Prompts of the model calls, as text.
    """

    question: str
    answer: str
    unsupported: tuple[str, ...]
    is_answered: bool
    cells: tuple[ExecutedCell, ...]
    refusals: int
    roles: frozenset[str]
    artifacts: tuple[str, ...]
    cwd: Path
    prompts: tuple[str, ...]

    @property
    def code(self) -> str:
        """The code of all cells that ran."""
        return "\n".join(cell.code for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Examiner:
    """Ways to find out more than the conversation shows.

    Attributes:
        holds: Evaluates a Python expression in the kernel; returns the problem, empty for none.
        judge: Asks a model whether a statement agrees with the conversation.
    """

    holds: Callable[[str], str]
    judge: Callable[[str], JudgeVerdict]


class Check(Protocol):
    """A check of a round, or of a whole conversation."""

    @property
    def needs_answer(self) -> bool:
        """Whether it is about a round that was answered."""
        ...

    def problem(self, seen: Observed, examiner: Examiner) -> str:
        """Return the problem; empty if the check is met.

        Raises:
            TaskWeaverError: If it cannot be made.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScoringPoint:
    """A scoring point in the form of the original.

    Attributes:
        statement: The criterion in words.
        weight: Its share of the score.
        code: Code that decides in place of a judge; empty for none.
    """

    statement: str
    weight: float = 1.0
    code: str = ""


def first_problem(problems: Sequence[str]) -> str:
    """Return the first problem; empty for none."""
    return next(filter(None, problems), "")
