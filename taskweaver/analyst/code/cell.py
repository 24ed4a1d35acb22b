"""Readings as pandas code: the cell that a person would write.

Names and values stand in it as literals alone; nothing of a file's content becomes code. A cell
leaves its tables and ``result`` behind, prints the number of rows it used, and shows its result
once, as its last expression.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from taskweaver.analyst.code.conditions import chosen_code, measured_columns, negated_columns
from taskweaver.analyst.code.frames import RESULT, Frame, laid_out, variable_names
from taskweaver.analyst.code.summary import inspection_code, rows_code, summary_code
from taskweaver.analyst.readings import (
    Calculation,
    Contrast,
    FileListing,
    Python,
    Rank,
    Reading,
    Rows,
    Saved,
    Sql,
    Summary,
    TableSource,
    TableView,
)
from taskweaver.analyst.wording.inert import column_name, column_names, listed, value_text
from taskweaver.analyst.wording.requests import DEFAULT_ROWS, in_words
from taskweaver.tables.files.profile import ColumnProfile, TableId, TableProfile
from taskweaver.utils.parsing import parse_expression

_IMPORTS = {"pd": "import pandas as pd", "plt": "import matplotlib.pyplot as plt"}
_WIDE = 2**62
"""Bound of sums and differences that 64 bits hold."""
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop,
)  # fmt: skip
_MOST_NAMED = 8
"""Values whose spellings an answer names."""
_NOT_COMPARED = r"(?!\] [=!]= |\]\.isin\()"
"""Code after the name of a column that an answer has by all values, not by compared ones alone."""


def as_code(reading: Reading, tables: Mapping[TableId, TableProfile]) -> str:
    """Return the cell that answers a reading; empty where none is needed.

    Raises:
        ValueError: If the expression of a calculation is no arithmetic.
    """
    match reading:
        case Summary() | Rows() | TableView():
            code = _of_table(reading, tables)
        case Saved(of, file):
            code = _of_table(_to_save(of), tables, file)
        case Sql(file, query):
            code = _sql(file, query)
        case FileListing():
            code = "import os\n\nsorted(os.listdir())"
        case Python(text):
            code = text
        case Calculation(expression):
            code = _checked(expression)
        case _:
            code = ""
    return code


def _of_table(
    reading: Summary | Rows | TableView, tables: Mapping[TableId, TableProfile], file: str = ""
) -> str:
    """Return the cell of a reading; with a `file`, the cell writes its result there as well."""
    frame, lines = _loaded(reading.source, tables)
    if reading.where is not None:
        lines.append(f"{RESULT} = {chosen_code(reading.where, frame)}")
        frame = Frame(RESULT, frame.columns)
    lines += _rows_used(reading, frame)
    if isinstance(reading, Summary):
        if wide := _wide_columns(reading, tables, frame):
            kind = "float" if reading.chart or reading.rank else "object"
            lines.append("# 64 bits may not hold the sum")
            lines.append(f"{RESULT} = {frame.name}.astype({dict.fromkeys(wide, kind)!r})")
            frame = Frame(RESULT, frame.columns)
        lines += summary_code(reading, frame)
    elif isinstance(reading, Rows):
        lines += rows_code(reading, frame)
    else:
        lines += inspection_code(reading, frame)
    if file:
        lines[-1:] = _saving(reading, lines[-1], file)
    at = len(set(reading.source.tables))
    lines[at:at] = _merged(reading.source, tables, "\n".join(lines))
    code = "\n".join(map(laid_out, lines))
    imports = [line for name, line in _IMPORTS.items() if re.search(rf"(?<![\w.]){name}\.", code)]
    return "\n".join([*imports, *([""] if imports else []), code])


def _to_save(of: Summary | Rows | TableView) -> Summary | Rows | TableView:
    """Return a reading as its result is saved: without a picture, and with all rows."""
    if isinstance(of, TableView):
        return of
    if isinstance(of, Rows) and of.rank is None and not of.from_end:
        return replace(of, chart=None, rank=Rank(ascending=True))
    return replace(of, chart=None)


def _saving(reading: Summary | Rows | TableView, value: str, file: str) -> list[str]:
    """Return the lines that write the value of a cell's last line to a file and show it."""
    table = _as_table(reading, value)
    kept = [] if table == RESULT else [f"{RESULT} = {table}"]
    method = "to_excel" if file.casefold().endswith(".xlsx") else "to_csv"
    index = ", index=False" if table != value or isinstance(reading, Rows) else ""
    is_long = isinstance(reading, Rows) and reading.rank == Rank(ascending=True)
    shown = f"{RESULT}.head({DEFAULT_ROWS})" if is_long else RESULT
    return [*kept, f"{RESULT}.{method}({file!r}{index})", shown]


def _as_table(reading: Summary | Rows | TableView, value: str) -> str:
    """Return the code of a table that holds a value; the value itself where it is one."""
    match reading:
        case Summary(measures=(_,), keys=()) | TableView(view="missing", columns=(_,)):
            return f"pd.DataFrame({{{in_words(reading)!r}: [{value}]}})"
        case TableView(view="shape"):
            return f"pd.DataFrame([{value}], columns=['rows', 'columns'])"
    return value


def _wide_columns(
    reading: Summary, tables: Mapping[TableId, TableProfile], frame: Frame
) -> list[str]:
    """Return the integer columns of measures whose sum or product may exceed 64 bits."""
    rows = math.prod(tables[table].rows for table in reading.source.tables if table in tables)
    found: list[str] = []
    for measure in reading.measures:
        names = [name for name in measured_columns(measure) if frame.kind(name) == "integer"]
        ends = [(frame.columns[name].low, frame.columns[name].high) for name in names]
        most = math.prod(max(map(_size, pair)) for pair in ends)
        found += names if most * rows >= _WIDE else []
    return found


