"""The space of a rule-based proposer: parameters, first attempts, and writers of attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from taskweaver.treesearch.embedded.needs import Needs

Values = Mapping[str, Any]


class PlanWriter(Protocol):
    """A writer of the ``phase_artifacts`` of values.

    They measure themselves, unless the run has an evaluator, which expects them in its form.
    """

    def __call__(self, values: Values, /, *, has_evaluator: bool) -> dict[str, Any]:
        """Return the artifacts."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that can be chosen.

    Attributes:
        name: Its name.
        values: Its values; of numbers in order, the plainest first.
        is_tuned: Whether it is a number to tune, rather than a part of the method.
        applies: Whether it means anything with the other values.
    """

    name: str
    values: tuple[Any, ...]
    is_tuned: bool = False
    applies: Callable[[Values], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Space:
    """Space of the attempts at an idea.

    Attributes:
        name: Its name in ideas.
        parameters: Its parameters, the most promising first.
        drafts: First attempts.
        write: Writes the phase plan of values.
        script: Writes one script of values; None where a script cannot do it.
        repair: Returns values that avoid an error, from the values and the error's text.
        needs: Packages and programs of its attempts.
    """

    name: str
    parameters: Sequence[Parameter]
    drafts: Sequence[Values]
    write: PlanWriter
    script: Callable[[Values], str] | None
    repair: Callable[[Values, str], Values]
    needs: Needs
