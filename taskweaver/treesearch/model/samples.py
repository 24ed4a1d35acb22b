"""Measurements of programs in blocks: a measurement has a program and a seed.

A seed is common to all programs that are measured with it: an evaluator may draw its data by the
seed. The model is the two-way analysis of variance without interaction (Fisher's randomised
blocks), ``value = program + seed + residual``. Programs are compared by their paired differences
over common seeds, whose seed effects cancel. The residual variance is pooled over all programs of
the run that were measured repeatedly, from a least squares fit of the unbalanced table, and the
quantiles are those of Student's t with the degrees of freedom of that fit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any

from taskweaver.treesearch.model.node import Objective

_LEVEL = 0.05
"""Share of runs in which noise may be called a difference, and share outside of an interval."""
_EQUAL = 1e-9
"""Spread, relative to the values, up to which measurements count as equal."""
_LARGEST_SHARE = 1e70
"""Largest deviation that counts; shares of a mean near zero may be of any size."""
_SINGULAR = 1e-9
"""Size of a pivot that is no more than rounding."""
_MOST_FREEDOM = 200
"""Degrees of freedom from which on t is as good as normal."""


@dataclass(frozen=True, slots=True)
class MeasurementNoise:
    """Noise of a run's measurements, pooled over the programs that were measured repeatedly.

    Attributes:
        deviation: Standard deviation of one measurement of a program, whatever its seed; a share
            of the mean where it is relative.
        freedom: Degrees of freedom of the deviation, from 1.
        is_relative: Whether noise grows with the mean, as that of times and rates does.
        residual: Standard deviation beside program and seed; None while it is unknown, since no
            two programs share two seeds.
        residual_freedom: Degrees of freedom of the residual.
        effects: Estimated effect of each seed, drawn towards 0 as far as it may be chance.
        programs: Number of programs that were measured.
    """

    deviation: float
    freedom: int
    is_relative: bool = False
    residual: float | None = None
    residual_freedom: int = 0
    effects: Mapping[int, float] = field(default_factory=dict)
    programs: int = 2

    @property
    def single(self) -> float:
        """Standard deviation of one measurement among others with its seed, as far as known."""
        return self.deviation if self.residual is None else self.residual

    @property
    def single_freedom(self) -> int:
        """Degrees of freedom of `single`."""
        return self.freedom if self.residual is None else self.residual_freedom

    def at(self, mean: float, deviation: float) -> float:
        """Return a deviation in the unit of the metric, at a mean."""
        return deviation * abs(mean) if self.is_relative else deviation

    def without_seed(self, value: float, seed: int) -> float:
        """Return a measurement without the effect of its seed."""
        effect = self.effects.get(seed, 0.0)
        if self.is_relative:
            return value / max(1 + math.copysign(effect, effect * (value or 1.0)), 0.1)
        return value - effect


@dataclass(frozen=True, slots=True)
class Samples:
    """Measurements of one program, in the order of the nodes, with the noise of its run.

    Attributes:
        values: The measurements that worked.
        failed: Number of those that did not.
        noise: Noise of the run; None while no program was measured repeatedly.
        seeds: Seed of each measurement; counted from 0 where they are not known.
    """

    values: tuple[float, ...]
    failed: int = 0
    noise: MeasurementNoise | None = None
    seeds: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Number of measurements that worked."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Mean of the measurements, None without values."""
        return fmean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation of the measurements, None with fewer than two."""
        return stdev(self.values) if self.n > 1 else None

    @property
    def cells(self) -> list[tuple[int, float]]:
        """Measurements with their seeds."""
        return list(zip(self.seeds or range(self.n), self.values, strict=True))

    @property
    def by_seed(self) -> dict[int, list[float]]:
        """Measurements of each seed."""
        found = defaultdict[int, list[float]](list)
        for seed, value in self.cells:
            found[seed].append(value)
        return found

    @property
    def comparable(self) -> tuple[float, ...]:
        """The measurements without the effects of their seeds: those of others compare to them."""
        if self.noise is None:
            return self.values
        return tuple(self.noise.without_seed(value, seed) for seed, value in self.cells)

    @property
    def is_deterministic(self) -> bool:
        """Whether repetitions gave the very same value, and none failed.

        In a run whose measurements scatter, two values may be equal by chance, three hardly.
        """
        fewest = 3 if self.noise and self.noise.deviation else 2
        return self.n >= fewest and not self.failed and _are_equal(self.values)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean, None where nothing is known about the noise.

        Two or three values may be close by chance: their spread is taken to be no smaller than the
        noise of the run, unless they are equal. A single value has the noise of the run.
        """
        if self.mean is None:
            return None
        if self.is_deterministic:
            return 0.0
        known = [self.noise.at(self.mean, self.noise.deviation)] if self.noise else []
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
        """Return the sample as plain data."""
        return {
            "mean": self.mean,
            "std": self.std,
            "standard_error": self.standard_error,
            "n": self.n,
            "values": list(self.values),
            "seeds": list(self.seeds),
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Gain of one program over another, in the unit of the metric, below 0 for a worse one.

    Attributes:
        gain: Mean of the paired differences over common seeds.
        error: Its standard error; None where nothing is known about the noise.
        pairs: Number of common seeds.
        freedom: Degrees of freedom of the error.
        comparisons: Number of comparisons that the run makes, which all together shall call noise
            a difference in one of twenty runs (Bonferroni).
    """

    gain: float
    error: float | None = None
    pairs: int = 1
    freedom: int = _MOST_FREEDOM
    comparisons: int = 1

    @property
    def is_clear(self) -> bool:
        """Whether it is larger than the noise. One without known noise is as it stands."""
        return abs(self.gain) > self._margin(self.comparisons)

    @property
    def is_likely(self) -> bool:
        """Whether 0 is outside of the interval of this one comparison."""
        return abs(self.gain) > self._margin()

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends of the 95 % interval, None where nothing is known about the noise."""
        if self.error is None:
            return None
        return self.gain - self._margin(), self.gain + self._margin()

    def _margin(self, comparisons: int = 1) -> float:
        return self.error * quantile(self.freedom, comparisons) if self.error else 0.0


def difference(objective: Objective, after: Samples, before: Samples) -> Difference | None:
    """Return the gain of one program over another, None when no seed measured both.

    The gain is the mean of the paired differences over common seeds. Its error is that of the
    run's residual, and no smaller than the spread of the pairs shows: a few pairs may be close by
    chance. While no two programs share two seeds, the residual is taken to be all the noise there
    is.
    """
    mine, theirs = after.by_seed, before.by_seed
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        return None
    gains = [fmean(mine[seed]) - fmean(theirs[seed]) for seed in common]
    largest = max(map(abs, (*after.values, *before.values)))
    gain = fmean(gains) if abs(fmean(gains)) > _EQUAL * largest else 0.0
    pairs, noise = len(common), after.noise
    errors = []
    if pairs > 1:
        is_same = max(gains) - min(gains) <= _EQUAL * largest
        errors.append(0.0 if is_same else stdev(gains) / math.sqrt(pairs))
    if noise is not None:
        sides = [[cells[seed] for seed in common] for cells in (mine, theirs)]
        errors.append(math.hypot(*(_mean_error(noise, side) for side in sides)))
    return Difference(
        gain if objective.maximize or not gain else -gain,
        max(errors) if errors else None,
        pairs,
        noise.single_freedom if noise is not None else max(pairs - 1, 1),
        max(noise.programs - 1, 1) if noise is not None else 1,
    )


def _mean_error(noise: MeasurementNoise, cells: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the mean of a program's cells."""
    single = noise.at(fmean(map(fmean, cells)), noise.single)
    return single * math.sqrt(math.fsum(1 / len(cell) for cell in cells)) / len(cells)


@cache
def quantile(freedom: int, comparisons: int = 1) -> float:
    """Return the factor of a standard error that noise exceeds in one of twenty cases.

    It is Student's two-sided quantile, of the level divided by the number of comparisons. The
    distribution of whole degrees of freedom is a finite sum (Abramowitz and Stegun 26.7.3, 26.7.4)
    of the angle whose tangent is ``t / sqrt(freedom)``.
    """
    freedom = min(freedom, _MOST_FREEDOM)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if _inside(angle, freedom) < 1 - _LEVEL / comparisons:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(low)


def _inside(angle: float, freedom: int) -> float:
    """Return the probability that t is smaller than that of an angle."""
    is_odd = freedom % 2
    term, total = (math.cos(angle) if is_odd else 1.0), 0.0
    for step in range(1 + is_odd, freedom, 2):
        total += term
        term *= step / (step + 1) * math.cos(angle) ** 2
    inside = math.sin(angle) * total
    return 2 / math.pi * (angle + inside) if is_odd else inside


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
    """Noise of a run, fitted anew when it is asked for after programs were measured again."""

    def __init__(self, objective: Objective) -> None:
        self._is_relative = objective.is_timed
        self._cells: dict[str, tuple[tuple[int, float], ...]] = {}
        self._noise: MeasurementNoise | None = None
        self._is_fitted = True

    def put(self, program: str, measured: Iterable[tuple[int, float]]) -> None:
        """Take all measurements of a program with their seeds, instead of those known of it."""
        before, cells = self._cells.get(program, ()), tuple(measured)
        if len(cells) > 1 or len(before) > 1:
            self._is_fitted = False
        if cells:
            self._cells[program] = cells
        else:
            self._cells.pop(program, None)

    @property
    def noise(self) -> MeasurementNoise | None:
        """The noise, None while no program was measured repeatedly."""
        if not self._is_fitted:
            self._noise, self._is_fitted = self._fit(), True
        if self._noise is not None and self._noise.programs != len(self._cells):
            self._noise = replace(self._noise, programs=len(self._cells))
        return self._noise

    def _fit(self) -> MeasurementNoise | None:
        """Fit seed effects to the programs that were measured repeatedly, None without them."""
        rows = [self._row(cells) for cells in self._cells.values() if len(cells) > 1]
        freedom = sum(len(row) - 1 for row in rows)
        if not freedom:
            return None
        effects, rank = _seed_effects(rows)
        squares = residual_squares = 0.0
        for row in rows:
            middle = fmean(effects[seed] for seed, _ in row)
            squares += sum(value**2 for _, value in row)
            residual_squares += sum((v - effects[seed] + middle) ** 2 for seed, v in row)
        left = freedom - rank
        is_exact = residual_squares <= _EQUAL**2 * squares
        variance = squares / freedom
        # With one degree of freedom no residual may be chance.
        residual = None if left < 1 + is_exact else 0.0 if is_exact else residual_squares / left
        kept: dict[int, float] = {}
        if residual is not None and variance > residual:  # else it is unknown, or no effect
            by_seed, counts = variance - residual, Counter(seed for row in rows for seed, _ in row)
            kept = {
                seed: effect * by_seed / (by_seed + residual / counts[seed])
                for seed, effect in effects.items()
            }
        deviation = None if residual is None else math.sqrt(residual)
        return MeasurementNoise(
            math.sqrt(variance), freedom, self._is_relative, deviation, max(left, 0), kept
        )

    def _row(self, cells: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Return measurements of a program as deviations from its mean, in shares of it or not."""
        values = [value for _, value in cells]
        mean = fmean(values)
        scale = abs(mean) if self._is_relative else 1.0
        if not scale or _are_equal(values):
            return [(seed, 0.0) for seed, _ in cells]
        return [
            (s, min(max((v - mean) / scale, -_LARGEST_SHARE), _LARGEST_SHARE)) for s, v in cells
        ]


def _seed_effects(rows: Sequence[Sequence[tuple[int, float]]]) -> tuple[dict[int, float], int]:
    """Return the least squares effects of seeds, whose mean is 0, and their number of freedoms.

    The rows are programs, whose own effects are taken out of the normal equations.
    """
    seeds = sorted({seed for row in rows for seed, _ in row})
    place = {seed: at for at, seed in enumerate(seeds)}
    matrix = [[0.0] * (len(seeds) + 1) for _ in seeds]
    for row in rows:
        for seed, value in row:
            line = matrix[place[seed]]
            line[place[seed]] += 1
            line[-1] += value
            for other, _ in row:
                line[place[other]] -= 1 / len(row)
    rank = 0
    for at in range(len(seeds)):  # Gauss and Jordan; seeds that others determine are left at 0
        if abs(matrix[at][at]) < _SINGULAR:
            continue
        rank += 1
        for line in matrix:
            if line is not matrix[at] and line[at]:
                factor = line[at] / matrix[at][at]
                line[:] = [a - factor * b for a, b in zip(line, matrix[at], strict=True)]
    found = [
        line[-1] / line[at] if abs(line[at]) >= _SINGULAR else 0.0 for at, line in enumerate(matrix)
    ]
    middle = fmean(found)
    return {seed: found[place[seed]] - middle for seed in seeds}, rank
