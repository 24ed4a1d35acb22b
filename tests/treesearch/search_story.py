"""Runs to write and to show: small ones told by hand, large ones made up from a seed."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.treesearch.model.artifacts import read_artifacts
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.node import (
    Cost,
    Measurement,
    Node,
    NodeError,
    NodeKind,
    NodeStatus,
    Objective,
    PhaseOutcome,
)
from taskweaver.treesearch.model.stages import STAGES
from taskweaver.treesearch.record.run_statistics import Budgets, RunFacts, StageFacts, Use

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    " \u2028 & ☃ | *bold* `code` [x](http://evil.test) ![x](http://evil.test/p.png) $a \ud800"
)
START = 1_700_000_000.0
PHASES = ("download", "coding", "compile", "run")
OBJECTIVE = Objective("validation accuracy", maximize=True)
CODE = "LEARNING_RATE = {rate}\nLAYERS = {layers}\n\nprint(score(LEARNING_RATE, LAYERS))\n"
ERRORS = (
    ("RuntimeError", "exit code 1\nTraceback (most recent call last):\nValueError: shapes differ"),
    ("CompilationError", "gcc: error: unrecognized option '-fast'"),
    ("MetricError", "working/result.json was not written"),
    ("PhasePlanError", "coding.workspace.files[0].path: it is absolute."),
)


def node(step: int, kind: NodeKind, value: float | None = None, **given: Any) -> Node:
    """Return a finished node: a good one with a value, else one that failed at its run."""
    has_failed = value is None
    outcomes = tuple(
        PhaseOutcome(name, "failed" if has_failed and name == "run" else "ok", 0.5 + step % 7, 0)
        for name in PHASES
    )
    code = CODE.format(rate=0.1 / step, layers=1 + step % 5)
    program = {
        "download": {"commands": ["pip install --target .deps scikit-learn"]},
        "coding": [{"path": "src/train.py", "content": code}],
        "run": {"commands": [["python", "src/train.py", "--out", "a b"]]},
    }
    made = Node(
        id=f"n{step:04d}",
        step=step,
        kind=kind,
        stage=1,
        status=NodeStatus.BUGGY if has_failed else NodeStatus.OK,
        plan=f"Change the network in step {step}, and measure accuracy on held-out rows.",
        artifacts=read_artifacts(program),
        phases=outcomes,
        error=NodeError(*ERRORS[step % len(ERRORS)]) if has_failed else None,
        metric=None if value is None else Measurement({"": value}, {"loss": 1 - value}),
        output=f"epoch 10, step {step}\n" * 20,
        analysis="It trains, and the held-out rows agree." if not has_failed else "",
        exec_seconds=3.0 + step % 11,
        started_at=START + step * 60,
        finished_at=START + step * 60 + 40 + step % 30,
        cost=Cost(3, 9_000 + step, 1_200, 0.021),
    )
    return replace(made, **given)


def read_journal(data: Any) -> Journal:
    """Return the journal in the content of a ``journal.json``."""
    journal = Journal(Objective(**data["objective"]), map(Node.from_dict, data["nodes"]))
    for judgement in data["judgements"]:
        journal.judge(Judgement.from_dict(judgement))
    return journal


def small_run() -> tuple[Journal, RunFacts]:
    """Return a run with everything in it: drafts, a mended one, tuning, ablations, seeds."""
    draft, debug, improve = NodeKind.DRAFT, NodeKind.DEBUG, NodeKind.IMPROVE
    tune, ablate, seed = NodeKind.HYPERPARAM, NodeKind.ABLATION, NodeKind.SEED
    nodes = [
        node(1, draft, None),
        node(2, draft, 0.80),
        node(3, debug, 0.82, parent="n0001"),
        node(4, tune, 0.85, parent="n0003", stage=2, name="learning rate"),
        node(5, tune, 0.79, parent="n0003", stage=2, name="batch size"),
        node(6, improve, None, parent="n0004", stage=3, status=NodeStatus.TIMEOUT,
             error=NodeError("TimeoutError", "over 3600 s")),
        node(7, improve, 0.91, parent="n0004", stage=3, plots=("nodes/n0007/plots/loss.png",)),
        node(8, ablate, 0.84, parent="n0007", stage=4, name="dropout"),
        node(9, ablate, 0.92, parent="n0007", stage=4, name="normalisation"),
        node(10, seed, 0.90, parent="n0009", stage=4, seed=1),
        node(11, seed, 0.94, parent="n0009", stage=4, seed=2),
        node(12, seed, None, parent="n0009", stage=4, seed=3),
        node(13, ablate, None, parent="n0007", stage=4, status=NodeStatus.RUNNING, error=None,
             phases=(), finished_at=None),
    ]  # fmt: skip
    bests = (None, "n0003", "n0004", "n0007", "n0009")
    reason = "limit of the stage reached: 6 nodes"
    stages = tuple(
        StageFacts(stage.number, stage.name, reason, bests[at], bests[at + 1])
        for at, stage in enumerate(STAGES)
    )
    facts = RunFacts(
        "demo", "Accuracy of a small network", START, START + 900,
        Budgets(Use(12, 40), Use(900, 3600), Use(130_000, 0), Use(0.25, 5)), stages,
        "all stages are done",
    )  # fmt: skip
    return Journal(OBJECTIVE, nodes), facts


def empty_run() -> tuple[Journal, RunFacts]:
    """Return a run without any node."""
    return Journal(OBJECTIVE), RunFacts("demo", "Nothing yet", START)


def made_up_run(count: int) -> tuple[Journal, RunFacts]:
    """Return a run of many drafts and improvements; every fourth fails."""
    journal = Journal(OBJECTIVE)
    for step in range(1, count + 1):
        value = None if step % 4 == 0 else 0.5 + step / (2 * count)
        parent = f"n{step // 4 * 2 + 1:04d}" if step > 3 else None
        kind = NodeKind.IMPROVE if parent else NodeKind.DRAFT
        journal.put(node(step, kind, value, parent=parent))
    return journal, RunFacts("made-up", "A run that was made up", START)


def png(width: int = 4, height: int = 4) -> bytes:
    """Return a picture of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    rows = (b"\0" + b"\x1f\x6f\x5c" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = {b"IHDR": header, b"IDAT": zlib.compress(rows), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, parts, parts.values()))


def write_run(run_dir: Path, journal: Journal, *, log_bytes: int = 300) -> None:
    """Write the logs, workspaces and plots of a run's nodes."""
    (run_dir / "idea.md").write_text("# Accuracy\n\nTrain a small network.\n")
    for one in journal.nodes:
        logs = run_dir / "logs/0-run/phase_logs" / f"node_{one.id}"
        logs.mkdir(parents=True)
        for phase in one.phases:
            line = f"$ {phase.name} of {one.id}\n"
            (logs / f"{phase.name}.log").write_text(line * (1 + log_bytes // len(line)))
        workspace = run_dir / "workspaces" / "branches" / one.id
        (workspace / "src").mkdir(parents=True)
        (workspace / "src/train.py").write_text(f"# of {one.id}\n")
        for plot in one.plots:
            target = run_dir / plot
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(png())
