"""Files that a text names, in any spelling of a person, a shell or a terminal."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from urllib.parse import unquote

from taskweaver.utils.data_files import DATA_SUFFIX, is_data_file
from taskweaver.utils.file_system.safe_fs import is_plain_name
from taskweaver.utils.files import leaves
from taskweaver.utils.text import folded

_STOPS = r"\s\"'`<>|*?;,«»„“”「」『』"
_WORD = re.compile(rf"(?:\\.|[^{_STOPS}(\[{{])(?:\\.|[^{_STOPS}])*")
_CUT = re.compile(rf"{DATA_SUFFIX}(?=[^\x00-\x7f])", re.IGNORECASE)
_URL = re.compile(r"file://(?:localhost)?(?=/)", re.IGNORECASE)
_LIKE_A_FILE = re.compile(r"/|\.\w*[^\W\d]")
_END = re.compile(r"\w[^/]*/?\Z")
_MOST_WORDS, _MOST_NAMES = 5_000, 20_000
_MOST_TYPED, _LONGEST = 500, 8
"""Words of a text in which names may have blanks, and blanks of such a name."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """File that a text names.

    Attributes:
        spelled: Its path or name as the text has it, without quotes.
        source: Its absolute path, where links may be parts.
        path: The same with its links followed.
        problem: Reason why the file cannot be used, as a predicate; empty for none.
    """

    spelled: str
    source: Path
    path: Path
    problem: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether the text has the name alone, without a folder."""
        return "/" not in self.spelled


class Finder:
    """Finds files by what people write. Each folder is listed at most once, and never walked.

    Attributes:
        here: Folder where relative paths start; None where only names in `data` may be found.
        data: Folder whose files are found by their names.
        root: Folder that links in it may not leave; None for any target.
        tables_only: Whether only the tables of `data` are found.
    """

    def __init__(
        self,
        here: Path | None,
        data: Path | None = None,
        root: Path | None = None,
        *,
        tables_only: bool = False,
    ) -> None:
        self._here, self._data, self._root = here, data, root
        self._tables_only = tables_only
        self._listings: dict[Path, dict[str, str]] = {}
        self._folders: dict[Path, Path | None] = {}

    def in_text(self, text: str) -> list[NamedFile]:
        """Return the files that a text names, in order. Of names within names the longest counts.

        A word without a dot or a folder in it can only be the name of a file of `data`.
        """
        found: dict[str, NamedFile] = {}
        words = [match.span() for match in islice(_WORD.finditer(text), _MOST_WORDS)]
        longest = _LONGEST if len(words) <= _MOST_TYPED else 0
        behind = 0
        for at, (start, end) in enumerate(words):
            word = text[start:end]
            is_likely = _LIKE_A_FILE.search(word) is not None
            starts = [first for first, _ in words[max(0, at - longest) : at] if is_likely]
            ends = [end, start + len(word.rstrip(")]}.:!"))]
            cut = _CUT.search(text, start, end)
            ends += [cut.end()] if cut else []
            spellings = [
                text[first:last] for first in (*starts, start) if first >= behind for last in ends
            ]
            for spelled in filter(_END.search, dict.fromkeys(spellings)):
                named = self.find(spelled, in_data_only=not is_likely)
                if named is not None and not (named.is_bare and named.source.is_dir()):
                    found.setdefault(spelled, named)
                    behind = end
                    break
        return list(found.values())

    def find(self, spelled: str, *, in_data_only: bool = False) -> NamedFile | None:
        """Return the file or folder of a path or name, or None."""
        places = [] if in_data_only or self._here is None else _paths(spelled, self._here)
        is_hidden = folded(spelled)[:1] == "." or not is_data_file(spelled)
        if self._data is not None and "/" not in spelled and not (self._tables_only and is_hidden):
            places.append(self._data / spelled)
        for source in filter(None, map(self._entry, places if spelled.isprintable() else ())):
            if is_plain_name(source.name):
                return self.of(spelled, source)
        return None

    def of(self, spelled: str, source: Path) -> NamedFile:
        """Return a file that is found, with the links and rights of this moment."""
        return NamedFile(
            spelled, source, Path(os.path.realpath(source)), _problem(source, self._root)
        )

    def _entry(self, path: Path) -> Path | None:
        """Return a path as spelled by the folders, or None."""
        if _is_there(path):
            return path
        folder = path.parent
        if folder not in self._folders:
            found: Path | None = Path(path.anchor)
            for part in path.parts[1:-1]:
                found = self._within(found, part)
            self._folders[folder] = found
        return self._within(self._folders[folder], path.name)

    def _within(self, folder: Path | None, name: str) -> Path | None:
        if folder is None or _is_there(folder / name):
            return folder and folder / name
        known = self._names(folder).get(folded(name))
        return folder / known if known else None

    def _names(self, folder: Path) -> dict[str, str]:
        """Return the names in a folder by their folded form."""
        if folder not in self._listings:
            try:
                names = sorted(entry.name for entry in islice(folder.iterdir(), _MOST_NAMES))
            except OSError:
                names = []
            self._listings[folder] = {folded(name): name for name in names}
        return self._listings[folder]


def numbered(name: str) -> Iterator[str]:
    """Yield a file's name, then the name with numbers from 2."""
    stem, dot, suffixes = name.partition(".")
    yield name
    yield from (f"{stem}-{number}{dot}{suffixes}" for number in count(2))


def _paths(spelled: str, here: Path) -> list[Path]:
    """Return the absolute paths that a spelling may mean: unchanged, and without escapes."""
    url = _URL.match(spelled)
    plain = unquote(spelled[url.end() :]) if url else spelled
    found = []
    for text in dict.fromkeys((plain, re.sub(r"\\(.)", r"\1", plain))):
        with suppress(RuntimeError):  # the home folder of an unknown user
            path = here / Path(text).expanduser()
            found.append(Path(os.path.abspath(path)))  # noqa: PTH100 - its links stay
    return found


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except PermissionError:
        # Words of a text behind a closed folder are no part of its path.
        return " " not in str(path)
    except (OSError, ValueError):
        return False
    return True


def _problem(source: Path, root: Path | None) -> str:
    """Return the reason why a file cannot be used, as a predicate, or an empty text."""
    try:
        mode = source.stat().st_mode
    except FileNotFoundError:
        return "is a link to a file that is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "is a folder: name a file in it"
    if not stat.S_ISREG(mode):
        return "is no ordinary file"
    if not os.access(source, os.R_OK):
        return "cannot be read: Permission denied"
    return "leads out of the project by a link" if leaves(source, root) else ""
