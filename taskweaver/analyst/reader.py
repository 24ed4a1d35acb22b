"""Reader of requests: the files a request may be about, and its reading against their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from taskweaver.analyst.about import asks_about, questions
from taskweaver.analyst.language.compose import UNCOMPUTED
from taskweaver.analyst.language.follow_ups import is_of_part
from taskweaver.analyst.language.lexicon import LEXICON
from taskweaver.analyst.language.names import is_amount, name_words
from taskweaver.analyst.language.read import (
    MAX_WORDS,
    ReadingResult,
    best,
    read,
)
from taskweaver.analyst.language.references import COUNT_OF_SHOWN, is_follow_up, points_back
from taskweaver.analyst.language.row_nouns import nouns_of
from taskweaver.analyst.language.scope import DataScope, Wanted, joins, scopes
from taskweaver.analyst.language.whole import special
from taskweaver.analyst.likely_files import (
    MOST_LISTED,
    file_about,
    is_named,
    likeliest,
    naming,
    tables_among,
)
from taskweaver.analyst.readings import (
    About,
    Column,
    FileListing,
    Measure,
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
from taskweaver.analyst.table_words import in_table_words
from taskweaver.analyst.wordings import asked_and_saved, file_to_save, other_wordings
from taskweaver.memory.suggestions import Suggestion
from taskweaver.tables.files.mentions import Mention, find_files
from taskweaver.tables.files.profile import TableId, TableProfile, World

_TAKEN_BACK = re.compile(r"\b(?:no,? wait|scratch that|no,? sorry|i meant?)\b[,:]?", re.IGNORECASE)
_ROWS = re.compile(r"\b(?:them|rows|zeilen)\b", re.IGNORECASE)
_MOST_CHANGES = 3
_MEANING = re.compile(
    r"\W*(?:(?:and|but|so|und) )?(?:what (?:do|does|did) (?:the |an? )?(.+?) (?:mean|stand for)"
    r"(?: (?:to|for) (?:you|me|us))?|what (?:is|are) (?:the meaning of|meant by) (.+?)"
    r"|was (?:bedeutet|bedeuten|heißt) (.+?)|wofür (?:steht|stehen) (.+?))\W*",
    re.IGNORECASE,
)
_OTHER_FILE = re.compile(
    r"(?=\W*(?:and|und|now|jetzt|nun|then|dann|back|zurück|switch|change|go|wechs\w+|what about)\b)"
    r"(?:(?:and|und|now|jetzt|nun|then|dann|back|zurück|switch|change|go|wechs\w+|what about|to"
    r"|zu[mr]?|the|die|der|das|den|dem|in)\s+)+(?P<noun>[^\W\d]{3,})"
    r"(?:\s+(?:file|table|data|datei|tabelle|daten|now|jetzt))*\s*:\s*(?P<asked>.+)",
    re.IGNORECASE,
)
_BARE_WHICH = re.compile(r"^(which|welche[rs]?)(?= (?:is|are|was|has|ist|sind|war|hat)\b)", re.I)
MOST_LOOKS = 8
"""Files that are looked at for one request; each look is a cell, and rounds are bounded."""
_PLAIN_FILE = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Reader of requests that may change the one before.

    Attributes:
        previous: Reading of the last request that was understood; None at the start.
    """

    previous: Reading | None = None

    def tried(self, text: str, world: World, depth: int = 0) -> Outcome:
        """Read a request of our own; `depth` counts the changes that made it."""
        return self.read(text, _as_searched(text, world), {}, depth)

    def read(self, text: str, world: World, choices: Mapping[str, str], depth: int = 0) -> Outcome:
        """Read a request; `choices` has the options chosen for its words."""
        text = last_version(text)
        mentions = find_files(text, world.files)
        whole = self._in_two(text, world, choices, depth)
        whole = whole or self._as_a_whole(text, mentions, world)
        if whole is not None:
            return whole
        unknown = [text[m.start : m.end] for m in mentions if m.is_certain and not m.file]
        if unknown:
            return NotUnderstood(tuple(unknown), f"There is no file {unknown[0]}.")
        words = re.findall(r"\w+", text)
        if len(words) > MAX_WORDS or not words or (len(words) == 1 and text.strip().isdigit()):
            return _odd(text, words)
        outcome = self._of_tables(text, mentions, world, choices)
        if isinstance(outcome, NotUnderstood) and depth < _MOST_CHANGES:
            return self._in_other_words(text, mentions, world, outcome, depth) or outcome
        return outcome

    def _in_two(
        self, text: str, world: World, choices: Mapping[str, str], depth: int
    ) -> Outcome | None:
        """Read a question behind the file it is about, or before the one to save its answer in."""
        asked, target = asked_and_saved(text, [file.name for file in world.files])
        if target:
            return _to_save(self.read(asked, world, choices, depth), target, text[len(asked) :])
        change = _OTHER_FILE.fullmatch(text.strip())
        file = file_about(change["noun"].casefold(), world.files) if change else ""
        if not change or not file:
            return None
        asked = _BARE_WHICH.sub(rf"\1 {change['noun']}", change["asked"].rstrip("?.! "))
        said = f"{asked} in `{file}`"
        outcome = RequestReader().read(said, world, choices, depth)
        return replace(outcome, find=said) if isinstance(outcome, NeedsLook) else outcome

    def _in_other_words(
        self,
        text: str,
        mentions: Sequence[Mention],
        world: World,
        outcome: NotUnderstood,
        depth: int,
    ) -> Outcome | None:
        """Read a request in the words of the table it is about; None where that does not help."""
        meant = [id for id in world.tables if self.may_be_about(id, mentions, world)]
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
        own = only(table, world)
        for said, notes in in_table_words(text, outcome.words, table):
            again = self.tried(said, own, depth + 1)
            if isinstance(again, Understood) and not again.unused:
                return replace(again, notes=(*notes, *again.notes))
        return None

    def may_be_about(self, table: TableId, mentions: Sequence[Mention], world: World) -> bool:
        """Return whether a request names a table's file, or it is the subject or the only one."""
        named = {m.file for m in mentions if m.is_certain and m.file} or world.given
        is_one = len(tables_among(world.files, world.unreadable)) == 1
        return table.file in named if named else table in tables_of(self.previous) or is_one

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
                return self.about(tuple(dict.fromkeys(m.file for m in meant)), world)
        if isinstance(found, FileListing):
            return Understood(_listing(world))
        if found is not None:
            return Understood(found)
        if asked := _MEANING.fullmatch(" ".join(text.split())):
            name = next(filter(None, asked.groups()))
            return NotUnderstood((), f"The files do not tell what `{name}` means.")
        file = file_to_save(text, [file.name for file in world.files])
        saved = self._saved(file, text, world) if file else None
        if isinstance(saved, Understood) and re.search(rf"/{re.escape(file)}", text):
            return replace(saved, notes=(f"`{file}` is in the folder of this conversation.",))
        return saved

    def _of_tables(
        self, text: str, mentions: Sequence[Mention], world: World, choices: Mapping[str, str]
    ) -> Outcome:
        """Read a request against the tables, in other words where it has no reading as it is."""
        outcome = self.of_files(text, mentions, world, choices)
        known = {id.file for id in world.tables}
        # Other words come before further files: the likely ones have been read by then.
        wants_more = isinstance(outcome, NeedsLook) and not known & set(outcome.files)
        if not (wants_more or isinstance(outcome, NotUnderstood)):
            return outcome
        tables = tables_of(self.previous)
        reader = self if points_back(text) else RequestReader(About(tables) if tables else None)
        for other in other_wordings(text):
            found = find_files(other, world.files)
            again = reader.of_files(other, found, _as_searched(other, world), choices)
            if not isinstance(again, Understood) or again.unused:
                continue
            if not (other.startswith("plot mean") and _adds_up(again.reading)):
                return again
        return outcome

    def _saved(self, file: str, text: str, world: World) -> Outcome:
        """Write the result of the last reading, or its rows, to a file."""
        if not isinstance(self.previous, Summary | Rows | TableView):
            return NotUnderstood((), "There is no result yet that could be saved.")
        if file.casefold() in {known.name.casefold() for known in world.files}:
            return NotUnderstood((), f"There is a file {file} already: name another one.")
        known = {id.file for id in world.tables}
        if missing := tuple(id.file for id in tables_of(self.previous) if id.file not in known):
            return NeedsLook(missing)
        return _to_save(Understood(self.previous), file, text)

    def about(self, named: tuple[str, ...], world: World) -> Outcome:
        """Describe the files that are named, else the subject, else the only file there is."""
        readable = tables_among(world.files, world.unreadable)
        given = tuple(name for name in readable if name in world.given)
        subject = tuple(dict.fromkeys(id.file for id in tables_of(self.previous)))
        files = named or given or subject or (readable if len(readable) == 1 else ())
        if not files:
            is_listed = bool(readable) or not world.unreadable
            return Understood(_listing(world)) if is_listed else _no_table("", world)
        known = {id.file for id in world.tables}
        if missing := tuple(name for name in files if name not in known):
            return NeedsLook(missing)
        tables = tuple(id for id in world.tables if id.file in files)
        return Understood(About(tables, first_questions(tables[0], world)))

    def of_files(
        self,
        text: str,
        mentions: Sequence[Mention],
        world: World,
        choices: Mapping[str, str],
    ) -> Outcome:
        """Read a request against the files it names, or the likely ones and then all."""
        wanted = _wanted(mentions, world, choices.get("", ""))
        outcome: Outcome = _no_table(text, world)
        tried: tuple[str, ...] = ()
        for files in self._attempts(text, wanted, world):
            known = {id.file for id in world.tables}
            if missing := tuple(name for name in files if name not in known):
                looked = {id.file for id, table in world.tables.items() if text in table.searched}
                is_many = len(missing) + len(looked) > MOST_LOOKS
                likely = likeliest(text, world.files)
                others = (*likely, *(name for name in missing if name not in likely))
                return _of_few(text, outcome, tried, others) if is_many else NeedsLook(missing)
            tried = files
            tables = {id: table for id, table in world.tables.items() if id.file in files}
            few = replace(world, tables=tables)
            outcome = self._against(text, mentions, wanted, few, choices)
            if isinstance(outcome, Unclear | NeedsLook):
                break
            if isinstance(outcome, Understood) and not outcome.unused:
                break
        is_rest = len(tried) < len(tables_among(world.files, world.unreadable))
        return _of_few(text, outcome, tried, ()) if is_rest and not wanted.files else outcome

    def _attempts(self, text: str, wanted: Wanted, world: World) -> list[tuple[str, ...]]:
        """Return the files to read a request against: given and likely ones, then all tables."""
        if wanted.files:
            return [wanted.files]
        everything = tables_among(world.files, world.unreadable)
        source = _source_of(self.previous)
        kept = {table.file for table in source.tables} if source else set()
        words = frozenset(name_words(text))
        stems = {name: PurePosixPath(name).stem for name in everything}
        pointed = {name for name in stems if is_named(stems[name], words)}
        pointed |= {*wanted.likely, *kept}
        named_rows = (file_about(word, world.files) for word in name_words(text))
        pointed |= set(named_rows).intersection(everything)
        named = pointed.union(likeliest(text, world.files, MOST_LOOKS - len(pointed)))
        unlisted = {file.name for file in world.files if not file.parts}
        is_known = not kept.isdisjoint(everything)  # other files are read by their columns alone
        tries = [world.given, named, named | unlisted if is_known else everything]
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
            return _no_table(text, world)
        kept = _source_of(self.previous)
        revised = self._revised(text, mentions, wanted, world, choices)
        is_read = revised is not None and isinstance(revised.outcome, Understood | Unclear)
        if revised is not None and is_read and is_follow_up(revised.words):
            return _searched(text, revised, world)
        is_known = isinstance(self.previous, Summary | Rows)
        is_among = COUNT_OF_SHOWN.match(text) and is_of_part(self.previous)
        is_among = is_among or points_back(text, openings=False)
        if revised is not None and is_known and is_among:
            return _searched(text, revised, world)
        preferred = [scope for scope in singles if scope.source == kept and not wanted.files]
        preferred += [scope for scope in singles if scope.source.tables[0].file in wanted.likely]
        results = (
            [read(text, scope, mentions) for scope in singles] if len(wanted.files) < 2 else []
        )
        if not any(map(_is_of_table, results)):
            pairs = joins(world.tables, wanted, choices)
            results += [read(text, scope, mentions) for scope in pairs]
        if not results:
            return NotUnderstood((text,), "The files share no column that they could be joined on.")
        found = best(results, preferred)
        is_refused = isinstance(found, ReadingResult) and isinstance(found.outcome, NotUnderstood)
        if is_refused and revised is not None and _tells_more(revised):
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
        scope = DataScope(kept, tables, nouns_of(tables[0]), choices=choices)
        return read(text, scope, mentions, self.previous)


