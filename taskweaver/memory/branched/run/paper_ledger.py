"""The facts of a document, each kept once, with all the places it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(r"[\w%+-]+(?:\.\w+)*|[<>≤≥≠!~]+")
_LEAST_TOKENS = 4
"""Tokens of a text that counts as contained in a longer one; fewer may be there by chance."""


@dataclass(slots=True)
class Fact:
    """A line of a document.

    Attributes:
        text: The line.
        sources: Rows, keys, nodes and files it comes from.
        key: Name that facts with other words have in common; empty for none.
        same: Part of the text that identifies it; empty for all of it.
        block: Text shown below the line as it is, for example a difference of files.
    """

    text: str
    sources: Sequence[str]
    key: str = ""
    same: str = ""
    block: str = ""

    @property
    def line(self) -> str:
        """The text with its sources, without a bullet."""
        return f"{self.text} [{'; '.join(self.sources)}]" if self.sources else self.text


@dataclass(slots=True)
class _Section:
    facts: list[Fact] = field(default_factory=list)
    elsewhere: dict[str, None] = field(default_factory=dict)


class FactLedger:
    """Facts by section. A fact that is in one section already only adds its sources there."""

    def __init__(self) -> None:
        self._sections: dict[str, _Section] = {}
        self._by_key: dict[str, tuple[str, Fact]] = {}
        self._by_words: dict[str, tuple[str, Fact]] = {}

    def add(self, section: str, facts: Iterable[Fact]) -> None:
        """Add facts to a section, in their order, but for those a section shows already."""
        own = self._sections.setdefault(section, _Section())
        for fact in facts:
            found = self._find(fact)
            if found is None:
                self.show(section, [fact])
                continue
            home, shown = found
            shown.sources = list(dict.fromkeys([*shown.sources, *fact.sources]))
            if home != section:
                own.elsewhere[home] = None
            self._know(fact, found)

    def show(self, section: str, facts: Iterable[Fact]) -> None:
        """Add facts to a section, whatever the document shows already."""
        own = self._sections.setdefault(section, _Section())
        for fact in facts:
            own.facts.append(fact)
            self._know(fact, (section, fact))

    def _know(self, fact: Fact, place: tuple[str, Fact]) -> None:
        if fact.key:
            self._by_key.setdefault(fact.key, place)
        for words in filter(None, (normal(fact.same), normal(fact.text))):
            self._by_words.setdefault(words, place)

    def facts(self, section: str) -> list[Fact]:
        """Return the facts that are shown in a section."""
        return self._sections[section].facts

    def elsewhere(self, section: str) -> list[str]:
        """Return the sections that show the other facts of this one."""
        return list(self._sections[section].elsewhere)

    def _find(self, fact: Fact) -> tuple[str, Fact] | None:
        words = normal(fact.same or fact.text)
        if fact.key and fact.key in self._by_key:
            return self._by_key[fact.key]
        if words in self._by_words or not is_telling(words):
            return self._by_words.get(words)
        wanted = f" {words} "
        longer = (place for text, place in self._by_words.items() if words in text
                  and wanted in f" {text} ")  # fmt: skip
        return next(longer, None)


def is_telling(text: str) -> bool:
    """Return whether a text is long enough to be the same fact wherever it stands."""
    return len(normal(text).split()) >= _LEAST_TOKENS


def normal(text: str) -> str:
    """Return the words, numbers and comparisons of a text, without other punctuation."""
    return " ".join(_TOKEN.findall(text))
