"""Decisions on the columns of a frame: which texts are numbers, times or flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskweaver.tables.evidence.codes import WHOLE, code_reason, in_quotes, names_codes
from taskweaver.tables.evidence.dates import TimeForm, looks_like_time, time_form
from taskweaver.tables.evidence.numerals import (
    NumberForm,
    TextCounts,
    fits,
    is_marker,
    number_form,
    numeral,
    total_of,
)
from taskweaver.tables.plans.plan import Step, ToNumber, ToTime, ToType
from taskweaver.tables.plans.steps import converted, plain_numbers

SHARE = 0.95
"""Share of a column's values that have to convert."""
_SAMPLE = 1_000
NAMES_OF_NUMERALS = re.compile(
    r"zip|zip ?codes?|post(al)? ?codes?|plz|phones?|(tele)?phone ?(number|no)?|mobile|fax|tel"
    r"|ssn|isbn(13|10)?|ean|gtin|iban|account ?(number|no)",
    re.IGNORECASE,
)
"""Names of columns whose numerals are names, not amounts."""
_SERIALS = (
    (19_000_101, 21_001_231, "YYYYMMDD"),
    (1e9, 2.2e9, "seconds since 1970"),
    (1e12, 2.2e12, "milliseconds since 1970"),
    (20_000, 60_000, "days since 1900"),
)
"""Least and largest numbers that may stand for times, and the form of these."""
_NAMES_DATES = re.compile(r"(?i:.*(?:date|datum|fecha|dato).*)")
_NAMES_TIMES = re.compile(
    r"(?i:.*(?:date|datum|fecha|dato|stamp|epoch|created|updated).*|day|tag|ts|time)|.*(?:_at|At)"
)
_LOOKS: Mapping[str, Callable[[str], object]] = {
    "dates of several forms": looks_like_time,
    "quarters": re.compile(r"\d{4}[- ]?Q[1-4]|Q[1-4][-/ ]?\d{4}").fullmatch,
    "weeks": re.compile(r"\d{4}-?W\d\d").fullmatch,
    "dates with names of months": re.compile(
        r"(?:[^\W\d]+\.?,? )?\d{1,2}[. ]+(?:de )?[^\W\d]{3,}[., ]*(?:de )?\d{2,4}"
        r"|[^\W\d]{3}[-. ]+\d{2}"
    ).fullmatch,
    "times": re.compile(
        r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})[T ]\d\d?:\d\d.*"
    ).fullmatch,
}


@dataclass(slots=True)
class Decisions:
    """Decisions on the columns of a table.

    Attributes:
        dates: Phrases on times, one for each column.
        numbers: Phrases on numbers.
        texts: Phrases on numerals that stay text.
        unclear: Phrases on decisions without evidence.
        lost: Phrases on values that became missing.
    """

    steps: list[Step] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def names_numerals(column: str) -> bool:
    """Return whether a column's name marks its numerals as names, for example zip codes."""
    return NAMES_OF_NUMERALS.fullmatch(re.sub(r"[\W_]+", " ", column).strip()) is not None


def is_name_like(texts: Iterable[str]) -> bool:
    """Return whether numerals are names: one begins with 0 or has 19 digits; or all are phones."""
    found = [text.strip() for text in texts if text.strip() and not is_marker(text)]
    if any(
        (len(text) > 18 and text.lstrip("-").isdecimal())
        or (text[0] == "0" and len(text) > 1 and text.isdecimal())
        for text in found
    ):
        return all(re.fullmatch(r"[-\d+][\d ()/.-]*", text) for text in found)
    return bool(found) and all(re.fullmatch(r"\+\d[\d ()/-]{5,}", text) for text in found)


