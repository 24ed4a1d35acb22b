"""Evidence for the form of dates in a column of texts, and for the order of day and month."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from taskweaver.tables.evidence.numerals import TextCounts, total_of

_CLOCK = (
    r"(?:[ T](?P<clock>\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<fraction>\.\d+)?)?)"
    r"(?P<half> ?[AaPp][Mm])?)?"
)
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?P<time>[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)
_NUMERIC = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<mark>[/.-])(?P<second>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d{{2}}){_CLOCK}"
)
_YEAR_FIRST = re.compile(rf"\d{{4}}(?P<mark>[/.])\d{{1,2}}(?P=mark)\d{{1,2}}{_CLOCK}")
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_NAME = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_LONG = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NAMED = tuple(
    (re.compile(pattern.replace("%", name), re.IGNORECASE), form.replace("%M", code))
    for name, code in ((_NAME, "%b"), (_LONG, "%B"))
    for pattern, form in (
        (r"% \d{1,2} \d{4}", "%M %d %Y"),
        (r"% \d{1,2}, \d{4}", "%M %d, %Y"),
        (r"\d{1,2} % \d{4}", "%d %M %Y"),
        (r"\d{1,2}-%-\d{4}", "%d-%M-%Y"),
        (r"\d{1,2}-%-\d{2}", "%d-%M-%y"),
        (r"% \d{4}", "%M %Y"),
        (r"%-\d{4}", "%M-%Y"),
    )
)


@dataclass(frozen=True, slots=True)
class TimeForm:
    """Form of the times of a column.

    Attributes:
        format: Format of `strptime`, or ``ISO8601``; empty if there is none.
        is_utc: Whether the values have offsets.
        order: ``day``, ``month`` or ``unclear``, if the column needs it; else empty.
        example: A value, one that shows the order if there is any.
        mixed: For two orders in one column: a value of each; the column has no format then.
        share: Share of the texts that have the form.
    """

    format: str = ""
    is_utc: bool = False
    order: str = ""
    example: str = ""
    mixed: tuple[str, str] | None = None
    share: float = 0.0


def looks_like_time(text: str) -> bool:
    """Return whether a text has one of the known forms of dates."""
    return _shape(text.strip()) is not None


def time_form(texts: TextCounts, *, is_day_first_likely: bool = False) -> TimeForm:
    """Return the form that most of a column's texts have.

    `is_day_first_likely` is true where other columns show the order day, month.
    """
    counts: Counter[str] = Counter()
    by_shape: dict[str, list[tuple[str, int]]] = {}
    for text, count in texts:
        shape = _shape(text.strip())
        if shape is not None:
            counts[shape] += count
            by_shape.setdefault(shape, []).append((text.strip(), count))
    if not counts:
        return TimeForm()
    _join_may(counts, by_shape)
    if "ISO8601" in counts:
        counts["ISO8601"] += counts.pop("%Y-%m-%d", 0)
    shape, count = counts.most_common(1)[0]
    share = count / total_of(texts)
    if shape.startswith("numeric"):
        return _ordered(shape, by_shape[shape], share, is_day_first_likely=is_day_first_likely)
    if shape == "ISO8601 UTC":
        return TimeForm("ISO8601", is_utc=True, share=share)
    return TimeForm(shape, example=by_shape[shape][0][0], share=share)


def _join_may(counts: Counter[str], by_shape: dict[str, list[tuple[str, int]]]) -> None:
    """Count May, which is its own abbreviation, with the long names of months if there are any."""
    for short in [shape for shape in counts if "%b" in shape]:
        long = short.replace("%b", "%B")
        if long in counts and all("may" in text.casefold() for text, _ in by_shape[short]):
            counts[long] += counts.pop(short)
            by_shape[long] += by_shape.pop(short)


def _shape(text: str) -> str | None:
    """Return the format of a date, or for three numbers ``numeric`` and the format's frame."""
    if not text or not (text[0].isdigit() or text[0].isalpha()) or len(text) > 40:
        return None
    if found := _ISO.fullmatch(text):
        return "ISO8601 UTC" if found["zone"] else "ISO8601" if found["time"] else "%Y-%m-%d"
    if _MONTH.fullmatch(text):
        return "%Y-%m"
    if found := _NUMERIC.fullmatch(text):
        year = "%Y" if len(found["year"]) == 4 else "%y"
        return f"numeric {found['mark']} {year}{_clock(found, text)}"
    if found := _YEAR_FIRST.fullmatch(text):
        return f"%Y{found['mark']}%m{found['mark']}%d{_clock(found, text)}"
    return next((form for pattern, form in _NAMED if pattern.fullmatch(text)), None)


def _clock(found: re.Match[str], text: str) -> str:
    if not found["clock"]:
        return ""
    before = "T" if "T" in text[: found.start("clock")][-1:] else " "
    seconds = (":%S" if found["seconds"] else "") + (".%f" if found["fraction"] else "")
    half = found["half"] or ""
    hour = "%I" if half else "%H"
    return f"{before}{hour}:%M{seconds}{' ' if half.startswith(' ') else ''}{'%p' if half else ''}"


def _ordered(
    shape: str, texts: list[tuple[str, int]], share: float, *, is_day_first_likely: bool
) -> TimeForm:
    """Return the form of dates like 03/04/2024: values over 12 show the day."""
    _, mark, rest = shape.split(" ", 2)
    day_first, month_first = list(_over(texts, "first")), list(_over(texts, "second"))
    if day_first and month_first:
        return TimeForm(mixed=(day_first[0][0], month_first[0][0]), share=share)
    if day_first:
        order, example = "day", day_first[0][0]
    elif month_first:
        order, example = "month", month_first[0][0]
    elif mark == ".":
        order, example = "day", texts[0][0]
    else:
        order, example = "unclear", texts[0][0]
    is_day = order == "day" or (order == "unclear" and is_day_first_likely)
    form = f"%d{mark}%m{mark}{rest}" if is_day else f"%m{mark}%d{mark}{rest}"
    return TimeForm(form, order=order, example=example, share=share)


def _over(texts: list[tuple[str, int]], part: str) -> Iterator[tuple[str, int]]:
    for text, count in texts:
        found = _NUMERIC.fullmatch(text)
        if found and int(found[part]) > 12:
            yield text, count
