"""Values of text columns that the words of a request may mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from taskweaver.tables.files.profile import ValueMatch

LONGEST_RUN = 8
_MOST_WORDS = 500
_LONGEST_VALUE = 100
_PER_WORDS = 6
_SYMBOLS = frozenset("+#%&$@*<>=!|~^?")
_WORDS = re.compile(r"[^\W_]+")
_ADJECTIVE_ENDS = (
    ("ese", ("", "a", "o")),
    ("uese", ("al",)),
    ("vian", ("",)),
    ("ian", ("", "a", "ia", "y", "e", "o")),
    ("ean", ("", "e", "ea")),
    ("an", ("", "a", "e", "o", "y")),
    ("n", ("", "ny")),
    ("ish", ("", "en", "and", "ey", "land", "eland")),
    ("nish", ("nland",)),
    ("ttish", ("tland",)),
    ("ic", ("",)),
    ("i", ("", "stan", "a")),
    ("", ("y", "land")),
)
"""Ends of adjectives and, for each, ends of the names they are made of."""
_IRREGULAR = dict(
    pair.split("=")
    for pair in (
        "british=britain|danish=denmark|dutch=netherlands|french=france|greek=greece"
        "|norwegian=norway|spanish=spain|swiss=switzerland|welsh=wales|deutschland=germany"
        "|frankreich=france|italien=italy|spanien=spain|schweiz=switzerland|österreich=austria"
        "|polen=poland|niederlande=netherlands|belgien=belgium|norwegen=norway|schweden=sweden"
        "|dänemark=denmark|finnland=finland|griechenland=greece|türkei=turkey|russland=russia"
        "|indien=india|brasilien=brazil|kanada=canada|mexiko=mexico|australien=australia"
        "|grossbritannien=united kingdom|irland=ireland|ungarn=hungary|rumänien=romania"
        "|ägypten=egypt|südafrika=south africa|argentinien=argentina|münchen=munich"
        "|köln=cologne|wien=vienna|rom=rome|mailand=milan"
    ).split("|")
)
"""Names, and adjectives of names, in other words."""
_NO_PLURALS = frozenset("this thus does plus yes minus versus across always perhaps".split())
_PLURALS = {"men": "man", "women": "woman", "children": "child", "people": "person"}


def folded(text: str) -> str:
    """Return a text's words in lower case, with single blanks between them."""
    return " ".join(_WORDS.findall(text.casefold()))


class ValueFinder:
    """Looks up the words of a request among values.

    Attributes:
        found: The matches by words; words with punctuation occur as in the request, too.
    """

    def __init__(self, request: str) -> None:
        words = _WORDS.findall(request.casefold())[:_MOST_WORDS]
        self._raw = request.casefold()
        self._runs = {
            " ".join(words[start : start + length])
            for start in range(len(words))
            for length in range(1, LONGEST_RUN + 1)
            if start + length <= len(words)
        }
        self._wanted: dict[str, set[str]] = defaultdict(set)
        for run in self._runs:
            for form in (run, *forms(run)):
                for name in _value_names(form):
                    self._wanted[name].add(run)
        self._found: dict[str, list[ValueMatch]] = defaultdict(list)

    def look(self, column: str, values: Iterable[str]) -> None:
        """Look up the values of a column."""
        for value in values:
            if value and len(value) <= _LONGEST_VALUE:
                self._look_at(column, value)

    def _look_at(self, column: str, value: str) -> None:
        raw = value.casefold()
        name = " ".join(raw.split())
        if not raw.replace(" ", "").isalnum():
            raw = raw.strip()
            if raw and self._occurs(raw):
                self._found[raw].append(ValueMatch(column, value, is_exact=True))
            if not _SYMBOLS.isdisjoint(raw):
                return
            name = folded(raw)
        for run in self._wanted.get(name, ()):
            self._found[run].append(ValueMatch(column, value, is_exact=run == name))

    def _occurs(self, raw: str) -> bool:
        """Return whether a value with punctuation occurs in the request, not inside of a word."""
        place = self._raw.find(raw)
        while place >= 0:
            before = self._raw[place - 1 : place]
            after = self._raw[place + len(raw) : place + len(raw) + 1]
            if not (before.isalnum() and raw[0].isalnum()) and not (
                after.isalnum() and raw[-1].isalnum()
            ):
                return True
            place = self._raw.find(raw, place + 1)
        return False

    @property
    def found(self) -> Mapping[str, tuple[ValueMatch, ...]]:
        """The matches by words, exact ones first; the same words have up to six."""
        return {
            words: tuple(dict.fromkeys(sorted(found, key=lambda match: not match.is_exact)))[
                :_PER_WORDS
            ]
            for words, found in sorted(self._found.items())
        }


def forms(words: str) -> Iterator[str]:
    """Give texts that words are a form of: the singular, and names that an adjective is made of."""
    head, _, last = words.rpartition(" ")
    for form in _single_forms(last):
        yield f"{head} {form}" if head else form


def _single_forms(word: str) -> Iterator[str]:
    yield from _singulars(word)
    if len(word) < 4:
        return
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
    for end, names in _ADJECTIVE_ENDS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            stem = word.removesuffix(end)
            yield from (f"{stem}{name}" for name in names if stem + name != word)


def _singulars(word: str) -> Iterator[str]:
    if word in _PLURALS:
        yield _PLURALS[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss") or word in _NO_PLURALS:
        return
    yield word[:-1]
    if word.endswith("ies"):
        yield f"{word[:-3]}y"
    if word.endswith("es"):
        yield word[:-2]


def _value_names(name: str) -> Iterator[str]:
    """Give a name and its plurals, as values of a column may have them."""
    yield name
    if len(name) > 2:
        yield from (f"{name}s", f"{name}es")
        if name.endswith("y"):
            yield f"{name[:-1]}ies"
    yield from (plural for plural, single in _PLURALS.items() if single == name)
