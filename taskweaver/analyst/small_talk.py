"""Messages of a conversation that ask nothing of the data, in English and German."""

from __future__ import annotations

import re
from dataclasses import replace

from taskweaver.analyst.readings import Measure, Rank, Reading, Rows, Summary, TableView

_POLITE = r"(?:(?:please|ok(?:ay)?|oh|and|now|then|bitte|und|jetzt|mal|can you|kannst du) )*"
COMMANDS = frozenset(("again", "more", "other", "which"))
"""Topics that are about the last answer."""
_MORE_ROWS, _LEAST_ROWS = 100, 10
_TOPICS = {
    "hello": r"(?:hi|hello|hey|good (?:morning|day|evening|afternoon)|hallo|hi|moin|servus"
    r"|guten (?:tag|morgen|abend)|bonjour|hola)(?: there| you| zusammen)?",
    "thanks": r"(?:many )?(?:thanks?|thank you|thx|danke(?:schön)?|vielen dank|merci|great|perfect"
    r"|cool|nice|super|wow|good job|well done|prima|toll)"
    r"(?: (?:there|you|so|very|a|lot|much|dir|schön|sehr|job|thanks?|danke))*",
    "stop": r"(?:stop|stopp|cancel|quit|exit|bye|goodbye|good night|tschüss|ciao|no|nope|nein"
    r"|no,? thanks?|nein danke|never ?mind|forget (?:it|that|about it)|nothing|egal|abbrechen"
    r"|vergiss es|schon gut|lass gut sein)(?: it| that)?",
    "who": r"(?:who|what) (?:are|r) you|are you (?:an? )?(?:ai|llm|bot|robot|human|chatgpt|gpt"
    r"|person|machine|language model|real)|wer bist du|was bist du|bist du eine? .{2,20}",
    "help": r"help(?: me)?|hilfe|hilf mir|what (?:else )?can you do(?: for me)?|was kannst du"
    r"(?: (?:alles|tun|machen|für mich tun|so))*|how does (?:this|it) work|how do i use"
    r" (?:this|you)|what can i ask(?: you)?|wie (?:geht|funktioniert) das",
    "again": r"again|(?:repeat|redo|rerun|run)(?: (?:it|that|the last one))?(?: again)?|once more"
    r"|same again|noch ?mal|noch einmal|wiederhol(?:e|en)?(?: (?:das|es))?",
    "more": r"(?:(?:show|give|list|zeig|zeige)(?: me| mir)? )?(?:(?:some )?more|mehr|weitere)"
    r"(?: (?:rows|lines|of them|results|zeilen|davon))?",
    "which": r"(?:when|who|where|(?:in |on )?(?:which|what)(?: (?!data|file|table|share|percent"
    r"|proportion|fraction|ratio|rate|number|unit|currency)\w+)?)"
    r" (?:was|is|were|are) (?:it|that|this|they|those)"
    r"|welche(?: genau| zeilen)?"
    r"|which (?:ones?|rows)(?: (?:were|are|was|is) (?:they|it|that|those))?"
    r"|(?:show|list)(?: me)? (?:them|those)"
    r"|(?:wann|wer|wo|(?:in )?welche[rsmn]?(?: \w+)?) (?:war|waren|sind) (?:das|es|die|sie)",
    "other": r"(?:(?:what|how) about |in |for |from |use |try )?the other (?:file|table|one|data)"
    r"|(?:in |aus |für )?(?:der|die|das) anderen? (?:datei|tabelle)",
}


def small_talk(text: str) -> str:
    """Return the topic of a message that asks nothing of the data; empty for other messages."""
    said = " ".join(re.sub(r"[^\w' ]+", " ", text.casefold()).split())
    for topic, pattern in _TOPICS.items():
        if re.fullmatch(rf"{_POLITE}(?:{pattern})(?: (?:please|bitte|now|then))?", said):
            return topic
    return ""


def with_more_rows(reading: Summary | Rows | TableView) -> Reading | None:
    """Return a reading that shows more rows; None where all are shown."""
    match reading:
        case TableView(view="sample"):
            return replace(reading, count=reading.count * 4)
        case Rows(rank=None, chart=None):
            return replace(reading, rank=Rank(ascending=True, count=_MORE_ROWS))
        case (
            Summary(rank=Rank(count=int(count)) as rank) | Rows(rank=Rank(count=int(count)) as rank)
        ):
            return replace(reading, rank=replace(rank, count=max(count * 2, _LEAST_ROWS)))
    return None


def rows_behind(reading: Summary | Rows | TableView) -> Reading | None:
    """Return the rows that a number of an answer comes from; None where there are none."""
    match reading:
        case Summary(measures=(Measure("count" | "nunique"),), keys=(), then=None):
            return Rows(reading.source, where=reading.where)
        case Summary(measures=(Measure("min" | "max" as end, of),), keys=(), then=None):
            return Rows(reading.source, (), reading.where, of, Rank(end == "min", 1))
    return None