def _size(end: str) -> int:
    return abs(int(end)) if re.fullmatch(r"-?[0-9]{1,100}", end) else 0


def _loaded(source: TableSource, tables: Mapping[TableId, TableProfile]) -> tuple[Frame, list[str]]:
    """Return the frame of a source, and the code that reads and joins its tables."""
    names = variable_names([*tables, *source.tables])
    lines = [f"{names[table]} = {_read(table)}" for table in dict.fromkeys(source.tables)]
    columns: dict[str, ColumnProfile] = {}
    joined = names[source.tables[0]]
    for at, table in enumerate(source.tables):
        profile = tables.get(table)
        own = {column.name: column for column in profile.columns} if profile else {}
        if at:
            on = source.on[at - 1] if at <= len(source.on) else ()
            joined += f".merge({names[table]}{_join(on, columns, own, names[table])})"
            own = {
                f"{name}_{names[table]}" if name in columns and name not in on else name: column
                for name, column in own.items()
            }
        columns = own | columns
    if len(source.tables) == 1:
        return Frame(joined, columns), lines
    return Frame(RESULT, columns), [*lines, f"{RESULT} = {joined}"]


def _merged(source: TableSource, tables: Mapping[TableId, TableProfile], code: str) -> list[str]:
    """Return the lines that make the spellings of a value one, in the columns that code names."""
    names = variable_names([*tables, *source.tables])
    return [
        f"{column} = {column}.replace({dict(profile.spellings)!r})"
        for table in dict.fromkeys(source.tables)
        for profile in (tables[table].columns if table in tables else ())
        if profile.spellings and repr(profile.name) in code
        for column in [f"{names[table]}[{profile.name!r}]"]
    ]


def merged_note(code: str, tables: Mapping[TableId, TableProfile]) -> str:
    """Return the paragraph that names the spellings which a cell counts as one value."""
    rest = "\n".join(line for line in code.splitlines() if ".replace({" not in line)
    notes = []
    for column in (column for table in tables.values() for column in table.columns):
        if f"[{column.name!r}].replace({dict(column.spellings)!r})" in code:
            values = list(dict.fromkeys(column.spellings.values()))
            used = [value for value in values if repr(value) in rest]
            if re.search(re.escape(repr(column.name)) + _NOT_COMPARED, rest):
                used = used or values
            groups = [
                f"{value_text(value)} ({column_names(texts)})"
                for value in used[:_MOST_NAMED]
                for texts in [[f'"{t}"' for t, v in column.spellings.items() if v == value]]
            ]
            if groups:
                name = column_name(column.name)
                notes.append(f"Spellings merged in {name}: {listed(groups)}.")
    return " ".join(dict.fromkeys(notes))


def _read(table: TableId) -> str:
    sheet = f", sheet={table.part!r}" if table.part else ""
    return f"read_table({table.file!r}{sheet})"


def _join(
    on: tuple[str, ...],
    columns: Mapping[str, ColumnProfile],
    own: Mapping[str, ColumnProfile],
    name: str,
) -> str:
    """Return the further arguments of a merge; the first table keeps the names of its columns."""
    code = f", on={on[0]!r}" if len(on) == 1 else f", on={list(on)!r}" if on else ""
    is_double = bool(set(columns) & set(own) - set(on))
    return code + (f", suffixes=('', {f'_{name}'!r})" if is_double else "")


def _rows_used(reading: Summary | Rows | TableView, frame: Frame) -> list[str]:
    if isinstance(reading, TableView) and (reading.where is None or reading.view == "outliers"):
        return []
    if isinstance(reading, Summary) and isinstance(reading.then, Contrast) and not reading.keys:
        lines = []  # it prints both numbers
    else:
        lines = [f"print('rows used:', len({frame.name}))"]
    missing = [
        name
        for name in incomplete_columns(reading)
        if name in frame.columns and frame.columns[name].missing
    ]
    if missing:
        counts = f"{frame.name}[{missing!r}].isna().sum().to_dict()"
        lines.append(f"print('without a value:', {counts})")
    return lines


def incomplete_columns(reading: Summary | Rows | TableView) -> list[str]:
    """Return the columns whose missing values the answer depends on."""
    found = sorted(negated_columns(reading.where))
    if isinstance(reading, Summary):
        for measure in reading.measures:
            found += [] if measure.function == "missing" else measured_columns(measure)
        found += [key.column for key in reading.keys]
    elif isinstance(reading, Rows) and reading.chart:
        found += [*reading.columns, reading.split]
    return list(dict.fromkeys(found))


def _sql(file: str, query: str) -> str:
    place = f"file:{quote(file)}?mode=ro"
    return (
        "import sqlite3\nfrom contextlib import closing\n\nimport pandas as pd\n\n"
        f"with closing(sqlite3.connect({place!r}, uri=True)) as connection:\n"
        f"    {RESULT} = pd.read_sql_query({query!r}, connection)\n"
        f"del connection\n{RESULT}"
    )


def _checked(expression: str) -> str:
    """Return an expression after a check that it is made of numbers and operators alone.

    Raises:
        ValueError: If it is not.
    """
    try:
        nodes = list(ast.walk(parse_expression(expression.strip())))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("the calculation is no arithmetic") from error
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    if not all(isinstance(node, _ARITHMETIC) for node in nodes) or not all(
        isinstance(number, int | float) for number in numbers
    ):
        raise ValueError("the calculation is no arithmetic")
    return expression.strip()
