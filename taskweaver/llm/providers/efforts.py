"""Memory of the efforts of reasoning that a model refuses.

An endpoint may refuse the parameter, one of its values, or any effort beside tools.
"""

from __future__ import annotations

import re
import threading
from typing import get_args

from taskweaver.llm.facts.learnt import LearntFacts, LearntModel
from taskweaver.llm.types import Effort

EFFORTS: tuple[Effort, ...] = get_args(Effort)

_WITH_TOOLS = re.compile(r"tools with `?reasoning_effort`? are not supported", re.IGNORECASE)
_ABOUT_EFFORT = re.compile(
    r"(?:reasoning[_. ]?|\b)effort\b|\b(?:think|reasoning) value"
    r"|not (?:yet )?support\w* (?:thinking|reasoning)\b(?![_ ](?:content|blocks?))",
    re.IGNORECASE,
)
_LISTED = re.compile(rf"['\"`]({'|'.join(EFFORTS)})['\"`]")


def is_about_effort_with_tools(words: str) -> bool:
    """Return whether a rejection says that the model takes tools only while it does not reason."""
    return bool(_WITH_TOOLS.search(words))


class EffortMemory:
    """Efforts that a model refuses, each with its substitute; thread-safe."""

    def __init__(self, learnt: LearntModel | None = None) -> None:
        """Begin with the efforts that were refused in earlier sessions.

        Args:
            learnt: Keeps them; None to keep none.
        """
        known = learnt.known if learnt else LearntFacts()
        self._lock = threading.Lock()
        self._learnt = learnt
        self._is_refused_with_tools = known.is_effort_refused
        self._substitutes: dict[Effort, Effort | None] = {
            effort: next((other for other in EFFORTS if other == known.efforts[effort]), None)
            for effort in EFFORTS
            if known.efforts.get(effort, effort) != effort
        }

    def allowed(self, effort: Effort | None, *, has_tools: bool) -> Effort | None:
        """Return the effort to send for a wanted one; None for no effort.

        Args:
            effort: The wanted effort; None leaves it to the endpoint.
            has_tools: Whether the request has tools.
        """
        with self._lock:
            if has_tools and self._is_refused_with_tools:
                return "none"
            while effort in self._substitutes:
                effort = self._substitutes[effort]
            return effort

    def learn(self, sent: Effort | None, words: str, *, has_tools: bool) -> bool:
        """Remember a rejection; return whether it is about the effort and was not known.

        Args:
            sent: The effort of the rejected request; None for none.
            words: The endpoint's message, with the name of the parameter.
            has_tools: Whether the request had tools.
        """
        with self._lock:
            if has_tools and is_about_effort_with_tools(words):
                self._is_refused_with_tools = True
                self._keep()
                return sent != "none"
            if sent is None or not _ABOUT_EFFORT.search(words):
                return False
            self._substitutes[sent] = self._nearest(sent, words)
            self._keep()
            return True

    def _keep(self) -> None:
        if self._learnt is not None:
            self._learnt.note(
                is_effort_refused=self._is_refused_with_tools,
                efforts={name: other or "" for name, other in self._substitutes.items()},
            )

    def _nearest(self, refused: Effort, words: str) -> Effort | None:
        """Return the nearest effort that a rejection lists; None where it lists none.

        Without reasoning is no substitute for an effort.
        """
        listed = set(_LISTED.findall(words)) - {refused, "none", *self._substitutes}
        at = EFFORTS.index(refused)
        found = sorted(
            (abs(place - at), place) for place, name in enumerate(EFFORTS) if name in listed
        )
        return EFFORTS[found[0][1]] if found else None
