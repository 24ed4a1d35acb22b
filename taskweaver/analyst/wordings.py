"""Requests in other words: whole requests that mean the same, and the nearest one that is read.

The first are tried only where a request has no reading of its own, and count only if the other
request is understood without a rest: a wording never changes an answer that there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import PurePosixPath

from taskweaver.analyst.readings import NotUnderstood, Outcome, Understood
from taskweaver.analyst.wording.requests import in_words, shown_kind
from taskweaver.memory.suggestions import Suggestion

_A, _B = r"(?P<a>[^,;]+?)", r"(?P<b>[^,;]+?)"
_KINDS = r"(?:different |distinct |unique |possible |various |available |verschiedenen? )?"
_THERE = r"(?: (?:are )?(?:there|here|in it|included|in there|listed|da|drin|darin))?"
_DATA = r"(?: (?:in|of|are in) (?:the |this |my )?(?:data|file|dataset|data set|table))?"
_VALUES = ("distinct {a}",)
_PICTURES = ("scatter plot of {a} against {b}", "box plot of {a} by {b}", "mean {a} per {b}")
_RELATIONS = ("correlation of {a} and {b}", "mean {a} per {b}")
_OF, _COUNT = r"(?: (?:von|der|des))? ", r"anzahl(?: der)?"
_SHOW = r"(?:(?:plot|chart|graph|show|draw|compare|display|zeige?|zeichne)(?: me| mir)? )?"
_OVER = (
    r"(?: (?:over|across|through|with|during|im laufe der|über die)"
    r"(?: (?:the )?(?:time|years?|months?|weeks?|days?|zeit|jahre|monate))+)?"
)
_TRENDS = ("plot {a} over time", "plot mean {a} per year", "plot mean {a} per month")
_MEAN, _SUM = r"durchschnitt(?:lich(?:e[rsnm]?)?)?", r"(?:die )?(?:summe|gesamt)"
_WORDINGS = {
    rf"(?:what|which|who) (?:are|were) (?:all )?(?:the )?{_KINDS}{_A}{_THERE}{_DATA}": _VALUES,
    rf"(?:which|what) {_KINDS}{_A} (?:are|is|were) (?:there|in (?:the )?(?:data|file|table)"
    r"|it|included)": _VALUES,
    rf"which {_KINDS}{_A} (?:do (?:we|you|i) have|exist|occur|appear)": _VALUES,
    rf"(?:list|show|name|(?:give|show|tell) me)(?: all)?(?: of)?(?: the)? {_KINDS}{_A}{_DATA}": (
        _VALUES
    ),
    rf"welche {_KINDS}{_A} (?:gibt es|sind (?:da|drin|dabei|enthalten)|kommen vor)": _VALUES,
    rf"{_SHOW}(?:the )?(?:top )?(?P<n>\d+) most (?P<how>\w+) {_A}": ("{n} most {how} {a}",),
    rf"{_SHOW}(?:the )?(?:development|evolution|trend|course|history|progress|change|entwicklung|"
    rf"verlauf)(?: of| in| der| des| von)?(?: the)? {_A}{_OVER}": _TRENDS,
    rf"how (?:did|does|do|has|have) (?:the )?{_A} (?:change|develop|evolve|vary|go|changed"
    rf"|developed|evolved){_OVER}": _TRENDS,
    rf"{_SHOW}(?:the )?{_A}{_OVER[:-1]}": _TRENDS,
    rf"wie (?:hat|haben) sich (?:die |der |das )?{_A}{_OVER} (?:entwickelt|verändert)": _TRENDS,
    rf"{_A} (?:per|by|je|pro) {_B},? top (?P<n>\d+)": ("top {n} {b} by number of {a}",),
    rf"(?:plot |chart |graph |show |compare )?{_A} (?:vs|versus|against|gegen) {_B}": _PICTURES,
    rf"(?:is|are|how is|how are|how strongly is) {_A} (?:related|correlated|connected|linked)"
    rf"(?: (?:to|with|and))? {_B}": _RELATIONS,
    r"(?:is there |what is |show )?(?:an? |any |the )?"
    r"(?:relation(?:ship)?|correlation|connection|link|association|dependence)"
    rf" (?:between|of|from) {_A} (?:and|with|to) {_B}": _RELATIONS,
    rf"(?:does|do) {_A} (?:affect|influence|depend on|go with|rise with|increase with) {_B}": (
        _RELATIONS
    ),
    rf"(?:the )?(?P<how>average|mean|total|sum of|median|max|min) {_A} (?:for|of|in|by) each"
    rf" {_B} (?:type|kind|group|category|class)": ("{how} {a} per {b}",),
    rf"{_MEAN}{_OF}{_A} (?:pro|je|nach) {_B}": ("mean {a} per {b}",),
    rf"{_SUM}{_OF}{_A} (?:pro|je|nach) {_B}": ("total {a} per {b}",),
    rf"(?:was ist )?(?:der |die |das )?{_MEAN}{_OF}{_A}": ("mean {a}",),
    rf"{_SUM}{_OF}{_A}": ("total {a}",),
    rf"(?:wie viele|{_COUNT}) (?:zeilen|einträge|datensätze|sätze)"
    r"(?: (?:gibt es|hat|haben|sind))?(?: (?:die|der|das|es|da|drin|in|den|datei|tabelle|daten|"
    r"datensatz))*": ("number of rows",),
    rf"(?:wie viele|{_COUNT})(?: (?:zeilen|einträge|datensätze))? (?:pro|je|nach) {_A}": (
        "number of rows per {a}",
    ),
    rf"welche[rsn]? {_A} hat (?:den|die|das) (?:höchste[nr]?|größte[nr]?|meiste[nr]?) {_B}": (
        "which {a} has the highest {b}",
    ),
    rf"welche[rsn]? {_A} hat (?:den|die|das) (?:niedrigste[nr]?|kleinste[nr]?) {_B}": (
        "which {a} has the lowest {b}",
    ),
    r"how (?:big|large|long) is (?:it|(?:the|this|my) (?:data|file|table|data ?set))": (
        "number of rows",
    ),
    rf"histogramm (?:von|der|des) {_A}": ("histogram of {a}",),
}
"""Patterns of whole requests, each with requests that may mean the same, the likeliest first.

