"""Measurements of programs over common seeds: noise is pooled, true steps are found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_story import node, read_journal

from bench.search_blocks import held, repeats_until_clear, searched, steps_found, table
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind, Objective
from taskweaver.treesearch.model.repetitions import Repetitions
from taskweaver.treesearch.model.samples import (
    Difference,
    MeasurementNoise,
    NoisePool,
    Samples,
    difference,
)
from taskweaver.treesearch.record.run_statistics import confirmation, gain

PLAIN = Objective()
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def test_a_mean_has_the_digits_of_its_standard_error() -> None:
    texts = {
        (13850.0, 16918.0): "15400 ± 1500 (n = 2)", (0.91, 0.93): "0.920 ± 0.010 (n = 2)",
        (0.5, 0.5): "0.5 (n = 2, all equal)", (3.25,): "3.25 (n = 1)", (): "none",
        (1.0, 10.0, 1.0, 10.0): "5.5 ± 2.6 (n = 4)",
    }  # fmt: skip
    assert {values: Samples(values).text(PLAIN) for values in texts} == texts


def test_few_values_have_the_noise_of_the_run() -> None:
    assert Samples((5.0,)).standard_error is None
    assert Samples((5.0,), noise=MeasurementNoise(0.5, 1)).standard_error == 0.5
    relative = MeasurementNoise(0.1, 1, is_relative=True)
    assert Samples((200.0,), noise=relative).standard_error == 20.0
    # Two that are close may be so by chance.
    noise = MeasurementNoise(0.8, 6)
    assert Samples((5.0, 5.01), noise=noise).standard_error == pytest.approx(0.8 / math.sqrt(2))
    assert Samples((5.0, 5.0), noise=noise).standard_error == pytest.approx(0.8 / math.sqrt(2))
    assert Samples((5.0, 5.0, 5.0), noise=noise).standard_error == 0.0


def test_a_difference_inside_the_noise_is_not_clear() -> None:
    def is_clear(after: Sequence[float], before: Sequence[float]) -> bool:
        return difference(PLAIN, Samples(tuple(after)), Samples(tuple(before))).is_clear

    assert is_clear([2760.0], [1913.0, 2024.0])  # nothing is known of the one measured once
    assert not is_clear([2024.0, 1900.0], [1913.0, 2050.0])
    assert is_clear([20.0, 20.1, 19.9], [10.0, 10.1, 9.9])


@given(st.lists(NUMBERS, min_size=2, max_size=9), st.lists(NUMBERS, min_size=2, max_size=9))
def test_a_difference_turns_round_with_its_programs(one: list[float], other: list[float]) -> None:
    a, b = Samples(tuple(one)), Samples(tuple(other))
    there, back = difference(PLAIN, a, b), difference(Objective(maximize=False), a, b)
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


def test_times_and_rates_are_known_by_name_or_unit() -> None:
    timed = {"speed": "MFLOPS", "score": "GB/s", "run time": "s", "latency": ""}
    assert all(Objective(name, unit=unit).is_timed for name, unit in timed.items())
    others = {"accuracy": "", "time series error": "", "height": "m"}
    assert not any(Objective(name, unit=unit).is_timed for name, unit in others.items())


Cells = Mapping[int, float | None]
"""Value of each seed of a program; None for a measurement that failed."""


def measured(*programs: Cells, fresh: tuple[Cells, ...] = (), unit: str = "") -> Journal:
    """Return a run of drafts, each measured with its seeds, and later with fresh ones."""
    journal = Journal(Objective(unit=unit))
    for cells in programs:
        first = next(iter(cells))
        journal.put(node(len(journal) + 1, NodeKind.DRAFT, cells[first], seed=first))
    drafts = journal.nodes
    again = [(draft, cell, False) for draft, cells in zip(drafts, programs, strict=True)
             for cell in list(cells.items())[1:]]  # fmt: skip
    again += [(draft, cell, True) for draft, cells in zip(drafts, fresh, strict=False)
              for cell in cells.items()]  # fmt: skip
    for draft, (seed, value), is_fresh in again:
        own = {"parent": draft.id, "seed": seed, "is_fresh": is_fresh}
        journal.put(node(len(journal) + 1, NodeKind.SEED, value, **own))
    return journal


def gain_of(journal: Journal) -> Difference:
    """Return the gain of the second program over the first."""
    return gain(journal, journal["n0002"], journal["n0001"])


def test_every_step_that_seeds_hide_is_found_and_no_equal_program_is() -> None:
    steps = searched(table(20, step=0.5, residual=0.0, seed=1))
    assert steps_found(steps) == 19
    assert steps.best() is steps.found
    assert "on 4 fresh seeds, which chose nothing: +9.5" in confirmation(steps)
    equal = searched(table(25, step=0.0, residual=0.0, seed=1))
    assert steps_found(equal) == 0
    assert equal.best() is equal.baseline
    noisy = [searched(table(25, step=0.0, residual=1.0, seed=seed)) for seed in range(20)]
    assert sum(map(steps_found, noisy)) <= 1
    assert sum(one.best() is not one.baseline for one in noisy) <= 3


def test_intervals_hold_and_common_seeds_need_half_of_the_repeats() -> None:
    assert held(100, 1.0) >= 0.9
    paired = repeats_until_clear(100, is_paired=True)
    assert paired <= repeats_until_clear(100, is_paired=False) / 2


def test_gain_is_the_mean_of_paired_differences_over_common_seeds() -> None:
    """Error and freedom are those of an analysis by hand: mean squares of rows and columns."""
    a, b = {0: 1.0, 1: 4.0, 2: 3.5, 3: 4.5}, {0: 2.0, 1: 5.5, 2: 4.0, 3: 5.5}
    found = gain_of(measured(a, b))
    gains = [b[seed] - a[seed] for seed in a]
    assert found.gain == pytest.approx(1.0)
    spread = sum((one - 1.0) ** 2 for one in gains) / 3
    assert found.error == pytest.approx(math.sqrt(spread / 4))
    assert (found.pairs, found.freedom) == (4, 3)
    margin = 3.1824 * math.sqrt(spread / 4)
    assert found.interval == pytest.approx((1 - margin, 1 + margin), rel=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "is_clear", "sign"),
    [
        ({0: 1.0, 1: 9.0, 2: 5.0}, {0: 2.0, 1: 10.0, 2: 6.0}, True, 1),  # data drawn by the seed
        ({0: 1.0, 1: 9.0, 2: 5.0}, {0: 2.0, 1: None, 2: 6.0, 3: 4.0}, False, 1),  # one pair less
        ({0: 1.0, 1: 9.0, 2: 5.0}, {0: 1.2, 1: 8.7, 2: 5.0}, False, -1),
        ({0: 0.1 + 0.2, 1: 1.1}, {0: 0.3, 1: 1.1}, False, 0),  # rounding is no difference
    ],
)
def test_gain_over_seeds_of_all_kinds(a: Cells, b: Cells, is_clear: bool, sign: int) -> None:
    found = gain_of(measured(a, b))
    assert found.is_clear is is_clear
    assert math.copysign(1, found.gain) * bool(found.gain) == sign


def test_programs_without_a_common_seed_have_no_difference() -> None:
    for after in ({5: 3.0}, {5: 3.0, 6: 4.0}):
        assert gain_of(measured({0: 1.0}, after)) is None
    choice = Repetitions(measured({0: 1.0, 1: 2.0}, {5: 3.0}), 0, 3).during(1)
    assert (choice.parent, choice.seed) == ("n0002", 0)  # the first of its rival's seeds


def test_repetitions_of_a_journal_without_seeds_are_measurements_of_one_seed() -> None:
    data = measured({0: 1.0, 1: 1.2, 2: 0.8}, {0: 3.0}).to_dict()
    for one in data["nodes"]:
        del one["seed"], one["is_fresh"]
    journal = read_journal(data)
    found = gain_of(journal)
    assert found.gain == pytest.approx(2.0)
    assert found.error == pytest.approx(0.2 * math.sqrt(1 + 1 / 3))


def test_rank_takes_the_effect_of_a_seed_out() -> None:
    a, b = {0: 8.0, 1: 11.0, 2: 10.0}, {0: 8.5, 1: 11.5, 2: 10.5}
    journal = measured(a, b, {0: 9.0})
    assert [one.id for one in journal.leaders(3)] == ["n0003", "n0002", "n0001"]
    assert not journal.is_candidate("n0003")
    assert Repetitions(journal, 0, 3).during(1) is None


def test_seed_effects_of_rates_are_shares() -> None:
    slow, fast = {0: 90.0, 1: 110.0, 2: 100.0}, {0: 180.0, 1: 220.0, 2: 200.0}
    noise = measured(slow, fast, unit="MFLOPS").noise
    assert noise.residual == 0
    assert noise.without_seed(45.0, 0) == pytest.approx(50.0)


def test_no_residual_from_a_single_pair_may_be_chance() -> None:
    pool = NoisePool(PLAIN)
    for program in ("a", "b", "c"):
        pool.put(program, [(0, 0.9), (1, 0.91)])
        expected = 0.0 if program == "c" else None
        assert isinstance(pool.noise, MeasurementNoise)
        assert pool.noise.residual == expected


def test_fresh_seeds_change_no_choice_and_decide_who_carries_the_run() -> None:
    a, b = {0: 1.0, 1: 5.0, 2: 3.0}, {0: 2.0, 1: 6.1, 2: 4.0}
    before = measured(a, b)
    assert before.best() is before["n0002"]
    same = ({1000: 3.0, 1001: 1.0, 1002: 2.0}, {1000: 2.9, 1001: 1.2, 1002: 1.8})
    journal = measured(a, b, fresh=same)
    assert journal.found is journal["n0002"]
    assert journal.noise == before.noise
    assert journal.best() is journal["n0001"]
    assert "within the noise, so n0001 is the result" in confirmation(journal)
    better = ({1000: 3.0, 1001: 1.0, 1002: 2.0}, {1000: 4.0, 1001: None, 1002: 3.0})
    journal = measured(a, b, fresh=better)
    assert journal.best() is journal["n0002"]
    assert "on 2 fresh seeds, which chose nothing: +1" in confirmation(journal)
    assert "1 measurement failed" in confirmation(journal)
