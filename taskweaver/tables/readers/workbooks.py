"""Read sheets of workbooks: the sheet that holds a table, and the row of its header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.tables.errors import MissingTableError, TableError
from taskweaver.tables.evidence.sniffing import has_header, header_row
from taskweaver.tables.packing import source_of
from taskweaver.tables.plans.plan import Option, ReadPlan, Step, Tidy
from taskweaver.tables.plans.steps import carry_out, read_source
from taskweaver.tables.readers.raw import Raw, part_named, typed, with_kept_words

_TOP_ROWS = 60


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets.

    Raises:
        TableError: If it cannot be opened.
    """
    with _opened(path) as book:
        return [str(name) for name in book.sheet_names]


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
        chosen = _chosen(book, names, sheet, path.name)
        top = _top(book, chosen)
        first = header_row(top) if top else 0
        options: dict[str, Option] = {"sheet_name": chosen}
        if first:
            options["skiprows"] = first
        is_named = has_header(top[first], top[first + 1 :]) if top else True
        if not is_named:
            options["header"] = None
        frame = pd.read_excel(book, **options, dtype=object)  # type: ignore[call-overload]
    plan, notes = with_kept_words(ReadPlan("excel", name, options), frame)
    if notes:
        frame = read_source(plan)
    if not is_named:
        frame = frame.rename(columns=lambda number: f"column_{number + 1}")
    if not frame.shape[1]:
        raise TableError(f"The sheet {chosen!r} of {path.name} is empty.")
    raw = _tidy(plan, frame)
    raw.notes = notes
    raw.form = [f"sheet {chosen!r}"] if len(names) > 1 else []
    raw.form += [f"header in row {first + 1}"] if first and is_named else []
    if sheet is None:
        raw.note_others("sheet", names, chosen)
    return raw


def _chosen(book: Any, names: Sequence[str], sheet: str | int | None, file: str) -> str:
    if isinstance(sheet, int) and not isinstance(sheet, bool):
        if not -len(names) <= sheet < len(names):
            raise MissingTableError(f"{file} has {len(names)} sheets; there is no number {sheet}.")
        return names[sheet]
    if sheet is not None:
        return part_named(sheet, names, "sheet", file)
    return tables_of(book, names)[0]


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


def _tidy(plan: ReadPlan, frame: Any) -> Raw:
    """Drop empty rows and nameless empty columns; give columns the types of their values."""
    steps: list[Step] = []
    if not all(isinstance(name, str) for name in frame.columns):
        steps.append(Tidy("names"))
    empty = frame.isna().all()
    if any(is_empty and str(name).startswith("Unnamed: ") for name, is_empty in empty.items()):
        steps.append(Tidy("columns"))
    if frame.isna().all(axis="columns").any():
        steps.append(Tidy("rows"))
    if any(isinstance(name, str) and name != name.strip() for name in frame.columns):
        steps.append(Tidy("strip"))
    return typed(replace(plan, steps=tuple(steps)), carry_out(frame, tuple(steps)))
