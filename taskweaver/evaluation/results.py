"""Results: a row for each case, their sums, and their file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from taskweaver.evaluation.forms import EvaluationError, mistake
from taskweaver.utils.files import read_text

Outcome = Literal["passed", "failed", "error", "timeout", "skipped"]
AnsweredBy = Literal["live", "recording", "offline"]
_SUMMED = ("questions", "calls", "prompt_tokens", "completion_tokens", "time_s")


class ResultRow(BaseModel):
    """Outcome of a case.

    Attributes:
        format: Version of the form of a row.
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

    model_config = ConfigDict(strict=True, frozen=True)

    format: Literal[1] = 1
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
        """Whether the case was played to the end."""
        return self.outcome in ("passed", "failed")


def sums_of(rows: Sequence[ResultRow]) -> dict[str, float]:
    """Return the number of cases played to the end, and the sums over these cases."""
    scored = [row for row in rows if row.is_scored]
    sums: dict[str, float] = {name: sum(getattr(row, name) for row in scored) for name in _SUMMED}
    passed = sum(row.outcome == "passed" for row in scored)
    return {"cases": len(scored), "passed": passed, **sums}


def read_rows(path: Path) -> list[ResultRow]:
    """Return the rows of a file. Half a line at the end was not written whole, and is left out.

    Raises:
        EvaluationError: If the file cannot be read, or a line of it is no row.
    """
    try:
        lines = read_text(path).split("\n")
    except (OSError, ValueError) as error:
        raise EvaluationError(str(path), f"cannot be read: {error}") from error
    rows = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            rows += [ResultRow.model_validate_json(line)] if line.strip() else []
        except ValidationError as error:
            problem = f"is no result: {mistake(error)}."
            raise EvaluationError(f"{path}, line {number}", problem) from error
    return rows


def begin_file(path: Path) -> list[ResultRow]:
    """Return the rows of a file of results, which is made, and cut off half a line at the end.

    Raises:
        EvaluationError: If the file cannot be used, or holds anything but results.
    """
    rows = read_rows(path) if path.exists() else []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    except OSError as error:
        raise EvaluationError(str(path), f"cannot be written: {error.strerror}.") from error
    return rows


def append_row(path: Path, row: ResultRow) -> None:
    """Append a row to a file of results.

    Raises:
        EvaluationError: If it cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(row.model_dump_json() + "\n")
    except OSError as error:
        raise EvaluationError(str(path), f"cannot be written: {error.strerror}.") from error
