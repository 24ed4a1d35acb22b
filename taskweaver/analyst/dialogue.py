"""Dialogue with the offline analyst: the state between the requests of a conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from taskweaver.analyst.language.references import COUNT_OF_SHOWN, begins_as_change, points_back
from taskweaver.analyst.language.whole import chosen_option
from taskweaver.analyst.likely_files import naming, tables_among
from taskweaver.analyst.offers import nearest, with_other_words
from taskweaver.analyst.reader import (
    RequestReader,
    first_questions,
    last_version,
    tables_of,
)
from taskweaver.analyst.readings import (
    About,
    And,
    Calculation,
    Comparison,
    Condition,
    FileListing,
    Help,
    Measure,
    NeedsLook,
    NotUnderstood,
    OneOf,
    Outcome,
    Reading,
    Rows,
    Saved,
    Summary,
    TableView,
    Unclear,
    Understood,
    columns_in,
)
from taskweaver.analyst.small_talk import COMMANDS, rows_behind, small_talk, with_more_rows
from taskweaver.analyst.wording.requests import in_words, shown_kind
from taskweaver.memory.suggestions import Suggestion, chosen
from taskweaver.tables.files.mentions import find_files
from taskweaver.tables.files.profile import TableId, World

_NO_CHOICES: Mapping[str, str] = {}
_LOST = "The question before has no answer to refer to: ask this one whole."
_WHOSE = "Name the one that is meant: the answer before cannot be referred to here."
_OF_ONE = re.compile(
    r"(?!.*\b(?:rows?|columns?)\b)(?:(?!\b(?:and|which|who)\b).)*"
    r"\b(?:(?:does|did|is|was|has|had) (?:it(?! (?:rain|snow))|he|she)|its|his|her)\b",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"(?!.*\b(?:which|what|how|welche\w*|wie)\b)"
    r"\s*(?:by|per|of|in|for|from|with|where|nach|pro|je|von)\s",
    re.IGNORECASE,
)
_CHANGED_FILE = re.compile(
    r"\W*(?:(?:and|now|then|or|what about|how about|the same|und|jetzt|oder|was ist mit|wie ist es)"
    r"\W+)+(?:(?:in|for|from|of|with|für|von|aus|bei|mit|the|file|der|die|datei)\W+)*\W*",
    re.IGNORECASE,
)
_IN_PART = "The question before was understood in part."


@dataclass(frozen=True, slots=True)
class Refused:
    """Request that was refused.

    Attributes:
        text: The request.
        words: Words that were not understood.
        part: Reading of what was understood, which the refusal offered; None for nothing.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    part: Reading | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Immutable state of a conversation.

    Attributes:
        previous: Reading of the last request that was understood; None at the start.
        pending: Question that the user has been asked; None for none.
        asked: The request that the question, or the last answer, is about.
        choices: Options chosen for the words of that request, by the words in lower case.
        offers: Requests that the last answer offered; "yes" or a number takes one.
        refused: The last request if it was refused: nothing can point back to it.
    """

    previous: Reading | None = None
    pending: Unclear | None = None
    asked: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    offers: tuple[Suggestion, ...] = ()
    refused: Refused | None = None

    def say(self, text: str, world: World) -> tuple[Dialogue, Outcome]:
        """Read the next message of the user.

        Returns:
            The state after it, and the outcome. After `NeedsLook` the state is unchanged: say
            the same text again with the profiles of the files.
        """
        option = chosen_option(text, self.pending) if self.pending else None
        topic = "" if option else small_talk(text)
        if topic == "which" and not isinstance(self.previous, Summary):
            topic = ""  # a change of the columns that are shown
        if topic in COMMANDS and not self.pending:
            return self._command(topic, world)
        if topic and topic not in COMMANDS:
            left = Dialogue(self.previous) if topic == "stop" else self
            return left, Understood(Help(topic))
        taken = chosen(text, self.offers)
        is_vain = not (self.pending or self.offers) and chosen(text, (Suggestion("?"),))
        if option is None and (taken or is_vain):
            return self._taken(taken, world)
        choices: dict[str, str] = {}
        if self.pending is not None and option is not None:
            text, choices = self.asked, {**self.choices, self.pending.phrase.casefold(): option}
        outcome = self._new(text, world, choices, option)
        if self._is_of_one(text, outcome):
            outcome = NotUnderstood((), _WHOSE)
        if isinstance(outcome, NeedsLook):
            return self, replace(outcome, find=outcome.find or text)
        if isinstance(outcome, NotUnderstood) and option is None:
            return self._refusal(text, outcome, world)
        return self._after(text, outcome, choices), outcome

    def _new(
        self, text: str, world: World, choices: Mapping[str, str], option: str | None
    ) -> Outcome:
        """Read a request; one that points back to a refused one is read against its parts."""
        if self.pending and option is None and points_back(text):
            return NotUnderstood((), _LOST)
        if option is None and (file := _other_file(text, world)):
            return self._of_file(file, world)
        if self.refused is None or option is not None:
            return self._read_anew(text, world, choices)
        for read in (self._completed, self._swapped):
            if isinstance(whole := read(text, self.refused, world), Understood | NeedsLook):
                return whole
        is_lost = points_back(text) or COUNT_OF_SHOWN.match(text)
        outcome = None if is_lost else self._read_anew(text, world, choices)
        if outcome and not (begins_as_change(text) and _is_bare(outcome)):
            return outcome
        changed = self._changed(text, world)
        words = changed.words if isinstance(changed, NotUnderstood) else ()
        return NotUnderstood(words, "" if words else _LOST)

    def _is_of_one(self, text: str, outcome: Outcome) -> bool:
        """Return whether a value of all rows is found for ``how tall is it``, where it is one."""
        is_winner = isinstance(self.previous, Summary) and self.previous.names_winner
        is_summary = isinstance(outcome, Understood) and isinstance(outcome.reading, Summary)
        return bool(is_summary and (self.refused or is_winner) and _OF_ONE.match(text))

    def _changed(self, text: str, world: World) -> Outcome | None:
        """Read a request as a change of what was understood of a refused one."""
        part = self.refused.part if self.refused else None
        return RequestReader(part).tried(text, world) if part else None

    def _completed(self, text: str, refused: Refused, world: World) -> Outcome | None:
        """Read a refused request with what it lacked: ``by salary`` after ``show me the top 3``."""
        if not _ADDED.match(text) or begins_as_change(refused.text):
            return None
        return self._read_whole(f"{refused.text.rstrip('.?! ')} {text}", world)

    def _swapped(self, text: str, refused: Refused, world: World) -> Outcome | None:
        """Read a refused request with the words of ``and in Norway?`` for the unknown one."""
        if len(refused.words) != 1:
            return None
        whole = with_other_words(refused.text, refused.words[0], text)
        outcome = self._read_whole(whole, world) if whole else None
        if not isinstance(outcome, Understood):
            return outcome
        return outcome if _is_one_change(outcome.reading, refused.part) else None

    def _read_whole(self, text: str, world: World) -> Understood | NeedsLook | None:
        """Read a refused request in other words; return None unless all words are understood."""
        outcome = RequestReader(self.previous).read(text, world, {})
        if isinstance(outcome, NeedsLook):
            return replace(outcome, find=text)
        return outcome if isinstance(outcome, Understood) and not outcome.unused else None

    def _taken(self, text: str, world: World) -> tuple[Dialogue, Outcome]:
        """Read an offered request as it was read when it was offered."""
        if not text:
            outcome: Outcome = NotUnderstood((), "There is no offer to take.")
            return replace(self, refused=Refused()), outcome
        part = self.refused.part if self.refused else None
        if part is not None and in_words(part) == text:
            outcome = _with_tables(part, world)
        else:
            outcome = RequestReader(self.previous).tried(text, world)
        if isinstance(outcome, NeedsLook):
            return self, replace(outcome, find=text)
        after = self._after(text, outcome)
        is_list = len(self.offers) > 1 and not after.offers  # another number may follow
        return replace(after, offers=self.offers) if is_list else after, outcome

    def _command(self, topic: str, world: World) -> tuple[Dialogue, Outcome]:
        """Answer the last request again, with more or other rows, or from the other file."""
        last = None if self.refused else self.previous
        outcome: Outcome = NotUnderstood((), "There is no answer before this one.")
        if topic == "other":
            outcome = self._of_other_file(world)
        elif isinstance(last, Summary | Rows | TableView):
            more = rows_behind(last) if topic == "which" else with_more_rows(last)
            again = last if topic == "again" else more
            reason = "The last answer has no more rows to show."
            outcome = _with_tables(again, world) if again else NotUnderstood((), reason)
        if isinstance(outcome, Understood):
            return replace(self._after(self.asked, outcome), asked=self.asked), outcome
        return self, outcome

    def _of_other_file(self, world: World) -> Outcome:
        """Put the last request to the only other file."""
        here = {id.file for id in tables_of(self.previous)}
        others = [f for f in tables_among(world.files, world.unreadable) if f not in here]
        if not here or len(others) != 1:
            return NotUnderstood((), naming(others))
        if find_files(self.asked, world.files):
            return RequestReader(self.previous).about((others[0],), world)
        return self._of_file(others[0], world)

    def _of_file(self, file: str, world: World) -> Outcome:
        """Put the last request to another file."""
        reader, last = RequestReader(self.previous), self.previous
        if not isinstance(last, Summary | Rows):
            return reader.about((file,), world)
        whole = f"{in_words(last)} in `{file}`"
        outcome = reader.read(whole, world, {})
        if isinstance(outcome, NeedsLook):
            return replace(outcome, find=whole)
        reason = f"The last question cannot be asked of `{file}`."
        return NotUnderstood((), reason) if isinstance(outcome, NotUnderstood) else outcome

    def _refusal(
        self, text: str, outcome: NotUnderstood, world: World
    ) -> tuple[Dialogue, NotUnderstood]:
        """Return the state after a refusal, and the refusal with one offer."""
        named = {mention.file for mention in find_files(text, world.files) if mention.is_certain}
        named = {file} if (file := _other_file(text, world)) else named
        is_elsewhere = named and named.isdisjoint(id.file for id in tables_of(self.previous))
        is_read = not outcome.words and outcome.reason != _LOST and not is_elsewhere
        if is_read and isinstance(self.previous, Summary | Rows | TableView):
            return self, outcome
        part = self._part_of(text, outcome, world)
        tables = tuple(id for id in world.tables if id.file in named)
        offer = Suggestion(in_words(part), shown_kind(part)) if part else None
        subject = tables or tables_of(self.previous)
        is_known = bool(tables) or not named
        stock = _question(subject, world) if is_known and not points_back(text) else None
        if part is None and stock:
            offer = None if stock in self.offers else stock
        low = text.casefold()
        said = tuple(
            word
            for word in outcome.words
            if re.search(rf"{re.escape(word.casefold())}(?!\w)", low)  # no “sum” of “Summe”
        )
        reason = _IN_PART if part and outcome.reason == _LOST else outcome.reason
        outcome = NotUnderstood(said, reason, offer, part is not None, outcome.files)
        offers = (offer,) if offer else ()
        refused = Refused(last_version(text), outcome.words, part)
        if self.pending is not None:
            return replace(self, offers=offers, refused=refused), outcome
        if begins_as_change(text) and not is_elsewhere:  # the answer before stays the subject
            before = self.refused.part if self.refused else self.previous
            refused = Refused(refused.text, (), part or before)
            return Dialogue(self.previous, offers=offers, refused=refused), outcome
        subject = tables or tables_of(part) or tables_of(self.previous)
        return Dialogue(About(subject), offers=offers, refused=refused), outcome

    def _part_of(self, text: str, outcome: NotUnderstood, world: World) -> Reading | None:
        """Return a request of what was understood of a refused one; None for nothing."""
        if self.refused is not None and begins_as_change(text):
            changed = self._changed(text, world)
            if not isinstance(changed, Understood):
                changed = RequestReader(self.previous).tried(text, world)
            return changed.reading if isinstance(changed, Understood) else None
        reader, text = RequestReader(self.previous), last_version(text)
        if part := nearest(text, outcome, lambda shorter: reader.tried(shorter, world)):
            return part if isinstance(part, Summary | Rows | TableView) else None
        return None

    def _read_anew(self, text: str, world: World, choices: Mapping[str, str]) -> Outcome:
        """Read a request; the question that is open is not asked a second time."""
        outcome = RequestReader(self.previous).read(text, world, choices)
        if isinstance(outcome, Unclear) and outcome == self.pending:
            return NotUnderstood((outcome.phrase or text,), "That is still not clear.")
        return outcome

    def _after(
        self, text: str, outcome: Outcome, choices: Mapping[str, str] = _NO_CHOICES
    ) -> Dialogue:
        """Return the state after an answer or a question."""
        match outcome:
            case Understood(About() as about):
                return Dialogue(about, asked=text, offers=about.questions)
            case Understood(FileListing(files)):
                offers = tuple(Suggestion(f"what is in `{name}`?") for name in files)
                return Dialogue(self.previous, offers=offers)
            case Understood(Calculation()):
                return replace(self, pending=None, refused=None)
            case Understood(reading):
                return Dialogue(reading.of if isinstance(reading, Saved) else reading, asked=text)
            case Unclear():
                return Dialogue(self.previous, outcome, text, choices)
        return Dialogue(self.previous, refused=Refused(text))


def _other_file(text: str, world: World) -> str:
    """Return the file of ``and in sales.csv?``, a request that only names one; else empty."""
    named = [mention for mention in find_files(text, world.files) if mention.file]
    if len(named) != 1 or not _CHANGED_FILE.fullmatch(text[: named[0].start]):
        return ""
    return "" if re.search(r"\w", text[named[0].end :]) else named[0].file


def _question(subject: Sequence[TableId], world: World) -> Suggestion | None:
    """Return a question about the first table, or the only one known, to offer instead."""
    known = [id for id in subject if id in world.tables]
    tables = known or (list(world.tables) if len(world.tables) == 1 else [])
    return next(iter(first_questions(tables[0], world)), None) if tables else None


def _with_tables(reading: Reading, world: World) -> Outcome:
    """Return a reading as understood, or the need to look at its files again."""
    missing = {id.file for id in tables_of(reading) if id not in world.tables}
    return NeedsLook(tuple(sorted(missing))) if missing else Understood(reading)


def _is_bare(outcome: Outcome) -> bool:
    """Return whether a change, read alone, has become a mere list or number of rows, or nothing."""
    match outcome:
        case Understood(Summary(measures=(Measure("count"),)) | Rows(chart=None)):
            return True
    return isinstance(outcome, NotUnderstood | Unclear)


def _is_one_change(reading: Reading, part: Reading | None) -> bool:
    """Return whether a request with another word has the parts of the refused one, and the word.

    The word is a text value or a column of numbers: a time may have been meant beside the other.
    """
    if isinstance(reading, Summary) and isinstance(part, Summary):
        (first, *_), (before, *_) = reading.measures, part.measures
        kept = replace(part, where=reading.where, measures=reading.measures)
        is_more = len(reading.measures) > len(part.measures)
        if (
            is_more
            or first.function != before.function
            or reading not in (kept, replace(kept, keys=()))
        ):
            return False
    new = set(_conditions(reading)) - set(_conditions(part))
    columns = [name for each in _conditions(reading) for name in columns_in(each)]
    is_text = all(
        isinstance(one, OneOf)
        or (isinstance(one, Comparison) and one.operator == "==" and isinstance(one.right, str))
        for one in new
    )
    return reading != part and is_text and len(columns) == len(set(columns))


def _conditions(reading: Reading | None) -> tuple[Condition, ...]:
    """Return the conditions that the rows of a request meet, each for itself."""
    where = reading.where if isinstance(reading, Summary | Rows | TableView) else None
    return where.parts if isinstance(where, And) else (where,) if where else ()
