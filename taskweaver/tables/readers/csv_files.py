"""Read separated text: the form of the file, and the values the C parser changes silently."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.tables.deciding import (
    counted,
    is_name_like,
    is_of_texts,
    names_numerals,
    sampled,
    shared_decimal,
)
from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.codes import WHOLE, code_reason, names_codes
from taskweaver.tables.evidence.numerals import numeral
from taskweaver.tables.evidence.sniffing import (
    HEAD_BYTES,
    SEPARATOR_NAMES,
    TextForm,
    legacy_encoding,
    sniff,
)
from taskweaver.tables.packing import beginning, is_gzip, opened
from taskweaver.tables.plans.plan import Option, ReadPlan, Tidy
from taskweaver.tables.plans.steps import Frame, carry_out, read_source
from taskweaver.tables.readers.raw import (
    Raw,
    holds_large,
    texts_of,
    with_kept_words,
)

_ENCODING_NAMES = {
    "utf-8-sig": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
    "cp1251": "Windows-1251",
    "cp932": "Shift-JIS",
    "cp949": "EUC-KR",
}
_SKIPPED = re.compile(r"Skipping line (\d+)")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_FORMAT = "%Y-%m-%d"
_DECIMAL = re.compile(r"-?\d+[.,]\d+")
_DIGITS = 17
_FIRST_ROWS = 3
_CHUNK, _LONGEST = 1 << 16, 20
_NAME = re.compile(rb"\n0[01]+\n")


Sample = dict[str, list[str]]
"""Texts of the first rows, by column."""


def read_separated(path: Path, name: str) -> Raw:
    """Read a file of separated text, which the plan calls `name`.

    Raises:
        TableError: If it holds no table.
    """
    head, suffix = beginning(path, HEAD_BYTES)
    if not head:
        raise TableError(f"{path.name} is empty.")
    form = sniff(head, path.name, suffix=suffix)
    try:
        return _read(path, name, form)
    except UnicodeDecodeError:
        with opened(path) as file:
            encoding = legacy_encoding(file.read())
        form = sniff(head, path.name, suffix=suffix, encoding=encoding)
        return _read(path, name, replace(form, has_errors=encoding == "utf-8"))


def _read(path: Path, name: str, form: TextForm) -> Raw:
    options = _options(path, form)
    sample = _columns(form)
    decimal = shared_decimal([(text, 1) for text in texts if text] for texts in sample.values())
    if decimal == ",":
        options["decimal"] = ","
    is_plain = form.names and not form.has_row_names
    if dates := _iso_columns(sample) if is_plain else {}:
        options["date_format"] = dates
    steps = (Tidy("index"),) if form.has_row_names else ()
    plan = ReadPlan("csv", name, options, steps)
    types = dict[str, str].fromkeys(_text_columns(sample) if form.names else (), "str")
    plan = _with_types(plan, types)
    frame, notes, plan = _parsed(plan)
    late, reasons = _late_types(path, frame, form, plan, sample)
    if late:
        types |= late
        plan = _with_types(plan, {**_types(plan), **late})
        frame = _parsed(plan)[0]
    if not decimal:
        texts_of = [frame[column] for column in frame.columns if is_of_texts(frame[column])]
        decimal = shared_decimal([counted(sampled(series)) for series in texts_of])
    encoding = _ENCODING_NAMES.get(form.encoding, form.encoding.upper())
    raw = Raw(plan, frame, [SEPARATOR_NAMES[form.separator], encoding])
    raw.notes, raw.texts, raw.decimal = notes, [c for c in types if types[c] == "str"], decimal
    raw.first = form.rows[:_FIRST_ROWS]
    if form.separator == ";" and not decimal:
        raw.unclear = list(_unclear_points(sample, frame))
    raw.unclear += reasons
    raw.notes += _merged(sample, frame)
    _note_header(raw, form)
    if decimal == "," and "decimal" not in plan.options:
        # Only later rows have shown the decimal commas.
        raw.plan = raw.plan.with_options(decimal=",")
        raw.frame = _parsed(raw.plan)[0]
    shift = int(form.has_row_names)
    raw.plan, kept = with_kept_words(raw.plan, raw.frame.iloc[:, shift:])
    if kept:
        raw.frame = _parsed(raw.plan)[0]
        raw.notes += kept
    return raw


def _note_header(raw: Raw, form: TextForm) -> None:
    if form.skipped:
        raw.form.append(
            f"header in line {form.skipped + 1}" if form.names else "first lines left out"
        )
    if form.is_stacked:
        raw.form[-1] = f"header in several lines, the last is line {form.skipped}"
    if not form.names:
        columns = raw.frame.shape[1]
        raw.notes.append(f"There is no header; the columns are column_1 to column_{columns}.")


def _options(path: Path, form: TextForm) -> dict[str, Option]:
    options: dict[str, Option] = {}
    if is_gzip(path) and path.suffix.lower() != ".gz":
        options["compression"] = "gzip"
    if form.separator != ",":
        options["sep"] = form.separator
    if form.encoding not in {"utf-8", "utf-8-sig"}:
        options["encoding"] = form.encoding
    if form.has_errors:
        options["encoding_errors"] = "backslashreplace"
    if form.skipped:
        options["skiprows"] = form.skipped
    if not form.names:
        options["header"] = None
    if form.is_stacked:
        options["names"] = list(form.names)
    if form.has_empty_end:
        options["index_col"] = False
    if form.has_blanks:
        options["skipinitialspace"] = True
    return options


def _with_types(plan: ReadPlan, types: dict[str, str]) -> ReadPlan:
    options = {name: value for name, value in plan.options.items() if name != "dtype"}
    return replace(plan, options={**options, "dtype": types} if types else options)


def _types(plan: ReadPlan) -> dict[str, str]:
    types = plan.options.get("dtype")
    return types if isinstance(types, dict) else {}


def _columns(form: TextForm) -> Sample:
    """Return the sample by the names of pandas, without columns whose names repeat or are empty."""
    width = len(form.rows[0]) if form.rows else 0
    names = form.names or tuple(map(str, range(width)))
    counts = Counter(names)
    return {
        name: [row[index] for row in form.rows if index < len(row)]
        for index, name in enumerate(names, int(form.has_row_names))
        if name and counts[name] == 1
    }


def _text_columns(sample: Sample) -> list[str]:
    """Return the columns whose numerals are names."""
    return [
        name
        for name, texts in sample.items()
        if is_name_like(texts)
        or (names_numerals(name) and any(text.strip().isdecimal() for text in texts))
    ]


def _iso_columns(sample: Sample) -> dict[str, str]:
    """Return columns of plain ISO dates, which the C parser converts.

    It leaves a column as texts if one of its values is no date.
    """
    return {
        name: _ISO_FORMAT
        for name, texts in sample.items()
        if any(texts) and all(map(_ISO_DATE.fullmatch, filter(None, texts)))
    }


def _unclear_points(sample: Sample, frame: Frame) -> Iterator[str]:
    """Give phrases on columns where ``1.234`` may be a number over a thousand."""
    for name, texts in sample.items():
        forms = [numeral(text) for text in texts if text.strip()]
        if name in frame.columns and frame[name].dtype == float and forms:
            points = [item for item in forms if item and item.is_unclear and item.thousands == "."]
            if len(points) == len(forms):
                example = next(text for text in texts if text.strip())
                yield f"`{name}`: {example!r} was read as {float(example):g}"


def _merged(sample: Sample, frame: Frame) -> Iterator[str]:
    """Give sentences on spellings of a number that the sample shows to be merged."""
    for name, texts in sample.items():
        if name in frame.columns and frame[name].dtype == float:
            plain = [text.replace(",", ".") for text in texts if _DECIMAL.fullmatch(text)]
            if merged := code_reason(name, plain)[1]:
                yield f"`{name}`: {merged}."


def _parsed(plan: ReadPlan) -> tuple[Frame, list[str], ReadPlan]:
    """Return the frame, sentences on rows that were left out, and the plan that gave it."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            frame = read_source(plan)
    except pd.errors.EmptyDataError:
        raise TableError(f"{Path(plan.path).name} holds no table.") from None
    except pd.errors.ParserError as error:
        if "on_bad_lines" in plan.options:
            raise _unreadable(plan, error) from error
        return _without_bad_lines(plan)
    # Beside integers of over 64 bits the parser leaves empty cells as empty texts.
    unread = [c for c in frame.columns if is_of_texts(frame[c]) and (frame[c] == "").any()]
    objects = [column for column in frame.columns if frame[column].dtype == object]
    kinds = {column: pd.api.types.infer_dtype(frame[column], skipna=True) for column in objects}
    mixed = [column for column, kind in kinds.items() if kind != "boolean"] + unread
    is_mixed = bool(unread) or not {kinds[column] for column in mixed} <= {"string", "empty"}
    if is_mixed and "header" not in plan.options:
        plan = _with_types(plan, {**_types(plan), **dict.fromkeys(mixed, "str")})
        frame = read_source(plan)
    return carry_out(frame, plan.steps), [], plan


