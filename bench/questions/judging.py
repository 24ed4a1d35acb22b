"""Whether an answer is right, refused or wrong.

An answer is right if it states the wanted value and no other value in its place: one number is
not right inside a table of many. It is refused if it is a question, or says that the request is
not understood or cannot be answered. All else is wrong, a failure included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from bench.questions import reading
from bench.questions.files import frames
from bench.questions.model import Question, Turn

Verdict = Literal["right", "refused", "wrong"]

_REFUSAL = re.compile(
    r"(did|do|does|could|can|was|were|is|are) ?(not|n't) (be )?(understand|understood|answer|"
    r"read|clear|contain|have|find|found)|cannot|can't|unable to|not (understood|supported|clear)"
    r"|there (is|are) no|no (such )?(column|file|table|sheet|value)|which (one|file|column|table)"
    r"|did you mean|please (say|name|choose)",
    re.IGNORECASE,
)
_FAILURE = re.compile(r"code failed|could not do this|could not be done", re.IGNORECASE)
_KIND_OF_PLOT = {
    "line": r"\.plot\((?![^)]*kind=)|\.plot\.line|['\"]line['\"]",
    "bar": r"\.barh?\(|['\"]barh?['\"]",
    "histogram": r"\.hist\(|['\"]hist(ogram)?['\"]",
    "scatter": r"\.scatter\(|['\"]scatter['\"]",
    "box": r"\.boxplot\(|\.box\(|['\"]box['\"]",
    "pie": r"\.pie\(|['\"]pie['\"]",
}
_MANY = 12


@dataclass(frozen=True)
class Answer:
    """An answer of the product.

    Attributes:
        text: Its text.
        is_question: Whether the product marks it as one that the user has to answer.
        code: The code of the round's cells.
        pictures: The pictures that were saved.
    """

    text: str
    is_question: bool = False
    code: str = ""
    pictures: Sequence[str] = ()


def judge(question: Question, turn: Turn, answer: Answer) -> Verdict:
    """Return the verdict on the answer to a turn."""
    if turn.kind == "refuse" and _is_about_the_file(question, answer):
        return "right"
    if turn.kind in ("refuse", "asks"):
        return "right" if is_refusal(answer) else "wrong"
    if not is_refusal(answer) and _CHECKS[turn.kind](question, turn, answer):
        return "right"
    return "refused" if is_refusal(answer) else "wrong"


def _is_about_the_file(question: Question, answer: Answer) -> bool:
    """Return whether the product failed because a file is missing or holds no table."""
    is_unreadable = not frames(question.files) or "No such file" in answer.text
    return is_unreadable and bool(_FAILURE.search(answer.text))


def is_refusal(answer: Answer) -> bool:
    """Return whether an answer asks, or says that the request is not understood."""
    if answer.is_question:
        return True
    plain = reading.prose(answer.text).strip()
    if _FAILURE.search(plain):
        return False
    has_result = bool(reading.data_lines(answer.text)) or bool(answer.pictures)
    return not has_result and (plain.endswith("?") or bool(_REFUSAL.search(plain)))


def _is_stated(wanted: float, turn: Turn, answer: Answer) -> bool:
    """Return whether one number is the result, or stands in the sentence that is the answer."""
    rows = reading.data_lines(answer.text)
    if rows:
        found = reading.numbers("\n".join(rows))
        return len(rows) <= 2 and len(found) <= _MANY and _any_close(found, wanted, turn.tolerance)
    bold = "\n".join(line for line in answer.text.splitlines() if line.startswith("**"))
    if bold:  # the lines before it state the reading and its rows
        found = reading.numbers(bold)
        return len(found) <= _MANY and _any_close(found, wanted, turn.tolerance)
    asked = {number.value for number in reading.numbers(turn.ask)}
    found = reading.numbers(reading.prose(answer.text))
    new = [number for number in found if number.value not in asked]
    return len(new) <= _MANY and _any_close(new or found, wanted, turn.tolerance)


def _any_close(found: Iterable[reading.Number], wanted: float, tolerance: float) -> bool:
    return any(number.is_close(wanted, tolerance) for number in found)


def _number(question: Question, turn: Turn, answer: Answer) -> bool:
    return _is_stated(float(question.value(turn)), turn, answer)


def _share(question: Question, turn: Turn, answer: Answer) -> bool:
    fraction = float(question.value(turn))
    return any(_is_stated(wanted, turn, answer) for wanted in (fraction, 100 * fraction))


def _numbers(question: Question, turn: Turn, answer: Answer) -> bool:
    wanted = [float(value) for value in question.value(turn)]
    found = reading.numbers(reading.results(answer.text)) or reading.numbers(answer.text)
    is_short = len(found) <= len(wanted) + _MANY
    return is_short and all(_any_close(found, value, turn.tolerance) for value in wanted)


def _named(choices: Iterable[str], turn: Turn, answer: Answer) -> list[str]:
    """Return the choices that an answer names, in order; its prose may repeat those asked about."""
    text = reading.results(answer.text)
    if not any(reading.has_word(text, choice) for choice in choices):
        text = reading.prose(answer.text)
        choices = [choice for choice in choices if not reading.has_word(turn.ask, choice)]
    places = {choice: reading.position(text, choice) for choice in choices}
    found = [choice for choice, place in places.items() if place >= 0]
    found = [choice for choice in found if not _is_part(choice, found, text)]
    return sorted(found, key=lambda choice: places[choice])


def _is_part(choice: str, found: Sequence[str], text: str) -> bool:
    """Return whether a choice occurs only inside longer ones."""
    longer = [other for other in found if choice.lower() in other.lower() and other != choice]
    for other in longer:
        text = re.sub(re.escape(other), " ", text, flags=re.IGNORECASE)
    return bool(longer) and not reading.has_word(text, choice)


def _text(question: Question, turn: Turn, answer: Answer) -> bool:
    wanted = str(question.value(turn))
    named = _named(question.choices(turn) or [wanted], turn, answer)
    return bool(named) and named[0].casefold() == wanted.casefold()


def _names(question: Question, turn: Turn, answer: Answer) -> bool:
    wanted = [str(value) for value in question.value(turn)]
    named = _named(question.choices(turn) or wanted, turn, answer)
    if turn.is_ordered:
        return named == wanted
    return set(named) == set(wanted)


def _date(question: Question, turn: Turn, answer: Answer) -> bool:
    day = pd.Timestamp(question.value(turn))
    text = reading.results(answer.text) or answer.text
    is_short = len(reading.data_lines(answer.text)) <= 2
    return is_short and any(spelling in text for spelling in reading.spellings(day))


def _table(question: Question, turn: Turn, answer: Answer) -> bool:
    wanted: Any = question.value(turn)
    frame = wanted.to_frame() if isinstance(wanted, pd.Series) else wanted
    forms = [frame, frame * 100] if turn.is_share else [frame]
    return any(_is_table(form, turn.tolerance, answer) for form in forms)


def _is_table(frame: pd.DataFrame, tolerance: float, answer: Answer) -> bool:
    rows = reading.data_lines(answer.text) or reading.listed(answer.text)
    heading = "\n".join(reading.lines(answer.text)[:3])
    used = set()
    for key, values in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        parts = key if isinstance(key, tuple) else (key,)
        at = _row_of(parts, [float(value) for value in values], rows, heading, tolerance)
        if at is None:
            return False
        used.add(at)
    extra = [row for at, row in enumerate(rows) if at not in used]
    return len(list(filter(_says_more, extra))) <= 1  # a total, or a heading with a number


def _says_more(row: str) -> bool:
    """Return whether a row states another value than zero."""
    return reading.numbers(row)[-1].value != 0


def _row_of(
    parts: Sequence[object],
    values: Sequence[float],
    rows: Sequence[str],
    heading: str,
    tolerance: float,
) -> int | None:
    """Return the row that has a key and its values; a part of the key may be a heading."""
    for at, row in enumerate(rows):
        named = [_is_in(part, row) for part in parts]
        if not any(named) or not all(
            is_named or _is_in(part, heading) for part, is_named in zip(parts, named, strict=True)
        ):
            continue
        found = reading.numbers(row)
        if all(_any_close(found, value, tolerance) for value in values):
            return at
    return None


def _is_in(part: object, text: str) -> bool:
    return any(reading.has_word(text, spelling) for spelling in reading.keys(part))


def _plot(_question: Question, turn: Turn, answer: Answer) -> bool:
    kind, columns = turn.want["kind"], turn.want.get("columns", [])
    has_kind = re.search(_KIND_OF_PLOT[kind], answer.code) is not None
    others = [other for other in _KIND_OF_PLOT if other not in (kind, "line")]
    has_other = kind == "line" and any(
        re.search(_KIND_OF_PLOT[other], answer.code) for other in others
    )
    has_columns = all(str(column) in answer.code for column in columns)
    return bool(answer.pictures) and has_kind and not has_other and has_columns


def _contains(_question: Question, turn: Turn, answer: Answer) -> bool:
    return all(str(word).casefold() in answer.text.casefold() for word in turn.want)


_CHECKS: dict[str, Callable[[Question, Turn, Answer], bool]] = {
    "number": _number,
    "share": _share,
    "numbers": _numbers,
    "text": _text,
    "names": _names,
    "date": _date,
    "table": _table,
    "plot": _plot,
    "contains": _contains,
}