def _adds_up(reading: Reading) -> bool:
    """Return whether a reading is of an amount: the total over time may be meant, not the mean."""
    of = reading.measures[0].of if isinstance(reading, Summary) else None
    return isinstance(of, Column) and is_amount(of.name, is_certain=True)


def _is_of_table(result: ReadingResult) -> bool:
    """Return whether a request is about one table: it is read, or refused for a reason."""
    outcome = result.outcome
    return isinstance(outcome, Understood) or bool(
        isinstance(outcome, NotUnderstood) and outcome.reason
    )


def _tells_more(revised: ReadingResult) -> bool:
    """Return whether a change is read, or refused for a reason, where a request alone is not."""
    is_read = isinstance(revised.outcome, Understood)
    return is_read or (_is_of_table(revised) and is_follow_up(revised.words))


def _of_few(text: str, outcome: Outcome, tried: Sequence[str], others: Sequence[str]) -> Outcome:
    """Name the likely files of a refused request, where there are many others."""
    if not tried:
        refused = [
            word
            for word in re.findall(r"\w+", text)
            if "refused" in {sense.kind for sense in LEXICON.get(word.casefold(), ())}
        ]
        return NotUnderstood(tuple(refused), UNCOMPUTED if refused else naming(others))
    return replace(outcome, files=tuple(tried)) if isinstance(outcome, NotUnderstood) else outcome


