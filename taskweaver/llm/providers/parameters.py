"""Parameters of a request, and a memory of those a model rejects.

Endpoints reject parameters by model (``max_tokens``, ``temperature``, ``stop`` ...). A rejected
parameter is renamed or left out from then on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from taskweaver.llm.facts.learnt import LearntFacts, LearntModel

_RENAMED = {"max_tokens": "max_completion_tokens"}
_KEPT = frozenset({"model", "messages", "stream", "tools", "tool_choice"})
"""Never left out: without tools the model would answer in a form that nothing reads."""

_LONGEST_REPLY = re.compile(
    r"max_tokens`?: \d+ > (\d+)|at most (\d+) (?:completion|output) tokens"
    r"|max_tokens\b[^.]{0,40}\[\d+, ?(\d+)\]",
    re.IGNORECASE,
)
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens")
_UNWANTED = re.compile(
    r"unsupported|not supported|not (?:yet )?support|unrecogni[sz]ed|unknown|unexpected|deprecated"
    r"|not permitted|not allowed|not available|extra (?:inputs?|fields?)|only the default"
    r"|cannot both be specified|may only be set|or unset when|cannot unmarshal",
    re.IGNORECASE,
)


class ParameterMemory:
    """Parameters a model rejects; thread-safe."""

    def __init__(self, learnt: LearntModel | None = None) -> None:
        """Begin with the parameters that were rejected in earlier sessions.

        Args:
            learnt: Keeps them; None to keep none.
        """
        known = learnt.known if learnt else LearntFacts()
        self._lock = threading.Lock()
        self._learnt = learnt
        self._dropped = {*known.dropped} - _KEPT
        self._renamed = {
            name: other for name, other in known.renamed.items() if _RENAMED.get(name) == other
        }
        self._longest_reply = known.longest_reply or None

    def apply(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters the model takes, under the names it takes."""
        with self._lock:
            named = {self._renamed.get(name, name): value for name, value in parameters.items()}
            for name in _REPLY_LIMITS:
                if named.get(name) is not None and self._longest_reply is not None:
                    named[name] = min(named[name], self._longest_reply)
            return {name: value for name, value in named.items() if name not in self._dropped}

    def learn(self, sent: Mapping[str, Any], words: str, parameter: str = "") -> str | None:
        """Remember the parameter that a rejection is about.

        Args:
            sent: The parameters of the rejected request.
            words: The endpoint's message.
            parameter: The parameter it named, if its error has a place for that.

        Returns:
            The parameter that will not be sent again under this name; None when the rejection
            is about something else, and asking again would fail again.
        """
        limited = self._learn_limit(sent, words)
        if limited is not None:
            return limited
        if not _UNWANTED.search(words):
            return None
        name = _named(sent, words, parameter.partition(".")[0])
        if name is None:
            return None
        with self._lock:
            other = _RENAMED.get(name)
            if other is not None and other in words:
                self._renamed[name] = other
            else:
                self._dropped.add(name)
        self._keep()
        return name

    def _learn_limit(self, sent: Mapping[str, Any], words: str) -> str | None:
        """Remember the longest reply that a rejection allows; return the parameter it is about."""
        found = _LONGEST_REPLY.search(words)
        name = next((name for name in _REPLY_LIMITS if isinstance(sent.get(name), int)), None)
        if found is None or name is None:
            return None
        longest = int(next(filter(None, found.groups())))
        if not 0 < longest < sent[name]:
            return None
        self._longest_reply = longest
        self._keep()
        return name

    def _keep(self) -> None:
        if self._learnt is not None:
            self._learnt.note(
                dropped=tuple(sorted(self._dropped)),
                renamed={**self._renamed},
                longest_reply=self._longest_reply or 0,
            )


def _named(sent: Mapping[str, Any], words: str, parameter: str) -> str | None:
    candidates = [name for name in sent if name not in _KEPT]
    if parameter in candidates:
        return parameter
    found = [
        (match.start(), name)
        for name in candidates
        if (match := re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", words))
    ]
    if not found:
        return None
    # Of two that exclude each other the first, such as the temperature, is the one to keep.
    return max(found)[1] if "cannot both" in words else min(found)[1]
