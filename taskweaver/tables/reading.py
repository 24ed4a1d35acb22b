"""Read a file as a table: find its kind, read it, decide on its columns, print the decisions."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from taskweaver.tables.deciding import Decisions, decide
from taskweaver.tables.errors import MissingTableError, TableError
from taskweaver.tables.evidence.totals import labels_of, notes_of, totals_of
from taskweaver.tables.packing import beginning
from taskweaver.tables.plans.plan import Drop, ReadPlan, Step, Tidy
from taskweaver.tables.plans.steps import Frame, carry_out, read_source
from taskweaver.tables.readers.csv_files import read_separated
from taskweaver.tables.readers.databases import read_database, table_names
from taskweaver.tables.readers.json_files import read_json
from taskweaver.tables.readers.raw import Raw, exact
from taskweaver.tables.readers.workbooks import read_workbook, sheets_with_tables
from taskweaver.utils.markup.characters import with_line_feeds, without_steering
from taskweaver.utils.text import counted

Stamp = tuple[int, int]
DOUBT = "Not certain"
"""First words of the line on decisions without evidence."""
_MOST_CHARS = 400
_LOOKED_ROWS = 1_000
_LABEL_CHARS, _MOST_LABELS = 60, 5
_WESTERN = frozenset("".join(map(chr, range(128))) + "äöüÄÖÜßéÉáíóúçâîô€…")
"""Letters of Windows-1252 that are the same in the encodings that it is mistaken for."""
_HEAD_BYTES = 4_000
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"|\[\s*[\[{])')
_ROW = re.compile(rb"[^\0\n]*[,;\t|][^\0\n]*\n")
_WORD = re.compile(rb"\s*\w.*[,;\t|]")
_STARTS = {
    b"SQLite format 3\0": "sqlite",
    b"PAR1": "parquet",
    b"PK\x03\x04": "excel",
    b"\xd0\xcf\x11\xe0": "excel",
}
"""First bytes of files, and the kinds of the files."""
_KINDS = {
    ".json": "json",
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "sqlite"),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm"), "excel"),
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Table that was read.

    Attributes:
        report: Lines on the decisions.
        first: First rows as they are written, for a file of separated text.
    """

    frame: Frame
    plan: ReadPlan
    report: tuple[str, ...]
    first: tuple[tuple[str, ...], ...] = ()


