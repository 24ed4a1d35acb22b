"""Programs that are measured again: where values scatter, and until a difference is clear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import methodcaller
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from search_story import node
from sizes import examples

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import LARGEST, Node, NodeKind, Objective
from taskweaver.treesearch.model.policy import NodeChoice, estimates
from taskweaver.treesearch.model.repetitions import Repetitions
from taskweaver.treesearch.record.run_statistics import certainty, standing

MOST = 3
PLAIN = Objective("score")
Due = Callable[[Repetitions], NodeChoice | None]
DURING = methodcaller("during", 2)


def journal_of(
    *values: float, again: Iterable[float] = (), objective: Objective = PLAIN
) -> Journal:
    """Return a run of drafts; the first one was measured again in the first stage."""
    journal = Journal(objective)
    for step, value in enumerate(values, 1):
        journal.put(node(step, NodeKind.DRAFT, value))
    for seed, value in enumerate(again, 1):
        seeds = {"parent": "n0001", "seed": seed}
        journal.put(node(len(journal) + 1, NodeKind.SEED, value, **seeds))
    return journal


def at_the_end(repetitions: Repetitions) -> NodeChoice | None:
    return next(iter(repetitions.closing(2, 1, is_last=True)), None)


def improved(journal: Journal, value: float, parent: str = "n0001") -> Node:
    """Add an improvement in the second stage."""
    new = node(len(journal) + 1, NodeKind.IMPROVE, value, parent=parent, stage=2)
    journal.put(new)
    return new


def race(journal: Journal, values: Callable[[str], float], due: Due = DURING) -> list[str]:
    """Make all repetitions of the second stage that are due; return the programs, in order."""
    repetitions, found = Repetitions(journal, 0, MOST), list[str]()
    while choice := due(repetitions):
        assert choice.kind is NodeKind.SEED
        found.append(choice.parent)
        seeds = {"parent": choice.parent, "seed": choice.seed, "stage": 2}
        journal.put(node(len(journal) + 1, NodeKind.SEED, values(choice.parent), **seeds))
    return found


def test_nothing_is_repeated_while_no_noise_is_known() -> None:
    unknown, without = journal_of(5.0), journal_of(5.0, again=[5.0])
    for journal in (unknown, without):
        improved(journal, 9.0)
        assert Repetitions(journal, 0, MOST).during(2) is None
        assert standing(journal, journal.best()) == "best"


def test_a_new_best_is_repeated_at_once_and_called_a_candidate_until_then() -> None:
    journal = journal_of(5.0, again=[5.2])
    new = improved(journal, 9.0)
    assert standing(journal, new) == "candidate"
    assert f"{new.id} was measured once: it may have been lucky." in certainty(journal)
    assert race(journal, lambda _: 9.1) == [new.id]  # it is far from the first
    assert standing(journal, new) == "best"
    assert "cannot be told" not in certainty(journal)


def test_programs_within_the_noise_take_turns() -> None:
    journal = journal_of(5.0, again=[5.4])
    new = improved(journal, 5.5)
    values = {new.id: iter([5.2, 5.4]), "n0001": iter([5.3])}
    repeated = race(journal, lambda id_: next(values[id_]))
    assert repeated[0] == new.id
    assert sorted(repeated) == ["n0001", new.id, new.id]  # n0001 had one before
    assert "cannot be told from" in certainty(journal)


def test_a_run_that_ends_does_not_leave_its_best_a_candidate() -> None:
    journal = journal_of(5.0, again=[5.2])
    new = improved(journal, 9.0)
    assert race(journal, lambda _: 9.1, Repetitions.at_limit) == [new.id]
    assert standing(journal, new) == "best"
    assert Repetitions(journal_of(5.0, 9.0), 0, MOST).at_limit() is None  # no noise is known


def test_what_gives_the_same_value_again_is_not_repeated_further() -> None:
    journal = journal_of(5.0)
    assert [c.seed for c in Repetitions(journal, 7, MOST).closing(1, 4, is_last=True)] == [8]
    again = journal_of(5.0, again=[5.0])
    assert Repetitions(again, 0, MOST).closing(1, 4, is_last=True) == []
    differs = journal_of(5.0, again=[5.1])
    assert [c.seed for c in Repetitions(differs, 0, MOST).closing(1, 4, is_last=True)] == [2, 3]
    assert Repetitions(differs, 0, 0).closing(1, 4, is_last=True) == []


@settings(max_examples=examples(30))
@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.sampled_from([1.0, LARGEST / 20]),
    st.booleans(),
)
def test_repetitions_come_to_an_end(
    values: list[float], random: Random, scale: float, is_timed: bool
) -> None:
    objective = Objective("time", unit="s") if is_timed else PLAIN
    values = [scale * value for value in values]
    journal = journal_of(*values, again=[values[0] + scale], objective=objective)
    for value in values:
        improved(journal, value + 0.1)
    during = race(journal, lambda _: scale * random.uniform(-10, 10))
    closing = race(journal, lambda _: scale * random.uniform(-10, 10), at_the_end)
    assert len(during) <= MOST
    assert len(during) + len(closing) <= 3 * MOST
    for program in {*during, *closing}:
        assert len(journal.repetitions(program)) <= MOST + (program == "n0001")
    assert all(map(math.isfinite, estimates(journal, journal.good).values()))
    assert "nan" not in certainty(journal)


def test_the_plan_of_a_node_that_was_dropped_meanwhile_can_be_read() -> None:
    journal = journal_of(1.0)
    (one,) = journal.nodes
    assert journal.as_proposed(one) is one
    journal.drop(one.id)
    assert journal.as_proposed(one) is one
