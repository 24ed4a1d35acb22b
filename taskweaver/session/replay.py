"""Rerun of a recorded conversation without a model, and comparison of its results."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from taskweaver.memory.cells import Ran, RecordedCell, executed_cells, parts_of, successful_cells
from taskweaver.memory.round import Round
from taskweaver.session.errors import SessionError
from taskweaver.utils.parsing import parse, parse_expression
from taskweaver.utils.redact import MASK_ADVICE, has_mask
from taskweaver.utils.text import without_addresses

Verdict = Literal["same", "differs", "repaired", "failed"]
Repair = Callable[[str, str], str | None]
"""Corrects a cell, given its code and the error; None when it cannot."""
TOLERANCE = 1e-6
"""Numbers that differ relatively by less are the same, unless both are integers."""

_MOST_DIFFERENCES = 5
_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class ReplayedCell:
    """Result of a cell that was run again.

    Attributes:
        number: Its place, from 1.
        code: The code that ran.
        verdict: Comparison with the recorded result; a repaired cell ran after a correction.
        details: The differences, or the error; a line each.
    """

    number: int
    code: str
    verdict: Verdict
    details: tuple[str, ...] = ()


def replay(
    rounds: Sequence[Round],
    run: Callable[[RecordedCell], Ran],
    settings: Mapping[str, str],
    repair: Repair | None = None,
    only: Container[str] | None = None,
) -> Iterator[ReplayedCell]:
    """Run the successful cells of a conversation again, and yield the result of each.

    A cell that fails, or holds a mask, is skipped; the cells after it run all the same.

    Args:
        rounds: The conversation.
        run: Runs a cell.
        settings: Values, as Python expressions, for names the code assigns at its top level.
        repair: Corrects a cell that fails, once; None leaves it failed.
        only: Ids of the posts whose cells run; None for all.

    Raises:
        SessionError: If no cell is to be run, no cell assigns one of the names, or a value is not
            an expression.
    """
    cells = [cell for cell in successful_cells(rounds) if only is None or cell.post_id in only]
    if not cells:
        raise SessionError("This experience holds no code that ran: save it again with /save.")
    values = {name: _expression(name, text) for name, text in settings.items()}
    changed = [_with_settings(cell.code, values) for cell in cells]
    missing = sorted(set(values) - {name for _, names in changed for name in names})
    if missing:
        raise SessionError(f"No recorded cell assigns {', '.join(missing)} at its top level.")
    recorded = {cell.post_id: cell.report for cell in executed_cells(rounds)}
    for number, (cell, (code, _)) in enumerate(zip(cells, changed, strict=True), start=1):
        report = recorded.get(cell.post_id, "")
        yield _replayed(number, replace(cell, code=code), report, run, repair)


def _replayed(
    number: int,
    cell: RecordedCell,
    report: str,
    run: Callable[[RecordedCell], Ran],
    repair: Repair | None,
) -> ReplayedCell:
    """Run a cell, and compare it with the recorded report."""
    if has_mask(cell.code):  # not given to a model either, which could only guess the value
        refused = f"cell {number} is a masked copy and was not run: {MASK_ADVICE}"
        return ReplayedCell(number, cell.code, "failed", (refused,))
    ran = run(cell)
    error = ran.error
    if error and repair is not None and (better := repair(cell.code, error)) is not None:
        cell = replace(cell, code=better)
        ran = run(cell)
    if ran.error:
        return ReplayedCell(number, cell.code, "failed", (ran.error,))
    found = tuple(differences(report, ran.report))
    if error:
        return ReplayedCell(number, cell.code, "repaired", (f"it failed first: {error}", *found))
    return ReplayedCell(number, cell.code, "differs" if found else "same", found)


def _expression(name: str, text: str) -> ast.expr:
    try:
        return parse_expression(text).body
    except SyntaxError as error:
        raise SessionError(f"--set {name}: {text!r} is no Python expression.") from error


def _with_settings(code: str, values: Mapping[str, ast.expr]) -> tuple[str, set[str]]:
    """Return code in which top-level assignments of some names have other values, and which."""
    if not values or code.lstrip().startswith("%%"):
        return code, set()
    tree = parse(code)
    found = set()
    for node in tree.body:
        names = [
            target.id
            for target in (node.targets if isinstance(node, ast.Assign) else ())
            if isinstance(target, ast.Name) and target.id in values
        ]
        if names and isinstance(node, ast.Assign):
            node.value = values[names[0]]
            found.add(names[0])
    return (ast.unparse(tree), found) if found else (code, set())


@dataclass(frozen=True, slots=True)
class LineDifference:
    """A line in which two reports differ.

    Attributes:
        part: ``Result`` or ``Output``.
        line: Number of the line, from 1; 0 for the number of lines.
        recorded: The line as recorded, or how many lines there were.
        now: The line now, or how many lines there are.
    """

    part: str
    line: int
    recorded: str
    now: str

    def __str__(self) -> str:
        if not self.line:
            return f"{self.part}: {self.recorded} lines were recorded, now {self.now}"
        return f"{self.part}, line {self.line}: {self.recorded!r} was recorded, now {self.now!r}"


def differing_lines(recorded: str, now: str) -> Iterator[LineDifference]:
    """Yield where two reports differ in result or output: numbers within tolerance.

    White space does not count, so a table is compared by its content.
    """
    before, after = parts_of(recorded), parts_of(now)
    for title in ("Result", "Output"):
        old_lines, new_lines = (_lines(found.get(title, "")) for found in (before, after))
        if len(old_lines) != len(new_lines):
            yield LineDifference(title, 0, str(len(old_lines)), str(len(new_lines)))
        for number, (old, new) in enumerate(zip(old_lines, new_lines, strict=False), start=1):
            if not _is_same(old, new):
                yield LineDifference(title, number, old.strip(), new.strip())


def differences(recorded: str, now: str) -> list[str]:
    """Return where two reports differ, a sentence for each line, as `differing_lines` finds it."""
    found = [str(difference) for difference in differing_lines(recorded, now)]
    more = len(found) - _MOST_DIFFERENCES
    return found[:_MOST_DIFFERENCES] + ([f"and {more} more"] if more > 0 else [])


def _lines(text: str) -> list[str]:
    return list(filter(str.strip, text.splitlines()))


def _is_same(old: str, new: str) -> bool:
    # Where an object lies in memory differs each time.
    lines = map(without_addresses, (old, new))
    tokens = [re.findall(r"[^\s,()\[\]{}]+", line) for line in lines]
    return len(tokens[0]) == len(tokens[1]) and all(map(_same_token, *tokens))


def _same_token(old: str, new: str) -> bool:
    if old == new:
        return True
    if _INTEGER.fullmatch(old) and _INTEGER.fullmatch(new):
        return False  # a count that differs by one is another count, however large
    try:
        numbers = float(old), float(new)
    except ValueError:
        return False
    return math.isclose(*numbers, rel_tol=TOLERANCE, abs_tol=1e-12)