def load(name: str | os.PathLike[str], sheet: str | int | None = None) -> Table:
    """Read a table, or a sheet by name or number; a file that changes meanwhile is read once more.

    Raises:
        TableError: If the file cannot be read as a table.
    """
    path = existing(name)
    before = stamp(path)
    try:
        table = _load(path, os.fspath(name), sheet)
    except Exception:
        if stamp(path) == before:
            raise
    else:
        if stamp(path) == before:
            return table
    before = stamp(path)
    table = _load(existing(name), os.fspath(name), sheet)
    if stamp(path) == before:
        return table
    line = f"{path.name} is being changed: this is its content at one moment, or parts of two."
    return replace(table, report=(*table.report, line))


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Return size and time of a file, which change with its content; zeros for one that is gone."""
    try:
        facts = Path(path).stat()
    except OSError:
        return 0, 0
    return facts.st_size, facts.st_mtime_ns


def existing(name: str | os.PathLike[str]) -> Path:
    """Return the path of a file that exists.

    Raises:
        TableError: If there is none; files with a similar name are named.
    """
    path = Path(name)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # or a null character
        mode = 0
    except OSError as error:
        raise _unopened(path, error) from error
    if S_ISREG(mode):
        return path
    if S_ISDIR(mode):
        raise TableError(f"{path} is a folder, not a file.")
    if path.is_symlink():
        raise MissingTableError(f"{path} is a link to {path.readlink()}, which is missing.")
    near = _near(path)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    raise MissingTableError(f"There is no file {os.fspath(name)!r}{hint}")


def _unopened(path: Path, error: OSError) -> TableError:
    return TableError(f"{path} cannot be opened: {error.strerror or error}.")


def _near(path: Path) -> list[str]:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()][:5_000]
    except (OSError, ValueError):
        return []
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(path.name.casefold(), folded, n=3, cutoff=0.6)
    same_stem = [name for name in names if Path(name).stem.casefold() == path.name.casefold()]
    return list(dict.fromkeys([*same_stem, *(folded[name] for name in close)]))[:3]


def parts_of(path: Path) -> list[str]:
    """Return the sheets or tables of a file; one empty name for a file with one table.

    Raises:
        TableError: If the file cannot be read.
    """
    kind = kind_of(path)
    if kind == "excel":
        return sheets_with_tables(path)
    return table_names(path) if kind == "sqlite" else [""]


def kind_of(path: Path) -> str:
    """Return the kind of a file: by its first bytes, else by its suffix."""
    try:
        head, suffix = beginning(path, _HEAD_BYTES)
    except OSError as error:
        raise _unopened(path, error) from error
    if not head:
        raise TableError(f"{path.name} is empty.")
    found = [kind for start, kind in _STARTS.items() if head.startswith(start)]
    if found and suffix != ".zip":
        return found[0]
    named = _KINDS.get(suffix, "text")
    if named.startswith("json"):
        return "text" if _WORD.match(head) else named
    if named == "text" or _ROW.match(head):
        return "json" if _JSON.match(head) else "text"
    if named == "sqlite":
        raise TableError(f"{path.name} is no SQLite database.")
    return named


def _load(path: Path, name: str, sheet: str | int | None) -> Table:
    raw = undecided(path, name, sheet)
    decided = decide(raw.frame, likely_decimal=raw.decimal, kept=raw.texts)
    decided.unclear = list(dict.fromkeys([*raw.unclear, *decided.unclear]))
    decided.lost += raw.lost
    plan = replace(raw.plan, steps=(*raw.plan.steps, *decided.steps))
    return Table(raw.frame, plan, tuple(_lines(path.name, raw, decided)), raw.first)


def undecided(path: Path, name: str, sheet: str | int | None) -> Raw:
    """Return the records of a table before decisions on its columns.

    Raises:
        TableError: If the file cannot be read as a table.
    """
    try:
        raw = _raw(path, name, sheet)
    except TableError:
        raise
    except OSError as error:
        raise _unopened(path, error) from error
    twice = raw.frame.columns[raw.frame.columns.duplicated()]
    if len(twice):
        raise TableError(f"{path.name} has several columns {str(twice[0])!r}.")
    # Rows are left out by their numbers, which an index of a Parquet file may not be.
    is_numbered = bool((raw.frame.index == [*range(len(raw.frame))]).all())
    return _of_records(raw) if is_numbered else raw


def _of_records(raw: Raw) -> Raw:
    """Leave out and note the rows that are no records; give objects the types of their values."""
    has_notes = raw.plan.reader in {"csv", "excel"}
    notes, doubts = notes_of(raw.frame) if has_notes else ({}, [])
    doubts += _doubts_of_encoding(raw)
    frame = carry_out(raw.frame, (Drop(tuple(notes)),)) if notes else raw.frame
    totals: dict[int, str] = {}
    if labels := labels_of(frame):
        decided = frame.infer_objects()
        decide(decided, likely_decimal=raw.decimal, kept=raw.texts)
        totals, more_doubts = totals_of(decided, labels)
        doubts += more_doubts
    steps: list[Step] = [Drop(tuple(rows)) for rows in (notes, totals) if rows]
    plan, frame = raw.plan, raw.frame
    if steps and plan.reader == "csv":
        # The types of numbers are those of the records alone.
        kept = {k: v for k, v in plan.options.items() if k not in {"date_format", "decimal"}}
        plan = replace(plan, options={**kept, "dtype": dict.fromkeys(map(str, frame), "str")})
        frame = carry_out(read_source(plan), plan.steps)
    if plan.reader == "excel":
        steps.append(Tidy("infer"))
    lost = []
    for kind, found in (("total row", totals), ("note row", notes)):
        shown = ", ".join(repr(text[:_LABEL_CHARS]) for text in [*found.values()][:_MOST_LABELS])
        lost += [f"{counted(len(found), kind)} ({shown})"] if found else []
    plan = replace(plan, steps=(*plan.steps, *steps))
    frame, first = carry_out(frame, tuple(steps)), () if steps else raw.first
    return replace(
        raw, plan=plan, frame=frame, first=first, unclear=raw.unclear + doubts, lost=lost
    )


def _doubts_of_encoding(raw: Raw) -> list[str]:
    """Return a phrase on an encoding that is a guess, with a text that shows the guess."""
    encoding = str(raw.plan.options.get("encoding", "utf-8"))
    cells = [*map(str, [*raw.frame.columns, *raw.frame.head(_LOOKED_ROWS).to_numpy().ravel()])]
    texts = [text for text in cells if not text.isascii()]
    if "encoding_errors" in raw.plan.options:
        shown = next((text for text in cells if "\\x" in text), "\\xfc")[:_LABEL_CHARS]
        return [f"bytes that are not UTF-8 are read as their codes, for example {shown!r}"]
    if encoding.startswith("utf") or (
        encoding == "cp1252" and texts and set("".join(texts)) <= _WESTERN
    ):
        return []
    return [f"the encoding was read as {encoding}" + (f": {texts[0]!r}" if texts else "")]


def _raw(path: Path, name: str, sheet: str | int | None) -> Raw:
    kind = kind_of(path)
    if kind == "excel":
        return read_workbook(path, name, sheet)
    if kind == "sqlite":
        return read_database(path, name, sheet)
    if sheet not in {None, "", 0}:
        raise MissingTableError(f"{path.name} has no sheets; there is one table in it.")
    if kind == "parquet":
        return _read_parquet(path, name)
    if kind in {"json", "jsonl"}:
        return read_json(path, name, has_lines=kind == "jsonl")
    return read_separated(path, name)


def _read_parquet(path: Path, name: str) -> Raw:
    plan = ReadPlan("parquet", name)
    try:
        frame = read_source(plan)
        if type(frame.index).__name__ != "RangeIndex":
            is_named = any(frame.index.names) and not {*frame.index.names} & {*frame.columns}
            if "row" in frame.columns and not is_named:
                frame = frame.reset_index(drop=True)
            else:
                plan = replace(plan, steps=(Tidy("labels" if is_named else "index"),))
        raw = exact(plan, carry_out(frame, plan.steps))
    except ImportError as error:
        raise TableError(f"Reading {path.name} needs a package: pip install pyarrow.") from error
    except Exception as error:
        raise TableError(f"{path.name} is no Parquet file, or is damaged: {error}.") from error
    raw.form = ["Parquet"]
    return raw


def _lines(name: str, raw: Raw, decided: Decisions) -> list[str]:
    """Return the report: the form of the file, and the decisions that are not the default."""
    rows, columns = raw.frame.shape
    form = ", ".join([f"{counted(rows, 'row')} x {counted(columns, 'column')}", *raw.form])
    kept = [*(f"`{column}`" for column in raw.texts), *decided.texts]
    phrases = [
        ("Dates", decided.dates),
        ("Numbers", decided.numbers),
        ("Kept as text", list(dict.fromkeys(kept))),
    ]
    columns_line = ". ".join(f"{title}: {_listed(found)}" for title, found in phrases if found)
    lines = [f"{name}: {form}", " ".join(raw.notes), columns_line]
    lines.append(f"{DOUBT}: {_listed(decided.unclear, ';')}" if decided.unclear else "")
    lines.append(f"Left out: {_listed(decided.lost, ';')}" if decided.lost else "")
    # A name in the file with a line end would begin a line of its own, such as a number of rows.
    return [" ".join(without_steering(with_line_feeds(line)).split()) for line in lines if line]


def _listed(phrases: Sequence[str], mark: str = ",") -> str:
    """Return phrases in a line of bounded length."""
    text = ""
    for number, phrase in enumerate(phrases):
        if text and len(text) + len(phrase) > _MOST_CHARS:
            return f"{text}{mark} and {len(phrases) - number} more"
        text = f"{text}{mark} {phrase}" if text else phrase
    return text
