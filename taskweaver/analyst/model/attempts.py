"""Answers about an attempt of a search, in a chat that continues from one.

The tree search writes each attempt as a round of the conversation: the request names it, the plan
is the Planner's, a report holds the results of its phases, and the last message its metric.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from taskweaver.analyst.model.conversation import PromptMessage
from taskweaver.utils.text import fenced, shorten

_ATTEMPT = re.compile(r"^Attempt (?P<id>n\d+): (?P<origin>.+)\.\Z", re.MULTILINE)
_PLAN_CHARS, _REPORT_CHARS = 600, 1_500
_MOST_EARLIER = 8
_MODEL = (
    "This stands in the attempt's conversation. I am the built-in offline analyst: rules, not a"
    " language model. I can also list its files (`list the files`) and compute over tables."
    " Other questions need a real model: set `LLM_API_KEY`, or `LLM_API_TYPE=ollama` for a local"
    " one; see 'Which model answers' in the documentation."
)


def attempt_text(messages: Sequence[PromptMessage]) -> str:
    """Return plan, result and files of the newest attempt, and the way to it; empty for none."""
    starts = [at for at, item in enumerate(messages) if item.sender in {"User", ""}]
    rounds = [
        messages[at:end] for at, end in zip(starts, [*starts[1:], len(messages)], strict=True)
    ]
    attempts = [(match, round_) for round_ in rounds if (match := _ATTEMPT.search(round_[0].text))]
    if not attempts:
        return ""
    match, last = attempts[-1]
    parts = [f"{match['id']} is an attempt of a search: {match['origin']}."]
    parts += [f"Its plan: {_plan(last)}", f"What came of it: {_outcome(last)}"]
    reports = [item.text for item in last if item.sender not in {"User", "", "me"}]
    parts += [fenced(shorten(report.strip(), _REPORT_CHARS), "text") for report in reports[-1:]]
    earlier = [
        f"- {match['id']} ({match['origin']}): {_plan(round_)} {_outcome(round_)}"
        for match, round_ in attempts[:-1]
    ]
    if earlier:
        parts.append("\n".join(["The way to it:", *earlier[-_MOST_EARLIER:]]))
    return "\n\n".join([*parts, _MODEL])


def _plan(round_: Sequence[PromptMessage]) -> str:
    plans = (item.fields.get("plan", "") for item in round_)
    return shorten(" ".join(next(filter(None, plans), "none is known.").split()), _PLAN_CHARS)


def _outcome(round_: Sequence[PromptMessage]) -> str:
    last = [item for item in round_ if item.fields.get("send_to") == "User"]
    return last[-1].fields.get("message", "").strip() if last else "it did not end."
