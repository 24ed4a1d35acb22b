"""A full-text index over a folder of documents, in one SQLite file.

Documents are divided into chunks: paragraphs, each with the headings above it. The file is a cache:
each use finds new, changed and removed documents by size and time of change, and a damaged file is
made again. Documents are read outside of transactions, and each is replaced in one, so sessions
that index at once wait for each other only briefly, and never see half a document.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.documents import read_document
from taskweaver.utils.files import leaves
from taskweaver.utils.retrieval import (
    VECTOR_TABLE,
    Embedder,
    Vectors,
    add_words,
    expression,
    fused,
    query_terms,
    score_of,
    shares,
    word_table,
)

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_MOST_HEADING = 120
_FENCE = re.compile(r" {0,3}(```|~~~)")

SUFFIXES = frozenset({".txt", ".md", ".markdown", ".html", ".htm", ".pdf", ".docx"})
_VERSION = 2
_LENGTHS = 10_000_000
_MOST_CHARS = 4_000_000
"""Characters of a document that are indexed."""

_BUSY_TIMEOUT_S = 30.0
_BATCH = 256
_CANDIDATES = 8
"""Pieces looked at per passage wanted: neighbours of a better one are left out."""

_TABLES = (
    "DROP TABLE IF EXISTS files",
    "DROP TABLE IF EXISTS pieces",
    "DROP TABLE IF EXISTS texts",
    "CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL,"
    " size INTEGER NOT NULL, mtime INTEGER NOT NULL, problem TEXT NOT NULL)",
    "CREATE TABLE pieces (id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL,"
    " place INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (file, place))",
    word_table("texts"),
    "DROP TABLE IF EXISTS vectors",
    VECTOR_TABLE,
)


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A paragraph, or a part of a long paragraph, with the headings above, outermost first."""

    heading: str
    text: str


def document_chunks(text: str, most_chars: int) -> Iterator[DocumentChunk]:
    """Yield the chunks of a document, in order, each of at most `most_chars` characters.

    Short paragraphs under one heading are put together as long as they fit.
    """
    heading, gathered = "", ""
    above: dict[int, str] = {}
    for line, level in _paragraphs(text):
        if not level and gathered and len(gathered) + len(line) + 2 <= most_chars // 2:
            gathered += f"\n\n{line}"
            continue
        if gathered:
            yield DocumentChunk(heading, gathered)
        gathered = ""
        if level:
            above = {each: name for each, name in above.items() if each < level}
            above[level] = line[:_MOST_HEADING]
            heading = " > ".join(above.values())
            continue
        *full, gathered = _split(line, most_chars)
        yield from (DocumentChunk(heading, part) for part in full)
    if gathered:
        yield DocumentChunk(heading, gathered)


def _paragraphs(text: str) -> Iterator[tuple[str, int]]:
    """Yield paragraphs and headings, with the level of a heading and 0 for a paragraph."""
    lines: list[str] = []
    is_code = False
    for line in [*text.replace("\f", "\n\n").splitlines(), ""]:
        heading = None if is_code else _HEADING.match(line)
        if heading or not line.strip():
            if lines:
                yield "\n".join(lines), 0
            lines = []
            if heading:
                yield heading[2].rstrip(" \t#"), len(heading[1])
            continue
        if _FENCE.match(line):
            is_code = not is_code
        lines.append(line.rstrip())
    if lines:
        yield "\n".join(lines), 0


