"""Parameters of a request, and a memory of those a model rejects.

Endpoints reject parameters by model (``max_tokens``, ``temperature``, ``stop`` ...). A rejected
parameter is renamed or left out from then on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from taskweaver.llm.facts.learnt import Experience, ModelExperience

_RENAMED = {"max_tokens": "max_completion_tokens"}
_KEPT = frozenset({"model", "messages", "stream", "tools", "tool_choice"})
"""Never left out: without tools the model would answer in a form that nothing reads."""

_UNWANTED = re.compile(
    r"unsupported|not supported|not (?:yet )?support|unrecogni[sz]ed|unknown|unexpected|deprecated"
    r"|not permitted|not allowed|not available|extra (?:inputs?|fields?)|only the default"
    r"|cannot unmarshal",
    re.IGNORECASE,
)


class ParameterMemory:
    """Parameters a model rejects; thread-safe."""

    def __init__(self, experience: ModelExperience | None = None) -> None:
        """Begin with the parameters that were rejected in earlier sessions.

        Args:
            experience: Keeps them; None to keep none.
        """
        known = experience.known if experience else Experience()
        self._lock = threading.Lock()
        self._experience = experience
        self._dropped = {*known.dropped} - _KEPT
        self._renamed = {
            name: other for name, other in known.renamed.items() if _RENAMED.get(name) == other
        }

    def apply(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters the model takes, under the names it takes."""
        with self._lock:
            named = {self._renamed.get(name, name): value for name, value in parameters.items()}
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

    def _keep(self) -> None:
        if self._experience is not None:
            self._experience.note(
                dropped=tuple(sorted(self._dropped)),
                renamed={**self._renamed},
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
    return min(found)[1] if found else None
