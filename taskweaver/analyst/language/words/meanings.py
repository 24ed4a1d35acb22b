"""Words that mean a value spelled differently: ``women``, ``Friday``, ``third class``.

The values of a column are recognised as a scale (sexes, weekdays) only if all of them
are on it. A word then means the value at its place on the scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from taskweaver.analyst.language.words.names import singular
from taskweaver.analyst.wording.calendar import MONTHS, WEEKDAYS
from taskweaver.tables.files.profile import ColumnProfile, ValueMatch

_SEXES = {
    "female": 1, "females": 1, "f": 1, "woman": 1, "women": 1, "ladies": 1, "lady": 1, "w": 1,
    "frauen": 1, "frau": 1, "weiblich": 1, "femmes": 1, "femme": 1, "mujeres": 1, "mujer": 1,
    "male": 2, "males": 2, "m": 2, "man": 2, "men": 2, "gentlemen": 2, "gentleman": 2,
    "männer": 2, "mann": 2, "männlich": 2, "hommes": 2, "homme": 2, "hombres": 2, "hombre": 2,
}  # fmt: skip
_SCALES: tuple[Mapping[str, int], ...] = (_SEXES, WEEKDAYS, MONTHS)
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "1st": 1, "2nd": 2, "3rd": 3,
    "4th": 4, "5th": 5,
}  # fmt: skip
_PLACES = _ORDINALS | {str(number): number for number in range(1, 6)} | {
    f"{number}.0": number for number in range(1, 6)
} | {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "one": 1, "two": 2, "three": 3}  # fmt: skip
_SHORTEST_NOUN = 4


def equivalents(word: str, columns: Mapping[str, ColumnProfile]) -> Iterator[ValueMatch]:
    """Yield the values at the place of a word on the scales of the columns (lower case)."""
    wanted = [(scale, scale[word]) for scale in _SCALES if word in scale and len(word) > 1]
    for scale, place in wanted:
        for column in columns.values():
            values = (column.values or ()) if _is_on(column, scale) else ()
            for value in values:
                if scale.get(value.casefold()) == place:
                    yield ValueMatch(column.name, value, False)


def _is_on(column: ColumnProfile, scale: Mapping[str, int]) -> bool:
    values = column.values or ()
    places = [scale.get(value.casefold()) for value in values]
    known = [place for place in places if place is not None]
    is_complete = None not in places or {"male", "female"} <= {v.casefold() for v in values}
    return (
        column.kind == "text" and is_complete and len(known) > 1 and len(set(known)) == len(known)
    )


def graded(word: str, noun: str, columns: Mapping[str, ColumnProfile]) -> list[ValueMatch]:
    """Return the values of an ordinal in columns of grades: ``third class`` is the 3rd of `pclass`.

    Both words are in lower case.
    """
    place = _ORDINALS.get(word)
    if place is None or len(noun) < _SHORTEST_NOUN:
        return []
    named = [name for name in columns if name.casefold().endswith(singular(noun))]
    exact = [name for name in named if name.casefold() == singular(noun)]
    return [
        ValueMatch(name, value)
        for name in exact or named
        for value in columns[name].values or ()
        if _places(columns[name]).get(value) == place
    ]


def _places(column: ColumnProfile) -> dict[str, int]:
    """Return the places of the values of a column, if all of them are grades."""
    values = column.values or ()
    places = {value: _PLACES.get(value.casefold().split()[0]) for value in values if value.strip()}
    known = {value: place for value, place in places.items() if place is not None}
    return known if len(known) == len(values) == len(set(known.values())) else {}
