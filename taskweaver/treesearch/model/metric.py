"""The metric a search optimises, and the measurement of a node."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

_TIMED_NAME = re.compile(
    r"\b(?:run|wall|cpu|elapsed|execution)?[ _-]?time\b|\blatency|\bduration|\bseconds\b|\bspeed"
    r"|throughput|bandwidth|flops?\b|\bper[ _](?:second|minute|hour)|\b(?:fps|qps|iops)\b|/s\b",
    re.IGNORECASE,
)
_NO_TIME = re.compile(r"error|loss|accuracy|score|rmse|\bma[ep]|\bmse\b", re.IGNORECASE)
_TIMED_UNIT = re.compile(
    r"(?:[munμ\u00b5]?s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|k?hz|fps|[kmgtp]?flops?)|.*/(?:s|sec|min|h)",
    re.IGNORECASE,
)

LARGEST = 1e70
"""Largest size of a value that counts: squares, and squares of shares of it, stay numbers."""
USED_BY_OTHERS = "CPUs used by other processes"
"""Name of a detail of timed measurements, which is left out where it is small."""


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric a run optimises; fixed when it starts.

    Attributes:
        name: Name of the metric.
        maximize: Whether more is better.
        unit: Its unit; empty for none.
    """

    name: str = "score"
    maximize: bool = True
    unit: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it is a time or a rate: it depends on the load of the machine."""
        if _TIMED_UNIT.fullmatch(self.unit.strip()):
            return True
        return bool(_TIMED_NAME.search(self.name)) and not _NO_TIME.search(self.name)

    def text(self, value: float | None) -> str:
        """Return a value as people read it."""
        if value is None:
            return "none"
        return f"{value:z.5g} {self.unit}".strip()

    def is_better(self, one: Measurement | None, other: Measurement | None) -> bool:
        """Return whether `one` is truly better than `other`."""
        return self.rank(one) > self.rank(other)

    def rank(self, measurement: Measurement | None) -> float:
        """Return a number that is higher for a better value; a missing one is the worst.

        A total order: neither NaN nor a value beyond `LARGEST` ever counts as a result.
        """
        value = measurement.value if measurement else None
        if value is None:
            return -math.inf
        return value if self.maximize else -value


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurement of a node, in the unit of the run's objective.

    Attributes:
        values: Value per data set.
        details: Further figures, which are shown and never compared.
    """

    values: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The mean over the data sets; None when there is none, or one of them does not count."""
        numbers = [float(value) for value in self.values.values()]
        if not numbers or not all(abs(number) <= LARGEST for number in numbers):  # nor NaN
            return None
        return math.fsum(numbers) / len(numbers)

    def over(self, datasets: Collection[str]) -> Measurement:
        """Return it with the values of some data sets alone; those of others become details."""
        further = {name: value for name, value in self.values.items() if name not in datasets}
        if not further:
            return self
        values = {name: value for name, value in self.values.items() if name in datasets}
        return Measurement(values, {**self.details, "further data sets": further})

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"values": dict(self.values), "details": dict(self.details)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the measurement of plain data."""
        return cls(dict(data["values"]), dict(data.get("details", {})))
