"""Mentions of files in a request, however they are spelled.

A file is named by its name or path, in quotes of any language, in another case; by its stem ("the
gapminder data", "Load penguins."); or by one of its sheets or tables ("the Plan sheet"). Words of
a stem that stand alone are mentions that are not certain: they may be a noun of the rows.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

from taskweaver.tables.files.profile import FileInfo
from taskweaver.utils.data_files import DATA_SUFFIX
from taskweaver.utils.text import folded

_QUOTES = {
    '"': '"', "'": "'", "`": "`", "«": "»", "»": "«", "„": "“”", "“": "”", "”": "”",
    "\u201a": "\u2018\u2019", "\u2018": "\u2019", "\u2019": "\u2019",
    "\u2039": "\u203a", "\u203a": "\u2039", "「": "」", "『": "』",
}  # fmt: skip
"""Closing quotes of an opening one, in the languages that have them."""
_OWN_FOLDERS = {"", ".", "data", "cwd"}
"""Last folders of a path to a file that is here; another folder's file is another file."""
_NOUNS = (
    r"(?:data\s?sets?|data|files?|tables?|csv|json|tsv|spreadsheets?|workbooks?|database|db|one)"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_BOUNDARY = r"(?<![^\W_])(?<![^\W_][-.'])"
_JOINT = re.compile(
    r"[\s,(]*(?:'s\b|(?:of|in|from|inside)\b)?\s*(?:the\s+)?(?:file\s+)?[\s(]*", re.I
)
_FILE_END = re.compile(rf"{DATA_SUFFIX}(?:#[^#]*)?\s*\Z", re.IGNORECASE)
_FILE_WORD = re.compile(
    rf"[^\s\"'`«»„“”\u201a\u2018\u2019\u2039\u203a「」『』()\[\],;:]*{DATA_SUFFIX}(?:#\w+)?(?!\.\w)",
    re.IGNORECASE,
)
_FOLDER = r"(?<![\w.-])(?P<folder>[^\s\"'`«»„“\u201a\u2018\u2039「(,;]*[/\\])?"
_OPEN, _CLOSE = r"[\"'`“„«\u2018]?", r"[\"'`”“»\u2019]?"
_END = r"(?![^\W_])"
_SHEET = r"(?:(?:work)?sheets?|tabs?|tables?|(?:arbeits|tabellen)?blatt|tabelle)"
_SIMILAR_CHARS = 5
_LIKE = 0.6


@dataclass(frozen=True, slots=True)
class Mention:
    """Part of a request that names a file.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        file: Path of the file, relative to the working folder; empty for a file name that no
            file has.
        part: Sheet or table that is named with it; empty for none.
        is_certain: Whether the words can be nothing else, as in ``data/x.csv``; else they may
            also be a column, a value or a noun, as in ``penguins``, or a misspelled name.
    """

    start: int
    end: int
    file: str
    part: str = ""
    is_certain: bool = True


def find_files(text: str, files: Sequence[FileInfo]) -> tuple[Mention, ...]:
    """Return the mentions of files in a text, in order, without overlaps."""
    found: list[Mention] = []
    is_taken = bytearray(len(text))
    for kind in (_quoted, _named, _unknown, _parts, _stems):
        for mention in kind(text, files):
            if not any(is_taken[mention.start : mention.end]):
                is_taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
                found.append(mention)
    return tuple(_joined(text, sorted(found, key=lambda mention: mention.start)))


def nearest_file(name: str, files: Sequence[FileInfo]) -> str:
    """Return the file whose name is most like a name that no file has; empty for none."""

    def likeness(file: FileInfo) -> float:
        return SequenceMatcher(None, _stem(name).casefold(), _stem(file.name).casefold()).ratio()

    best = max(files, key=likeness, default=None)
    return best.name if best is not None and likeness(best) >= _LIKE else ""


def _quoted(text: str, files: Sequence[FileInfo]) -> Iterator[Mention]:
    """Yield quoted names and paths, spaces included."""
    for start, end, inner in _quotations(text):
        path, _, part = inner.strip().partition("#")
        mention = _resolved(start, end, path, files, part)
        if mention is not None:
            yield mention


def _quotations(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the quoted passages with their offsets, quotes included."""
    at = 0
    while at < len(text):
        closing = _QUOTES.get(text[at], "")
        is_opening = closing and not (at and text[at - 1].isalnum())
        ends = [text.find(mark, at + 1) for mark in closing] if is_opening else []
        end = min((end for end in ends if end > 0), default=-1)
        if end > 0 and _FILE_END.search(text, at + 1, end) and "\n" not in text[at:end]:
            yield at, end + 1, text[at + 1 : end]
            at = end
        at += 1


def _named(text: str, files: Sequence[FileInfo]) -> Iterator[Mention]:
    """Yield full names, in any case, with the folders before and the part behind them."""
    for file in sorted(files, key=lambda file: len(file.name), reverse=True):
        if not _may_hold(text, _stem(file.name)):
            continue
        forms = {file.name, *(unicodedata.normalize(form, file.name) for form in ("NFC", "NFD"))}
        spellings = "|".join(map(re.escape, forms))
        pattern = rf"{_FOLDER}(?:{spellings})(?:#(?P<part>\w+))?(?![a-z0-9_])(?!\.\w)"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            folder = re.split(r"[/\\]", match["folder"] or "/")[-2]
            name = file.name if folder.casefold() in _OWN_FOLDERS else ""
            part = _part(file, match["part"] or "")
            yield Mention(match.start(), match.end(), name, part)


def _unknown(text: str, files: Sequence[FileInfo]) -> Iterator[Mention]:
    """Yield words that end like a file name and are the name of no file, or nearly of one."""
    for match in _FILE_WORD.finditer(text):
        path, _, part = match[0].partition("#")
        yield _resolved(match.start(), match.end(), path, files, part) or Mention(
            match.start(), match.end(), ""
        )


def _resolved(
    start: int, end: int, path: str, files: Sequence[FileInfo], part: str = ""
) -> Mention | None:
    """Return the mention that a path is; None if it does not end like a file."""
    *folders, name = re.split(r"[/\\]", path)
    here = {folder.casefold() for folder in folders[-1:]} <= _OWN_FOLDERS
    for file in files:
        if folded(file.name) in {folded(path), folded(name) if here else None}:
            return Mention(start, end, file.name, _part(file, part))
    if not _FILE_END.search(path):
        return None
    similar = [file for file in files if here and _is_similar(name, file.name)]
    if len(similar) == 1:
        return Mention(start, end, similar[0].name, _part(similar[0], part), is_certain=False)
    return Mention(start, end, "")


def _parts(text: str, files: Sequence[FileInfo]) -> Iterator[Mention]:
    """Yield sheets and tables, by name ("the Plan sheet") and by place ("the second sheet")."""
    for file in files:
        names = [part.name for part in file.parts if part.name]
        for name in sorted(filter(partial(_may_hold, text), names), key=len, reverse=True):
            word = _flexible(name)
            quoted = rf"{_OPEN}{word}{_CLOSE}"
            before = rf"{_BOUNDARY}{quoted}\s+{_SHEET}"
            behind = rf"\b{_SHEET}\s+(?:named\s+|called\s+)?{quoted}"
            certain = rf"(?:\b(?:the|my|das|dem|vom)\s+)?(?:{before}|{behind}){_END}"
            yield from _matches(certain, text, file.name, name)
            bare = rf"{_BOUNDARY}{word}{_END}"
            for mention in _matches(bare, text, file.name, name):
                yield replace(mention, is_certain=False)
        for place, name in enumerate(names[: len(_ORDINALS)]):
            by_place = (
                rf"\b(?:the\s+)?(?:{_ORDINALS[place]}\s+(?:work)?sheet|sheet\s+{place + 1})\b"
            )
            yield from _matches(by_place, text, file.name, name)


def _stems(text: str, files: Sequence[FileInfo]) -> Iterator[Mention]:
    """Yield names without their extension: certain beside a word for files, else not."""
    users = Counter(name for file in files for name in _folded_stems(_stem(file.name)))
    for file in sorted(files, key=lambda file: len(_stem(file.name)), reverse=True):
        forms = _stem_forms(_stem(file.name), users)
        if not any(_may_hold(text, form) for form in forms):
            continue
        word = rf"{_OPEN}(?:{'|'.join(map(_flexible, forms))}){_CLOSE}"
        certain = (
            rf"(?:\b(?:the|my|our|this)\s+)?{_BOUNDARY}{word}\s+{_NOUNS}{_END}"
            rf"|^\s*{word}(?=\s*:)"
            rf"|(?<=\bload )(?:the\s+)?{word}{_END}"
            rf"|\b(?:the\s+)?(?:file|data\s?set|database)\s+{word}{_END}"
        )
        yield from _matches(certain, text, file.name)
        for mention in _matches(rf"{_BOUNDARY}{word}{_END}", text, file.name):
            yield replace(mention, is_certain=False)


def _matches(pattern: str, text: str, file: str, part: str = "") -> Iterator[Mention]:
    for match in re.finditer(pattern, text, re.IGNORECASE):
        yield Mention(match.start(), match.end(), file, part)


def _stem_forms(stem: str, users: Mapping[str, int]) -> list[str]:
    """Return the spellings of a stem that no other file shares: in full, without year, plural.

    `users` has the number of files, this one among them, for each of their folded stems.
    """
    forms = [stem, _other_number(stem), _undated(stem), _other_number(_undated(stem))]
    own = _folded_stems(stem)
    return [
        form
        for form in dict.fromkeys(forms)
        if len(form) > 1
        and not form.isdigit()
        and users.get(folded(form), 0) == (folded(form) in own)
    ]


def _folded_stems(stem: str) -> set[str]:
    """Return a stem in full and without year, as they are compared."""
    return {folded(stem), folded(_undated(stem))}


def _undated(stem: str) -> str:
    """Return a stem without the number at its end, such as a year."""
    return re.sub(r"[\W_]*\d+[\W_]*\Z", "", stem)


def _other_number(word: str) -> str:
    """Return the singular of a plural, and the plural of a singular."""
    if word.lower().endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.lower().endswith("s") else word + "s"


def _joined(text: str, mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Join a part with the file beside it; a file whose part is named elsewhere has that part."""
    named = {(m.file, m.part) for m in mentions if m.part and m.is_certain}
    merged = list(mentions)
    for first, second in pairwise(mentions):
        is_pair = first.file == second.file and bool(first.part) != bool(second.part)
        if is_pair and second in merged and _JOINT.fullmatch(text, first.end, second.start):
            part = first.part or second.part
            at = merged.index(second)
            merged[at - 1 : at + 1] = [Mention(merged[at - 1].start, second.end, first.file, part)]
            named.add((first.file, part))
    for mention in merged:
        parts = [part for file, part in named if file == mention.file]
        is_whole = not mention.part and mention.is_certain and len(parts) == 1
        yield replace(mention, part=parts[0]) if is_whole else mention


def _part(file: FileInfo, name: str) -> str:
    """Return a part's name as the file spells it; the name itself where parts are not known."""
    known = {folded(part.name): part.name for part in file.parts}
    return known.get(folded(name), name)


def _is_similar(name: str, other: str) -> bool:
    """Return whether a name is another with one slip: its extension, its number, one letter."""
    stem, wanted = folded(_stem(name)), folded(_stem(other))
    if stem == wanted or folded(_other_number(stem)) == wanted:
        return True
    if min(len(stem), len(wanted)) < _SIMILAR_CHARS or _digits(stem) != _digits(wanted):
        return False
    return _is_one_slip(stem, wanted)


def _is_one_slip(first: str, second: str) -> bool:
    """Return whether one letter was left out, added or replaced, or two were exchanged."""
    start = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    a, b = first[start:], second[start:]
    is_exchange = len(a) > 1 and a[:2] == b[1::-1] and a[2:] == b[2:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or is_exchange


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _stem(name: str) -> str:
    return PurePosixPath(name.removesuffix(".gz").removesuffix(".zip")).stem


def _may_hold(text: str, name: str) -> bool:
    """Return whether the first word of a name occurs in a text: a quick test before a search."""
    words = re.split(r"[\s_-]+", name.strip(" _-"))
    return folded(words[0]) in folded(text)


def _flexible(name: str) -> str:
    """Return a pattern for a name whose words may be divided by other characters."""
    words = filter(None, re.split(r"[\s_-]+", name))
    return r"[\s_-]*".join(map(re.escape, words)) if name.strip(" _-") else re.escape(name)
