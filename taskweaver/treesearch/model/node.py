"""A node: one attempt at an experiment, its outcome, and its measurement by an objective."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any, Self

from taskweaver.treesearch.model.artifacts import Artifacts, read_artifacts

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
_COMMAND_FAILED = re.compile(r"(?:subprocess\.)?CalledProcessError:")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Warning)(?::|$)")


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric that a run optimises, fixed at its start.

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
        """Whether the metric is a time or a rate: it depends on the load of the machine."""
        if _TIMED_UNIT.fullmatch(self.unit.strip()):
            return True
        return bool(_TIMED_NAME.search(self.name)) and not _NO_TIME.search(self.name)

    def text(self, value: float | None) -> str:
        """Return a value as people read it."""
        if value is None:
            return "none"
        return f"{value:z.5g} {self.unit}".strip()

    def rank(self, measurement: Measurement | None) -> float:
        """Return a number that is higher for a better value. A missing value is the worst.

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
        """The mean over the data sets, None unless each value counts."""
        numbers = [float(value) for value in self.values.values()]
        if not numbers or not all(abs(number) <= LARGEST for number in numbers):  # nor NaN
            return None
        return math.fsum(numbers) / len(numbers)

    def over(self, datasets: Collection[str]) -> Measurement:
        """Return the measurement of some data sets alone. Further values become details."""
        further = {name: value for name, value in self.values.items() if name not in datasets}
        if not further:
            return self
        values = {name: value for name, value in self.values.items() if name in datasets}
        return Measurement(values, {**self.details, "further data sets": further})


class NodeKind(StrEnum):
    """Purpose of a node."""

    DRAFT = "draft"
    DEBUG = "debug"
    IMPROVE = "improve"
    HYPERPARAM = "hyperparam"
    ABLATION = "ablation"
    SEED = "seed"


class NodeStatus(StrEnum):
    """State of a node. Plots never decide it."""

    RUNNING = "running"
    OK = "ok"
    BUGGY = "buggy"
    TIMEOUT = "timeout"
    LOST = "lost"
    """Its worker died, more than once."""
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    """It proposed nothing but a program that another attempt was running."""


FAILED = frozenset({NodeStatus.BUGGY, NodeStatus.TIMEOUT, NodeStatus.LOST})


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that was run.

    Attributes:
        command: The command, as in a shell.
        exit_code: Its exit status; None when it was stopped, or never started.
        seconds: How long it took.
    """

    command: str
    exit_code: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class PhaseOutcome:
    """Outcome of a phase.

    Attributes:
        name: ``download``, ``coding``, ``compile`` or ``run``.
        status: ``ok``, ``failed``, ``timeout`` or ``skipped``.
        seconds: How long it took.
        exit_code: Of the last command; None where none ran.
        message: The failure, or the things done, in a few lines.
        log: Its log, relative to the run's folder; empty for none.
        commands: Its commands, in order.
    """

    name: str
    status: str
    seconds: float = 0.0
    exit_code: int | None = None
    message: str = ""
    log: str = ""
    commands: tuple[CommandRun, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the node ends here."""
        return self.status not in {"ok", "skipped"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the outcome of plain data."""
        commands = tuple(CommandRun(**command) for command in data.get("commands", ()))
        return cls(**{**data, "commands": commands})


@dataclass(frozen=True, slots=True)
class NodeError:
    """Failure of a node.

    Attributes:
        kind: ``DownloadError``, ``CodingError``, ``CompilationError``, ``RuntimeError``,
            ``TimeoutError``, ``PhasePlanError``, ``MetricError``, ``ValidityError`` (the run itself
            says its result does not count), ``ReplayError`` (the kernel it starts from could not be
            made again), ``ReviewError``, ``ModelError``, ``WorkerLost`` or
            ``InternalError`` (its task could not be run).
        message: The problem, in a few lines.
    """

    kind: str
    message: str

    @property
    def gist(self) -> str:
        """The last line with the name of an exception, the whole message if there is none.

        Of a failed command it begins with the last line that was printed before the traceback.
        """
        lines = self.message.splitlines()
        if lines and _COMMAND_FAILED.match(lines[-1]):
            printed = takewhile(lambda line: not line.startswith("Traceback"), lines[1:])
            if said := [line.strip() for line in printed if line.strip()]:
                return f"{said[-1]} ({lines[-1].strip()})"
        named = (line.strip() for line in reversed(lines) if _EXCEPTION.match(line.strip()))
        return next(named, self.message)


@dataclass(frozen=True, slots=True)
class Cost:
    """Consumption of model calls: tokens sent and received, and money.

    Money is in the currency of the configured prices; None when they are unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None

    def __add__(self, other: Cost) -> Cost:
        known = [money for money in (self.money, other.money) if money is not None]
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(known) if known else None,
        )

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.calls - other.calls,
            self.prompt_tokens - other.prompt_tokens,
            self.completion_tokens - other.completion_tokens,
            None if self.money is None else self.money - (other.money or 0.0),
        )


