"""The evaluation of a search's configuration: on invented landscapes, and on real ideas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.search_service import settled_config, start_search
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.policy import policy_named
from taskweaver.treesearch.simulation.landscapes import LANDSCAPES
from taskweaver.treesearch.simulation.simulated_run import RunConditions, true_value

NOISES = (0.0, 0.03, 0.1)
_USUAL_STEPS = 50


@dataclass(frozen=True, slots=True)
class SearchScore:
    """Result of a configuration in one case.

    Attributes:
        case: A landscape with its noise, or an idea.
        measure: Name of the values: the true value that is returned, or the metric of the best.
        values: One for each run that had a result.
        runs: Runs that were made.
        nodes: Evaluations, all runs together.
        calls: Calls of models.
        tokens: Tokens sent and received.
    """

    case: str
    measure: str
    values: tuple[float, ...]
    runs: int
    nodes: int
    calls: int = 0
    tokens: int = 0

    @property
    def mean(self) -> float | None:
        """Mean of the values; None without any."""
        return fmean(self.values) if self.values else None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; None for fewer than two values."""
        return stdev(self.values) / sqrt(len(self.values)) if len(self.values) > 1 else None


def on_landscapes(
    app: TaskWeaverApp, settings: Mapping[str, Any], seeds: int
) -> Iterator[SearchScore]:
    """Search each landscape with each noise, once for each seed from 0.

    Raises:
        ConfigError: If a setting is of the wrong type.
    """
    config = SearchConfig(settled_config(app.config, settings))
    policy, steps = policy_named(config.policy, config.rules), config.steps or _USUAL_STEPS
    for name, landscape in LANDSCAPES.items():
        for noise in NOISES:
            conditions = RunConditions(
                landscape, noise, config.workers, steps, config.num_seeds, config.rules
            )
            values = tuple(true_value(conditions, policy, _best, seed) for seed in range(seeds))
            case = f"{name}, noise {noise:g}"
            yield SearchScore(case, "true value", values, seeds, steps * seeds)


def _best(journal: Journal) -> Node | None:
    return journal.best()


def on_idea(
    app: TaskWeaverApp, settings: Mapping[str, Any], idea: Path, seeds: Sequence[int]
) -> SearchScore:
    """Search for an idea, once for each seed. The runs are kept like all others.

    Raises:
        SearchError: If a search cannot be made.
        ModelError: If the model cannot be asked.
        ConfigError: If a setting is of the wrong type.
    """
    values: list[float] = []
    name, nodes, calls, tokens = "metric", 0, 0, 0
    for seed in seeds:
        with start_search(app, idea, {**settings, "search.seed": seed}) as search:
            search.run(lambda _: None)
            journal, name = search.state.journal, search.objective.name
            best = journal.best()
            if best is not None:  # its rank is the mean of its repetitions
                rank = journal.rank(best.id)
                values.append(rank if search.objective.maximize else -rank)
            nodes += len(journal)
            calls += search.budget.spent.calls
            tokens += search.budget.tokens_used
    return SearchScore(idea.stem, name, tuple(values), len(seeds), nodes, calls, tokens)
