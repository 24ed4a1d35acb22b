"""Sums and means of results, and their comparison with those of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweaver.evaluation.results.row import AnsweredBy, ResultRow


@dataclass(frozen=True, slots=True)
class ResultSums:
    """Sums over the cases that were played to their end.

    Attributes:
        cases: Number of these cases.
        passed: Number of those that passed.
        left: Number of the others: errors, timeouts and skipped cases.
        questions: Number of questions.
        calls: Model calls.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        time_s: Times in seconds, added up.
        is_estimated: Whether any token count is an estimate.
    """

    cases: int
    passed: int
    left: int
    questions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    time_s: float
    is_estimated: bool

    def mean(self, total: float) -> float:
        """Return a sum divided by the number of cases; 0 without cases."""
        return total / self.cases if self.cases else 0.0


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case in two runs.

    Attributes:
        before: Its row in the earlier run.
        now: Its row in this one.
    """

    before: ResultRow
    now: ResultRow

    @property
    def is_fixed(self) -> bool:
        """Whether it passes now and did not before."""
        return self.now.outcome == "passed" != self.before.outcome

    @property
    def is_broken(self) -> bool:
        """Whether it passed before and does not now."""
        return self.before.outcome == "passed" != self.now.outcome


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs, case by case.

    Attributes:
        changes: Cases of both runs that were played, by name.
        only_now: Names of cases that the earlier run lacks.
        only_before: Names of cases that this run lacks.
        before_by: Who answered in the earlier run.
    """

    changes: Mapping[str, CaseChange]
    only_now: tuple[str, ...]
    only_before: tuple[str, ...]
    before_by: tuple[AnsweredBy, ...]

    @property
    def before(self) -> ResultSums:
        """Sums of the earlier run over the cases of both."""
        return sums_of([change.before for change in self._scored])

    @property
    def now(self) -> ResultSums:
        """Sums of this run over the cases of both."""
        return sums_of([change.now for change in self._scored])

    @property
    def _scored(self) -> list[CaseChange]:
        changes = self.changes.values()
        return [item for item in changes if item.before.is_scored and item.now.is_scored]


def sums_of(rows: Sequence[ResultRow]) -> ResultSums:
    """Return the sums of rows."""
    scored = [row for row in rows if row.is_scored]
    return ResultSums(
        cases=len(scored),
        passed=sum(row.outcome == "passed" for row in scored),
        left=len(rows) - len(scored),
        questions=sum(row.questions for row in scored),
        calls=sum(row.calls for row in scored),
        prompt_tokens=sum(row.prompt_tokens for row in scored),
        completion_tokens=sum(row.completion_tokens for row in scored),
        time_s=sum(row.time_s for row in scored),
        is_estimated=any(row.is_estimated for row in scored),
    )


def compare(now: Mapping[str, ResultRow], before: Mapping[str, ResultRow]) -> RunComparison:
    """Compare a run with an earlier one.

    Args:
        now: Rows of this run, by case.
        before: Rows of the earlier one.
    """
    both = [name for name in now if name in before]
    changes = {name: CaseChange(before[name], now[name]) for name in both}
    return RunComparison(
        changes=changes,
        only_now=tuple(name for name in now if name not in before),
        only_before=tuple(name for name in before if name not in now),
        before_by=tuple(sorted({change.before.by for change in changes.values()})),
    )