_TUPLES = ("line", "refutes", "plots", "datasets")


@dataclass(frozen=True, slots=True)
class Node:
    """One attempt. It is replaced as it goes on, and never changed once it has finished.

    Attributes:
        id: Its name, ``n0001`` and so on, in the order of creation.
        step: Its number, from 1.
        kind: Why it was made.
        stage: Number of its stage, from 1.
        substage: Number of the substage, from 1.
        branch: Its branch of memory; empty without memory.
        parent: Id of the node it was made from; None for a draft.
        line: Nodes whose programs run before its own in its kernel, the first one first.
        name: The parameter tuned or the part taken away, of ``hyperparam`` and ``ablation`` nodes.
        seed: Seed of everything random in it.
        is_fresh: Whether its seed is one that chose nothing: it confirms the result of the run.
        same_as: Id of the node that proposed exactly this program before, of which it is another
            measurement; empty for a program of its own.
        attempt: Number of the attempt, from 1; a lost worker costs one.
        status: Its state.
        plan: Its intention, in words.
        artifacts: The plan or the script it proposed; None before it proposed one.
        phases: How its phases ended.
        error: Why it failed.
        metric: Its measurement.
        output: End of the output of its run.
        analysis: Text of the review.
        summary: ``findings``, ``significance`` and ``next_steps``; empty without a summary.
        refutes: Ids of attempts whose findings its review found untrue.
        wants_plots: Whether plots of it were asked for, and are to be drawn still.
        plots: Its plots, relative to the run's folder.
        plot_feedback: Description of the plots.
        time_feedback: Advice on running time for its children; empty for none.
        datasets: Data sets it was tried on.
        exec_seconds: How long the run phase took.
        started_at: When it began, in seconds since 1970.
        finished_at: When it ended; None while it runs.
        cost: Consumption of its model calls.
    """

    id: str
    step: int
    kind: NodeKind
    stage: int
    branch: str = ""
    parent: str | None = None
    substage: int = 1
    line: tuple[str, ...] = ()
    name: str = ""
    seed: int = 0
    is_fresh: bool = False
    same_as: str = ""
    attempt: int = 1
    status: NodeStatus = NodeStatus.RUNNING
    plan: str = ""
    artifacts: Artifacts | None = None
    phases: tuple[PhaseOutcome, ...] = ()
    error: NodeError | None = None
    metric: Measurement | None = None
    output: str = ""
    analysis: str = ""
    summary: Mapping[str, str] = field(default_factory=dict)
    refutes: tuple[str, ...] = ()
    wants_plots: bool = False
    plots: tuple[str, ...] = ()
    plot_feedback: str = ""
    time_feedback: str = ""
    datasets: tuple[str, ...] = ()
    exec_seconds: float = 0.0
    started_at: float = 0.0
    finished_at: float | None = None
    cost: Cost = Cost()

    @property
    def title(self) -> str:
        """Its kind, and its change in short if it has one."""
        return f"{self.kind} {self.name}".rstrip()

    @property
    def is_good(self) -> bool:
        """Whether the node ran, and measured something."""
        return self.status is NodeStatus.OK

    @property
    def repeats(self) -> str:
        """Id of the node whose program it measures again, empty for none."""
        return (self.parent or "") if self.kind is NodeKind.SEED else self.same_as

    @property
    def has_failed(self) -> bool:
        """Whether the node can be repaired."""
        return self.status in FAILED

    @property
    def value(self) -> float | None:
        """Its measurement as one number."""
        return self.metric.value if self.metric else None

    def failed(self, error: NodeError) -> Node:
        """Return the node as it failed."""
        status = NodeStatus.TIMEOUT if error.kind == "TimeoutError" else NodeStatus.BUGGY
        return replace(self, status=status, error=error)

    def to_dict(self) -> dict[str, Any]:
        """Return the node as plain data."""
        return {
            **{entry.name: getattr(self, entry.name) for entry in fields(self)},
            "phases": tuple(map(asdict, self.phases)),
            "error": asdict(self.error) if self.error else None,
            "metric": asdict(self.metric) if self.metric else None,
            "artifacts": self.artifacts.to_dict() if self.artifacts else None,
            "summary": dict(self.summary),
            "cost": asdict(self.cost),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the node of plain data. Fields of later versions are left out.

        Raises:
            KeyError, TypeError, ValueError: If it is no node.
        """
        known = {entry.name for entry in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["kind"] = NodeKind(values["kind"])
        values["status"] = NodeStatus(values["status"])
        values["phases"] = tuple(map(PhaseOutcome.from_dict, values.get("phases", ())))
        values |= {name: tuple(values.get(name, ())) for name in _TUPLES}
        values["cost"] = Cost(**values.get("cost", {}))
        values["artifacts"] = read_artifacts(values.get("artifacts"))
        if values.get("error"):
            values["error"] = NodeError(**values["error"])
        if values.get("metric"):
            values["metric"] = Measurement(**values["metric"])
        return cls(**values)