def _to_save(outcome: Outcome, file: str, asked: str) -> Outcome:
    """Return the outcome of a question whose answer, or the rows behind a number, are saved."""
    if not isinstance(outcome, Understood) or outcome.unused:
        return outcome
    reading = outcome.reading
    if not isinstance(reading, Summary | Rows | TableView):
        return NotUnderstood((), "Only tables and numbers can be saved.")
    if isinstance(reading, Summary) and not reading.keys and _ROWS.search(asked):
        if reading.then or reading.measures != (Measure("count"),):
            return NotUnderstood((), "The last answer is a number: save “it”.")
        reading = Rows(reading.source, where=reading.where)
    return replace(outcome, reading=Saved(reading, file))


def _listing(world: World) -> FileListing:
    """Return the list of the files of a world."""
    return FileListing(tuple(file.name for file in world.files[:MOST_LISTED]))


def _odd(text: str, words: Sequence[str]) -> NotUnderstood:
    """Return the refusal of a request of too many words, of none, or of a number alone."""
    if len(words) > MAX_WORDS:
        return NotUnderstood((text.split()[0] + " …",), f"It has more than {MAX_WORDS} words.")
    return NotUnderstood((text,), "There is no offer with this number." if words else "")


def only(table: TableProfile, world: World) -> World:
    """Return a world of one table and its file."""
    files = tuple(file for file in world.files if file.name == table.id.file)
    return replace(world, files=files, tables={table.id: table})


