"""Read sheets of workbooks: the sheet that holds a table, and the row of its header."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.sniffing import has_header, header_of, header_row
from taskweaver.tables.packing import source_of
from taskweaver.tables.plans.plan import Down, Drop, Option, ReadPlan, Step, Tidy
from taskweaver.tables.plans.steps import carry_out, read_source
from taskweaver.tables.readers.raw import Raw, part_named, typed, with_kept_words

_TOP_ROWS, _SHOWN_CHARS = 60, 60
_Cells = tuple[int, int, int, int]
"""First row and column, last row and column of merged cells, counted from 0."""


def _opened(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.ExcelFile(source_of(path))
    except ImportError as error:
        package = "xlrd" if path.suffix.lower() == ".xls" else "openpyxl"
        raise TableError(f"Reading {path.name} needs a package: pip install {package}.") from error
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{path.name} is no workbook, or is damaged: {error}.") from error


def read_workbook(path: Path, name: str, sheet: str | int | None) -> Raw:
    """Read a sheet of a workbook, which the plan calls `name`.

    The sheet is given by name or number (from 0); None is the first that holds a table.

    Raises:
        TableError: If the sheet does not exist, or holds no table.
    """
    import pandas as pd

    with _opened(path) as book:
        names = [str(item) for item in book.sheet_names]
        if sheet is None:
            chosen = tables_of(book, names)[0]
        else:
            chosen = part_named(sheet, names, "sheet", path.name)
        merged = _merged(book, chosen, path)
        top = _top(book, chosen)
        first, joined = header_of(top, _with_merged(top, merged)) if top else (0, ())
        options: dict[str, Option] = {"sheet_name": chosen}
        if first:
            options["skiprows"] = first
        is_named = bool(joined) or not top or has_header(top[first], top[first + 1 :])
        if not is_named:
            options["header"] = None
        frame = pd.read_excel(book, **options, dtype=object)  # type: ignore[call-overload]
    if joined:
        frame.columns = options["names"] = [*joined, *map(str, frame.columns[len(joined) :])]
    plan, kept = with_kept_words(ReadPlan("excel", name, options), frame)
    if kept:
        frame = read_source(plan)
    if not is_named:
        frame = frame.rename(columns=lambda number: f"column_{number + 1}")
    if not frame.shape[1]:
        raise TableError(f"The sheet {chosen!r} of {path.name} is empty.")
    steps, notes, unclear = _unmerged(frame, merged, first + is_named)
    raw = _tidy(plan, frame, steps)
    raw.notes, raw.unclear = [*kept, *notes], unclear
    raw.form = [f"sheet {chosen!r}"] if len(names) > 1 else []
    raw.form += [f"header in row {first + 1}"] if first and is_named else []
    if joined:
        raw.form[-1] = f"header in several rows, the last is row {first + 1}"
    if sheet is None:
        raw.note_others("sheet", names, chosen)
    return raw


def _merged(book: Any, sheet: str, path: Path) -> list[_Cells]:
    """Return the merged cells of a sheet, which pandas takes for empty ones."""
    place = getattr(book.book[sheet], "_worksheet_path", "") if book.engine == "openpyxl" else ""
    if not place:
        return []
    from openpyxl.utils import range_boundaries  # type: ignore[import-untyped]

    with zipfile.ZipFile(source_of(path)) as archive:
        end = archive.read(place).rpartition(b"</sheetData>")[2].decode()
    found = [range_boundaries(text) for text in re.findall(r'mergeCell [^>]*?ref="([^"]+)"', end)]
    return [(top - 1, left - 1, bottom - 1, right - 1) for left, top, right, bottom in found]


def _with_merged(top: Sequence[Sequence[str]], merged: Sequence[_Cells]) -> list[list[str]]:
    """Return rows with the texts of merged cells in all places that the cells cover.

    Gaps beside merged cells are blanks, so that no text stands for these.
    """
    rows = [list(row) for row in top]
    for upper, left, lower, right in merged:
        for number in range(upper, min(lower + 1, len(rows))):
            row = rows[number]
            row[left : right + 1] = rows[upper][left : left + 1] * len(row[left : right + 1])
            rows[number] = [cell or " " for cell in row]
    return rows


def _unmerged(
    frame: Any, merged: Sequence[_Cells], skipped: int
) -> tuple[list[Step], list[str], list[str]]:
    """Return steps that fill merged cells below a header, and phrases on these and other cells.

    Numbers are repeated in the first column alone: an amount that is merged counts once.
    """
    steps: list[Step] = []
    notes, unclear = [], []
    rows: dict[int, list[int]] = {}
    headings: list[int] = []
    filled = frame.notna().to_numpy()
    for upper, left, lower, right in sorted(merged, key=lambda cells: cells[1]):
        first, below = upper - skipped, range(upper - skipped + 1, lower - skipped + 1)
        if not 0 <= first < len(frame) or not filled[first, left : left + 1].any():
            continue
        if left < right and filled[first].sum() == 1:
            headings.append(first)
        elif left < right:
            unclear.append(f"{frame.iat[first, left]!r} is merged across columns")
        rows.setdefault(left, []).extend(row for row in below if filled[row : row + 1].any())
    for place in [place for place, found in rows.items() if found]:
        name = str(frame.columns[place])
        if place and frame.iloc[:, place].dropna().map(type).isin([int, float]).all():
            unclear.append(f"`{name}` has numbers in merged cells, which count once")
        else:
            steps.append(Down(name, tuple(rows[place])))
            notes.append(f"`{name}`: merged cells are filled ({len(rows[place])} rows).")
    if headings:
        steps.append(Drop(tuple(headings)))
        shown = ", ".join(
            repr(str(frame.iloc[row].dropna().iloc[0])[:_SHOWN_CHARS]) for row in headings[:5]
        )
        notes.append(f"Rows of one merged cell are left out: {shown}.")
    return steps, notes, unclear


def tables_of(book: Any, names: Sequence[str]) -> list[str]:
    """Return the sheets that hold a table, or those that hold anything, or the first."""
    if len(names) == 1:
        return list(names)
    tops = {name: _top(book, name) for name in names}
    tables = [name for name, top in tops.items() if _is_table(top)]
    return tables or [name for name, top in tops.items() if top] or list(names[:1])


def sheets_with_tables(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook that hold a table."""
    with _opened(path) as book:
        return tables_of(book, [str(name) for name in book.sheet_names])


