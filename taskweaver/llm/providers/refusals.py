"""Refusals of endpoints, learnt from their words: a table of rules. Pure functions.

Endpoints refuse parameters, efforts, formats, messages and images by model. A request without the
refused part is made at once, and from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from taskweaver.llm.dialects.dialect import LADDER
from taskweaver.llm.facts import group
from taskweaver.llm.images import has_described_images
from taskweaver.llm.learnt import LearntFacts, StandIn, tokens_of
from taskweaver.llm.providers.request_form import (
    EFFORTS,
    KEPT,
    NESTED,
    REPLY_LIMITS,
    STRICT,
    SYSTEM,
    Attempt,
    format_of,
    lax,
)

_SMALLEST = 512
_TOKENS = r"(\d{1,3}(?:,\d{3})+|\d{3,9})\b"
_NAMED_WINDOW = re.compile(
    rf"(?:maximum|max)[ _](?:context|prompt|model)[ _]length (?:is|of) {_TOKENS}"
    rf"|context (?:length|window|size)(?: of| is|:)?(?: only)? \(?{_TOKENS}"
    rf"|{_TOKENS} (?:tokens )?maximum context length"
    rf"|number of tokens allowed \(?{_TOKENS}"
    rf"|token limit: {_TOKENS}|n_ctx\W{{1,4}}{_TOKENS}|\[\d, ?{_TOKENS}\]|(?:>|<=) {_TOKENS}",
    re.IGNORECASE,
)

REFUSING = (400, 404, 422, 500, 501)
"""Statuses of a request that is refused; servers at hand say 500 for what they do not know."""

_INVALID = (400, 422)
_RENAMED = {"max_tokens": "max_completion_tokens"}
_FEWEST = 1_024
"""A window with less room for the reply is full: the prompt has to be shorter."""

_STRICT = re.compile(r"(?<![a-z_])strict(?![a-z_])")
_LISTED_EFFORT = re.compile(rf"['\"`]({'|'.join(EFFORTS)})['\"`]")
_ROOM = re.compile(
    r"(?P<prompt>\d+) \+ \d+ > (?P<sum>\d+)"
    r"|maximum context length is (?P<length>\d+) tokens and your request has (?P<input>\d+) input"
)
Changes = Mapping[str, Any]
"""Fields of `LearntFacts` with their new values."""


def refused_window(words: str, body: Any = None) -> int:
    """Return the window that a refusal names, or 0.

    Args:
        words: The endpoint's explanation.
        body: The error as it came, decoded.
    """
    own = tokens_of(group(body, "n_ctx")) or tokens_of(group(group(body, "error"), "n_ctx"))
    found = _NAMED_WINDOW.search(words)
    named = next(filter(None, found.groups()), "") if found else ""
    window = own or tokens_of(named.replace(",", ""))
    return window if window >= _SMALLEST else 0


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


IMAGES = _pattern(
    r"images?(?:_url)?\b|\bvision\b|\bmulti-?modal|\bpictures?\b"
    r"|content\W{1,6}(?:\w+\W+){0,6}?(?:must be|should be|expected|to be)[^.]{0,30}\bstr(?:ing)?\b"
    r"|input should be a valid string|invalid type: sequence, expected a string"
)
_ONE_IMAGE = _pattern(
    r"too (?:large|big|small|many)|exceed|\bsizes?\b|dimension|pixel|corrupt|decode|\bprocess"
    r"|download|invalid (?:image|base64)|unsafe|policy"
)
_NO_SYSTEM = _pattern(
    r"\bsystem['\"`]?[ _](?:role|message|prompt)s?\b[^.]{0,60}\bnot\b|\broles must alternate user"
    r"|not (?:yet )?(?:support|allow|accept)\w* (?:the |a )?(?:role )?['\"`]?(?:system|developer)\b"
    r"|only (?:support\w* )?(?:the )?['\"`]?user['\"`]?,? (?:and|or) ['\"`]?(?:assistant|model)\b"
)
_UNWANTED = _pattern(
    r"unsupported|not supported|not (?:yet )?support|unrecogni[sz]ed|unknown|unexpected|deprecated"
    r"|not permitted|not allowed|not available|extra (?:inputs?|fields?)|only the default"
    r"|cannot both be specified|may only be set|or unset when|cannot unmarshal"
)
_FORMAT = _pattern(
    r"response[_ ]?format|output_config\.format|output[_ ]format|json[_ ]?(?:schema|object|mode)"
    r"|\bschema\b|grammar|structured output|json_validate_failed|failed to generate json"
    r"|ChatRequest\.format|invalid format"
)
EFFORT_WITH_TOOLS = _pattern(r"tools with `?reasoning_effort`? are not supported")
_EFFORT = _pattern(
    r"(?:reasoning[_. ]?|\b)effort\b|\b(?:think|reasoning) value"
    r"|not (?:yet )?support\w* (?:thinking|reasoning)\b(?![_ ](?:content|blocks?))"
)
_LONGEST_REPLY = _pattern(
    r"max_tokens`?: \d+ > (\d+)|at most (\d+) (?:completion|output) tokens"
    r"|max_tokens\b[^.]{0,40}\[\d+, ?(\d+)\]|max_output_tokens\b[^<]{0,80}<= ?(\d+)"
)
_ROLE_ORDER = _pattern(r"role ['\"`]?user['\"`]? after role ['\"`]?tool")
_MISSED = _pattern(r"passed? back|missing|required|must (?:be|have|contain|include)")
_UNWANTED_RECORD = _pattern(
    r"unsupported|not (?:permitted|allowed|supported)|unknown|unexpected|unrecogni[sz]ed"
    r"|extra (?:inputs?|fields?)|is included in the input"
)
_STAND_INS: dict[StandIn, re.Pattern[str]] = {
    "reasoning": _pattern("reasoning_content"),
    "signature": _pattern("thought[_ ]?signature"),
}
_RECORD = _pattern(
    r"signature|thinking|reasoning_(?:content|details)|reasoning['\"` ]*item|extra_content"
    r"|encrypted[_ ]content|tool[_ ]?(?:call|use)[_ ]?ids?\b|call_id"
    r"|without its required (?:following|preceding) item"
)
_HISTORY = _pattern("|".join(p.pattern for p in (_ROLE_ORDER, _RECORD)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request.

    Attributes:
        attempt: The request.
        facts: The facts now: another call may have learnt more since the request was made.
        status: HTTP status of the answer; None without one.
        words: The endpoint's message.
        parameter: The parameter that its error names; empty for none.
    """

    attempt: Attempt
    facts: LearntFacts
    status: int | None
    words: str
    parameter: str = ""

    @property
    def text(self) -> str:
        """The message and the parameter."""
        return f"{self.words} {self.parameter}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of refusal.

    Attributes:
        statuses: HTTP statuses it comes with.
        pattern: Words it has.
        change: Returns the changes of the facts; None if the refusal is about something else.
        is_kept: Whether later sessions begin with the changes.
    """

    statuses: Collection[int]
    pattern: re.Pattern[str]
    change: Callable[[Refusal], Changes | None]
    is_kept: bool = True


def learn(rules: Collection[Rule], refusal: Refusal) -> tuple[Rule, Changes] | None:
    """Return the first rule that matches a refusal, and the changes of the facts.

    Returns:
        None where asking again would fail again.
    """
    for rule in rules:
        is_of_it = refusal.status in rule.statuses and rule.pattern.search(refusal.text)
        changes = rule.change(refusal) if is_of_it else None
        if changes is not None and replace(refusal.facts, **changes) != refusal.attempt.facts:
            return rule, changes
    return None


def _one_image(refusal: Refusal) -> Changes | None:
    return _images(refusal) if _ONE_IMAGE.search(refusal.words) else None


def _images(refusal: Refusal) -> Changes | None:
    """Have texts stand for images, except for images that a question is about."""
    has_texts = has_described_images(refusal.attempt.request.messages)
    return {"are_images_refused": True} if has_texts else None


def _strict(refusal: Refusal) -> Changes | None:
    sent = refusal.attempt.parameters
    is_sent = lax(sent) != sent
    return _dropped(refusal, STRICT) if is_sent and _UNWANTED.search(refusal.words) else None


def _dropped(refusal: Refusal, name: str) -> Changes:
    return {"dropped": tuple(sorted({*refusal.facts.dropped, name}))}


def _format(refusal: Refusal) -> Changes | None:
    attempt = refusal.attempt
    if attempt.dialect.format_parameter not in attempt.parameters:
        return None
    lower = LADDER.index(format_of(attempt.facts)) + 1
    level = max(lower, LADDER.index(format_of(refusal.facts)))
    return {"response_format": LADDER[level]} if level < len(LADDER) else None


def _effort_with_tools(refusal: Refusal) -> Changes | None:
    return {"is_effort_refused": True} if refusal.attempt.request.tools else None


def _effort(refusal: Refusal) -> Changes | None:
    """Put the nearest listed effort in place of a refused effort, but never no reasoning at all."""
    sent, efforts = refusal.attempt.effort, refusal.facts.efforts
    is_beside_tools = refusal.attempt.request.tools and EFFORT_WITH_TOOLS.search(refusal.text)
    if sent is None or is_beside_tools:
        return None
    listed = {*_LISTED_EFFORT.findall(refusal.text)} - {sent, "none", *efforts}
    at = EFFORTS.index(sent)
    near = sorted((abs(EFFORTS.index(effort) - at), EFFORTS.index(effort)) for effort in listed)
    return {"efforts": {**efforts, sent: EFFORTS[near[0][1]] if near else ""}}


def _longest_reply(refusal: Refusal) -> Changes | None:
    named = _LONGEST_REPLY.search(refusal.text)
    longest = int(next(filter(None, named.groups()))) if named else 0
    return {"longest_reply": longest} if 0 < longest < _asked_reply(refusal) else None


def _asked_reply(refusal: Refusal) -> int:
    """Return the tokens of the longest reply that a request asked for, or 0 without a limit."""
    sent = refusal.attempt.parameters
    return next((sent[name] for name in REPLY_LIMITS if isinstance(sent.get(name), int)), 0)


def _parameter(refusal: Refusal) -> Changes | None:
    name = _named(refusal)
    if name is None:
        return None
    other = _RENAMED.get(name)
    if other is not None and other in refusal.words:
        return {"renamed": {**refusal.facts.renamed, name: other}}
    return _dropped(refusal, name)


def _named(refusal: Refusal) -> str | None:
    """Return the parameter that a refusal is about."""
    sent, words, parameter = refusal.attempt.parameters, refusal.words, refusal.parameter
    candidates = [name for name in sent if name not in KEPT]
    for name in NESTED:
        parts = sent.get(name)
        candidates += [f"{name}.{part}" for part in parts] if isinstance(parts, dict) else []
    for name in (parameter, parameter.partition(".")[0]):
        if name in candidates:
            return name
    found = [
        (match.start(), -len(name), name)
        for name in candidates
        if (match := re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", words))
    ]
    if not found:
        return None
    # Of two that exclude each other the first, such as the temperature, is the one to keep.
    return max(found)[2] if "cannot both" in words else min(found)[2]


def _reply_room(refusal: Refusal) -> Changes | None:
    counts = _ROOM.search(refusal.text)
    if counts is None or (counts["sum"] and "max_tokens" not in refusal.words):
        return None
    window, prompt = counts["sum"] or counts["length"], counts["prompt"] or counts["input"]
    room = int(window) - int(prompt)
    return {"reply_room": room} if _FEWEST <= room < _asked_reply(refusal) else None


def _history(refusal: Refusal) -> Changes | None:
    sent, past, words = refusal.attempt.facts.history, refusal.attempt.past, refusal.words
    if refusal.facts.history != sent:
        return {}  # another call was faster
    if _ROLE_ORDER.search(words) and not sent.has_bridges:
        return {"history": replace(sent, has_bridges=True)}
    named = frozenset(name for name, pattern in _STAND_INS.items() if pattern.search(words))
    is_missed = bool(_MISSED.search(words)) and not _UNWANTED_RECORD.search(words)
    has_bare_calls = any(m.get("tool_calls") and "record" not in m for m in past)
    if is_missed and named - sent.stand_ins and has_bare_calls:
        return {"history": replace(sent, stand_ins=sent.stand_ins | named)}
    if _RECORD.search(words) and any("record" in message for message in past):
        kept = sent.stand_ins | named if is_missed else sent.stand_ins - named
        return {"history": replace(sent, has_records=False, stand_ins=kept)}
    return None


IMAGE_RULES = (
    Rule((*REFUSING, 413, 415), IMAGES, _one_image, is_kept=False),
    Rule((*REFUSING, 413, 415), IMAGES, _images),
)
RULES = (
    Rule(REFUSING, _NO_SYSTEM, partial(_dropped, name=SYSTEM)),
    Rule(_INVALID, _STRICT, _strict),
    Rule((400, 422, 500, 501), _FORMAT, _format),
    Rule(_INVALID, EFFORT_WITH_TOOLS, _effort_with_tools),
    Rule(_INVALID, _EFFORT, _effort),
    Rule(_INVALID, _LONGEST_REPLY, _longest_reply),
    Rule(_INVALID, _UNWANTED, _parameter),
    Rule(_INVALID, _ROOM, _reply_room, is_kept=False),
    Rule(REFUSING, _HISTORY, _history, is_kept=False),
)