def decide(frame: Any, *, likely_decimal: str = "", kept: Collection[str] = ()) -> Decisions:
    """Decide on all columns of texts of a frame but the kept ones, and convert those columns in it.

    `likely_decimal` is the decimal separator of the file, if it is known.
    """
    decided = Decisions()
    for column in frame.columns:
        if wide := _wide(column, frame[column]):
            frame[column] = converted(frame[column], wide)
            decided.steps.append(wide)
    columns = [c for c in frame.columns if is_of_texts(frame[c]) and c not in kept]
    for column in frame.select_dtypes("number", exclude="timedelta"):
        _decide_serial(frame, column, decided)
    samples = {column: counted(sampled(frame[column])) for column in columns}
    if not likely_decimal:
        likely_decimal = shared_decimal(samples.values())
    times = {c: _time_sample(samples[c]) for c in columns}
    orders = {form.order for form in times.values() if form is not None}
    is_day_first = "day" in orders and "month" not in orders
    is_day_first = is_day_first or (likely_decimal == "," and "month" not in orders)
    for column in columns:
        if _is_flag(frame[column]):
            step = ToType(column, "boolean")
            frame[column] = converted(frame[column], step)
            decided.steps.append(step)
        elif times[column] is not None and not names_codes(column):
            _decide_time(frame, column, decided, is_day_first=is_day_first)
        elif _may_be_numbers(samples[column]) and not names_numerals(column):
            _decide_number(frame, column, decided, likely_decimal)
        elif is_name_like(text for text, _ in samples[column]) or (
            names_numerals(column) and all(numeral(text) for text, _ in samples[column])
        ):
            decided.texts.append(f"`{column}`")
        else:
            _note_look(column, samples[column], decided)
    return decided


def _wide(column: str, series: Any) -> ToNumber | ToType | None:
    """Return the step to 64 bits for short numbers: integers wrap, and 0.1 is 0.10000000149."""
    name = str(series.dtype)
    if name in {"float16", "float32"}:
        return ToNumber(column, is_partial=bool(series.isna().any()))
    if not re.fullmatch(r"(?i:int(8|16|32)|uint\d+)", name):
        return None
    if name.endswith("64") and not series.max() < 2**63:
        return None
    return ToType(column, "Int64" if name[0] in "IU" else "int64")


def _decide_serial(frame: Any, column: str, decided: Decisions) -> None:
    """Convert numbers that stand for times by the name of their column, or say what they may be."""
    values = frame[column].dropna()
    for low, high, form in _SERIALS:
        is_days = form == "days since 1900"
        if not len(values) or not values.between(low, high).all():
            continue
        if not is_days and (values % 1).any():
            continue
        step = ToTime(column, form, is_partial=True)
        times = converted(frame[column], step)
        is_named = (_NAMES_DATES if is_days else _NAMES_TIMES).fullmatch(column)
        is_all = times.count() == len(values)
        if is_named and is_all:
            decided.dates.append(
                f"`{column}` from {form} ({values.iloc[0]} is {times[values.index[0]]})"
            )
            frame[column] = times
            decided.steps.append(step)
        elif is_named or (is_all and not is_days):
            decided.unclear.append(
                f"`{column}` may hold times as {form} ({values.iloc[0]}), and was read as numbers"
            )


def _note_look(column: str, texts: TextCounts, decided: Decisions) -> None:
    """Note what texts look like that are times of another form, or of several forms."""
    for look, has_form in _LOOKS.items():
        if _share(texts, has_form) >= SHARE:
            shown = " and ".join(in_quotes(text) for text, _ in texts[:2])
            decided.unclear.append(f"`{column}` looks like {look} ({shown}), and stays text")
            return


def is_of_texts(series: Any) -> bool:
    """Return whether a column may hold texts."""
    import pandas as pd

    return bool(pd.api.types.is_object_dtype(series) or pd.api.types.is_string_dtype(series))


def sampled(series: Any) -> Any:
    """Return some values of a column, from all parts of it, without missing ones."""
    if len(series) > _SAMPLE:
        step = len(series) // _SAMPLE
        series = series.iloc[::step]
    return series.dropna()


