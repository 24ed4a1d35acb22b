"""The answer of a round, with the outcomes its numbers came from.

The check of an answer writes an attachment of type ``answer_check`` on the final post; this module
is its form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from taskweaver.memory.forms.suggestions import NO_SUGGESTIONS, Suggestions


@dataclass(frozen=True, slots=True)
class Evidence:
    """The place a number of an answer came from.

    Attributes:
        text: The number as the answer writes it.
        value: The value found, as a number.
        post_id: The post of the cell; for a number the user named, their post or round.
        cell: Number of the cell among those that ran in the conversation, from 1; 0 for none.
        where: Part of the outcome: ``Result``, ``Output``, ``Variables``, ``Code``, ``message``,
            or ``Listing`` for what stood in the prompt.
        line: Line in that part, from 1.
        original: That line.
    """

    text: str
    value: float
    post_id: str
    cell: int
    where: str
    line: int
    original: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build one from its wire form.

        Raises:
            KeyError, TypeError, ValueError: If the form is not that of an evidence.
        """
        value = data["value"]
        return cls(
            text=str(data["text"]),
            value=value if isinstance(value, int) else float(value),
            post_id=str(data["post_id"]),
            cell=int(data["cell"]),
            where=str(data["where"]),
            line=int(data["line"]),
            original=str(data["original"]),
        )


@dataclass(frozen=True, slots=True)
class RoundAnswer:
    """The answer of a round.

    Attributes:
        text: The message to the user; empty if the round has none.
        evidence: The place each number came from, in the order of the answer.
        unsupported_numbers: Numbers that stand in no outcome, as the answer writes them.
        is_checked: Whether the answer was checked; without a check both lists are empty.
        suggestions: Requests that it offers, and notes on how the request was read.
    """

    text: str
    evidence: tuple[Evidence, ...] = ()
    unsupported_numbers: tuple[str, ...] = ()
    is_checked: bool = False
    suggestions: Suggestions = NO_SUGGESTIONS

    def finding(self) -> dict[str, Any]:
        """Return the result of the check as plain data."""
        return {
            "evidence": [asdict(item) for item in self.evidence],
            "unsupported_numbers": list(self.unsupported_numbers),
        }

    @classmethod
    def from_finding(cls, text: str, finding: object) -> Self:
        """Build an answer from its message and the result of its check.

        A result that is not readable counts as no check.
        """
        if not isinstance(finding, Mapping):
            return cls(text)
        try:
            found = tuple(map(Evidence.from_dict, _list(finding["evidence"])))
            unsupported = tuple(map(str, _list(finding["unsupported_numbers"])))
        except (KeyError, TypeError, ValueError):
            return cls(text)
        return cls(text, found, unsupported, is_checked=True)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is no list")
    return value
