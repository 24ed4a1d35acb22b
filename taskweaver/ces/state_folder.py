"""The files of a session's stored states: chunks by their hash, and a manifest for each round.

``chunks/<hash>`` holds raw bytes, ``rounds/<branch>/<round>.json`` a manifest, ``sealed`` the mark
of the installation that writes here. A file appears under its name when it is complete. Code in the
sandbox cannot reach the folder, and writes what is in a manifest. So each field is a claim: of the
right type or refused, bounded, and never used as a path. The kernel alone interprets the islands.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from taskweaver.ces.claims import items, mapping, text
from taskweaver.ces.errors import KernelError
from taskweaver.ces.inkernel.wire import STATE_FORMAT
from taskweaver.utils.files import create_private
from taskweaver.utils.system.installation import seal

CHUNK_NAME = re.compile(r"[0-9a-f]{32}")
"""Name of a chunk: the XXH3-128 hash of its bytes."""
MOST_BYTES = 64 << 20
"""Longest manifest that is stored or read."""
_MOST_LOST = 1_000
_NAME_CHARS = 500
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
_SEAL_FILE, _CHUNKS, _ROUNDS, _UNTRUSTED = "sealed", "chunks", "rounds", "state-untrusted"


class StateDamaged(KernelError):
    """A stored state cannot be read."""


@dataclass(frozen=True, slots=True)
class LostVariable:
    """A variable, or a part of one, that a stored state does not hold.

    `cell` is the id of the post whose cell made it; empty when unknown.
    """

    name: str
    type: str
    reason: str
    cell: str


@dataclass(frozen=True, slots=True)
class StateManifest:
    """A stored state.

    Attributes:
        data: The manifest's JSON, for the kernel that restores it.
        types: Type of each variable, by name.
        lost: Variables that it does not hold.
        chunks: Names of the chunks it is made of.
        together: Variables of each island of several: they share objects.
        is_readable: Whether it has the format that this version reads.
        sizes: Size of each variable in bytes, as it is stored.
        contents: Names of the chunks of each variable: equal ones mean that it did not change.
    """

    data: bytes
    types: dict[str, str]
    lost: tuple[LostVariable, ...]
    chunks: frozenset[str]
    together: tuple[frozenset[str], ...]
    is_readable: bool
    sizes: dict[str, int] = field(default_factory=dict)
    contents: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_manifest(data: bytes) -> StateManifest:
    """Return the state that a manifest describes.

    Raises:
        StateDamaged: If it is no manifest.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StateDamaged("The stored variables cannot be read: no valid manifest.") from error
    if not isinstance(found, dict) or not isinstance(found.get("islands"), list):
        raise StateDamaged("The stored variables cannot be read: the manifest names no islands.")
    variables = {
        name: facts
        for name, facts in mapping(found.get("variables")).items()
        if isinstance(facts, dict) and len(name) <= _NAME_CHARS
    }
    sizes = {name: facts.get("bytes") for name, facts in variables.items()}
    return StateManifest(
        data,
        {name: text(facts.get("type"), _NAME_CHARS) for name, facts in variables.items()},
        _lost(found.get("lost")),
        frozenset(chunk_names([found["islands"], found.get("process")])),
        _together(found["islands"]),
        found.get("format") == STATE_FORMAT,
        {name: size for name, size in sizes.items() if type(size) is int and size >= 0},
        _contents(found["islands"]),
    )


def _contents(islands: list[Any]) -> dict[str, tuple[str, ...]]:
    found = {}
    for island in map(mapping, islands):
        names, own = island.get("names"), mapping(island.get("own"))
        for name in _texts(names if isinstance(names, list) else []):
            found[name] = tuple(chunk_names([own.get(name, island)]))
    return found


def _lost(rows: Any) -> tuple[LostVariable, ...]:
    fields = ("name", "type", "reason", "cell")
    return tuple(
        LostVariable(*(text(row.get(field), _NAME_CHARS) for field in fields))
        for row in items(rows)[:_MOST_LOST]
        if isinstance(row, dict)
    )


def _together(islands: list[Any]) -> tuple[frozenset[str], ...]:
    found = (mapping(island).get("names") for island in islands)
    groups = (frozenset(_texts(names)) for names in found if isinstance(names, list))
    return tuple(group for group in groups if len(group) > 1)