def counted(series: Any) -> list[tuple[str, int]]:
    """Return the distinct values of a column as texts, and how often each occurs."""
    if series.dtype == object:  # True counts as 1 there, and lists cannot be counted
        series = series.map(str)
    counts = series.value_counts(sort=False)
    return [(str(value), int(count)) for value, count in counts.items()]


def shared_decimal(samples: Iterable[TextCounts]) -> str:
    """Return the decimal separator that columns of a file show; empty if none or both do."""
    found = set()
    for sample in samples:
        if not any("," in text for text, _ in sample):
            forms = [numeral(text) for text, _ in sample[:50] if "." in text]
            if any(form is not None and form.decimal == "." for form in forms):
                found.add(".")
        elif _may_be_numbers(sample):
            form = number_form(sample)
            if not form.is_guess and any(
                (shape := numeral(text)) is not None and (shape.decimal or shape.thousands)
                for text, _ in sample
            ):
                found.add(form.decimal)
    return found.pop() if len(found) == 1 else ""


def _time_sample(sample: TextCounts) -> TimeForm | None:
    """Return the form of times of a sample; None if it is not one of times."""
    present = [(text, count) for text, count in sample if not is_marker(text)]
    if _share(present, looks_like_time) < 0.8:
        return None
    form = time_form(present)
    return form if form.share >= 0.9 or form.mixed else None


def _share(sample: TextCounts, has_form: Callable[[str], object]) -> float:
    """Return the share of the values, among those of fifty distinct texts, that have a form."""
    looked = sample[:50]
    total = total_of(looked)
    return sum(count for text, count in looked if has_form(text)) / total if total else 0.0


def _may_be_numbers(sample: TextCounts) -> bool:
    if not sample or is_name_like(text for text, _ in sample):
        return False
    present = [(text, count) for text, count in sample if not is_marker(text)]
    if _share(present, lambda text: numeral(text) is not None) < 0.5:
        return False
    return number_form(sample).share >= 0.8


def _is_flag(series: Any) -> bool:
    present = series.dropna()
    if not len(present) or not isinstance(present.iloc[0], bool):
        return False
    return all(isinstance(value, bool) for value in present)


def _decide_time(frame: Any, column: str, decided: Decisions, *, is_day_first: bool) -> None:
    """Decide on a column whose sample holds times, by all of its values."""
    texts = counted(frame[column].dropna())
    form = time_form(texts, is_day_first_likely=is_day_first)
    if form.mixed is not None:
        first, second = form.mixed
        decided.unclear.append(
            f"`{column}` stays text: {in_quotes(first)} and {in_quotes(second)} have different"
            " orders of day and month"
        )
        return
    total = total_of(texts)
    marked = sum(count for text, count in texts if is_marker(text))
    if sum(count for text, count in texts if looks_like_time(text)) > form.share * total + 0.5:
        _note_look(column, texts, decided)
        return
    if form.share < SHARE and form.share * total < SHARE * (total - marked):
        return
    step = ToTime(column, form.format, is_partial=True, is_utc=form.is_utc)
    times = converted(frame[column], step)
    missing = times.isna() & frame[column].notna()
    if not missing.any():
        step = ToTime(column, form.format, is_utc=form.is_utc)
    elif missing.sum() > (1 - SHARE) * len(times) + marked:
        return
    _note_lost(column, counted(frame[column][missing]), "no dates", decided)
    frame[column] = times
    decided.steps.append(step)
    _note_form(column, form, times, decided)


def _note_form(column: str, form: TimeForm, times: Any, decided: Decisions) -> None:
    """Note the form of times that have another one than that of ISO 8601."""
    if "%y" in form.format:
        span = f"{times.min():%Y} to {times.max():%Y}"
        decided.unclear.append(f"`{column}`: years of two digits were read as {span}")
    if form.order == "unclear":
        order = "day" if "%d" in form.format[:2] else "month"
        decided.unclear.append(
            f"`{column}`: no value shows if day or month is first; {in_quotes(form.example)} was"
            f" read with the {order} first"
        )
    elif form.order:
        decided.dates.append(f"`{column}` {form.order} first ({in_quotes(form.example)})")
    elif form.is_utc:
        decided.dates.append(f"`{column}` in UTC")
    elif not form.format.startswith(("%Y", "ISO8601")) or form.format == "%Y-%m":
        decided.dates.append(f"`{column}` as dates ({in_quotes(form.example)})")