def _unreadable(plan: ReadPlan, error: Exception) -> TableError:
    return TableError(f"{Path(plan.path).name} cannot be read: {str(error).strip()}.")


def _without_bad_lines(plan: ReadPlan) -> tuple[Frame, list[str], ReadPlan]:
    import pandas as pd

    plan = plan.with_options(on_bad_lines="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = read_source(plan)
        except pd.errors.ParserError as error:
            raise _unreadable(plan, error) from error
    plan = plan.with_options(on_bad_lines="skip")
    lines = [number for item in caught for number in _SKIPPED.findall(str(item.message))]
    shown = ", ".join(lines[:5]) + (" ..." if len(lines) > 5 else "")
    which = f"Line {shown} has" if len(lines) == 1 else f"{len(lines):,} lines ({shown}) have"
    notes = [f"{which} more values than the header, and were left out."]
    return carry_out(frame, plan.steps), notes, plan


def _late_types(
    path: Path, frame: Frame, form: TextForm, plan: ReadPlan, sample: Sample
) -> tuple[dict[str, str], list[str]]:
    """Return types of columns of numbers that are codes, or integers, and the reasons of codes.

    The texts of a column are looked at where its floats may have been anything else.
    """
    import pandas as pd

    places = {str(name): place for place, name in enumerate(frame.columns)}
    if form.has_row_names:
        del places["row"]
    numbers = [c for c in places if pd.api.types.is_numeric_dtype(frame[c])]
    chosen = [c for c in numbers if _is_doubtful(c, frame[c], sample.get(c, []))]
    integers = [c for c in numbers if c not in chosen]
    if integers and _may_hold_names(path, form):
        chosen = sorted([*chosen, *integers], key=places.__getitem__)
    types: dict[str, str] = {}
    reasons: list[str] = []
    if not chosen:
        return types, reasons
    texts = texts_of(plan, None if form.has_row_names else [places[c] for c in chosen])
    for place, column in enumerate(chosen):
        at = places[column] - 1 if form.has_row_names else place
        found = [str(text) for text in texts.iloc[:, at].dropna().unique()]
        plain = [text.replace(str(plan.options.get("decimal", ".")), ".") for text in found]
        if is_name_like(found):
            types[column] = "str"
        elif frame[column].dtype != float:
            if len({*map(int, plain)}) < len(plain):
                types[column] = "str"
                reasons.append(f"`{column}` stays text: spellings of a number differ in it")
        elif all(map(WHOLE.fullmatch, plain)):
            types[column] = "Int64"
        elif reason := code_reason(column, plain)[0]:
            types[column] = "str"
            reasons.append(f"`{column}` stays text: {reason}")
    return types, reasons


def _is_doubtful(column: str, series: Any, texts: Sequence[str]) -> bool:
    """Return whether floats may differ from the texts, of which a sample is given."""
    if series.dtype != float or not series.notna().any():
        return False
    if names_codes(column) or holds_large(series) or any(len(text) > _DIGITS for text in texts):
        return True
    has_point = any("." in text or "," in text for text in texts)
    return not has_point and bool((series.dropna() % 1 == 0).all())


def _may_hold_names(path: Path, form: TextForm) -> bool:
    """Return whether a field is a numeral that begins with 0 or +, which parsers take for numbers.

    In UTF-16 one always may be.
    """
    if form.encoding.startswith("utf-16") or len(form.separator) > 1:
        return True
    classes = bytes.maketrans(form.separator.encode() + b'\r"+123456789', b"\n\n\n0111111111")
    rest = b"\n"
    with opened(path) as file:
        while chunk := file.read(_CHUNK):
            # A search for a fixed beginning is much faster than one for classes of characters.
            if _NAME.search((rest + chunk).translate(classes)):
                return True
            rest = chunk[-_LONGEST:]
    return False
