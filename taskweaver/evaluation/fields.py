"""Fields of a mapping in a file of cases: typed, and each of them known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from taskweaver.evaluation.errors import EvaluationError

T = TypeVar("T")


def nearest(name: str, known: Collection[str]) -> str:
    """Return a hint at the known name most like another one, or the list of them."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(sorted(known))}."


class CaseFields:
    """A mapping of a file of cases.

    Attributes:
        place: The file and the place in it, for errors.
        data: The mapping.
    """

    def __init__(self, data: object, place: str, known: Collection[str] | None = None) -> None:
        """Check the form of the mapping.

        Args:
            data: A value of the file.
            place: The file and the place in it.
            known: Names that are read; None for any.

        Raises:
            EvaluationError: If it is no mapping, or has a name that is not known.
        """
        self.place = place
        if not isinstance(data, Mapping):
            raise EvaluationError(place, f"is {_kind(data)}, not a mapping of names to values.")
        self.data: Mapping[str, Any] = {str(name): value for name, value in data.items()}
        for name in self.data if known is not None else ():
            if known is not None and name not in known:
                raise EvaluationError(place, f"{name!r} is not known; {nearest(name, known)}")

    def error(self, name: str, problem: str) -> EvaluationError:
        """Return an error about a field."""
        return EvaluationError(self.place, f"{name} {problem}")

    def _typed(self, name: str, types: type[T] | tuple[type, ...], default: T, words: str) -> T:
        value = self.data.get(name)
        if value is None:
            return default
        is_odd_flag = isinstance(value, bool) and types is not bool
        if not isinstance(value, types) or is_odd_flag:
            raise self.error(name, f"is {_kind(value)}, not {words}.")
        return value  # type: ignore[return-value]

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text.

        Raises:
            EvaluationError: If it is none, or is missing and has no default.
        """
        if default is None and not str(self.data.get(name) or "").strip():
            raise self.error(name, "is missing.")
        return self._typed(name, str, default or "", "a text")

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        return float(self._typed(name, (int, float), default, "a number"))

    def flag(self, name: str) -> bool:
        """Return a flag; False if it is missing."""
        return self._typed(name, bool, False, "true or false")

    def items(self, name: str) -> list[Any]:
        """Return a list; empty if it is missing."""
        return list(self._typed(name, (list,), [], "a list"))

    def texts(self, name: str) -> list[str]:
        """Return a list of texts; one text is a list of its own."""
        value = self.data.get(name)
        found = [value] if isinstance(value, str) else self.items(name)
        if not all(isinstance(item, str) for item in found):
            raise self.error(name, "is not a list of texts.")
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a mapping; empty if it is missing."""
        value: dict[Any, Any] = self._typed(name, (dict,), {}, "a mapping")
        return {str(key): item for key, item in value.items()}


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), f"{value!r}")
