"""Differences of two moments, with the number of things that are equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taskweaver.session.moments.moment import Moment
from taskweaver.session.storage.compare import (
    OTHER,
    Pair,
    differing_keys,
    differing_sizes,
    differing_variables,
    rounds_apart,
)
from taskweaver.session.storage.facts import KeptFact


@dataclass(frozen=True, slots=True)
class MomentDifference:
    """Differences of two moments.

    Attributes:
        rounds: Messages of the user that only the first sees, and that only the second sees.
        common_rounds: Number of rounds that both see.
        variables: Variables that differ: their texts; None is none.
        equal_variables: Number of those that are equal.
        files: Files that differ: their sizes as text; None is none.
        equal_files: Number of those that are equal; None where a list was not kept.
        core: Keys of core memory that differ: their values; None is none.
        equal_core: Number of those that are equal.
        facts: Facts of the branch that only the first sees, and that only the second sees.
        equal_facts: Number of those that both see.
    """

    rounds: tuple[list[str], list[str]]
    common_rounds: int
    variables: Mapping[str, Pair]
    equal_variables: int
    files: Mapping[str, Pair]
    equal_files: int | None
    core: Mapping[str, Pair]
    equal_core: int
    facts: tuple[list[KeptFact], list[KeptFact]]
    equal_facts: int


def difference(
    first: Moment,
    second: Moment,
    touched: set[str],
    present_files: Mapping[str, Pair] | None = None,
) -> MomentDifference:
    """Return the differences of two moments of a session.

    Args:
        first: A moment.
        second: Another one.
        touched: Variables that the rounds which only one of them sees may have changed in place.
        present_files: Files that differ, where both are the present, with their content compared.
    """
    variables = _variables(first, second, touched)
    cores = first.core, second.core
    core = {key: (cores[0].get(key), cores[1].get(key)) for key in differing_keys(*cores)}
    files, equal_files = _files(first, second, present_files)
    texts = [{fact.text: fact for fact in moment.facts} for moment in (first, second)]
    return MomentDifference(
        rounds_apart(first.rounds, second.rounds),
        len({one.id for one in first.rounds} & {one.id for one in second.rounds}),
        variables,
        len(_common(first.variables, second.variables) - variables.keys()),
        files,
        equal_files,
        core,
        len(_common(*cores) - core.keys()),
        (_only(texts[0], texts[1]), _only(texts[1], texts[0])),
        len(texts[0].keys() & texts[1].keys()),
    )


def _variables(first: Moment, second: Moment, touched: set[str]) -> dict[str, Pair]:
    texts = [
        {name: one.text or one.type for name, one in moment.variables.items()}
        for moment in (first, second)
    ]
    found = differing_variables(*texts)
    for name in _common(first.variables, second.variables) & touched - found.keys():
        one, two = first.variables[name], second.variables[name]
        if one.content and two.content and one.content != two.content:
            found[name] = texts[0][name], f"{texts[1][name]} ({OTHER})"
    return found


def _files(
    first: Moment, second: Moment, present: Mapping[str, Pair] | None
) -> tuple[Mapping[str, Pair], int | None]:
    if first.files is None or second.files is None:
        return {}, None
    if present is None:
        sides = [
            {path: (one.size, one.changed_at) for path, one in files.items()}
            for files in (first.files, second.files)
        ]
        present = differing_sizes(*sides)
    return present, len(_common(first.files, second.files) - present.keys())


def _common(first: Mapping[str, object], second: Mapping[str, object]) -> set[str]:
    return set(first) & set(second)


def _only(first: Mapping[str, KeptFact], second: Mapping[str, KeptFact]) -> list[KeptFact]:
    return [fact for text, fact in first.items() if text not in second]
