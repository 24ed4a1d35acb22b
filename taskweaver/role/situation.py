"""The situation before a request, written by the program: variables, files and memory.

Each round keeps the situation it began with, and a later one adds the changes alone. So a prompt
begins with the text of the prompt before it, which a provider's cache has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from taskweaver.memory.cells import variables_of
from taskweaver.memory.round import Round
from taskweaver.role.files import NoFiles, PicturesOf, RoleFiles, no_pictures
from taskweaver.tables.files.file_list import (
    ListedFile,
    file_changes,
    file_list,
    listed_in_full,
    new_files,
)
from taskweaver.tables.files.mentions import find_files
from taskweaver.tables.files.profile import FileInfo, PartInfo
from taskweaver.utils.data_files import is_data_file
from taskweaver.utils.markup.quoting import indented, quoted_section
from taskweaver.utils.text import paragraphs, shorten

VARIABLES_CHARS = 4_000
_SITUATION_CHARS = 2_000
_GONE = "- gone: "

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Parts of a prompt around the conversation.

    Attributes:
        guide: Rules for an author of cells; empty where it writes none.
        heads: The situation at the beginning of each round, by the round's id.
        news: Sections that end reports, by the ids of their posts.
        pictures: Returns the pictures that the newest round shows.
    """

    guide: str = ""
    heads: Mapping[str, str] = field(default_factory=dict)
    news: Mapping[str, str] = field(default_factory=dict)
    pictures: PicturesOf = no_pictures


def variables_text(variables: Iterable[tuple[str, str]], limit_chars: int = VARIABLES_CHARS) -> str:
    """Describe variables, one a line."""
    lines = "\n".join(f"- {indented(f'{name}: {text}')}" for name, text in variables)
    return shorten(lines, limit_chars)


@dataclass(slots=True)
class _Entry:
    """Facts that a round added to those of the rounds before it; None stands for one that is gone.

    Attributes:
        is_whole: Whether it repeats all facts.
        files: New and changed files by name.
        in_full: Names of the files that it lists in full.
        variables: New and changed variables by name.
        head: The text before its request, without memory.
        news: Sections that end its reports, by the ids of their posts.
    """

    is_whole: bool
    files: dict[str, ListedFile | None]
    variables: dict[str, str | None]
    head: str
    in_full: frozenset[str]
    news: dict[str, str] = field(default_factory=dict)


