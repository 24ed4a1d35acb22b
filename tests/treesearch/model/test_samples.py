"""Measurements of one program: their noise, and differences that are no noise."""

from __future__ import annotations

import math
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.samples import MeasurementNoise, NoisePool, Samples, difference

PLAIN, SPEED = Objective(), Objective("speed", unit="MFLOPS")
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((13850.0, 16918.0), "15400 ± 1500 (n = 2)"),
        ((0.91, 0.93), "0.920 ± 0.010 (n = 2)"),
        ((0.5, 0.5), "0.5 (n = 2, all equal)"),
        ((3.25,), "3.25 (n = 1)"),
        ((1.0, 10.0, 1.0, 10.0), "5.5 ± 2.6 (n = 4)"),
        ((), "none"),
    ],
)
def test_a_mean_has_the_digits_of_its_standard_error(values: tuple[float, ...], text: str) -> None:
    assert Samples(values).text(PLAIN) == text


def test_a_single_value_has_the_noise_of_the_run() -> None:
    assert Samples((5.0,)).standard_error is None
    assert Samples((5.0,), noise=MeasurementNoise(0.5, 1)).standard_error == 0.5
    relative = MeasurementNoise(0.1, 1, is_relative=True)
    assert Samples((200.0,), noise=relative).standard_error == 20.0


def test_two_values_that_are_close_by_chance_keep_the_noise_of_the_run() -> None:
    noise = MeasurementNoise(0.8, 6)
    assert Samples((5.0, 5.01), noise=noise).standard_error == pytest.approx(0.8 / math.sqrt(2))
    assert Samples((5.0, 5.0), noise=noise).standard_error == pytest.approx(0.8 / math.sqrt(2))
    assert Samples((5.0, 5.0, 5.0), noise=noise).standard_error == 0.0


@pytest.mark.parametrize(
    ("after", "before", "is_clear"),
    [
        ((2760.0,), (1913.0, 2024.0), True),  # nothing is known of the one measured once
        ((2024.0, 1900.0), (1913.0, 2050.0), False),
        ((20.0, 20.1, 19.9), (10.0, 10.1, 9.9), True),
    ],
)
def test_a_difference_inside_the_noise_is_not_clear(
    after: tuple[float, ...], before: tuple[float, ...], is_clear: bool
) -> None:
    found = difference(PLAIN, Samples(after), Samples(before))
    assert found is not None
    assert found.is_clear is is_clear


@given(st.lists(NUMBERS, min_size=2, max_size=9), st.lists(NUMBERS, min_size=2, max_size=9))
def test_a_difference_turns_round_with_its_programs(one: list[float], other: list[float]) -> None:
    a, b = Samples(tuple(one)), Samples(tuple(other))
    there, back = difference(PLAIN, a, b), difference(Objective(maximize=False), a, b)
    assert there is not None
    assert back is not None
    assert (there.gain, there.error, there.is_clear) == (-back.gain, back.error, back.is_clear)


@given(st.lists(st.lists(NUMBERS, max_size=5), max_size=6))
def test_noise_is_pooled_over_programs_whatever_the_order(programs: list[list[float]]) -> None:
    pool = NoisePool(PLAIN)
    for number, values in enumerate(programs):
        for end in range(len(values) + 1):
            pool.put(str(number), enumerate(values[:end]))
    freedom = sum(max(len(values) - 1, 0) for values in programs)
    if pool.noise is None:
        assert not freedom
        return
    squares = sum(stdev(v) ** 2 * (len(v) - 1) for v in programs if len(v) > 1)
    assert pool.noise.freedom == freedom
    assert pool.noise.deviation == pytest.approx(math.sqrt(squares / freedom), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "unit", "is_timed"),
    [
        ("speed", "MFLOPS", True), ("score", "GB/s", True), ("run time", "s", True),
        ("latency", "", True), ("accuracy", "", False), ("time series error", "", False),
        ("height", "m", False),
    ],
)  # fmt: skip
def test_times_and_rates_are_known_by_name_or_unit(name: str, unit: str, is_timed: bool) -> None:
    assert Objective(name, unit=unit).is_timed is is_timed
