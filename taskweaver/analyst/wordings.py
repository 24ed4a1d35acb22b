"""Requests in other words: whole requests that mean the same.

They are tried only where a request has no reading of its own, and count only if the other
request is understood without a rest: a wording never changes an answer that there is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from pathlib import PurePosixPath

_A, _B, _C = (rf"(?:the |der |die |das |den )?(?P<{name}>[^,;]+?)" for name in "abc")
_NO_NAME = r"(?!(?:of|for|in|by|avg|average|mean|median|total|number|how)\b)"
_NAME = rf"(?P<a>{_NO_NAME}[^,; ]+(?: {_NO_NAME}[^,; ]+)*?)"
_KINDS = r"(?:different |distinct |unique |possible |various |available |verschiedenen? )?"
_THERE = r"(?: (?:are )?(?:there|here|in it|included|in there|listed|da|drin|darin))?"
_DATA = r"(?: (?:in|of|are in) (?:the |this |my )?(?:data|file|dataset|data set|table))?"
_VALUES = ("distinct {a}",)
_PICTURES = ("scatter plot of {a} against {b}", "box plot of {a} per {b}", "mean {a} per {b}")
_RELATIONS = ("correlation of {a} and {b}", "mean {a} per {b}")
_OF, _COUNT = r"(?: (?:von|der|des))? ", r"anzahl(?: der)?"
_SHOW = r"(?:(?:plot|chart|graph|show|draw|compare|display|zeige?|zeichne)(?: me| mir)? )?"
_OVER = (
    r"(?: (?:over|across|through|with|during|im laufe der|über die)"
    r"(?: (?:the )?(?:time|years?|months?|weeks?|days?|zeit|jahre|monate))+)?"
)
_BETTER = r"(?:better|worse|higher|lower|bigger|larger|longer|smaller|shorter)"
_GROUPS = ("mean {a} per {b}", "mean {a} of {b}")
_SHAPES = ("histogram of {a}", "number of rows per {a}")
_DIFFERENCE = (
    r"(?!.* (?:not|no|non|without|nicht|ohne|kein\w*) )"
    r"(?:(?:is|are|was|were) there|gibt es|gab es) (?:an? |any |einen? )?"
)
_UNLIKE = r"(?:differences?|unterschiede?)"
_AMONG = r"(?:between|across|among|by|per|for|zwischen|nach|bei)(?: den)?"
_TALL = ("which {a} has the {how} elevation", "which {a} has the {how} height")
_TRENDS = ("plot {a} over time", "plot mean {a} per year", "plot mean {a} per month")
_TRENDS_OF = ("plot {a} {b} over time", "plot mean {a} {b} per year")
_MORE = r"(?:more|less|higher|lower|bigger|larger|longer|better|greater|fewer)"
_MEAN, _SUM = r"durchschnitt(?:lich(?:e[rsnm]?)?)?", r"(?:die )?(?:summe|gesamt)"
_WORDINGS = {
    rf"{_DIFFERENCE}{_UNLIKE} (?:in|im|in der|beim) {_A} {_AMONG} {_B}": _GROUPS,
    rf"{_DIFFERENCE}{_UNLIKE} {_AMONG} {_B} (?:in|im|in der|beim) {_A}": _GROUPS,
    rf"{_DIFFERENCE}{_A}(?: |s)?{_UNLIKE} {_AMONG} {_B}": _GROUPS,
    rf"(?:how )?(?:do|does|did|is|are) {_A} (?:look|compare|differ|vary|different)"
    rf" (?:from|{_AMONG}) {_B}": _GROUPS,
    rf"(?:do|does|did) {_A} (?:have|get|know|score) (?:an? )?{_BETTER} {_B} than {_C}": (
        "mean {b} of {a} and {c}",
    ),
    rf"(?:who|which) (?:has|have|had|gets?|got) (?:the |an? )?{_BETTER} {_B},? {_A} or {_C}": (
        "mean {b} of {a} and {c}",
    ),
    rf"(?:what|how) (?:do|does|did|is|are) {_A}(?: distribution)?"
    r" (?:look(?: like)?|distributed|spread(?: out)?)": _SHAPES,
    rf"wie (?:sieht|sehen|ist|sind) (?:es mit |dem )*{_A} (?:aus|verteilt)": _SHAPES,
    r"(?:tell me (?:more |something )?about|what(?:'s| is) the story with"
    rf"|erzähl mir (?:et)?was über) {_A}": ("describe {a}", "number of rows per {a}"),
    rf"(?:when (?:was|is)|wann war) (?:the |das |der |die )?(?:very )?(?:first|erste) {_A}"
    r"(?: played| held| recorded)?": ("earliest date of {a}",),
    rf"(?:when (?:was|is)|wann war) (?:the |das |der |die )?(?:very )?(?:last|letzte) {_A}"
    r"(?: played| held| recorded)?": ("latest date of {a}",),
    rf"(?:which|what) {_A} (?:won|scored|sold|got|earned|collected) (?:the )?most {_B}": (
        "which {a} has the highest {b}",
    ),
    rf"who (?:won|scored|sold|got|earned|collected) (?:the )?most {_B}": (
        "who has the highest {b}",
    ),
    rf"how many {_A} (?:did|does|do|has|have) {_B} (?:win|won|get|got|scored?|sell|sold|earn)": (
        "sum of {a} of {b}",
    ),
    rf"wie ?viele {_A} (?:hat|haben|hatte) {_B} (?:gewonnen|geholt|erzielt|verkauft|geschossen)": (
        "sum of {a} of {b}",
    ),
    rf"(?:(?:what|which|was|who) (?:is|was|ist) )?(?:the )?(?P<how>highest|lowest) {_A}": _TALL,
    rf"(?:what|which) {_A} (?:is|was) (?:the )?(?P<how>highest|lowest)": _TALL,
    r"(?P<a>.+ (?:in|from|of)) the (?P<b>us|usa|uk|eu|uae)(?P<c>.*)": ("{a} {b}{c}",),
    r"(?!add |.*(?:est|most|least|top|worst|more|less)\b)(?:the )?(?P<a>[^\W\d]+(?: [^\W\d]+)?)": (
        "rows of {a}",
    ),
    rf"(?:which|what|welche) {_A} (?:are (?:there|in it)|sind (?:drin|dabei)|gibt es),?"
    rf" (?:and how many|und wie ?viele) {_B} (?:each|jeweils|of each|gibt es jeweils)": (
        "number of {b} per {a}",
    ),
    rf"(?:compare|vergleiche) {_A} (?:and|with|to|und|mit) {_B}": ("mean {a} and {b}",),
    rf"(?:what|which|who) (?:are|were) (?:all )?(?:the )?{_KINDS}{_A}{_THERE}{_DATA}": _VALUES,
    rf"(?:which|what) {_KINDS}{_A} (?:are|is|were) (?:there|in (?:the )?(?:data|file|table)"
    r"|it|included)": _VALUES,
    rf"which {_KINDS}{_A} (?:do (?:we|you|i) have|exist|occur|appear)": _VALUES,
    rf"(?:list|show|name|(?:give|show|tell) me)(?: all)?(?: of)?(?: the)? {_KINDS}{_A}{_DATA}": (
        _VALUES
    ),
    rf"welche {_KINDS}{_A} (?:gibt es|sind (?:da|drin|dabei|enthalten)|kommen vor)": _VALUES,
    rf"welche {_A} gibt es (?:bei|unter|von|in) (?:den |der |dem )?{_B}": ("distinct {a} of {b}",),
    rf"(?:which|what) {_A} (?:are|is) there (?:among|for|of|in) {_B}": ("distinct {a} of {b}",),
    rf"{_SHOW}(?:the )?(?:top )?(?P<n>\d+) most (?P<how>\w+) {_A}": ("{n} most {how} {a}",),
    rf"{_SHOW}(?:the )?(?:development|evolution|trend|course|history|progress|change|entwicklung|"
    rf"verlauf)(?: of| in| der| des| von)?(?: the)? {_A}{_OVER}": _TRENDS,
    rf"how (?:did|does|do|has|have) (?:the )?{_A} (?:change|develop|evolve|vary|go|changed"
    rf"|developed|evolved){_OVER}": _TRENDS,
    rf"how (?:did|does|do|has|have) (?:the )?{_A} (?:changed?|develop(?:ed)?|evolved?)"
    rf" (?P<b>(?:in|for|of|at) [^,;]+?){_OVER}": _TRENDS_OF,
    rf"{_SHOW}(?:the )?{_A}{_OVER[:-1]}": _TRENDS,
    rf"(?:did|does|do|has|have|is|are) {_A} (?:(?:get|got|gotten|getting|go|gone|going) )?"
    rf"(?:{_BETTER}|up|down|(?:increas|ris|fall|decreas|grow|improv)\w*){_OVER[:-1]}": _TRENDS,
    rf"wie (?:hat|haben) sich (?:die |der |das )?{_A}{_OVER} (?:entwickelt|verändert)": _TRENDS,
    rf"{_A} (?:per|by|je|pro) {_B},? top (?P<n>\d+)": ("top {n} {b} by number of {a}",),
    rf"(?:plot |chart |graph |show |compare )?{_NAME} (?:vs|versus|against|gegen) {_B}": _PICTURES,
    rf"(?:is|are|how is|how are|how strongly is) {_A} (?:related|correlated|connected|linked)"
    rf"(?: (?:to|with|and))? {_B}": _RELATIONS,
    r"(?:is there |what is |show )?(?:an? |any |the )?"
    r"(?:relation(?:ship)?|correlation|connection|link|association|dependence)"
    rf" (?:between|of|from) {_A} (?:and|with|to) {_B}": _RELATIONS,
    rf"how (?:does|do|did) {_A} (?:relate|correlate|connect) (?:to|with) {_B}": _RELATIONS,
    rf"(?:does|do) {_A} (?:affect|influence|depend on|(?:go(?: up| down)?|rise|increase|grow|fall"
    rf"|change|vary|decrease) with) {_B}": _RELATIONS,
    rf"(?:does|do|is|are) (?:a |an )?{_MORE} {_A} (?:mean|have|come with|lead to|go with|give|get"
    rf"|make) (?:an? )?{_MORE} {_B}": _RELATIONS,
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
    r"(?P<a>.+?)[,.;?!] (?:and |und |then |please |bitte )*(?:chart|plot|graph|draw|visuali[sz]e"
    r"|zeichne) (?:it|that|this|them|das|es)(?: please| bitte)?": ("plot {a}",),
}
"""Patterns of whole requests, each with requests that may mean the same, the likeliest first.

