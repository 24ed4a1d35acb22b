"""The closed words of the request language: function words of English and a few of other languages.

No word of a data set is in here. A sense is a kind and a detail: ``fn`` and ``mean``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple


class Sense(NamedTuple):
    """Sense of a phrase.

    Attributes:
        kind: Role in a request, for example ``fn`` for an aggregate function.
        detail: The member of that kind.
    """

    kind: str
    detail: str


SEASONS = {
    "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11),
    "winter": (12, 1, 2), "frühling": (3, 4, 5), "sommer": (6, 7, 8), "herbst": (9, 10, 11),
    "été": (6, 7, 8), "hiver": (12, 1, 2), "verano": (6, 7, 8), "invierno": (12, 1, 2),
    "springtime": (3, 4, 5), "summertime": (6, 7, 8), "wintertime": (12, 1, 2),
}  # fmt: skip
NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "fifty": 50,
    "hundred": 100, "zero": 0, "dozen": 12,
}  # fmt: skip

DIMENSIONS = {
    "mass": "heavy heavier heaviest weigh weighs weighed light lighter:- lightest:- mass weight",
    "temperature": "hot hotter hottest warm warmer warmest cold:- colder:- coldest:- cool:- "
    "cooler:- coolest:-",
    "age": "old older oldest aged young:- younger:- youngest:- elderly",
    "height": "tall taller tallest short:- shorter:- shortest:-",
    "length": "long longer longest short:- shorter:- shortest:-",
    "income": "rich richer richest wealthy wealthier wealthiest poor:- poorer:- poorest:- earn "
    "earns earned earning paid",
    "price": "expensive costly pricey pricier priciest cheap:- cheaper:- cheapest:- costs cost "
    "costing costlier costliest paid pay pays",
    "population": "populous populated",
    "speed": "fast faster fastest quick quicker quickest slow:- slower:- slowest:-",
    "area": "spacious large:0",
    "width": "wide wider widest broad narrow:- narrower:- narrowest:-",
    "depth": "deep deeper deepest shallow:- shallower:- shallowest:-",
    "power": "powerful",
    "rain": "wet wetter wettest rainy:0 dry:- drier:- driest:-",
    "wind": "windy windier windiest",
    "rating": "popular:0 rated",
    "distance": "far farther farthest",
}
DIMENSION_COLUMNS = {
    "mass": "mass weight wt gewicht poids peso",
    "temperature": "temperature temp temperatur température",
    "age": "age alter âge edad",
    "height": "height ht größe taille altura",
    "length": "length duration runtime minutes dauer durée",
    "income": "income salary wage wages earnings pay gdp gdppercap gehalt einkommen compensation",
    "price": "price rent cost fare fee amount_paid unit_price preis prix precio rate msrp",
    "population": "pop population",
    "speed": "speed velocity mph kph",
    "area": "area sqft surface",
    "width": "width",
    "depth": "depth",
    "power": "power horsepower hp",
    "rain": "precipitation rain rainfall prcp",
    "wind": "wind windspeed",
    "rating": "rating score stars",
    "distance": "distance",
}


def _parsed(text: str) -> dict[str, tuple[Sense, ...]]:
    found: dict[str, tuple[Sense, ...]] = {}
    entry = ""
    for line in [*text.splitlines(), "end"]:
        if line.startswith(" "):
            entry += line
            continue
        if entry:
            _add(entry, found)
        entry = "" if line.startswith("#") else line
    return found


def _add(entry: str, found: dict[str, tuple[Sense, ...]]) -> None:
    head, _, phrases = entry.partition(": ")
    kind, detail = head.split()
    for phrase in (" ".join(part.split()) for part in phrases.split(" | ")):
        text, _, other = phrase.rpartition(":") if len(phrase) > 1 else (phrase, "", "")
        sense = Sense(kind, other if text and other and phrase != text else detail)
        if not text:
            text, sense = phrase, Sense(kind, detail)
        if sense not in found.get(text, ()):
            found[text] = (*found.get(text, ()), sense)


LEXICON = _parsed(files(__package__).joinpath("lexicon.txt").read_text("utf-8"))
LEXICON_WORDS = frozenset(word for phrase in LEXICON for word in phrase.split())
LONGEST = max(len(phrase.split()) for phrase in LEXICON)
"""Senses of phrases, the words in them, and the number of words of the longest."""
DIMENSION_WORDS: dict[str, tuple[tuple[str, str], ...]] = {}
"""Adjectives and verbs that state a dimension: its name and ``-`` for its lower end."""
for _name, _words in DIMENSIONS.items():
    for _word in _words.split():
        _text, _, _sign = _word.partition(":")
        if _sign != "0":
            DIMENSION_WORDS[_text] = (*DIMENSION_WORDS.get(_text, ()), (_name, _sign or "+"))
