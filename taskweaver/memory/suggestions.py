"""Suggestions of an answer: requests to go on with, and notes on how the request was read.

They are an attachment of type ``suggestions`` on the final post; this module is its form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

MOST_SUGGESTIONS = 9
_MOST_CHARS = 300
_YES = frozenset(
    "yes y yeah yep ok okay sure please go ja jo klar gern gerne bitte mach はい 是 好 네".split()
)
_BESIDE_YES = frozenset("do it that ahead das".split())
_NO = frozenset("no n nope nein いいえ 不 아니요".split())
_BESIDE_BOTH = frozenset("thanks danke please bitte just only here nur hier use it".split())
_NUMBERED = re.compile(
    r"(?:(?:the|number|no|nr|question|option|die|das|den|nummer|frage|#)[ .]*)*"
    r"(?P<place>[1-9][0-9]?|first|second|third|erste|zweite|dritte)(?:n|s)?"
    r"(?: (?:one|question|please|bitte|frage))*[.)!]*"
)
_BY_WORDS = re.compile(r"(?:the|die|das|den) (?P<words>\w+(?: \w+)?) (?:one|question|frage)")
_ORDER = {"first": 1, "second": 2, "third": 3, "erste": 1, "zweite": 2, "dritte": 3}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Request that an answer offers.

    Attributes:
        text: The request, which can be sent as it is.
        shows: Kind of its answer: ``number``, ``table``, ``line chart``; empty if unknown.
    """

    text: str
    shows: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Offers of an answer.

    Attributes:
        questions: Requests to go on with.
        notes: Sentences on how the request was read.
    """

    questions: tuple[Suggestion, ...] = ()
    notes: tuple[str, ...] = ()

    def extra(self) -> dict[str, Any]:
        """Return the plain data of the attachment."""
        return {"questions": list(map(asdict, self.questions)), "notes": list(self.notes)}

    @classmethod
    def from_extra(cls, value: object) -> Self:
        """Build suggestions from plain data; parts of another form are left out."""
        given = value if isinstance(value, Mapping) else {"questions": value}
        questions, notes = (
            listed if isinstance(listed := given.get(name), list) else []
            for name in ("questions", "notes")
        )
        read = [
            Suggestion(text, str(item.get("shows", "")) if isinstance(item, Mapping) else "")
            for item in questions
            if (text := _text(item.get("text") if isinstance(item, Mapping) else item))
        ]
        return cls(tuple(read[:MOST_SUGGESTIONS]), tuple(filter(None, map(_text, notes))))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build suggestions from a field of a reply; none from a field of another form."""
        try:
            return cls.from_extra(json.loads(text))
        except ValueError:
            return cls()

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.questions or self.notes)

    def __str__(self) -> str:
        """The content of the attachment."""
        asked = (f"{one.text} ({one.shows})" if one.shows else one.text for one in self.questions)
        return "\n".join([*asked, *self.notes])


NO_SUGGESTIONS = Suggestions()


def _text(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= _MOST_CHARS else ""


def yes_or_no(message: str) -> bool | None:
    """Return whether a message is a yes, in no more than a few words; None for another one."""
    words = {*re.findall(r"\w+", message.casefold())} - _BESIDE_BOTH
    is_yes = words <= _YES
    return is_yes if words and (is_yes or words <= _NO) else None


def chosen(message: str, questions: Sequence[Suggestion]) -> str:
    """Return the suggestion that a message takes; empty for none.

    It takes one by a yes, by its number, by its text, or by words of it: ``the price one``.
    """
    plain = message.strip().casefold().strip("`'\"“”«».!,;? ")
    if not questions or not plain:
        return ""
    named = _BY_WORDS.fullmatch(plain)
    wanted = set(named["words"].split()) if named else {plain}
    found = [
        one.text
        for one in questions
        if (named and wanted <= set(re.findall(r"\w+", one.text.casefold())))
        or one.text.casefold().strip("?. ") == plain
    ]
    if len(found) == 1:
        return found[0]
    words = set(re.findall(r"\w+", plain))
    if words <= _YES | _BESIDE_YES and (words & _YES or plain == "do it"):
        return questions[0].text
    match = _NUMBERED.fullmatch(plain)
    if match is None:
        return ""
    place = _ORDER.get(match["place"]) or int(match["place"])
    return questions[place - 1].text if place <= len(questions) else ""
