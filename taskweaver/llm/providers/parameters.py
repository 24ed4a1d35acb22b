"""Parameters of a request, and a memory of those a model rejects.

Endpoints reject parameters by model (``max_tokens``, ``temperature``, ``stop`` ...). A rejected
parameter is renamed or left out from then on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Set
from typing import Any

from taskweaver.llm.facts.learnt import LearntFacts, LearntModel

_RENAMED = {"max_tokens": "max_completion_tokens"}
_KEPT = frozenset({"model", "messages", "input", "stream", "tools", "tool_choice"})
"""Never left out: without tools the model would answer in a form that nothing reads."""

_LONGEST_REPLY = re.compile(
    r"max_tokens`?: \d+ > (\d+)|at most (\d+) (?:completion|output) tokens"
    r"|max_tokens\b[^.]{0,40}\[\d+, ?(\d+)\]|max_output_tokens\b[^<]{0,80}<= ?(\d+)",
    re.IGNORECASE,
)
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

_NESTED = ("reasoning",)
"""Parameters whose parts are refused one by one."""

_STRICT = re.compile(r"(?<![a-z_])strict(?![a-z_])")
_UNWANTED = re.compile(
    r"unsupported|not supported|not (?:yet )?support|unrecogni[sz]ed|unknown|unexpected|deprecated"
    r"|not permitted|not allowed|not available|extra (?:inputs?|fields?)|only the default"
    r"|cannot both be specified|may only be set|or unset when|cannot unmarshal",
    re.IGNORECASE,
)


_NO_SYSTEM = re.compile(
    r"\bsystem['\"`]?[ _](?:role|message|prompt)s?\b[^.]{0,60}\bnot\b|\broles must alternate user"
    r"|not (?:yet )?(?:support|allow|accept)\w* (?:the |a )?(?:role )?['\"`]?(?:system|developer)\b"
    r"|only (?:support\w* )?(?:the )?['\"`]?user['\"`]?,? (?:and|or) ['\"`]?(?:assistant|model)\b",
    re.IGNORECASE,
)
_SYSTEM = "system"


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
            kept = {name: value for name, value in named.items() if name not in self._dropped}
            for name in _NESTED:
                if isinstance(kept.get(name), dict):
                    kept[name] = _without(kept[name], name, self._dropped)
            return _lax(kept) if "strict" in self._dropped else kept

    @property
    def has_system(self) -> bool:
        """Whether the model takes messages of the role ``system``."""
        return _SYSTEM not in self._dropped

    def learn_system(self, words: str) -> bool:
        """Remember that no such message is taken; return whether that is new."""
        if not self.has_system or not _NO_SYSTEM.search(words):
            return False
        with self._lock:
            self._dropped.add(_SYSTEM)
        self._keep()
        return True

    def learn_strict(self, sent: Mapping[str, Any], words: str) -> bool:
        """Remember that ``strict`` of tools and schemas is refused; return whether that is new.

        Args:
            sent: The parameters of the rejected request.
            words: The endpoint's message, with the name of the parameter.
        """
        if not _UNWANTED.search(words) or not _STRICT.search(words) or _lax(sent) == sent:
            return False
        with self._lock:
            self._dropped.add("strict")
        return True

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
        name = _named(sent, words, parameter)
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
    for name in _NESTED:
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


def _without(parts: Mapping[str, Any], name: str, dropped: Set[str]) -> dict[str, Any] | None:
    """Return the parts of a parameter that are not dropped; None for none."""
    kept = {part: value for part, value in parts.items() if f"{name}.{part}" not in dropped}
    return kept or None


def _lax(value: Any) -> Any:
    """Return parameters whose tools and reply's schema are without ``strict``."""
    found = dict(value)
    for name in ("tools", "response_format", "text"):
        if name in found:
            found[name] = _without_strict(found[name])
    return found


def _without_strict(value: Any) -> Any:
    """Return a tool or a format without ``strict``; schemas stay as they are."""
    if isinstance(value, list):
        return [_without_strict(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_strict(item) if name in ("function", "json_schema", "format") else item
        for name, item in value.items()
        if name != "strict"
    }
