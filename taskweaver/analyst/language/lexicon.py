"""The closed words of the request language, and the tokens of a request.

No word of a data set is in here. A sense is a kind and a detail: ``fn`` and ``mean``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple

from taskweaver.analyst.language.names import WORD_TABLES, numbered


class Sense(NamedTuple):
    """Sense of a phrase.

    Attributes:
        kind: Role in a request, for example ``fn`` for an aggregate function.
        detail: The member of that kind.
    """

    kind: str
    detail: str


SEASONS = {
    season: tuple(map(int, months.split(","))) for season, months in WORD_TABLES["seasons"].items()
}
NUMBER_WORDS = numbered("numbers")

DIMENSIONS = WORD_TABLES["dimensions"]
DIMENSION_COLUMNS = WORD_TABLES["dimension columns"]


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
        for form in forms(text):
            if sense not in found.get(form, ()):
                found[form] = (*found.get(form, ()), sense)


def forms(text: str) -> tuple[str, ...]:
    """Return the forms of a German adjective that is written with ``~``; else the text."""
    folded = text.casefold()
    stem = folded.removesuffix("~")
    return (folded,) if stem == folded else tuple(stem + ending for ending in _ENDINGS)


_ENDINGS = ("", "e", "en", "er", "es", "em")
LEXICON = _parsed(
    "\n".join(
        files(__package__).joinpath(name).read_text("utf-8")
        for name in ("lexicon.txt", "lexicon_de.txt")
    )
)
LEXICON_WORDS = frozenset(word for phrase in LEXICON for word in phrase.split())
LONGEST = max(len(phrase.split()) for phrase in LEXICON)
"""Senses of phrases, the words in them, and the number of words of the longest."""
DIMENSION_WORDS: dict[str, tuple[tuple[str, str], ...]] = {}
"""Adjectives and verbs that state a dimension: its name and ``-`` for its lower end."""
for _name, _words in DIMENSIONS.items():
    for _word in _words.split():
        _stem, _, _sign = _word.partition(":")
        for _text in forms(_stem) if _sign != "0" else ():
            DIMENSION_WORDS[_text] = (*DIMENSION_WORDS.get(_text, ()), (_name, _sign or "+"))
_PLAIN = frozenset(("schwer", "teuer"))


def is_superlative(word: str) -> bool:
    """Return whether a word for a dimension is a superlative: ``heaviest``, ``schwerste``."""
    return word in DIMENSION_WORDS and re.search(r"est$|ste[nrsm]?$", word) is not None


def is_comparative(word: str) -> bool:
    """Return whether a word for a dimension is a comparative: ``heavier``, ``schwerer``."""
    return word in DIMENSION_WORDS and word.endswith("er") and word not in _PLAIN


TokenKind = Literal["word", "number", "date", "symbol", "quoted", "literal", "file"]

_PATTERN = re.compile(
    r"(?P<quoted>\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w))"
    r"|(?P<date>\d{4}-\d{1,2}-\d{1,2}(?!\d)|\d{4}-\d{2}(?![\d-])|\d{1,2}\.\d{1,2}\.\d{4})"
    r"|(?P<number>[$€£]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
    r"(?:\s?%|\s?(?:million|billion|thousand|bn)\b|(?:k|m)\b)?(?:(?![^\W_])|(?=(?:[km]?g|[ckm]m)\b)))"
    r"|(?P<word>\w+(?:['\u2019](?:t|s|re|ll|d|ve|m)\b)?)"
    r"|(?P<symbol><=|>=|!=|<>|==|[^\w\s])",
    re.IGNORECASE,
)
_JOINED = re.compile(r"(?<=\w)-(?=[^\W\d_])")
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Token:
    """Token of a request.

    Attributes:
        text: The token as written; of a quoted one, its content.
        start: Offset of its first character.
        end: Offset after its last character.
        kind: ``literal``: the exact name of a column or a value; ``file``: mention of a file.
    """

    text: str
    start: int
    end: int
    kind: TokenKind

    @property
    def lower(self) -> str:
        """The text in lower case, without a possessive ending."""
        return re.sub(
            r"'s$", "", self.text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        )

    @property
    def number(self) -> float | None:
        """The number it states; None for none. Percent are hundredths only by `is_percent`."""
        if self.kind != "number":
            return None
        match = re.fullmatch(r"[$€£]?([\d,]+(?:\.\d+)?)\s*(\w+|%)?", self.text)
        if match is None:
            return None
        scale = _SCALES.get((match[2] or "").lower(), 1.0)
        return float(match[1].replace(",", "")) * scale

    @property
    def is_percent(self) -> bool:
        """Whether it is a number with a percent sign."""
        return self.kind == "number" and self.text.endswith("%")


def literal_spans(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return the places of names with unusual characters, the longest first, without overlaps."""
    low = text.casefold()
    if len(low) != len(text):
        return []
    taken: list[tuple[int, int]] = []
    for name in sorted(set(names), key=len, reverse=True):
        wanted = name.casefold()
        at = low.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            is_free = all(end <= start or at >= stop for start, stop in taken)
            if is_free and _is_whole(low, at, end):
                taken.append((at, end))
            at = low.find(wanted, end)
    return taken


def is_unusual(name: str) -> bool:
    """Return whether a name cannot be found by its words alone."""
    return bool(name.strip()) and (
        re.search(r"[^\w\s]", name) is not None or _NO_SPACES.search(name) is not None
    )


def is_unspaced(text: str) -> bool:
    """Return whether a text has words of a script without spaces."""
    return _NO_SPACES.search(text) is not None


def _is_whole(text: str, start: int, end: int) -> bool:
    if _NO_SPACES.search(text[start:end]):
        return True
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not before and not after


def tokenize(
    text: str,
    literals: Iterable[tuple[int, int]] = (),
    files: Iterable[tuple[int, int]] = (),
    words: Iterable[str] = (),
) -> list[Token]:
    """Return the tokens of a text; those at the places of literals and files are whole names.

    Runs of scripts without spaces are cut by the given words.
    """
    plain = _JOINED.sub(" ", text)
    files = tuple(files)
    whole: list[tuple[int, int, TokenKind]] = [(start, end, "file") for start, end in files]
    whole += [
        (start, end, "literal")
        for start, end in literals
        if all(end <= other or start >= stop for other, stop in files)
    ]
    found: list[Token] = []
    at = 0
    for start, end, kind in [*sorted(whole), (len(text), len(text), "file")]:
        if start < at:
            continue
        found += _plain_tokens(plain, at, start, words)
        if end > start:
            found.append(Token(text[start:end], start, end, kind))
        at = end
    return found


def _plain_tokens(text: str, start: int, end: int, words: Iterable[str]) -> list[Token]:
    found: list[Token] = []
    for match in _PATTERN.finditer(text, start, end):
        kind: TokenKind = match.lastgroup or "word"  # type: ignore[assignment]
        content = match[0]
        if kind == "quoted":
            found.append(Token(content[1:-1].strip(), match.start(), match.end(), kind))
        elif kind == "word" and _NO_SPACES.search(content):
            found += _cut(content, match.start(), words)
        else:
            found.append(Token(content, match.start(), match.end(), kind))
    return found


def _cut(run: str, offset: int, words: Iterable[str]) -> list[Token]:
    """Cut a run of a script without spaces into known words; the rest is single characters."""
    known = sorted((word for word in words if _NO_SPACES.search(word)), key=len, reverse=True)
    found, at = [], 0
    while at < len(run):
        word = next((word for word in known if run.startswith(word, at)), run[at])
        found.append(Token(word, offset + at, offset + at + len(word), "word"))
        at += len(word)
    return found
