"""Facts kept for later requests: records of a branch, each with its author, day and session."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import InvalidUpdate, RecordNotVisible
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.types import Moment, Record, day
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.utils.markup.characters import with_line_feeds, without_steering
from taskweaver.utils.retrieval import Embedder

MOST_CHARS = 1_000
"""Most characters of a fact."""

_BRANCH = "project"
_QUERY_CHARS = 1_000
_SHOWN_CHARS = 300
_ID = re.compile(r"([ps])([0-9]{1,18})\Z")

State = Literal["kept", "proposed", "declined", "replaced"]
"""State of a fact.

All sessions use a kept fact. The user is asked about a proposed fact, and until then only the
branches that saw the fact use it, as for ever after a no (declined). No prompt has a replaced fact.
"""
_TAGS: dict[State, str] = {"kept": "fact", "proposed": "proposed", "declined": "declined"}


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact.

    Attributes:
        id: Its id: ``p`` and a number in the project, ``s`` and a number in the session.
        text: Its text.
        author: The user, or a model, whose fact the user may have accepted.
        day: Day on which it was kept.
        session: Id of the session in which it was kept.
        is_match: Whether it has words of the query; else it is merely recent.
        state: Whether other sessions use it.
        said: The user's words from which a model made it; empty for none.
        shared: Id of the fact in the project for which a fact of a branch stands; empty for none.
        replaces: Ids of the facts that a proposed one would replace.
        until: Day on which it was replaced, and the fact that did it; empty for none.
    """

    id: str
    text: str
    author: str
    day: str
    session: str
    is_match: bool = True
    state: State = "kept"
    said: str = ""
    shared: str = ""
    replaces: tuple[str, ...] = ()
    until: str = ""

    @property
    def line(self) -> str:
        """The fact as one line of a prompt, its text as a JSON string."""
        author = self.author if self.state == "kept" else f"{self.author}, {self.state}"
        return f"- {self.id} ({author}, {self.day}): {as_json(self.text)}"


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


