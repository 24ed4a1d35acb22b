"""Requests and answers about runs of tree searches."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]


class SearchLimits(BaseModel):
    """Limits of a run: nodes, seconds, money in the currency of the prices, tokens."""

    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    seconds: int | None = Field(default=None, ge=1, le=10_000_000)
    cost: float | None = Field(default=None, gt=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1, le=10**12)


class NewSearch(SearchLimits):
    """An idea to search, as Markdown, with at least one limit.

    `files` are texts that lie beside the idea, such as the evaluator that it names.
    """

    idea: str = Field(min_length=1, max_length=200_000)
    files: dict[_FileName, str] = Field(default_factory=dict, max_length=20)

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if (self.steps, self.seconds, self.cost, self.tokens) == (None, None, None, None):
            raise ValueError("a search needs a limit: steps, seconds, cost or tokens")
        if "idea.md" in self.files:
            raise ValueError("idea.md is the idea itself")
        return self


class SearchName(BaseModel):
    """The name of a run."""

    name: str


class SearchRun(BaseModel):
    """A run of a tree search.

    `nodes` counts those that run too, and `repetitions`, which measure an attempt again and which
    `budget_nodes` does not limit; `seconds`, `tokens` and `cost` are used so far, the budgets
    limit them, null where there is no limit. `is_ours` says whether this server works on it, and
    can stop it.
    """

    name: str
    title: str
    state: Literal["running", "stopped", "over"]
    is_ours: bool
    is_stopping: bool
    reason: str
    stage: str
    nodes: int
    repetitions: int
    metric: str
    unit: str
    maximize: bool
    best: str
    best_value: float | None
    started_at: float
    seconds: float
    tokens: int
    cost: float | None
    budget_nodes: int | None
    budget_seconds: float | None
    budget_tokens: int | None
    budget_cost: float | None


class SearchRuns(BaseModel):
    """The runs of tree searches, the newest first."""

    runs: list[SearchRun]


class SearchNodeSummary(BaseModel):
    """An attempt of a search, with the first line of its plan.

    `repeats` is the attempt that it measures again, empty for a program of its own.

    `value` is the mean where it was repeated, `error` the standard error of that.
    """

    node: str
    parent: str | None
    kind: str
    repeats: str
    stage: int
    status: str
    value: float | None
    error: float | None
    plan: str
    seconds: float


class SearchTree(BaseModel):
    """A run with all its attempts, in the order of creation.

    `version` changes with the attempts; they are null where the client has seen it. `output` are
    the last lines that the process of the run printed, where this server started it.
    """

    run: SearchRun
    version: str
    nodes: list[SearchNodeSummary] | None
    output: str


class SearchNode(BaseModel):
    """An attempt with all that is kept of it, as the run's log has it.

    `files` are those of its program, with those that it took over from its parent; `diff` shows
    what it changed in them. `logs` are those of its phases.
    """

    node: dict[str, Any]
    files: dict[str, str]
    diff: str
    commands: dict[str, list[str]]
    logs: dict[str, str]
