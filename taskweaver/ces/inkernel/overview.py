"""First impression of data files, from the bytes of their beginning: tables, columns, rows.

It runs in the kernel, since readers of these formats must not run on content of others outside of
the sandbox. pandas is imported with the first file.
"""

from __future__ import annotations

import base64
import io
import re
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit

Overview = dict[str, Any]
_SAMPLE_ROWS, _HEAD_ROWS, _MOST_TABLES, _MOST_COLUMNS = 3, 200, 20, 200
_LIMIT_S = 5.0
_SEPARATORS = (",", ";", "\t", "|")
_FLAGS = {"true", "false", "yes", "no"}
_TIME = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?|[A-Z][a-z]{2} \d{1,2},? \d{4}"
)
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)*|[.,]\d+)(e[-+]?\d+)?%?", re.IGNORECASE)
_NAME = re.compile(r"0\d+")


def overviews(payload: Mapping[str, Any]) -> Overview:
    """Return the overview of each file of a request by its name, or why there is none."""
    return {"files": {item["name"]: _overview(item) for item in payload["files"]}}


def _overview(item: Mapping[str, Any]) -> Overview:
    try:
        with time_limit(_LIMIT_S):
            content = base64.b64decode(item["content"])
            suffix = PurePosixPath(item["name"]).suffix.lower()
            tables = _READERS.get(suffix, _delimited)(content, item["bytes"])
    except TooSlow:
        return {"problem": f"it took more than {_LIMIT_S:.0f} s"}
    except Exception as error:  # noqa: BLE001 - a file can hold anything; the reason is reported
        return {"problem": f"{type(error).__name__}: {error}"[:200]}
    return {"tables": tables}


def _delimited(content: bytes, size: int) -> list[Overview]:
    import pandas as pd

    text = _decoded(content, is_whole=len(content) == size)
    head = text.splitlines()[:_HEAD_ROWS]
    if not head:
        raise ValueError("the file is empty")
    separator = max(_SEPARATORS, key=lambda mark: _evenness(head, mark))
    frame = pd.read_csv(
        io.StringIO(text), sep=separator, dtype=str, on_bad_lines="skip", skipinitialspace=True
    )
    return [_table("", frame, _rows(frame, content, size))]


def _evenness(lines: list[str], mark: str) -> tuple[float, int]:
    """Return the share of lines with as many separators as the first one, and their number."""
    count = lines[0].count(mark)
    same = sum(line.count(mark) == count for line in lines)
    return (same / len(lines) if count else 0.0), count


def _decoded(content: bytes, *, is_whole: bool) -> str:
    """Return the text of a file's beginning, without the line that is cut."""
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        text = content.decode("utf-16", "replace")
    elif b"\0" in content:
        raise ValueError("it is not text")
    else:
        whole = content if is_whole else content[: content.rfind(b"\n") + 1]
        try:
            text = whole.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = whole.decode("cp1252", "replace")
    return text if is_whole else text[: text.rfind("\n") + 1]


def _rows(frame: Any, content: bytes, size: int) -> tuple[int, bool]:
    """Return the number of rows, and whether it is estimated."""
    if len(content) == size:
        return len(frame), False
    return round(len(frame) * size / max(len(content), 1)), True


def _json(content: bytes, size: int) -> list[Overview]:
    import pandas as pd

    text = _decoded(content, is_whole=len(content) == size)
    if len(content) < size or text.count("\n{"):
        frame = pd.read_json(io.StringIO(text), lines=True, dtype=False)
    else:
        frame = pd.read_json(io.StringIO(text), dtype=False)
    return [_table("", frame, _rows(frame, content, size))]


def _workbook(content: bytes, size: int) -> list[Overview]:
    import pandas as pd

    _require_whole(content, size)
    sheets = pd.read_excel(io.BytesIO(content), sheet_name=None)
    named = list(sheets.items())[:_MOST_TABLES]
    return [_table(str(name), frame, (len(frame), False)) for name, frame in named]


def _parquet(content: bytes, size: int) -> list[Overview]:
    import pandas as pd

    _require_whole(content, size)
    frame = pd.read_parquet(io.BytesIO(content))
    return [_table("", frame, (len(frame), False))]


def _database(content: bytes, size: int) -> list[Overview]:
    import pandas as pd

    _require_whole(content, size)
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        address = f"{Path(file.name).as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            names = [str(name) for (name,) in connection.execute(query)][:_MOST_TABLES]
            tables = []
            for name in names:
                quoted = '"' + name.replace('"', '""') + '"'
                ((rows,),) = connection.execute(f"SELECT count(*) FROM {quoted}")
                head = f"SELECT * FROM {quoted} LIMIT {_HEAD_ROWS}"
                tables.append(_table(name, pd.read_sql_query(head, connection), (rows, False)))
    return tables


def _require_whole(content: bytes, size: int) -> None:
    if len(content) < size:
        raise ValueError("it is too large to be looked at in passing")


def _table(name: str, frame: Any, rows: tuple[int, bool]) -> Overview:
    count, is_estimate = rows
    shown = frame.iloc[:, :_MOST_COLUMNS]
    sample = [[_cell(value) for value in row] for row in shown.head(_SAMPLE_ROWS).to_numpy()]
    columns = [
        [str(column), _kind(shown.iloc[:_HEAD_ROWS, at])] for at, column in enumerate(shown.columns)
    ]
    return {
        "name": name,
        "rows": count,
        "is_estimate": is_estimate,
        "columns": columns,
        "sample": sample,
    }


def _cell(value: Any) -> str:
    text = str(value)[:200]
    return "" if text in {"nan", "None", "NaT", "<NA>"} else text


def _kind(column: Any) -> str:
    """Return the kind of a column's values: of what they are, or of what their texts look like."""
    if column.dtype.kind in "iufbM":
        return {"i": "integer", "u": "integer", "f": "number", "b": "flag", "M": "time"}[
            column.dtype.kind
        ]
    texts = [text.strip() for text in map(_cell, column) if text.strip()]
    if not texts or any(map(_NAME.fullmatch, texts)):
        return "text"
    if all(text.lower() in _FLAGS for text in texts):
        return "flag"
    if all(map(_TIME.fullmatch, texts)):
        return "time"
    if all(map(_NUMBER.fullmatch, texts)):
        return "integer" if all(text.lstrip("+-").isdigit() for text in texts) else "number"
    return "text"


def _text(content: bytes, size: int) -> list[Overview]:
    tables = _delimited(content, size)
    if len(tables[0]["columns"]) < 2:
        raise ValueError("it holds text, no table")
    return tables


_READERS: dict[str, Callable[[bytes, int], list[Overview]]] = {
    ".txt": _text,
    ".json": _json,
    ".jsonl": _json,
    ".ndjson": _json,
    ".xlsx": _workbook,
    ".xlsm": _workbook,
    ".xls": _workbook,
    ".parquet": _parquet,
    ".db": _database,
    ".sqlite": _database,
    ".sqlite3": _database,
}