def chunk_names(data: Any) -> list[str]:
    """Return all names of chunks in plain data."""
    return [name for name in _texts(data) if CHUNK_NAME.fullmatch(name)]


def _texts(data: Any) -> Iterator[str]:
    """Yield all texts in plain data, however deep."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()


class StateFolder:
    """Stored states of one session, written by one thread."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Describe the folder, which the first write makes.

        Above `limit_bytes` `tidy` removes old states; 0 stores none.
        """
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._chunks = folder / _CHUNKS
        self._last: dict[str, tuple[bytes, Path]] = {}
        self._used_bytes: int | None = None
        self._is_prepared = False

    @property
    def is_trusted(self) -> bool:
        """True if this installation wrote the folder at this place, or the folder is missing."""
        try:
            return (self.folder / _SEAL_FILE).read_text("ascii") == seal(self.folder)
        except (OSError, ValueError):
            return not self.folder.exists()

    @property
    def has_untrusted(self) -> bool:
        """True if foreign states are here, or were put aside by a write."""
        return not self.is_trusted or self._aside.is_dir()

    def trust(self) -> None:
        """Take foreign states for this installation's own from now on.

        States that were put aside come back; states stored since stay.

        Raises:
            StateDamaged: If they hold links, through which other files would be read or removed.
            OSError: If the folder cannot be written.
        """
        for path in (*_tree(self.folder), *_tree(self._aside)):
            kind = path.lstat().st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise StateDamaged(f"{path} is a link or no ordinary file: it is not trusted.")
        if self.is_trusted and self._aside.is_dir():
            self._bring_back()
        self._seal(self.folder)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the chunks that are not stored yet."""
        self._prepare()
        return [name for name in names if not (self._chunks / name).exists()]

    def add_chunk(self, name: str, data: bytes | bytearray) -> None:
        """Store a chunk, unless present.

        Raises:
            OSError: If it cannot be written.
        """
        if CHUNK_NAME.fullmatch(name) is None:
            raise OSError(f"{name!r} is no name of a chunk")
        self._prepare()
        if not (self._chunks / name).exists():
            self._write(self._chunks / name, data)
            self._used_bytes = self._used() + len(data)

    def store(self, branch: str, round_id: str, data: bytes) -> None:
        """Store the manifest of a round's state, whose chunks are present.

        A state that equals the branch's last one costs a link, and no bytes.

        Raises:
            StateDamaged: If it is no manifest, or lacks a chunk.
            OSError: If it cannot be written.
        """
        if self.missing(read_manifest(data).chunks):
            raise StateDamaged("The variables are not stored: a part of them is missing.")
        path = self._path(branch, round_id)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        last, last_path = self._last.get(branch, (b"", path))
        if last == data and _link(last_path, path):
            return
        self._write(path, data)
        self._used_bytes = self._used() + len(data)
        self._last[branch] = data, path

    def find(self, branches: Sequence[str], round_id: str) -> StateManifest | None:
        """Return the state at a round's end, as the first of some branches stored it.

        Raises:
            StateDamaged: If its manifest cannot be read.
        """
        path = self.path(branches, round_id)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                found = read_manifest(file.read(MOST_BYTES))
        except OSError as error:
            raise StateDamaged(f"The stored variables cannot be read: {error}.") from error
        if not found.is_readable:
            raise StateDamaged("The stored variables have the format of another version.")
        return found

    def path(self, branches: Sequence[str], round_id: str) -> Path | None:
        """Return the manifest of the state at a round's end, or None if not stored."""
        paths = (self._path(branch, round_id) for branch in branches)
        return next((path for path in paths if path.is_file()), None)

    def open_chunk(self, name: str) -> BinaryIO:
        """Open a chunk for reading.

        Raises:
            OSError: If it is not there.
        """
        return (self._chunks / name).open("rb")

    def remove_if_damaged(self, name: str) -> None:
        """Remove a chunk whose bytes do not fit the name, to be written again."""
        import xxhash

        try:
            data = (self._chunks / name).read_bytes()
        except OSError:
            return
        if xxhash.xxh3_128_hexdigest(data) != name:
            (self._chunks / name).unlink(missing_ok=True)

    def tidy(self, in_use: Callable[[], Collection[Path]]) -> None:
        """Remove the oldest states, except `in_use`, while the folder is over the limit."""
        if self._used() <= self.limit_bytes:
            return
        keep = in_use()
        groups = self._manifests()
        users = Counter(name for _, _, chunks in groups for name in chunks)
        left = self._remove_orphans(users)
        for _, paths, chunks in groups:
            if left <= self.limit_bytes:
                break
            if any(path in keep for path in paths):
                continue
            for path in paths:
                path.unlink(missing_ok=True)
            for name in chunks:
                users[name] -= 1
                if not users[name]:
                    left -= _size(self._chunks / name)
                    (self._chunks / name).unlink(missing_ok=True)
        self._used_bytes = None

    def remove_incomplete(self) -> None:
        """Remove the chunks of a state that was not completed."""
        users = {name for _, _, chunks in self._manifests() for name in chunks}
        self._used_bytes = self._remove_orphans(users)

    def _manifests(self) -> list[tuple[int, list[Path], frozenset[str]]]:
        """Return age, names and chunks of the stored manifests, the oldest first."""
        groups: dict[int, tuple[int, list[Path]]] = {}
        for path in (self.folder / _ROUNDS).glob("*/*.json"):
            facts = path.stat()
            groups.setdefault(facts.st_ino, (facts.st_mtime_ns, []))[1].append(path)
        found = []
        for age, paths in groups.values():
            try:
                chunks = read_manifest(paths[0].read_bytes()).chunks
            except StateDamaged:
                chunks = frozenset()
            found.append((age, paths, chunks))
        return sorted(found, key=lambda group: group[0])

    def _remove_orphans(self, users: Collection[str]) -> int:
        """Remove chunks that no manifest names, and return the size of the rest."""
        left = 0
        for path, size in self._files():
            if path.parent == self._chunks and path.name not in users:
                path.unlink(missing_ok=True)
            else:
                left += size
        return left

    def _files(self) -> Iterator[tuple[Path, int]]:
        """Yield the stored files with their sizes."""
        for folder in (*self.folder.glob(_CHUNKS), *self.folder.glob(f"{_ROUNDS}/*")):
            with os.scandir(folder) as entries:
                files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            yield from ((Path(entry.path), entry.stat().st_size) for entry in files)

    def _used(self) -> int:
        if self._used_bytes is None:
            self._used_bytes = sum(size for _, size in self._files())
        return self._used_bytes

    def _prepare(self) -> None:
        """Make the folder, and put aside foreign states that were not agreed to."""
        if self._is_prepared:
            return
        if not self.is_trusted:
            shutil.rmtree(self._aside, ignore_errors=True)
            self.folder.rename(self._aside)
        if not self.folder.exists():
            self._make()
        self._is_prepared = True

    def _make(self) -> None:
        """Make the folder with the seal at once: an unsealed folder would count as foreign."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        partial = self.folder.with_name(f".{self.folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        for folder in (partial, partial / _CHUNKS, partial / _ROUNDS):
            folder.mkdir(mode=0o700)
        self._seal(partial)
        partial.rename(self.folder)

    @property
    def _aside(self) -> Path:
        return self.folder.with_name(_UNTRUSTED)

    def _seal(self, folder: Path) -> None:
        self._write(folder / _SEAL_FILE, seal(self.folder).encode())

    def _bring_back(self) -> None:
        for source in (*self._aside.glob(f"{_CHUNKS}/*"), *self._aside.glob(f"{_ROUNDS}/*/*")):
            target = self.folder / source.relative_to(self._aside)
            if not target.exists():
                target.parent.mkdir(mode=0o700, exist_ok=True)
                source.replace(target)
        shutil.rmtree(self._aside, ignore_errors=True)
        self._used_bytes = None

    def _path(self, branch: str, round_id: str) -> Path:
        for name in (branch, round_id):
            if _NAME.fullmatch(name) is None:
                raise StateDamaged(f"{name!r} cannot be the name of a stored state.")
        return self.folder / _ROUNDS / branch / f"{round_id}.json"

    @staticmethod
    def _write(path: Path, data: bytes | bytearray) -> None:
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            create_private(partial)
            partial.write_bytes(data)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _tree(folder: Path) -> Iterator[Path]:
    """Yield a folder, if present, and everything inside."""
    if os.path.lexists(folder):
        yield folder
        yield from folder.rglob("*")


def _link(source: Path, target: Path) -> bool:
    """Give a file another name, and return whether the file system could."""
    try:
        target.unlink(missing_ok=True)
        os.link(source, target)
    except OSError:
        return False
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