def _decide_number(frame: Any, column: str, decided: Decisions, likely: str) -> None:
    """Decide on a column whose sample holds numbers, by all of its values."""
    import pandas as pd

    texts = counted(frame[column].dropna())
    form = number_form(texts, likely)
    if is_name_like(text for text, _ in texts):
        decided.texts.append(f"`{column}`")
        return
    if form.share < SHARE:
        odd = ", ".join(in_quotes(text) for text, _ in form.others[:3])
        decided.unclear.append(f"`{column}` stays text: too many values are no numbers ({odd})")
        return
    if reason := _conflict(form, texts):
        decided.unclear.append(f"`{column}` stays text: {reason}")
        return
    is_partial = bool(form.markers or form.others or frame[column].isna().any())
    step = ToNumber(column, form.remove, form.decimal, form.has_accounting, is_partial)
    dropped = {text for text, _ in (*form.markers, *form.others)}
    plain = plain_numbers(pd.Series([text for text, _ in texts if text not in dropped]), step)
    if plain.str.fullmatch(WHOLE).all():
        step = replace(step, is_whole=is_partial)
    numbers = converted(frame[column], step)
    reason, merged = code_reason(column, plain)
    if reason:
        decided.unclear.append(f"`{column}` stays text: {reason}")
        return
    frame[column] = numbers
    decided.steps.append(step)
    decided.numbers += [f"`{column}` ({merged})"] if merged else []
    if form.is_guess:
        example = next(text for text, _ in texts if (found := numeral(text)) and found.is_unclear)
        number = converted(pd.Series([example]), step)[0]
        decided.unclear.append(f"`{column}`: {in_quotes(example)} was read as {number:g}")
    elif phrase := _number_phrase(form):
        decided.numbers.append(f"`{column}` {phrase}")
    _note_lost(column, form.others, "no numbers", decided)
    marked = [(text, count) for text, count in form.markers if text.strip()]
    if marked:
        shown = ", ".join(f"{in_quotes(text)} ({count:,})" for text, count in marked[:3])
        decided.numbers.append(f"`{column}` missing where {shown}")


def _conflict(form: NumberForm, texts: TextCounts) -> str:
    """Return why numbers of a column must not be mixed; empty if nothing is in the way."""
    currencies = [unit for unit in form.units if unit != "%"]
    if len(currencies) > 1:
        return f"its amounts are in {' and '.join(currencies)}"
    if "%" in form.units:
        plain = [
            text
            for text, _ in texts
            if (found := numeral(text)) and found.unit != "%" and fits(found, form.decimal)
        ]
        if any(text.strip().strip("0.,-") for text in plain):
            return f"some values are per cent, others are not ({in_quotes(plain[0])})"
    return ""


def _number_phrase(form: NumberForm) -> str:
    parts = []
    if form.decimal == ",":
        parts.append("decimal comma")
    if form.units:
        units = " ".join(form.units)
        parts.append("in per cent" if units == "%" else f"without {units}")
    if form.thousands and not form.units:
        parts.append("thousands separators")
    if form.has_accounting:
        parts.append("negatives in parentheses")
    return ", ".join(parts)


def _note_lost(column: str, lost: TextCounts, kind: str, decided: Decisions) -> None:
    """Note values that became missing, by name and count."""
    named = [item for item in lost if not is_marker(item[0])]
    if named:
        shown = ", ".join(
            in_quotes(text) + (f" x {count:,}" if count > 1 else "") for text, count in named[:4]
        )
        more = f" and {len(named) - 4} others" if len(named) > 4 else ""
        decided.lost.append(f"`{column}`: {total_of(named):,} values are {kind} ({shown}{more})")
