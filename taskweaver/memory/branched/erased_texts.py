"""Texts to erase: found and replaced in texts, in JSON, and in the files beside a memory.

A text is found as it is, with its white space folded to single blanks, as a log masks it, and as a
beginning that was cut off with dots. A short text, for example the value ``8``, is no needle for a
haystack: it is found only as the whole of a text, or beside its key, and files that hold it as a
value are listed.

In a file a longer text is overwritten where it stands with a mark of the same length. So a log
keeps its lines and its readers, a process that appends to it is not disturbed, no copy of the file
is made, and an erasure that was interrupted is finished by the next one. Copies of the memory, and
files of the folders that a caller names, are not changed: those that hold a text are listed.
"""

from __future__ import annotations

import errno
import glob
import html
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, AnyStr, Generic

from taskweaver.utils.file_system.safe_fs import open_ordinary
from taskweaver.utils.redact import MASK, redact
from taskweaver.utils.sqlite_files import SIDE_FILES

ERASED = "[erased]"
_LEAST_BYTES = 12
_DOTS = "..."
_HEADER = re.compile(r"(?:\[Evicted Recall Event\]\nKind: [^\n]*\n\n|Core evicted: [^\n]*\n)")
_TEXT_FIELDS = frozenset(
    "text summary content value text_preview summary_preview value_preview".split()
)
"""Fields of logs and results that hold a text of the memory, or a value."""


class Needles:
    """Texts to erase."""

    def __init__(
        self,
        texts: Iterable[str],
        *,
        keyed: Mapping[str, Iterable[str]] | None = None,
        is_exact: bool = False,
    ) -> None:
        """Take the texts.

        Args:
            texts: The texts.
            keyed: Values of core keys, by key.
            is_exact: Whether short texts are found inside of others too.
        """
        self._keyed = {key: _filled(items) for key, items in (keyed or {}).items()}
        self._beside_keys = set[str]().union(*self._keyed.values())
        given = _filled(texts)
        forms = {form for text in given | self._beside_keys for form in _spellings(text)}
        found = (form for form in forms if is_exact or _is_long(form))
        self._within = sorted(found, key=len, reverse=True)
        self._finder = TextFinder(self._within, _DOTS)
        short = {text.strip() for text in given - self._beside_keys if not _is_long(text)}
        self._short = set() if is_exact else short
        self._lines = [
            re.compile(
                rf"^((?:- )?{re.escape(key)}: |Core evicted: {re.escape(key)}\n)"
                rf"(?:{'|'.join(map(re.escape, sorted(items, key=len, reverse=True)))})$",
                re.MULTILINE,
            )
            for key, items in self._keyed.items()
            if items
        ]

    def __bool__(self) -> bool:
        """Whether there is a text to look for."""
        return bool(self._within or self._short or self._lines)

    def is_whole(self, text: str) -> bool:
        """Return whether a text is one to erase, and nothing else but the header of an eviction."""
        bare = _HEADER.sub("", text, count=1)
        left = _HEADER.sub("", self.clean(text), count=1)
        return bool(bare.strip()) and (is_mark(self.clean(bare)) or is_mark(left))

    def clean(self, text: str) -> str:
        """Return a text with `ERASED` in place of erased texts."""
        if text.strip() in self._short:
            return ERASED
        for line in self._lines:
            text = line.sub(rf"\g<1>{ERASED}", text)
        for start, end in reversed(self._finder.spans(text)):
            text = text[:start] + ERASED + text[end:]
        return text

    def clean_data(self, data: Any, kept: frozenset[str] = frozenset(), field: str = "") -> Any:
        """Return plain data with `ERASED` in place of erased texts, also in the names of fields.

        The values of fields that are `kept` stay; with any, the names of fields stay too. `field`
        is the name of the field that holds the data.
        """
        if isinstance(data, str):
            if data in self._keyed.get(field, ()):
                return ERASED
            return self.clean(data) if field in _TEXT_FIELDS else self.clean_name(data)
        if isinstance(data, list):
            return [self.clean_data(item, kept, field) for item in data]
        if not isinstance(data, dict):
            return data
        key = data.get("key")  # beside a core key, the field with its value goes by that name
        fields = {
            name: key if isinstance(key, str) and name.startswith("value") else name
            for name in data
        }
        return {
            name if kept else self.clean_name(name): value
            if name in kept
            else self.clean_data(value, kept, fields[name])
            for name, value in data.items()
        }

    def clean_name(self, text: str) -> str:
        """Return a name as `clean` does, but keep names that are short texts."""
        return text if text.strip() in self._short else self.clean(text)

    def forms(self) -> set[bytes]:
        """Return the longer texts as files may hold them: plain, in JSON, and in JSON in JSON."""
        return {form.encode("utf-8", "replace") for text in self._within for form in _forms(text)}

    def short_forms(self) -> set[bytes]:
        """Return the short texts as values of JSON."""
        short = self._short | {value for value in self._beside_keys if not _is_long(value)}
        return {json.dumps(text).encode() for text in short}


