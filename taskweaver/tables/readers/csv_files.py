"""Read separated text: the form of the file, and the values the C parser changes silently."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from taskweaver.tables.deciding import (
    counted,
    is_name_like,
    is_of_texts,
    names_numerals,
    sampled,
    shared_decimal,
)
from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.numerals import numeral
from taskweaver.tables.evidence.sniffing import (
    SEPARATOR_NAMES,
    TextForm,
    head_of,
    is_gzip,
    legacy_encoding,
    sniff,
)
from taskweaver.tables.evidence.zeros import may_hold_names
from taskweaver.tables.plans.plan import Fill, Option, ReadPlan, Tidy
from taskweaver.tables.plans.steps import Frame, carry_out, read_source
from taskweaver.tables.readers.raw import Raw

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
_EXACT = 2**53
_FIRST_ROWS = 3


def read_separated(path: Path, name: str) -> Raw:
    """Read a file of separated text, which the plan calls `name`.

    Raises:
        TableError: If it holds no table.
    """
    head = head_of(path)
    if not head:
        raise TableError(f"{path.name} is empty.")
    suffix = Path(path.stem).suffix if path.suffix.lower() in {".gz", ".zip"} else path.suffix
    form = sniff(head, path.name, suffix=suffix.lower())
    try:
        return _read(path, name, form)
    except UnicodeDecodeError:
        encoding = legacy_encoding(path.read_bytes())
        form = sniff(head, path.name, suffix=suffix.lower(), encoding=encoding)
        return _read(path, name, replace(form, has_errors=encoding == "utf-8"))


def _read(path: Path, name: str, form: TextForm) -> Raw:
    options = _options(path, form)
    samples = [[(text, 1) for text in texts if text] for texts in _columns(form).values()]
    decimal = shared_decimal(samples)
    if decimal == ",":
        options["decimal"] = ","
    if dates := _iso_columns(form):
        options["date_format"] = dates
    steps = (Tidy("index"),) if form.has_row_names else ()
    plan = ReadPlan("csv", name, options, steps)
    texts = dict[str, str].fromkeys(_text_columns(form), "str")
    plan = _with_types(plan, texts)
    frame, notes, plan = _parsed(plan)
    frame = carry_out(frame, plan.steps)
    late = _late_texts(path, frame, form) - texts.keys()
    if late:
        texts |= dict.fromkeys(late, "str")
        plan = _with_types(plan, texts)
        frame = carry_out(_parsed(plan)[0], plan.steps)
    if not decimal:
        texts_of = [frame[column] for column in frame.columns if is_of_texts(frame[column])]
        decimal = shared_decimal([counted(sampled(series)) for series in texts_of])
    raw = Raw(
        plan,
        frame,
        [
            SEPARATOR_NAMES[form.separator],
            _ENCODING_NAMES.get(form.encoding, form.encoding.upper()),
        ],
    )
    raw.notes, raw.texts, raw.decimal = notes, [*texts], decimal
    raw.first = form.rows[:_FIRST_ROWS]
    if form.separator == ";" and not decimal:
        raw.unclear = list(_unclear_points(form, frame))
    if form.skipped:
        raw.form.append(
            f"header in line {form.skipped + 1}" if form.names else "first lines left out"
        )
    if form.is_stacked:
        raw.form[-1] = f"header in several lines, the last is line {form.skipped}"

    if not form.names:
        raw.notes.append(
            f"There is no header; the columns are column_1 to column_{frame.shape[1]}."
        )
    if decimal == "," and "decimal" not in plan.options:
        # Only later rows have shown the decimal commas.
        plan = replace(raw.plan, options={**raw.plan.options, "decimal": ","})
        raw.frame, raw.plan = carry_out(_parsed(plan)[0], plan.steps), plan
    return _with_codes(raw)


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


def _names(form: TextForm) -> list[str]:
    """Return the names as pandas gives them; duplicates and nameless ones are left empty."""
    width = len(form.rows[0]) if form.rows else 0
    names = list(form.names) or [str(number) for number in range(width)]
    counts = Counter(names)
    return [name if counts[name] == 1 else "" for name in names]


def _columns(form: TextForm) -> dict[str, list[str]]:
    """Return the sample by column."""
    shift = int(form.has_row_names)
    return {
        name: [row[index + shift] for row in form.rows if index + shift < len(row)]
        for index, name in enumerate(_names(form))
        if name
    }


def _text_columns(form: TextForm) -> list[str]:
    """Return the columns whose numerals are names, by the sample."""
    if not form.names:
        return []
    return [
        name
        for name, texts in _columns(form).items()
        if is_name_like(texts)
        or (names_numerals(name) and any(text.strip().isdecimal() for text in texts))
    ]


def _iso_columns(form: TextForm) -> dict[str, str]:
    """Return columns of plain ISO dates, by the sample, which the C parser converts.

    It leaves a column as texts if one of its values is no date.
    """
    if not form.names or form.has_row_names:
        return {}
    columns = {name: [text for text in texts if text] for name, texts in _columns(form).items()}
    return {
        name: _ISO_FORMAT
        for name, texts in columns.items()
        if texts and all(_ISO_DATE.fullmatch(text) for text in texts)
    }


def _unclear_points(form: TextForm, frame: Frame) -> Iterator[str]:
    """Give phrases on columns where ``1.234`` may be a number over a thousand."""
    for name, texts in _columns(form).items():
        forms = [numeral(text) for text in texts if text.strip()]
        if name in frame.columns and frame[name].dtype == float and forms:
            points = [item for item in forms if item and item.is_unclear and item.thousands == "."]
            if len(points) == len(forms):
                example = next(text for text in texts if text.strip())
                yield f"`{name}`: {example!r} was read as {float(example):g}"


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
    objects = [column for column in frame.columns if frame[column].dtype == object]
    kinds = {column: pd.api.types.infer_dtype(frame[column], skipna=True) for column in objects}
    mixed = [column for column, kind in kinds.items() if kind != "boolean"]
    is_mixed = not {kinds[column] for column in mixed} <= {"string", "empty"}
    if is_mixed and "header" not in plan.options:
        known = plan.options.get("dtype")
        types = {**(known if isinstance(known, dict) else {}), **dict.fromkeys(mixed, "str")}
        plan = _with_types(plan, types)
        frame = read_source(plan)
    return frame, [], plan


def _unreadable(plan: ReadPlan, error: Exception) -> TableError:
    return TableError(f"{Path(plan.path).name} cannot be read: {str(error).strip()}.")


def _without_bad_lines(plan: ReadPlan) -> tuple[Frame, list[str], ReadPlan]:
    import pandas as pd

    options: dict[str, Option] = {**plan.options, "on_bad_lines": "warn"}
    plan = replace(plan, options=options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = read_source(plan)
        except pd.errors.ParserError as error:
            raise _unreadable(plan, error) from error
    plan = replace(plan, options={**options, "on_bad_lines": "skip"})
    lines = [number for item in caught for number in _SKIPPED.findall(str(item.message))]
    shown = ", ".join(lines[:5]) + (" ..." if len(lines) > 5 else "")
    which = f"Line {shown} has" if len(lines) == 1 else f"{len(lines):,} lines ({shown}) have"
    return frame, [f"{which} more values than the header, and were left out."], plan


def _late_texts(path: Path, frame: Frame, form: TextForm) -> set[str]:
    """Return columns of numbers whose values are names, which the sample did not show."""
    import pandas as pd

    if not form.names:
        return set()
    numbers = [c for c in frame.columns if pd.api.types.is_numeric_dtype(frame[c])]
    large = {
        str(column)
        for column in numbers
        if frame[column].dtype == float
        and max(float(frame[column].max()), -float(frame[column].min())) > _EXACT
        and bool((frame[column].dropna() % 1 == 0).all())
    }
    integers = [column for column in numbers if column not in large]
    if not integers or not may_hold_names(path, form):
        return large if large and _are_long_digits(path, large, form) else set()
    texts = read_source(
        ReadPlan("csv", str(path), _options(path, form)),
        usecols=integers,
        dtype=dict.fromkeys(integers, "str"),
    )
    return {str(c) for c in integers if is_name_like(map(str, texts[c].dropna().unique()))}


def _are_long_digits(path: Path, columns: set[str], form: TextForm) -> bool:
    kinds = dict.fromkeys(columns, "str")
    texts = read_source(
        ReadPlan("csv", str(path), _options(path, form)), usecols=[*columns], dtype=kinds
    )
    return all(texts[column].dropna().str.fullmatch(r"\d+").all() for column in columns)


def _with_codes(raw: Raw) -> Raw:
    """Keep the code NA in columns of codes of two capital letters, for example countries."""
    for column in raw.frame.columns:
        series = raw.frame[column]
        if not is_of_texts(series) or not series.isna().any():
            continue
        sample = [text for text, _ in counted(sampled(series))]
        if len(sample) < 3 or not all(re.fullmatch("[A-Z]{2}", text) for text in sample):
            continue
        options = {k: v for k, v in raw.plan.options.items() if k not in {"dtype", "date_format"}}
        plan = replace(raw.plan, options=options)
        texts = read_source(plan, usecols=[column], keep_default_na=False)[column]
        if set(texts[series.isna()].unique()) == {"NA"}:
            step = Fill(str(column), "NA")
            raw.frame[column] = series.fillna("NA")
            raw.plan = replace(raw.plan, steps=(*raw.plan.steps, step))
            raw.notes.append(f"`{column}` holds the code NA; it is not taken as missing.")
    return raw