class Situations:
    """The situations of the rounds that a role's prompts show.

    A round is given the whole situation where no round before it is shown with one: the first, and
    the one after a summary or a restart.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._memory_at = self._memory = ""

    def around(
        self,
        shown: Sequence[Round],
        rounds: Sequence[Round],
        files: RoleFiles,
        memory: Callable[[], str],
        *,
        shows_pictures: bool,
        guide: str = "",
    ) -> Surroundings:
        """Take notice of the rounds of the next prompt, and return the parts around the rounds.

        Args:
            shown: The rounds in the prompt. The last round is being answered.
            rounds: All rounds of the conversation, the last included.
            files: The user's files.
            memory: Returns the section with the facts kept for the request; called once a round.
            shows_pictures: Whether the reader is shown images.
            guide: Rules for an author of cells; empty for an author of none.
        """
        ids = [round_.id for round_ in shown]
        self._entries = {id_: self._entries[id_] for id_ in ids if id_ in self._entries}
        is_known = any(entry.is_whole for entry in self._entries.values())
        newest = shown[-1]
        if newest.id not in self._entries or not is_known:
            self._begin(newest.id, rounds, files.listed(), is_whole=not is_known)
            self._place(newest.id, memory())
        self._note_files(newest, files)
        pictures = files.pictures if shows_pictures else NoFiles().pictures
        return Surroundings(guide, self.heads, self.news, pictures)

    @property
    def heads(self) -> dict[str, str]:
        """The situation at the beginning of each round, by its id; the memory stands once."""
        heads = {id_: entry.head for id_, entry in self._entries.items()}
        if self._memory and self._memory_at in heads:
            heads[self._memory_at] = paragraphs(heads[self._memory_at], self._memory)
        return heads

    @property
    def news(self) -> dict[str, str]:
        """Sections that end reports, by the ids of their posts."""
        return {id_: text for entry in self._entries.values() for id_, text in entry.news.items()}

    @property
    def text(self) -> str:
        """All that prompts show of the situation."""
        return "\n\n".join([*self.heads.values(), *self.news.values()])

    def _begin(
        self, id_: str, rounds: Sequence[Round], files: Sequence[ListedFile], *, is_whole: bool
    ) -> None:
        variables = variables_of(rounds[:-1])
        if is_whole:
            made = {name for round_ in rounds for name in round_.artifacts}
            in_full = listed_in_full(files, made | files_named(rounds, files))
            head = _head(
                file_list(files, made, in_full),
                variables_text(variables.items(), _SITUATION_CHARS),
            )
            known: dict[str, ListedFile | None] = {file.name: file for file in files}
            self._entries = {id_: _Entry(True, known, dict(variables), head, in_full)}
            return
        entries = self._entries.values()
        now = {file.name: file for file in files}
        before = frozenset().union(*(entry.in_full for entry in entries))
        named = files_named(rounds[-1:], files)
        changes = _changes(_sum(entry.files for entry in entries), now)
        changes |= {name: now[name] for name in named - before}
        # Files without tables that cells wrote stand in the reports on the cells.
        shown = {name for round_ in (rounds if changes else ()) for name in round_.artifacts}
        changed_files = {
            name: file
            for name, file in changes.items()
            if file is None or file.tables or name not in shown
        }
        changed = _changes(_sum(entry.variables for entry in entries), variables)
        in_full = listed_in_full(list(filter(None, changed_files.values())), named)
        head = _head(file_changes(changed_files, in_full), _changed_variables(changed))
        self._entries[id_] = _Entry(False, changed_files, changed, head, in_full)

    def _place(self, id_: str, memory: str) -> None:
        """Let the memory stand where the same text stood before, else before the newest request."""
        if memory != self._memory or self._memory_at not in self._entries:
            self._memory_at, self._memory = id_, memory

    def _note_files(self, round_: Round, files: RoleFiles) -> None:
        """List the tables that the newest reports of a round wrote."""
        entry = self._entries[round_.id]
        new = [post for post in round_.post_list if post.artifacts and post.id not in entry.news]
        if not new:
            return
        listed = {file.name: file for file in files.listed()}
        for post in new:
            names = filter(is_data_file, post.artifacts)
            found = [listed[name] for name in names if name in listed]
            tables = [file for file in found if file.tables]
            entry.news[post.id] = quoted_section(new_files(tables), level=3)
            entry.files |= {file.name: file for file in tables}


def files_named(rounds: Iterable[Round], files: Sequence[ListedFile]) -> frozenset[str]:
    """Return the names of the files that requests name."""
    infos = [
        FileInfo(file.name, tuple(PartInfo(table.name) for table in file.tables)) for file in files
    ]
    return frozenset(
        mention.file for round_ in rounds for mention in find_files(round_.user_query, infos)
    ) & {file.name for file in files}


def _sum(changes: Iterable[Mapping[str, T | None]]) -> dict[str, T]:
    """Return the facts after some changes."""
    found: dict[str, T | None] = {}
    for each in changes:
        found |= each
    return {name: fact for name, fact in found.items() if fact is not None}


def _changes(before: Mapping[str, T], now: Mapping[str, T]) -> dict[str, T | None]:
    """Return new and changed facts by name, and None for those that are gone."""
    changed: dict[str, T | None] = {n: fact for n, fact in now.items() if before.get(n) != fact}
    return changed | dict.fromkeys(name for name in before if name not in now)


def _head(files: str, variables: str) -> str:
    shown = f"## Variables\n{variables}" if variables else ""
    return paragraphs(quoted_section(files, level=3), shown)


def _changed_variables(changes: Mapping[str, str | None]) -> str:
    """Describe the changes of variables."""
    kept = [(name, text) for name, text in changes.items() if text is not None]
    gone = [name for name, text in changes.items() if text is None]
    lines = [variables_text(kept, _SITUATION_CHARS)]
    lines += [indented(shorten(_GONE + ", ".join(gone), _SITUATION_CHARS))] if gone else []
    return "\n".join(filter(None, lines))
