"""Dialogue with the offline analyst: the state between the requests of a conversation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from taskweaver.analyst.about import asks_about, questions
from taskweaver.analyst.language.lexicon import LEXICON
from taskweaver.analyst.language.names import name_words
from taskweaver.analyst.language.read import (
    MAX_WORDS,
    ReadingResult,
    best,
    is_follow_up,
    points_back,
    read,
)
from taskweaver.analyst.language.scope import DataScope, Wanted, joins, nouns_of, scopes
from taskweaver.analyst.language.whole import chosen_option, special
from taskweaver.analyst.readings import (
    About,
    FileListing,
    NeedsLook,
    NotUnderstood,
    Outcome,
    Reading,
    Rows,
    Saved,
    Summary,
    TableSource,
    TableView,
    Unclear,
    Understood,
)
from taskweaver.analyst.table_words import each_group, in_table_words
from taskweaver.analyst.wordings import file_to_save, nearest, other_wordings
from taskweaver.memory.suggestions import Suggestion, chosen
from taskweaver.tables.files.mentions import Mention, find_files
from taskweaver.tables.files.profile import FileInfo, TableId, TableProfile, World

_TAKEN_BACK = re.compile(r"\b(?:no,? wait|scratch that|no,? sorry|i meant?)\b[,:]?", re.IGNORECASE)
_SHORTEST_CHARS, _MOST_CHANGES = 3, 3
_LOST = NotUnderstood((), "The question before has no answer to refer to: ask this one whole.")
_MEANING = re.compile(
    r"\W*(?:(?:and|but|so|und) )?(?:what (?:do|does|did) (?:the |an? )?(.+?) (?:mean|stand for)"
    r"(?: (?:to|for) (?:you|me|us))?|what (?:is|are) (?:the meaning of|meant by) (.+?)"
    r"|was (?:bedeutet|bedeuten|heißt) (.+?)|wofür (?:steht|stehen) (.+?))\W*",
    re.IGNORECASE,
)
MOST_LOOKS = 8
"""Files that are looked at for one request; each look is a cell, and rounds are bounded."""
_PLAIN_FILE = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Immutable state of a conversation.

    Attributes:
        previous: Reading of the last request that was understood; None at the start.
        pending: Question that the user has been asked; None for none.
        asked: The request that the question is about.
        choices: Options chosen for the words of that request, by the words in lower case.
        offers: Requests that the last answer offered; "yes" or a number takes one.
        is_lost: Whether the last request was refused: nothing can point back to it.
    """

    previous: Reading | None = None
    pending: Unclear | None = None
    asked: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    offers: tuple[Suggestion, ...] = ()
    is_lost: bool = False

    def say(self, text: str, world: World) -> tuple[Dialogue, Outcome]:
        """Read the next message of the user.

        Returns:
            The state after it, and the outcome. After `NeedsLook` the state is unchanged: say
            the same text again with the profiles of the files.
        """
        option = chosen_option(text, self.pending) if self.pending else None
        choices: dict[str, str] = {}
        if not self.offers and not self.pending and chosen(text, (Suggestion(text),)):
            return replace(self, is_lost=True), NotUnderstood((), "No question is offered to take.")
        text = chosen(text, self.offers) or text
        if self.pending is not None and option is not None:
            text, choices = self.asked, {**self.choices, self.pending.phrase.casefold(): option}
        is_refused = (self.is_lost or bool(self.pending)) and option is None and points_back(text)
        outcome = _LOST if is_refused else self._read_anew(text, world, choices)
        if isinstance(outcome, NeedsLook):
            return self, replace(outcome, find=text)
        if isinstance(outcome, NotUnderstood) and option is None:
            offer = self._nearest(text, outcome, world) or self._question(world)
            outcome = replace(outcome, nearest=None if offer in self.offers else offer)
            if self.pending is not None:
                return replace(self, offers=_offered(outcome)), outcome
        return self._after(text, outcome, choices, world), outcome

    def _question(self, world: World) -> Suggestion | None:
        """Return a question about the subject, or the only table known, to offer instead."""
        subject = [id for id in _tables_of(self.previous) if id in world.tables]
        tables = subject or (list(world.tables) if len(world.tables) == 1 else [])
        return next(iter(first_questions(tables[0], world)), None) if tables else None

    def _nearest(self, text: str, outcome: NotUnderstood, world: World) -> Suggestion | None:
        return nearest(_last_version(text), outcome, lambda shorter: self.tried(shorter, world))

    def tried(self, text: str, world: World, depth: int = 0) -> Outcome:
        """Read a request of our own; `depth` counts the changes that made it."""
        return self._read(text, _as_searched(text, world), {}, depth)

    def _read_anew(self, text: str, world: World, choices: Mapping[str, str]) -> Outcome:
        """Read a request; the question that is open is not asked a second time."""
        outcome = self._read(text, world, choices)
        if isinstance(outcome, Unclear) and outcome == self.pending:
            return NotUnderstood((outcome.phrase or text,), "That is still not clear.")
        return outcome

    def _after(
        self, text: str, outcome: Outcome, choices: Mapping[str, str], world: World
    ) -> Dialogue:
        match outcome:
            case Understood(About() as about):
                return Dialogue(about, offers=about.questions)
            case Understood(Saved(of)):
                return Dialogue(of)
            case Understood(reading):
                return Dialogue(reading)
            case Unclear():
                return Dialogue(self.previous, outcome, text, choices)
        # The file stays the subject, also that of a request without an answer.
        named = {mention.file for mention in find_files(text, world.files) if mention.is_certain}
        tables = tuple(id for id in world.tables if id.file in named)
        is_new = not set(tables) <= set(_tables_of(self.previous))
        subject = About(tables) if is_new else self.previous
        return Dialogue(subject, offers=_offered(outcome), is_lost=True)

    def _read(self, text: str, world: World, choices: Mapping[str, str], depth: int = 0) -> Outcome:
        text = _last_version(text)
        mentions = find_files(text, world.files)
        whole = self._as_a_whole(text, mentions, world)
        if whole is not None:
            return whole
        unknown = [text[m.start : m.end] for m in mentions if m.is_certain and not m.file]
        if unknown:
            return NotUnderstood(tuple(unknown), f"There is no file {unknown[0]}.")
        words = re.findall(r"\w+", text)
        if len(words) > MAX_WORDS or not words or (len(words) == 1 and text.strip().isdigit()):
            return _odd(text, words)
        known = [
            table for id, table in world.tables.items() if self._may_be_about(id, mentions, world)
        ]
        if len(known) == 1 and (both := each_group(text, known[0])):
            return self.tried(both, _only(known[0], world), depth + 1)
        outcome = self._of_tables(text, mentions, world, choices)
        if isinstance(outcome, NotUnderstood) and depth < _MOST_CHANGES:
            return self._in_other_words(text, mentions, world, outcome, depth) or outcome
        return outcome

    def _in_other_words(
        self,
        text: str,
        mentions: Sequence[Mention],
        world: World,
        outcome: NotUnderstood,
        depth: int,
    ) -> Outcome | None:
        """Read a request in the words of the table it is about; None where that does not help."""
        meant = [id for id in world.tables if self._may_be_about(id, mentions, world)]
        is_named = any(mention.is_certain for mention in mentions)
        is_kept = is_named or points_back(text)
        others = () if is_kept else (id for id in world.tables if id not in meant)
        for ids in (meant, others):
            found = [
                again
                for id in ids
                if (again := self._in_words_of(world.tables[id], text, outcome, world, depth))
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def _in_words_of(
        self, table: TableProfile, text: str, outcome: NotUnderstood, world: World, depth: int
    ) -> Understood | None:
        """Return the reading of a request that is told in the words of a table."""
        only = _only(table, world)
        for said, notes in in_table_words(text, outcome.words, table):
            again = self.tried(said, only, depth + 1)
            if isinstance(again, Understood) and not again.unused:
                return replace(again, notes=(*notes, *again.notes))
        return None

    def _may_be_about(self, table: TableId, mentions: Sequence[Mention], world: World) -> bool:
        """Return whether a request names a table's file, or it is the subject or the only one."""
        named = {m.file for m in mentions if m.is_certain and m.file} or world.given
        is_one = len(_tables_among(world.files, world.unreadable)) == 1
        return table.file in named if named else table in _tables_of(self.previous) or is_one

    def _as_a_whole(self, text: str, mentions: Sequence[Mention], world: World) -> Outcome | None:
        """Return the outcome of a request whose words are read as a whole; None for others."""
        certain = [mention for mention in mentions if mention.is_certain]
        named = tuple(mention.file for mention in certain if mention.file)
        found = special(text, named or tuple(file.name for file in world.files))
        is_open = isinstance(found, FileListing | None) and len(named) == len(certain)
        # A word of a file's name may be one of the request: the "in" of "what is in it" of in.csv.
        doubtful = [[*certain, mention] for mention in mentions if not mention.is_certain]
        for meant in (certain, *doubtful, mentions) if is_open else ():
            if asks_about(text, meant):
                return self._about(tuple(dict.fromkeys(m.file for m in meant)), world)
        if found is not None:
            return Understood(found)
        if asked := _MEANING.fullmatch(" ".join(text.split())):
            name = next(filter(None, asked.groups()))
            return NotUnderstood((), f"The files do not tell what `{name}` means.")
        file = file_to_save(text, [file.name for file in world.files])
        return self._saved(file, world) if file else None

    def _of_tables(
        self, text: str, mentions: Sequence[Mention], world: World, choices: Mapping[str, str]
    ) -> Outcome:
        """Read a request against the tables, in other words where it has no reading as it is."""
        outcome = self._of_files(text, mentions, world, choices)
        known = {id.file for id in world.tables}
        # Other words come before further files: the likely ones have been read by then.
        wants_more = isinstance(outcome, NeedsLook) and not known & set(outcome.files)
        if not (wants_more or isinstance(outcome, NotUnderstood)):
            return outcome
        for other in other_wordings(text):
            found = find_files(other, world.files)
            again = self._of_files(other, found, _as_searched(other, world), choices)
            if isinstance(again, Understood) and not again.unused:
                return again
        return outcome

    def _saved(self, file: str, world: World) -> Outcome:
        """Write the result of the last reading to a file."""
        if not isinstance(self.previous, Summary | Rows | TableView):
            return NotUnderstood((), "There is no result yet that could be saved.")
        if file.casefold() in {known.name.casefold() for known in world.files}:
            return NotUnderstood((), f"There is a file {file} already: name another one.")
        known = {id.file for id in world.tables}
        if missing := tuple(id.file for id in _tables_of(self.previous) if id.file not in known):
            return NeedsLook(missing)
        return Understood(Saved(self.previous, file))

    def _about(self, named: tuple[str, ...], world: World) -> Outcome:
        """Describe the files that are named, else the subject, else the only file there is."""
        readable = _tables_among(world.files, world.unreadable)
        given = tuple(name for name in readable if name in world.given)
        subject = tuple(dict.fromkeys(id.file for id in _tables_of(self.previous)))
        files = named or given or subject or (readable if len(readable) == 1 else ())
        if not files:
            return Understood(FileListing())
        known = {id.file for id in world.tables}
        if missing := tuple(name for name in files if name not in known):
            return NeedsLook(missing)
        tables = tuple(id for id in world.tables if id.file in files)
        return Understood(About(tables, first_questions(tables[0], world)))

    def _of_files(
        self,
        text: str,
        mentions: Sequence[Mention],
        world: World,
        choices: Mapping[str, str],
    ) -> Outcome:
        """Read a request against the files it names, or the likely ones and then all."""
        wanted = _wanted(mentions, world, choices.get("", ""))
        outcome: Outcome = NotUnderstood((text,), "There is no table to read it against.")
        tried: tuple[str, ...] = ()
        for files in self._attempts(text, wanted, world):
            known = {id.file for id in world.tables}
            if missing := tuple(name for name in files if name not in known):
                looked = {id.file for id, table in world.tables.items() if text in table.searched}
                is_many = len(missing) + len(looked) > MOST_LOOKS
                return _of_few(outcome, tried) if is_many and tried else NeedsLook(missing)
            tried = files
            tables = {id: table for id, table in world.tables.items() if id.file in files}
            likely = replace(world, tables=tables)
            outcome = self._against(text, mentions, wanted, likely, choices)
            if isinstance(outcome, Unclear | NeedsLook):
                break
            if isinstance(outcome, Understood) and not outcome.unused:
                break
        return outcome

    def _attempts(self, text: str, wanted: Wanted, world: World) -> list[tuple[str, ...]]:
        """Return the files to read a request against: given and likely ones, then all tables."""
        if wanted.files:
            return [wanted.files]
        everything = _tables_among(world.files, world.unreadable)
        source = _source_of(self.previous)
        kept = {table.file for table in source.tables} if source else set()
        words = frozenset(name_words(text))
        stems = {name: PurePosixPath(name).stem for name in everything}
        pointed = {name for name in stems if _is_named(stems[name], words)}
        pointed |= {*wanted.likely, *kept}
        named = pointed | set(_files_with_columns_of(text, world.files))
        tries = [world.given, pointed if len(named) > MOST_LOOKS else named, everything]
        found = (tuple(name for name in everything if name in names) for names in tries)
        return list(dict.fromkeys(filter(None, found)))

    def _against(
        self,
        text: str,
        mentions: Sequence[Mention],
        wanted: Wanted,
        world: World,
        choices: Mapping[str, str],
    ) -> Outcome:
        """Read a request against single tables, then against joins of two."""
        singles = scopes(world.tables, wanted, choices)
        if not singles:
            return NotUnderstood((text,), "There is no table to read it against.")
        kept = _source_of(self.previous)
        revised = self._revised(text, mentions, wanted, world, choices)
        is_read = revised is not None and isinstance(revised.outcome, Understood | Unclear)
        if revised is not None and is_read and is_follow_up(revised.words):
            return _searched(text, revised, world)
        filtered = isinstance(self.previous, Summary | Rows) and self.previous.where is not None
        if revised is not None and filtered and points_back(text, openings=False):
            return _searched(text, revised, world)
        preferred = [scope for scope in singles if scope.source == kept and not wanted.files]
        preferred += [scope for scope in singles if scope.source.tables[0].file in wanted.likely]
        results = (
            [read(text, scope, mentions) for scope in singles] if len(wanted.files) < 2 else []
        )
        if not any(isinstance(result.outcome, Understood) for result in results):
            pairs = joins(world.tables, wanted, choices)
            results += [read(text, scope, mentions) for scope in pairs]
        if not results:
            return NotUnderstood((text,), "The files share no column that they could be joined on.")
        found = best(results, preferred)
        is_understood = isinstance(found, ReadingResult) and isinstance(found.outcome, Understood)
        is_open = not is_understood and not isinstance(found, Unclear)
        if is_open and revised is not None and isinstance(revised.outcome, Understood):
            return _searched(text, revised, world)
        return _searched(text, found, world) if isinstance(found, ReadingResult) else found

    def _revised(
        self,
        text: str,
        mentions: Sequence[Mention],
        wanted: Wanted,
        world: World,
        choices: Mapping[str, str],
    ) -> ReadingResult | None:
        kept = _source_of(self.previous)
        if kept is None or not all(id in world.tables for id in kept.tables):
            return None
        if wanted.files and not {id.file for id in kept.tables} & set(wanted.files):
            return None
        tables = tuple(world.tables[id] for id in kept.tables)
        scope = DataScope(kept, tables, nouns_of(kept.tables[0]), choices=choices)
        return read(text, scope, mentions, self.previous)


def _of_few(outcome: Outcome, tried: Sequence[str]) -> Outcome:
    """Name the files that a refused request was read against, where there are many others."""
    if not isinstance(outcome, NotUnderstood):
        return outcome
    names = " or ".join(f"`{name}`" for name in tried)
    reason = f"{outcome.reason} Name the file if it is not {names}.".strip()
    return replace(outcome, reason=reason)


def _odd(text: str, words: Sequence[str]) -> NotUnderstood:
    """Return the refusal of a request of too many words, of none, or of a number alone."""
    if len(words) > MAX_WORDS:
        return NotUnderstood((text.split()[0] + " …",), f"It has more than {MAX_WORDS} words.")
    return NotUnderstood((text,), "No question is offered under this number." if words else "")


def _only(table: TableProfile, world: World) -> World:
    """Return a world of one table and its file."""
    files = tuple(file for file in world.files if file.name == table.id.file)
    return replace(world, files=files, tables={table.id: table})


def first_questions(table: TableId, world: World) -> tuple[Suggestion, ...]:
    """Return questions about a table, each of which is understood as it is written."""
    is_one = len(_tables_among(world.files, world.unreadable)) <= 1
    file = table.file if _PLAIN_FILE.fullmatch(table.file) else f"`{table.file}`"
    parts = [id.part for id in world.tables if id.file == table.file]
    where = "" if is_one and len(parts) == 1 else f" in {file}"
    where += f" table {table.part}" if len(parts) > 1 else ""

    def read_only(text: str) -> Reading | None:
        outcome = Dialogue().tried(text, world)
        if not isinstance(outcome, Understood) or outcome.unused or outcome.notes:
            return None
        return outcome.reading if _tables_of(outcome.reading) == (table,) else None

    return questions(world.tables[table], read_only, where)


def _offered(outcome: Outcome) -> tuple[Suggestion, ...]:
    offer = outcome.nearest if isinstance(outcome, NotUnderstood) else None
    return (offer,) if offer else ()


def _source_of(reading: Reading | None) -> TableSource | None:
    if isinstance(reading, About):
        return TableSource(reading.tables) if len(reading.tables) == 1 else None
    return reading.source if isinstance(reading, Summary | Rows | TableView) else None


def _tables_of(reading: Reading | None) -> tuple[TableId, ...]:
    if isinstance(reading, About):
        return reading.tables
    source = _source_of(reading)
    return source.tables if source else ()


def _wanted(mentions: Sequence[Mention], world: World, choice: str) -> Wanted:
    files = tuple(dict.fromkeys(m.file for m in mentions if m.is_certain and m.file))
    parts = tuple(TableId(m.file, m.part) for m in mentions if m.file and m.part)
    likely = tuple(m.file for m in mentions if m.file and not m.is_certain)
    if choice:
        chosen = [file.name for file in world.files if file.name == choice]
        of_part = [id for id in world.tables if id.part == choice]
        files = tuple(chosen) or tuple(id.file for id in of_part) or files
        parts = tuple(of_part) or parts
    return Wanted(files, parts, likely)


def _searched(text: str, result: ReadingResult, world: World) -> Outcome:
    """Return the outcome, or the need to look words up in columns of many values first."""
    outcome = result.outcome
    unsearched = [
        id.file
        for id in result.scope.source.tables
        if not any(text in searched for searched in world.tables[id].searched)
        and any(c.kind == "text" and c.values is None for c in world.tables[id].columns)
    ]
    return NeedsLook(tuple(dict.fromkeys(unsearched))) if unsearched else outcome


def _as_searched(text: str, world: World) -> World:
    """Return a world in which the words of a request of our own need no look at the values."""
    tables = {
        id: replace(table, searched=table.searched | {text}) for id, table in world.tables.items()
    }
    return replace(world, tables=tables)


def _last_version(text: str) -> str:
    """Return the part of a request after its author took the rest back: ``no wait, ...``."""
    return _TAKEN_BACK.split(text)[-1]


def _files_with_columns_of(text: str, files: Sequence[FileInfo]) -> tuple[str, ...]:
    """Return the files with a column that has a word of a request in its name."""
    words = frozenset(name_words(text))
    return tuple(
        file.name
        for file in files
        if any(_is_named(column, words) for part in file.parts for column in part.columns)
    )


def _tables_among(files: Sequence[FileInfo], unreadable: Collection[str]) -> tuple[str, ...]:
    """Return the files that may hold a table: a text without columns is none."""
    return tuple(
        file.name
        for file in files
        if file.name not in unreadable
        and (file.parts or PurePosixPath(file.name).suffix.lower() != ".txt")
    )


def _is_named(column: str, words: frozenset[str]) -> bool:
    own = set(name_words(column))
    content = {word for word in own if len(word) >= _SHORTEST_CHARS and word not in LEXICON}
    return bool(content & words) or (bool(own) and own <= words)