def _split(text: str, most_chars: int) -> list[str]:
    """Split a long paragraph where a line, a sentence or at least a word ends."""
    parts = []
    while len(text) > most_chars:
        head = text[:most_chars]
        ends = (head.rfind("\n"), head.rfind(". ") + 1, head.rfind(" "))
        at = next((end for end in ends if end > most_chars // 2), most_chars)
        parts.append(text[:at].strip())
        text = text[at:].strip()
    return [*(part for part in parts if part), text]


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A part of a document that matches a query, with the heading above.

    The path is below the folder; scores are higher for better ones, comparable within one answer.
    """

    path: str
    heading: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    size: int
    mtime: int

    @property
    def key(self) -> str:
        """The path as text that SQLite can keep."""
        return _key(self.path)


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """The index of one folder, which holds nothing open between calls.

    Attributes:
        file: The index.
        folder: The documents.
        target_chars: Length of a passage in characters.
        leave_out: Folder whose files are no documents, should it be in there.
        root: Project folder that links in it may not leave; None for any target.
        embedder: Makes vectors of the chunks; None compares words alone.
    """

    file: Path
    folder: Path
    target_chars: int
    leave_out: Path
    root: Path | None = None
    embedder: Embedder | None = None

    def search(
        self, query: str, size: int, report: Callable[[str], None]
    ) -> tuple[list[DocumentPassage], list[str]]:
        """Bring the index up to date, and return at most `size` passages that suit a query.

        `report` receives the progress.

        Returns:
            The passages, best first, and a sentence for each document that cannot be read.

        Raises:
            OSError: If the folder cannot be listed, or the index cannot be written.
            sqlite3.Error: If SQLite cannot keep an index here.
        """
        try:
            return self._search(query, size, report)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            report("making the index again")
            for suffix in ("", "-journal"):
                self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)
            return self._search(query, size, report)

    def _search(
        self, query: str, size: int, report: Callable[[str], None]
    ) -> tuple[list[DocumentPassage], list[str]]:
        with self._opened() as connection:
            problems = self._refresh(connection, report)
            near = self._near(connection, query, size * _CANDIDATES)
            with _transaction(connection, "DEFERRED"):  # one state of it, whoever else writes
                problems += [
                    f"{self._shown(path)}: {problem}"
                    for path, problem in connection.execute(
                        "SELECT path, problem FROM files WHERE problem != '' ORDER BY path"
                    )
                ]
                return list(self._passages(connection, query, near, size)), problems

    def _near(self, connection: sqlite3.Connection, query: str, most: int) -> list[int]:
        """Return the pieces whose vectors are near a query, once each piece has a vector."""
        if self.embedder is None:
            return []
        vectors = Vectors(self.embedder)
        newer = f"SELECT id, heading || '\n' || text FROM pieces WHERE id > ? LIMIT {_BATCH}"
        try:
            while texts := dict(connection.execute(newer, (vectors.last(connection),)).fetchall()):
                rows = vectors.made(texts)
                with _transaction(connection):
                    vectors.add(connection, rows)
            return list(vectors.nearest(connection, query))[:most]
        except ValueError:  # the model makes vectors of another dimension now
            with _transaction(connection):
                vectors.discard(connection)
            return self._near(connection, query, most)
        except TaskWeaverError as error:
            if getattr(error, "kind", "") == "cancelled":
                raise
            return []

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        with closing(connection):
            connection.execute("PRAGMA synchronous = OFF")  # what a power failure takes is remade
            self._make_tables(connection)
            yield connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make the tables where there are no tables. Chunks of another length are dropped."""
        stamp = _VERSION * _LENGTHS + min(self.target_chars, _LENGTHS - 1)
        if _stamp(connection) == stamp:
            return
        with _transaction(connection):
            if _stamp(connection) != stamp:  # another session may just have made them
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {stamp}")

    def _refresh(self, connection: sqlite3.Connection, report: Callable[[str], None]) -> list[str]:
        """Index new, changed and removed documents; return the folders that cannot be listed."""
        problems: list[str] = []
        known = {
            path: (size, mtime, problem)
            for path, size, mtime, problem in connection.execute(
                "SELECT path, size, mtime, problem FROM files"
            )
        }
        found = {item.key: item for item in self._documents(problems)}
        # What could not be read is tried again: a right that was granted changes no time.
        stale = [
            item for path, item in found.items() if known.get(path) != (item.size, item.mtime, "")
        ]
        for gone in known.keys() - found.keys():
            with _transaction(connection):
                _forget(connection, gone)
        for number, item in enumerate(stale, start=1):
            report(f"reading document {number} of {len(stale)}")
            read, problem = self._read(item.path)
            with _transaction(connection):
                _replace(connection, item, read, problem)
        return problems

    def _documents(self, problems: list[str]) -> Iterator[_Found]:
        def refuse(error: OSError) -> None:
            if error.filename == str(self.folder):
                raise error
            problems.append(f"{self._shown(_key(Path(error.filename)))}: {error.strerror}")

        for folder, names, files in os.walk(self.folder, onerror=refuse):
            here = Path(folder)
            names[:] = sorted(
                name for name in names if name[0] != "." and here / name != self.leave_out
            )
            for name in sorted(files):
                path = here / name
                is_document = name[0] != "." and path.suffix.lower() in SUFFIXES
                if not is_document or (path.is_symlink() and leaves(path, self.root)):
                    continue
                try:
                    stat = path.stat()
                except OSError:  # reading it says why
                    yield _Found(path, -1, -1)
                    continue
                if S_ISREG(stat.st_mode):
                    yield _Found(path, stat.st_size, stat.st_mtime_ns)

    def _read(self, path: Path) -> tuple[list[DocumentChunk], str]:
        try:
            text = read_document(path, _MOST_CHARS)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return [], " ".join(reason.split()) or type(error).__name__
        clean = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
        return list(document_chunks(clean, self.target_chars)), ""

    def _passages(
        self, connection: sqlite3.Connection, query: str, near: list[int], size: int
    ) -> Iterator[DocumentPassage]:
        found: list[int] = []
        wanted = query_terms(query)
        if asked := expression(wanted):
            rows = connection.execute(
                "SELECT p.id, p.heading || ' ' || p.text FROM texts"
                " JOIN pieces p ON p.id = texts.rowid WHERE texts MATCH ?"
                f" ORDER BY {score_of('texts')} DESC, p.file, p.place LIMIT ?",
                (asked, size * _CANDIDATES),
            )
            found = [number for number, text in rows if shares(wanted, text)]
        hits = [
            (*row, score)
            for number, score in fused([found, near]).items()
            for row in connection.execute(
                "SELECT f.path, p.file, p.place FROM pieces p JOIN files f ON f.id = p.file"
                " WHERE p.id = ?",
                (number,),
            )
        ]
        shown: set[tuple[int, int]] = set()
        count = 0
        for path, file, place, score in hits:
            if (file, place) in shown or count == size:
                continue
            places, heading, text = self._grown(connection, file, place)
            shown.update((file, each) for each in places)
            count += 1
            yield DocumentPassage(self._shown(path), heading, text, float(f"{score:.4g}"))

    def _grown(
        self, connection: sqlite3.Connection, file: int, place: int
    ) -> tuple[list[int], str, str]:
        """Return a piece with the neighbours, up to the length of a passage."""
        window = self._neighbours(connection, file, place)
        first = last = place
        length = len(window[place].text)
        for is_after in (True, False):
            while (at := last + 1 if is_after else first - 1) in window:
                length += len(window[at].text) + 2
                if length > self.target_chars:
                    length -= len(window[at].text) + 2
                    break
                first, last = min(first, at), max(last, at)
        places = list(range(first, last + 1))
        parts, above = [], window[place].heading
        for at in places:
            if window[at].heading != above:
                above = window[at].heading
                parts.append(f"# {above}")
            parts.append(window[at].text)
        return places, window[place].heading, "\n\n".join(parts)

    def _neighbours(
        self, connection: sqlite3.Connection, file: int, place: int
    ) -> dict[int, DocumentChunk]:
        reach = 40
        rows = connection.execute(
            "SELECT place, heading, text FROM pieces WHERE file = ? AND place BETWEEN ? AND ?",
            (file, place - reach, place + reach),
        )
        return {at: DocumentChunk(heading, text) for at, heading, text in rows}

    def _shown(self, path: str) -> str:
        return Path(path).relative_to(_key(self.folder)).as_posix()


def _key(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _stamp(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    with connection:  # commits, or rolls back
        connection.execute(f"BEGIN {kind}")
        yield


def _forget(connection: sqlite3.Connection, path: str) -> None:
    own = "SELECT p.id FROM pieces p JOIN files f ON f.id = p.file WHERE f.path = ?"
    # Words of the pieces stay in the index until it is made anew; their numbers are not used again.
    connection.execute(f"DELETE FROM vectors WHERE seq IN ({own})", (path,))
    connection.execute(f"DELETE FROM pieces WHERE id IN ({own})", (path,))
    connection.execute("DELETE FROM files WHERE path = ?", (path,))


def _replace(
    connection: sqlite3.Connection, item: _Found, read: list[DocumentChunk], problem: str
) -> None:
    _forget(connection, item.key)
    facts = (item.key, item.size, item.mtime, problem)
    file = connection.execute(
        "INSERT INTO files (path, size, mtime, problem) VALUES (?, ?, ?, ?)", facts
    ).lastrowid
    for place, piece in enumerate(read):
        row = connection.execute(
            "INSERT INTO pieces (file, place, heading, text) VALUES (?, ?, ?, ?)",
            (file, place, piece.heading, piece.text),
        ).lastrowid
        add_words(connection, "texts", [(row or 0, f"{piece.heading}\n{piece.text}", "")])


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error says that the file is no sound index."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "no such table" in str(error)