@dataclass
class Facts:
    """The facts on a branch of a memory.

    The ids begin with a letter, the mark. A function returns the branch, and makes it if asked to.
    """

    _mark: str
    _branch: Callable[[bool], BranchHandle | None]

    def add(
        self,
        text: str,
        author: str,
        session: str,
        state: State = "kept",
        closes: Sequence[KeptFact] = (),
        **more: object,
    ) -> KeptFact:
        """Add a fact. One with this text is not added again, but kept if it now is.

        Args:
            text: Its text.
            author: Its author.
            session: Id of the session.
            state: Whether other sessions use it.
            closes: Facts that it replaces at once.
            more: Further fields of the record.

        Raises:
            SessionError: If the text is empty or too long.
            BranchedMemoryError: If it cannot be written.
        """
        text, branch = checked(text), self._made()
        same = self.same(text)
        if same is not None and not closes and (state != "kept" or same.state == "kept"):
            return same
        meta = {"author": author, "session": session, **more}
        tags, replaces = [_TAGS[state]], [self._held(old)[1] for old in closes]
        if same is not None:
            branch.update(self._held(same)[1], tags=tags, meta=meta, replaces=replaces)
            return self.get(same.id) or same
        id_ = branch.remember(text, tags=tags, meta=meta, replaces=replaces)
        return self._fact(branch.get(id_))

    def same(self, text: str) -> KeptFact | None:
        """Return the fact with a text, in any state; None for none. Raises as `find`."""
        found = (fact for state in _TAGS for fact in self.find(text, 5, state))
        return next((fact for fact in found if fact.text.casefold() == text.casefold()), None)

    def decide(
        self, fact: KeptFact, by: str, *, is_yes: bool, closes: Sequence[KeptFact] = ()
    ) -> None:
        """Accept or decline a proposed fact for other sessions. Raises as `remove`.

        A fact of the user is kept either way, if need be beside those that it does not replace.

        Args:
            fact: The fact.
            by: Who decides, which is kept with the time.
            is_yes: Whether it is accepted.
            closes: Facts that it replaces.
        """
        branch, number = self._held(fact)
        author, is_users = fact.author, fact.author == "user"
        if is_yes and not is_users:
            author += ", accepted by the user"
        branch.update(
            number,
            tags=[_TAGS["kept" if is_yes or is_users else "declined"]],
            meta=branch.get(number).meta
            | {
                "author": author,
                "answer": "yes" if is_yes else "no",
                "answered_by": by,
                "answered_at": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            replaces=[self._held(old)[1] for old in closes],
        )

    def replaced(self) -> list[KeptFact]:
        """Return the kept facts that others replaced, the last replaced first."""
        found = self._read(BranchHandle.closed)
        return [replace(fact, state="replaced") for fact in found if fact.state == "kept"]

    def stand_for(self, fact: KeptFact) -> None:
        """Add a fact that stands for one of the project: it goes where the branch goes."""
        meta = {"author": fact.author, "session": fact.session, "shared": fact.id}
        self._made().remember(fact.text, tags=[_TAGS["kept"]], meta=meta)

    def find(self, query: str, k: int, state: State = "kept") -> list[KeptFact]:
        """Return the best facts for a query, the best first, the newest where none has its words.

        Raises:
            BranchedMemoryError: If the memory cannot be read.
        """
        words = query[:_QUERY_CHARS]
        return self._read(lambda branch: branch.search(words, k, tags=[_TAGS[state]]))

    def newest(self, k: int, state: State = "kept") -> list[KeptFact]:
        """Return the newest facts."""
        return self._read(lambda branch: branch.records(tags=[_TAGS[state]], limit=k))

    def as_of(self, at: Moment | None) -> list[KeptFact]:
        """Return the facts that were in view at a row, or are now, the newest first."""
        return self._read(lambda branch: branch.records(tags=[_TAGS["kept"]], at=at))

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
            return self._fact(record) if {*_TAGS.values()} & {*record.tags} else None
        return None

    def standing(self, ids: Iterable[str]) -> Iterator[KeptFact]:
        """Yield the facts of ids, of a replaced one the last in the line of its replacements."""
        later = {fact.id: fact.until.rpartition(" ")[2] for fact in self.replaced()}
        for id_ in ids:
            while id_ in later:
                id_ = later.pop(id_)  # a damaged file may have a circle
            if fact := self.get(id_):
                yield fact

    def replace(self, fact: KeptFact, text: str) -> None:
        """Replace the text of a fact. Raises as `add`."""
        branch, number = self._held(fact)
        branch.update(number, text=checked(text))

    def remove(self, fact: KeptFact) -> None:
        """Forget a fact.

        Raises:
            BranchedMemoryError: If it is gone, or cannot be written.
        """
        branch, number = self._held(fact)
        branch.forget(number)

    def _made(self) -> BranchHandle:
        branch = self._branch(True)
        assert branch is not None, "the branch was asked for"
        return branch

    def _held(self, fact: KeptFact) -> tuple[BranchHandle, int]:
        branch, number = self._branch(False), self._number(fact.id)
        if branch is None or number is None:
            raise SessionError(f"There is no fact {fact.id} here.")
        return branch, number

    def _number(self, id_: str) -> int | None:
        match = _ID.match(id_.strip().lower())
        return int(match[2]) if match is not None and match[1] == self._mark else None

    def _fact(self, record: Record) -> KeptFact:
        fields = {name: str(value) for name, value in record.meta.items()}
        states = (state for state, tag in _TAGS.items() if tag in record.tags)
        state: State = next(states, "kept") if self._mark == "p" else "proposed"
        by = f", by {self._mark}{record.replaced_by}" if record.replaced_by else ""
        until = f"{day(record.valid_to)}{by}" if record.valid_to else ""
        return KeptFact(
            f"{self._mark}{record.id}",
            record.text,
            fields.get("author", ""),
            day(record.valid_from or record.created_at),
            fields.get("session", ""),
            record.match == "query",
            state,
            fields.get("said", ""),
            fields.get("shared", ""),
            tuple(map(str, record.meta.get("replaces", ()))),
            until,
        )


class ProjectMemory:
    """The memory that the sessions of a project share. Its file is made by the first fact.

    Several sessions and processes may write it at once. Close it.
    """

    def __init__(self, path: Path, config: MemoryConfig, embedder: Embedder | None = None) -> None:
        """Name the file, and the model of its vectors; None compares words alone."""
        self._path = path
        self._embedder = embedder
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
                if self._path.is_symlink():
                    raise SessionError(f"{self._path} cannot be opened: it is a link.")
                self._store = BranchedMemory(self._path, self._config, embedder=self._embedder)
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


def joined(*lists: Sequence[KeptFact]) -> list[KeptFact]:
    """Return the facts of several lists, those that match first, without a text twice."""
    found = sorted((fact for facts in lists for fact in facts), key=lambda fact: not fact.is_match)
    first: dict[str, KeptFact] = {}
    for fact in found:
        first.setdefault(fact.text.casefold(), fact)
    return [*first.values()]