def first_questions(table: TableId, world: World) -> tuple[Suggestion, ...]:
    """Return questions about a table, each of which is understood as it is written."""
    is_one = len(tables_among(world.files, world.unreadable)) <= 1
    file = table.file if _PLAIN_FILE.fullmatch(table.file) else f"`{table.file}`"
    parts = [id.part for id in world.tables if id.file == table.file]
    where = "" if is_one and len(parts) == 1 else f" in {file}"
    where += f" table {table.part}" if len(parts) > 1 else ""

    def read_back(text: str) -> Reading | None:
        outcome = RequestReader().tried(text, world)
        if not isinstance(outcome, Understood) or outcome.unused or outcome.notes:
            return None
        return outcome.reading if tables_of(outcome.reading) == (table,) else None

    return questions(world.tables[table], read_back, where)


def _source_of(reading: Reading | None) -> TableSource | None:
    if isinstance(reading, About):
        return TableSource(reading.tables) if len(reading.tables) == 1 else None
    return reading.source if isinstance(reading, Summary | Rows | TableView) else None


def tables_of(reading: Reading | None) -> tuple[TableId, ...]:
    """Return the tables that a reading is about."""
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


def last_version(text: str) -> str:
    """Return the part of a request after its author took the rest back: ``no wait, ...``."""
    return _TAKEN_BACK.split(text)[-1]


def _no_table(text: str, world: World) -> NotUnderstood:
    """Refuse a request where no table can be read, with the reason if there is one."""
    if world.unreadable and not tables_among(world.files, world.unreadable):
        return NotUnderstood((), next(iter(world.unreadable.values())))
    return NotUnderstood((text,), "There is no table to read it against.")
