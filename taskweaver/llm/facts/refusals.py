"""Windows that endpoints name when they refuse a prompt that is too long."""

from __future__ import annotations

import re
from typing import Any

from taskweaver.llm.facts.model_facts import group, tokens_of

_SMALLEST = 512
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{3,9})\b"
_NAMED = re.compile(
    rf"(?:maximum|max)[ _](?:context|prompt|model)[ _]length (?:is|of) {_NUMBER}"
    rf"|context (?:length|window|size)(?: of| is|:)?(?: only)? \(?{_NUMBER}"
    rf"|{_NUMBER} (?:tokens )?maximum context length"
    rf"|number of tokens allowed \(?{_NUMBER}"
    rf"|token limit: {_NUMBER}|n_ctx\W{{1,4}}{_NUMBER}|\[\d, ?{_NUMBER}\]|(?:>|<=) {_NUMBER}",
    re.IGNORECASE,
)


def refused_window(words: str, body: Any = None) -> int:
    """Return the window that a refusal names; 0 if it names none.

    Args:
        words: The endpoint's explanation.
        body: The error as it came, decoded.
    """
    own = tokens_of(group(body, "n_ctx")) or tokens_of(group(group(body, "error"), "n_ctx"))
    found = _NAMED.search(words)
    named = next(filter(None, found.groups()), "") if found else ""
    window = own or tokens_of(named.replace(",", ""))
    return window if window >= _SMALLEST else 0