They are compiled at the first request that has no reading: importing this module compiles none.
"""
_SAVE = (
    r"(?:please |bitte |can you |kannst du )*"
    r"(?:save|export|write|store|download|speicher[en]?|exportier[en]?)(?: me| mir)?"
    r"(?: (?:that|this|it|them|these|all|das|es|ergebnis"
    r"|(?:the |die |das )?(?:result|results|table|answer|output|tabelle|ergebnis)))*"
    r"(?: (?:as|to|into|in|als))?(?: (?:an?|the|eine?))?"
    r"(?: (?P<kind>csv|excel|xlsx))?(?: (?:file|datei|sheet|workbook))?"
    r"(?: (?:named|called|as|to|namens|als))?(?: [`'\"]?(?P<file>[\w./-]+\.(?:csv|xlsx))[`'\"]?)?"
)


def other_wordings(text: str) -> Iterator[str]:
    """Yield requests of the language that may mean the same, the likeliest first."""
    plain = " ".join(text.strip().rstrip("?.! ").split())
    low = plain.casefold()
    if len(low) != len(plain):
        return
    for pattern, templates in _WORDINGS.items():
        match = re.fullmatch(pattern, low)
        if match is not None:  # as it was written: names keep their case
            parts = {
                name: plain[slice(*match.span(name))] for name in match.groupdict() if match[name]
            }
            yield from (_filled(one, parts) for one in templates if _needs(one) <= parts.keys())


def _needs(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)


def file_to_save(text: str, taken: Collection[str] = ()) -> str:
    """Return the file that a request saves the last result to; empty for another request.

    A request that names none gets a name which is not among those `taken`.
    """
    match = re.fullmatch(_SAVE, " ".join(text.strip().rstrip("?.! ").split()), re.IGNORECASE)
    if match is None or not (match["kind"] or match["file"]):
        return ""
    if match["file"]:
        return PurePosixPath(match["file"]).name
    suffix = "csv" if match["kind"].casefold() == "csv" else "xlsx"
    names = (f"result{f'_{number}' * (number > 1)}.{suffix}" for number in count(1))
    return next(name for name in names if name not in taken)


_MOST_TRIES = 3
_LEAD = (
    r"(?:\b(?:in|of|for|from|at|on|by|with|where|that|which|who|whose|are|is|was|were|and|or)\s+)*"
    r"(?:\b(?:the|a|an)\s+)?"
)


def nearest(text: str, outcome: NotUnderstood, read: Callable[[str], Outcome]) -> Suggestion | None:
    """Return the nearest request in words; None if there is none."""
    words: Sequence[str] = outcome.words
    for _ in range(_MOST_TRIES):
        shorter = _without(text, words)
        if shorter == text or not re.search(r"\w", shorter):
            return None
        text, found = shorter, read(shorter)
        if isinstance(found, Understood) and not found.unused:
            return Suggestion(in_words(found.reading), shown_kind(found.reading))
        if not isinstance(found, NotUnderstood):
            return None
        words = found.words
    return None


def _without(text: str, words: Sequence[str]) -> str:
    """Return a text without some of its words and the prepositions before them."""
    for word in words:
        text = re.sub(rf"{_LEAD}(?<!\w){re.escape(word)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())