def is_mark(text: str) -> bool:
    """Return whether nothing is left of a text but the mark, and dots where it was cut off."""
    return text.strip().removesuffix(_DOTS) == ERASED


def _spellings(text: str) -> set[str]:
    """Return the spellings of a text in memories and logs."""
    forms = {text, text.strip(), " ".join(text.split())}
    masked = {redact(form) for form in forms}
    return forms | {form for form in masked if _is_long(form.replace(MASK, "").strip())}


def _filled(texts: Iterable[str]) -> set[str]:
    return {text for text in texts if text.strip()}


def _is_long(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) >= _LEAST_BYTES


def _jsons(text: str) -> list[str]:
    """Return a text as a part of JSON, in ASCII and in Unicode."""
    return [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]


def _forms(text: str) -> Iterator[str]:
    yield text
    inners = _jsons(text)
    yield from inners
    # A page escapes more.
    yield re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", inners[1])
    for inner in inners:
        yield from _jsons(inner)


Span = tuple[int, int]
"""Begin and end of a place."""
_PREFIX = 12
_HEAD = 24
"""Fewest characters of a beginning that was cut off."""


class TextFinder(Generic[AnyStr]):
    """Finds needles, which are grouped by their beginnings so that many take little longer."""

    def __init__(self, needles: Iterable[AnyStr], dots: AnyStr) -> None:
        """Take the needles, and the dots that stand behind a beginning that was cut off."""
        self._dots: AnyStr = dots
        self._groups: dict[AnyStr, dict[AnyStr, list[AnyStr]]] = {}
        for needle in needles:
            heads = self._groups.setdefault(needle[:_PREFIX], {})
            heads.setdefault(needle[:_HEAD], []).append(needle)

    def spans(self, hay: AnyStr) -> list[Span]:
        """Return where needles stand, in order. Places that overlap are one."""
        return joined(
            span for prefix, heads in self._groups.items() for span in self._in(hay, prefix, heads)
        )

    def _in(self, hay: AnyStr, prefix: AnyStr, heads: dict[AnyStr, list[AnyStr]]) -> Iterator[Span]:
        lengths = {len(head) for head in heads}
        place = hay.find(prefix)
        while place >= 0:
            end = max(
                (
                    self._end(hay, place, needle)
                    for length in lengths
                    for needle in heads.get(hay[place : place + length], ())
                ),
                default=place,
            )
            if end > place:
                yield place, end
            place = hay.find(prefix, max(end, place + 1))

    def _end(self, hay: AnyStr, place: int, needle: AnyStr) -> int:
        """Return where a needle that begins at a place ends, or the place itself."""
        whole = place + len(needle)
        if hay.startswith(needle, place):
            return whole
        end, cut = place, hay.find(self._dots, place + _HEAD, whole + len(self._dots))
        while cut >= 0 and needle.startswith(hay[place:cut]):
            end, cut = cut, hay.find(self._dots, cut + 1, whole + len(self._dots))
        return end


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return places in order, overlapping places joined."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            first, last = found.pop()
            found.append((first, max(last, end)))
        else:
            found.append((start, end))
    return found


_BESIDE = ("memory_database.html", "memory_*.jsonl")
_COPIES = ("*.partial", "*.damaged*", "*.backup", "*.bak", "*.original*")
_MOST_BYTES = 1 << 30
_READ_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Untouched:
    """A file that may still hold an erased text, and the reason why the file was not changed."""

    path: str
    reason: str