They are compiled at the first request that has no reading: importing this module compiles none.
"""
_POLITE = r"(?:(?:please|bitte|and|und|then|dann|now|jetzt|can you|kannst du|mir|me) )*"
_IT = (
    r"(?:(?:bitte|please|mal|that|this|it|them|these|all|das|es|dies|ergebnis"
    r"|(?:(?:the|this|these|die|das|den|diese[ns]?) )?(?:results?|table|answer|output|list|rows"
    r"|data|tabelle|ergebnis(?:se)?|liste|daten|zeilen)) )*"
)
_SAVES = r"(?:save|export|write|store|download|speicher[en]?|exportier[en]?)"
_TARGET = (
    r"(?:(?:as|to|into|in|als) )?(?:(?:an?|the|eine?) )?(?:(?P<kind>csv|excel|xlsx)\b)?[ -]?"
    r"(?:(?:file|datei|sheet|workbook)\b ?)?(?:(?:named|called|as|to|namens|als) )?"
    r"(?:[`'\"]?(?P<file>[\w./-]+\.(?:csv|xlsx))[`'\"]?)?"
)
_SAVE = (
    rf"{_POLITE}{_SAVES} {_POLITE}{_IT}{_TARGET}(?: ?(?:ab|bitte|please))?",
    rf"{_POLITE}{_IT}{_TARGET} ?(?:ab)?(?:speichern|exportieren)",
)
_END_OF_QUESTION = re.compile(r"[,.;?!]\s+|\s(?=and |und )")


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
                name: plain[slice(*match.span(name))]
                for name, said in match.groupdict().items()
                if said is not None
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
    said = " ".join(text.strip().rstrip("?.! ").split())
    found = (re.fullmatch(pattern, said, re.IGNORECASE) for pattern in _SAVE)
    match = next(filter(None, found), None)
    if match is None or not (match["kind"] or match["file"]):
        return ""
    if match["file"]:
        return PurePosixPath(match["file"]).name
    suffix = "csv" if match["kind"].casefold() == "csv" else "xlsx"
    names = (f"result{f'_{number}' * (number > 1)}.{suffix}" for number in count(1))
    return next(name for name in names if name not in taken)


def asked_and_saved(text: str, taken: Collection[str] = ()) -> tuple[str, str]:
    """Split a question from the wish to save its answer; both are empty for other requests."""
    for end in _END_OF_QUESTION.finditer(text):
        if file := file_to_save(text[end.end() :], taken):
            return text[: end.start()], file
    return "", ""
