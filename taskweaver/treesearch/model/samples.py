"""Measurements of one program as a sample: mean, spread, standard error, and differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from taskweaver.treesearch.model.metric import Objective

CLEAR_ERRORS = 2.0
"""Standard errors from which on a difference is no noise."""
_EQUAL = 1e-9
"""Spread, relative to the values, up to which measurements count as equal."""
_MOST_SQUARES = 1e150
"""Largest sum of squares of a program; shares of a mean near zero may be of any size."""


@dataclass(frozen=True, slots=True)
class MeasurementNoise:
    """Noise of a run's measurements, pooled over the programs that were measured repeatedly.

    Attributes:
        deviation: Standard deviation of one measurement; a share of the mean where it is relative.
        freedom: Degrees of freedom it rests on, from 1.
        is_relative: Whether it grows with the mean, as that of times and rates does.
    """

    deviation: float
    freedom: int
    is_relative: bool = False

    def at(self, mean: float) -> float:
        """Return the standard deviation of a measurement of so large a mean."""
        return self.deviation * abs(mean) if self.is_relative else self.deviation


@dataclass(frozen=True, slots=True)
class Samples:
    """Measurements of one program, in the order of the nodes, with the noise of its run.

    Attributes:
        values: The measurements that worked.
        failed: Number of repetitions that did not.
        noise: Noise of the run; None while no program was measured repeatedly.
    """

    values: tuple[float, ...]
    failed: int = 0
    noise: MeasurementNoise | None = None

    @property
    def n(self) -> int:
        """Number of measurements that worked."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Their mean; None without values."""
        return fmean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """Their sample standard deviation; None with fewer than two."""
        return stdev(self.values) if self.n > 1 else None

    @property
    def is_deterministic(self) -> bool:
        """Whether repetitions gave the very same value, and none failed.

        In a run whose measurements scatter, two values may be equal by chance, three hardly.
        """
        fewest = 3 if self.noise and self.noise.deviation else 2
        return self.n >= fewest and not self.failed and _are_equal(self.values)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; None where nothing is known about the noise.

        Two or three values may be close by chance: their spread is taken to be no smaller than the
        noise of the run, unless they are equal. A single value has the noise of the run.
        """
        if self.mean is None:
            return None
        if self.is_deterministic:
            return 0.0
        known = [self.noise.at(self.mean)] if self.noise else []
        known += [self.std] if self.std is not None else []
        return max(known) / math.sqrt(self.n) if known else None

    def text(self, objective: Objective) -> str:
        """Return mean, standard error and number as people read them."""
        if self.mean is None:
            return "none"
        error = self.standard_error if self.n > 1 else None
        text = f"{self.mean:z.5g}" if not error else with_error(self.mean, error)
        equal = ", all equal" if self.is_deterministic else ""
        return f"{text} {objective.unit}".strip() + f" (n = {self.n}{equal})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "mean": self.mean,
            "std": self.std,
            "standard_error": self.standard_error,
            "n": self.n,
            "values": list(self.values),
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Gain of one program over another, in the unit of the metric; below 0 for a worse one.

    Attributes:
        gain: Difference of the means.
        error: Its standard error; None where nothing is known about the noise.
    """

    gain: float
    error: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether it is larger than the noise; one without known noise is as it stands."""
        return bool(self.gain) and abs(self.gain) > CLEAR_ERRORS * (self.error or 0.0)


def difference(objective: Objective, after: Samples, before: Samples) -> Difference | None:
    """Return the gain of one program over another; None when one of them has no value."""
    if after.mean is None or before.mean is None:
        return None
    gain = after.mean - before.mean
    errors = after.standard_error, before.standard_error
    known = [error for error in errors if error is not None]
    error = math.hypot(*known) if len(known) == len(errors) else None
    return Difference(gain if objective.maximize else -gain, error)


def _are_equal(values: Sequence[float]) -> bool:
    """Return whether values differ by no more than the rounding of numbers."""
    return max(values) - min(values) <= _EQUAL * max(map(abs, values))


def with_error(value: float, error: float) -> str:
    """Return a value and its standard error, both to the second digit of the error."""
    if not math.isfinite(error) or not 1e-6 < error < 1e6:
        return f"{value:z.5g} ± {error:.2g}"
    digits = 1 - math.floor(math.log10(error))
    places = max(digits, 0)
    return f"{round(value, digits):z.{places}f} ± {round(error, digits):.{places}f}"


class NoisePool:
    """Noise of a run, kept up to date as programs are measured again."""

    def __init__(self, objective: Objective) -> None:
        self._is_relative = objective.is_timed
        self._parts: dict[str, tuple[float, int]] = {}
        self._squares = 0.0
        self._freedom = 0

    def put(self, program: str, values: Iterable[float]) -> None:
        """Take all measurements of a program, instead of those that were known of it."""
        squares, freedom = self._part(tuple(values))
        before = self._parts.pop(program, (0.0, 0))
        if freedom:
            self._parts[program] = (squares, freedom)
        self._freedom += freedom - before[1]
        self._squares += squares - before[0]

    def _part(self, values: tuple[float, ...]) -> tuple[float, int]:
        if len(values) < 2 or _are_equal(values):
            return 0.0, max(len(values) - 1, 0)
        mean = fmean(values)
        scale = abs(mean) if self._is_relative else 1.0
        apart = [(value - mean) / scale for value in values] if scale else []
        return min(sum(one * one for one in apart), _MOST_SQUARES), len(values) - 1

    @property
    def noise(self) -> MeasurementNoise | None:
        """The noise; None while no program was measured repeatedly."""
        if not self._freedom:
            return None
        deviation = math.sqrt(max(self._squares, 0.0) / self._freedom)
        return MeasurementNoise(deviation, self._freedom, self._is_relative)
