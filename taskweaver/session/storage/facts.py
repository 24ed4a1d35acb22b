"""Facts kept for later requests: records of a branch, each with its author, day and session."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import Record
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.utils.markup.characters import with_line_feeds, without_steering

MOST_CHARS = 1_000
"""Most characters of a fact."""

_TAG = "fact"
_BRANCH = "project"
_QUERY_CHARS = 1_000
_SHOWN_CHARS = 300
_ID = re.compile(r"([ps])([0-9]{1,18})\Z")

Author = Literal["user", "model"]


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact.

    Attributes:
        id: Its id: ``p`` and a number in the project, ``s`` and a number in the session.
        text: Its text.
        author: The user, or a model.
        day: Day on which it was kept.
        session: Id of the session in which it was kept.
        is_match: Whether it has words of the query; else it is merely recent.
    """

    id: str
    text: str
    author: str
    day: str
    session: str
    is_match: bool = True

    @property
    def line(self) -> str:
        """The fact as one line of a prompt, its text as a JSON string."""
        return f"- {self.id} ({self.author}, {self.day}): {as_json(self.text)}"


def as_json(text: str) -> str:
    """Return a text as a JSON string in one line, without characters that steer a display."""
    plain = without_steering(with_line_feeds(text))
    short = plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]}..."
    return json.dumps(short, ensure_ascii=False)


def checked(text: str) -> str:
    """Return the text of a fact without white space around it.

    Raises:
        SessionError: If it is empty or too long.
    """
    stripped = text.strip()
    if not stripped:
        raise SessionError("A fact has a text.")
    if len(stripped) > MOST_CHARS:
        raise SessionError(f"A fact has at most {MOST_CHARS} characters, not {len(stripped)}.")
    return stripped


class Facts:
    """The facts on a branch of a memory."""

    def __init__(self, mark: str, branch: Callable[[bool], BranchHandle | None]) -> None:
        """Take a branch.

        Args:
            mark: First letter of the ids.
            branch: Function that returns the branch, and makes it if it is asked to.
        """
        self._mark = mark
        self._branch = branch

    def add(self, text: str, author: Author, session: str) -> KeptFact:
        """Keep a fact. One with this text is not kept twice.

        Raises:
            SessionError: If the text is empty or too long.
            BranchedMemoryError: If it cannot be written.
        """
        text = checked(text)
        branch = self._branch(True)
        assert branch is not None, "the branch was asked for"
        same = [fact for fact in self.find(text, 5) if fact.text.casefold() == text.casefold()]
        if same:
            return same[0]
        id_ = branch.remember(text, tags=[_TAG], meta={"author": author, "session": session})
        return self._fact(branch.get(id_))

    def find(self, query: str, k: int) -> list[KeptFact]:
        """Return the best facts for a query, the best first, the newest where none has its words.

        Raises:
            BranchedMemoryError: If the memory cannot be read.
        """
        return self._read(lambda branch: branch.search(query[:_QUERY_CHARS], k, tags=[_TAG]))

    def newest(self, k: int) -> list[KeptFact]:
        """Return the newest facts."""
        return self._read(lambda branch: branch.records(tags=[_TAG], limit=k))

    def as_of(self, at: int | None) -> list[KeptFact]:
        """Return the facts that were in view at a row, or are now, the newest first."""
        return self._read(lambda branch: branch.records(tags=[_TAG], at=at))

    def _read(self, records: Callable[[BranchHandle], Sequence[Record]]) -> list[KeptFact]:
        branch = self._branch(False)
        return [] if branch is None else [self._fact(record) for record in records(branch)]

    def core(self) -> dict[str, str]:
        """Return core memory."""
        branch = self._branch(False)
        return {} if branch is None else branch.core.values_of()

    def get(self, id_: str) -> KeptFact | None:
        """Return the fact of an id, None for none, and for the id of another branch's."""
        number, branch = self._number(id_), self._branch(False)
        if number is None or branch is None:
            return None
        with suppress(RecordNotVisible):
            record = branch.get(number)
            return self._fact(record) if _TAG in record.tags else None
        return None

    def replace(self, fact: KeptFact, text: str) -> None:
        """Replace the text of a fact. Raises as `add`."""
        self._held(fact).update(self._number(fact.id) or 0, text=checked(text))

    def remove(self, fact: KeptFact) -> None:
        """Forget a fact.

        Raises:
            BranchedMemoryError: If it is gone, or cannot be written.
        """
        self._held(fact).forget(self._number(fact.id) or 0)

    def _held(self, fact: KeptFact) -> BranchHandle:
        branch = self._branch(False)
        if branch is None or self._number(fact.id) is None:
            raise SessionError(f"There is no fact {fact.id} here.")
        return branch

    def _number(self, id_: str) -> int | None:
        match = _ID.match(id_.strip().lower())
        return int(match[2]) if match is not None and match[1] == self._mark else None

    def _fact(self, record: Record) -> KeptFact:
        meta, day = record.meta, datetime.fromtimestamp(record.created_at, UTC).date()
        author, session = str(meta.get("author", "")), str(meta.get("session", ""))
        is_match = record.match == "query"
        id_ = f"{self._mark}{record.id}"
        return KeptFact(id_, record.text, author, day.isoformat(), session, is_match)


class ProjectMemory:
    """The memory that the sessions of a project share. Its file is made by the first fact.

    Several sessions and processes may write it at once. Close it.
    """

    def __init__(self, path: Path, config: MemoryConfig) -> None:
        """Name the file."""
        self._path = path
        self._config = config
        self._lock = threading.Lock()
        self._store: BranchedMemory | None = None
        self._is_closed = False
        self.facts = Facts("p", self._branch)

    def _branch(self, is_made: bool) -> BranchHandle | None:  # noqa: FBT001 - a callback
        with self._lock:
            if self._is_closed:
                raise SessionClosed("The project's memory is closed.")
            if self._store is None:
                if not (is_made or self._path.exists()):
                    return None
                _make_private(self._path)
                self._store = BranchedMemory(self._path, self._config)
            if _BRANCH not in self._store:
                with suppress(InvalidUpdate):  # another process made it meanwhile
                    self._store.create(_BRANCH, live=True)
            return self._store[_BRANCH]

    def close(self) -> None:
        """Close the file. Safe to call again."""
        with self._lock:
            self._is_closed = True
            store, self._store = self._store, None
        if store is not None:
            store.close()


def _make_private(path: Path) -> None:
    """Make a file that its owner alone can read, unless it is there. A link is refused.

    Raises:
        SessionError: If it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise SessionError(f"{path} cannot be opened: {error.strerror}") from error


def joined(shelves: Sequence[Facts], read: Callable[[Facts], list[KeptFact]]) -> list[KeptFact]:
    """Return the facts of several branches, those that match first, without a text twice."""
    found = [fact for facts in shelves for fact in read(facts)]
    found.sort(key=lambda fact: not fact.is_match)
    return list({fact.text.casefold(): fact for fact in reversed(found)}.values())[::-1]