@dataclass
class ErasedFiles:
    """One erasure in the files of a memory.

    Attributes:
        path: File of the memory.
        logs: Folder of the logs.
        folders: Folders that are only looked through.
        names: Further files beside the memory, or in the folder `memory` there.
        is_dry: Whether the texts are only looked for.
        changed: Files that held a text.
        untouched: Files that may still hold one.
    """

    path: Path
    logs: Path
    folders: Sequence[Path]
    names: Sequence[str]
    is_dry: bool
    changed: set[str] = field(default_factory=set)
    untouched: dict[str, str] = field(default_factory=dict)

    def erase(self, needles: Needles) -> None:
        """Overwrite the texts in all files. Files that cannot be changed are noted."""
        if not needles:
            return
        finder, short = TextFinder(needles.forms(), b"..."), needles.short_forms()
        for path, reason in chain(dict.fromkeys(self._own(), "").items(), self._others()):
            try:
                self._erase_in(path, finder, short, reason)
            except FileNotFoundError:
                continue  # removed since it was listed
            except OSError as error:
                self.untouched[str(path)] = f"it cannot be changed: {error.strerror or error}"

    def _own(self) -> Iterator[Path]:
        """Yield the files that the memory wrote, and may overwrite."""
        folder = self.path.parent
        for home in (folder, folder / "memory"):
            for pattern in (*_BESIDE, *map(glob.escape, self.names)):
                yield from sorted(home.glob(pattern))
        yield from sorted(self.logs.glob("memory_*.jsonl*"))

    def _others(self) -> Iterator[tuple[Path, str]]:
        """Yield the files that are only looked through, each with the reason to list it."""
        own = self.path.resolve()
        memory = {own, *(own.with_name(own.name + ending) for ending in SIDE_FILES)}
        for ending in _COPIES:
            for path in sorted(self.path.parent.glob(glob.escape(self.path.stem) + ending)):
                yield path, "it is a copy of the memory, and holds the text"
        for given in self.folders:
            if not given.is_dir():
                self.untouched[str(given)] = "it is no folder"
            for path in sorted(given.rglob("*")):
                if not path.is_dir() and path.resolve() not in memory:
                    yield path, "it holds the text"

    def _erase_in(
        self, path: Path, finder: TextFinder[bytes], short: set[bytes], reason: str
    ) -> None:
        """Overwrite the texts in one file, or list the file for a reason."""
        name = str(path)
        if reason and name in self.changed:
            return
        data = _content(path)
        found = finder.spans(data)
        has_short = any(form in data for form in short)
        if has_short and not reason:
            self.untouched[name] = "it holds a short text as a value"
        if not found and not has_short and not finder.spans(_unescaped(path, data)):
            return
        if reason:
            self.untouched.setdefault(name, reason)
        elif not found:
            self.untouched.setdefault(name, "it holds the text with escaped characters")
        elif not path.stat().st_mode & stat.S_IWUSR:
            self.untouched[name] = "it is protected against writing, and holds the text"
        else:
            self.changed.add(name)
            if not self.is_dry:
                _mark(path, data, found)


def _content(path: Path) -> bytes:
    """Return the bytes of an ordinary file. Links and special files count as empty.

    Raises:
        OSError: If it cannot be read, or is too large.
    """
    if path.is_symlink() or not path.is_file():
        return b""
    with open_ordinary(path, os.O_NOFOLLOW) as file:
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, "it is larger than 1 GiB")
        return file.read()


def _unescaped(path: Path, data: bytes) -> bytes:
    """Return the content of a Markdown file without the escapes. Nothing of another file."""
    if path.suffix != ".md":
        return b""
    return html.unescape(data.decode("utf-8", "replace").replace("\\", "")).encode()


def _mark(path: Path, data: bytes, places: Sequence[Span]) -> None:
    """Overwrite places of a file with marks, stars where a mark has no room."""
    with os.fdopen(os.open(path, _READ_WRITE), "r+b") as file:
        for start, end in places:
            length = end - start
            file.seek(start)
            if file.read(length) == data[start:end]:
                file.seek(start)
                mark = ERASED.encode().ljust(length) if length >= len(ERASED) else b"*" * length
                file.write(mark)
        file.flush()
        os.fsync(file.fileno())