def _top(book: Any, sheet: str) -> list[list[str]]:
    """Return the first rows of a sheet as texts."""
    import pandas as pd

    frame = pd.read_excel(book, sheet_name=sheet, header=None, dtype=object, nrows=_TOP_ROWS)
    return [
        ["" if pd.isna(value) else str(value) for value in row]
        for row in frame.itertuples(index=False, name=None)
    ]


def _is_table(top: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are more than a cover: two columns, a header and values below it."""
    if len(top) < 2:
        return False
    first = header_row(top)
    header = [cell for cell in top[first] if cell.strip()]
    body = [row for row in top[first + 1 :] if sum(bool(cell.strip()) for cell in row) > 1]
    return len(header) > 1 and bool(body)


def _tidy(plan: ReadPlan, frame: Any, more: Sequence[Step]) -> Raw:
    """Drop empty rows and nameless empty columns."""
    steps: list[Step] = []
    if not all(isinstance(name, str) for name in frame.columns):
        steps.append(Tidy("names"))
    steps += more
    empty = frame.isna().all()
    if any(is_empty and str(name).startswith("Unnamed: ") for name, is_empty in empty.items()):
        steps.append(Tidy("columns"))
    if frame.isna().all(axis="columns").any():
        steps.append(Tidy("rows"))
    if any(isinstance(name, str) and name != name.strip() for name in frame.columns):
        steps.append(Tidy("strip"))
    plan = replace(plan, steps=tuple(steps))
    return typed(plan, carry_out(frame, plan.steps))
