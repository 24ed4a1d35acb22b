"""Fences of a text, and whether the code in them is an order to run it, or only shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from taskweaver.llm.types import Form
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.utils.parsing import compiles

Verdict = Literal["run", "shown", "doubt"]

_OPENING = re.compile(r"^(?P<mark>`{3,})(?P<info>[^\n`]*)\n", re.MULTILINE)
_CODE_INFOS = {
    "python": {"python", "py", "python3", "ipython", "tool_code"},
    "bash": {"bash", "sh", "shell", "console"},
}
_MOST_ENDS = 16
IN_DOUBT = {
    "tools": "Nothing ran: code runs by a call of {TOOL} alone. To show it, send the answer again.",
    "json": (
        "Nothing ran: code in the text is only shown. To run it, put it into code, or send one"
        " ```{LANGUAGE} block with nothing after it; to show it, use a ```text block."
    ),
    "fences": (
        "Nothing ran: to run code, send one ```{LANGUAGE} block with nothing after it; to show"
        " it, use a ```text block."
    ),
}
"""Question to the author of code that may be an order, by the form that was asked for."""

_RUN_CODE = (
    r"(?:run|execute) (?:it|this|that|anything|any code|(?:the |this |that )(?:\w+ )?"
    r"(?:code|snippet|script|command))\b"
    r"(?=[^\w ]|$| (?:yet|now|please|but|and|just|for|on|in|here|unless|until|if)\b)"
)
_FORBIDDEN = re.compile(
    r"(?:^|[^\w\s'\u2019]\s*|\b(?:please|but|and|just|so|or|bitte|aber|und|mais|pero) )"
    r"(?:(?:do not|don['\u2019]?t|never)(?:,? (?:you|dare|to|ever|actually|just|please))* "
    rf"{_RUN_CODE}"
    r"|nichts? ausführen\b|führ\w* (?:(?:es|das|bitte|den|code) ){0,3}nichts? aus\b"
    r"|n(?:['\u2019]|e (?:l['\u2019]|l[ae] ))(?:exécute|lance)\b|no (?:l[oa]s? )?ejecutes?\b"
    r"|não (?:[oa]s? )?execut[ea]\b|non (?:l[oa] )?eseguir)"
    r"|(?:\bnot|n['\u2019]t) want you to (?:run|execute)\b|(?:不要|别)(?:运行|执行)",
    re.IGNORECASE | re.MULTILINE,
)
_ONLY_ASKED = re.compile(
    r"\b(?:show|give|share|send|write|print|see|draft|provide|need|explain|zeig\w*|which"
    r"|what(?:['\u2019]s| is| would| does)?|want to \w+)"
    r"(?: (?:me|us|mir|just|only|the|an?|some|ein|den|python|pandas|shell|bash|sample|example))*"
    r" (?:code|snippet|s[ck]ript|schnipsel|one-liner|command|function|python (?=for|to))\b"
    r"(?! (?:of|per|column|with the)\b)"
    r"|\bhow (?:(?:do|can|could|would|should) (?:I|you|one)|to|one)\b|\bwie \w+ (?:ich|man|wir)\b"
    rf"|(?:\bnot|n['\u2019]t|\bnever) (?:to |actually )?{_RUN_CODE}|auszuführen"
    r"|\b(?:without|instead of|rather than|no need to|need not|not be) (?:run|execut)"
    r"|\bI(?:['\u2019]ll| will) run\b|\brun\w* (?:(?:it|this|that) )?(?:myself|to me)\b",
    re.IGNORECASE | re.MULTILINE,
)
_ALSO_RUN = re.compile(r"\b(?:and|then|und) (?:also |then )?(?:run|execute|führe)", re.IGNORECASE)
_DISPLAY = re.compile(
    r"\b(?:example|here(?: is|['\u2019]s)|would|could|you can|like this|hier ist|voici)\b", re.I
)
_WRONG = re.compile(r"\b(?:wrong|bad|unsafe|dangerous) (?:way|example|code)\b", re.IGNORECASE)
_MADE_UP = re.compile(
    r"\s*(?:```(?:output|out|result|stdout)\b|(?:Observation|Output|Result):)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompt that a reply answers.

    Attributes:
        form: The form of replies in it.
        request: The newest request.
        is_answer: Whether an answer is as likely as a cell: after an outcome, or from a model that
            is known to take tools.
        is_told: Whether a reply just before held code in doubt, and its author was told how it is
            run.
    """

    form: Form = "json"
    request: str = ""
    is_answer: bool = False
    is_told: bool = False


def told(posts: Sequence[Post]) -> bool:
    """Return whether the newest post asks its author how the code in a reply was meant."""
    return bool(posts) and "Nothing ran: " in posts[-1].text(AttachmentType.revise_message)


class Fence(NamedTuple):
    """A fence: its place in the text, the words behind its opening, and its inside."""

    start: int
    end: int
    kind: str
    rest: str
    body: str

    def is_code(self, language: str) -> bool:
        """Return whether it holds code in a language of cells."""
        return self.kind in _CODE_INFOS.get(language, ())


def fences_in(text: str) -> Iterator[Fence]:
    """Yield the fences of a text; one of Python ends where its inside is code, if it can."""
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.end()
        closings = re.finditer(rf"^{opening['mark']}[ \t]*$", text[start:], re.MULTILINE)
        ends = [(start + end.start(), start + end.end()) for end in islice(closings, _MOST_ENDS)]
        kind, _, rest = opening["info"].strip().partition(" ")
        end, at = ends[0] if ends else (len(text), len(text))
        if (
            kind.lower() in _CODE_INFOS["python"]
            and len(ends) > 1
            and not compiles(text[start:end])
        ):
            whole = (one for one in reversed(ends[1:]) if compiles(text[start : one[0]]))
            end, at = next(whole, (end, at))
        yield Fence(opening.start(), at, kind.lower(), rest.strip(), text[start:end])


def forbids_running(words: str) -> bool:
    """Return whether words ask not to run code."""
    return bool(_FORBIDDEN.search(words))


def verdict(text: str, code: Sequence[Fence], asked: Asked) -> Verdict:
    """Decide whether the fences of code in a reply are an order."""
    request, form, after = asked.request, asked.form, text[code[-1].end :].strip()
    if forbids_running(request) or forbids_running(text):
        return "shown"
    is_only_asked = bool(_ONLY_ASKED.search(request)) and not _ALSO_RUN.search(request)
    is_order = len(code) == 1 and (not after or bool(_MADE_UP.match(after)))
    is_order = is_order and not _WRONG.search(text)
    if form == "fences" and is_order and (asked.is_told or not is_only_asked):
        return "run"
    if (asked.is_answer and form != "fences") or (after and (asked.is_answer or form == "tools")):
        return "shown"
    if not asked.is_told:
        return "doubt"
    is_order = is_order and form == "json" and not _DISPLAY.search(text[: code[0].start])
    return "run" if is_order else "shown"
