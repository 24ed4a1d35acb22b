"""Names, values and parts of the calendar in words that nothing can act on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from taskweaver.analyst.readings import Scalar
from taskweaver.utils.markup.characters import with_line_feeds, without_steering
from taskweaver.utils.text import shorten

_MONTHS = (
    "january jan januar janvier enero январь январе января janeiro",
    "february feb februar février febrero февраль феврале февраля",
    "march mar märz mars marzo март марте марта",
    "april apr avril abril апрель апреле апреля",
    "may mai mayo май мае мая maj",
    "june jun juni juin junio июнь июне июня",
    "july jul juli juillet julio июль июле июля",
    "august aug août agosto август августе августа",
    "september sep sept septembre septiembre сентябрь сентябре сентября",
    "october oct oktober octobre octubre октябрь октябре октября okt",
    "november nov novembre noviembre ноябрь ноябре ноября",
    "december dec dezember décembre diciembre декабрь декабре декабря desember",
)
MONTHS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
_DAYS = (
    "monday mondays mon montag lundi lunes понедельник mandag",
    "tuesday tuesdays tue tues dienstag mardi martes вторник tirsdag",
    "wednesday wednesdays wed mittwoch mercredi miércoles среда onsdag",
    "thursday thursdays thu thur thurs donnerstag jeudi jueves четверг torsdag",
    "friday fridays fri freitag vendredi viernes пятница fredag",
    "saturday saturdays sat samstag samedi sábado суббота lørdag",
    "sunday sundays sun sonntag dimanche domingo воскресенье søndag",
)
WEEKDAYS = {word: number for number, words in enumerate(_DAYS) for word in words.split()}


_MOST_CHARS = 80
_WORD = re.compile(r"[^\W\d_](?:[^\W_]|[-_](?=[^\W_]))*")
_PLAIN = re.compile(r"(?:[^\W_]|[ ,.'/:+()%!?-]|_(?=[^\W_]))*")
_RESERVED = frozenset(
    "a all among an and any are as at before bottom by contains does each either every except false"
    " first for from if in is last least less missing more most neither nor not of on or over per"
    " present since than that the to top true until where which with without".split()
)
_MOST_EXACT = 1e15


def column_name(name: str) -> str:
    """Return the name of a column, file or table in back quotes."""
    return f"`{_one_line(name) or '(empty)'}`"


def column_names(names: Iterable[str]) -> str:
    """Return names in back quotes, as a list in words."""
    return listed([column_name(name) for name in names])


def value_text(value: Scalar) -> str:
    """Return a value as a word, a number or a quotation."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number_text(value)
    if _WORD.fullmatch(value) and value.lower() not in _RESERVED and len(value) <= _MOST_CHARS:
        return value
    text = _one_line(value).replace('"', "'")
    return f'"{text}"' if _PLAIN.fullmatch(text) else f'`"{text}"`'


def shown_text(text: str) -> str:
    """Return a text that is a result: bold, or as code where it could be read as Markdown."""
    plain = _one_line(text)
    return f"**{plain}**" if plain and _PLAIN.fullmatch(plain) else column_name(text)


def number_text(value: float) -> str:
    """Return a number of a request, without a point where it is whole."""
    is_whole = math.isfinite(value) and value == int(value) and abs(value) < _MOST_EXACT
    return str(int(value)) if is_whole else repr(value)


def capital(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def listed(parts: list[str], word: str = "and") -> str:
    """Return a list in words: ``a, b and c``."""
    head = [", ".join(parts[:-1])] if parts[1:] else []
    return f" {word} ".join([*head, *parts[-1:]])


def _one_line(text: str) -> str:
    plain = " ".join(without_steering(with_line_feeds(text)).split()).replace("`", "'")
    return " ".join(shorten(plain, _MOST_CHARS).split())
