"""The live tree of a search: its lines at two widths, without colours, and cut when it is long."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from taskweaver.cli.search.search_tree import SearchSnapshot, search_tree
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.record.run_statistics import Budgets, Use

OBJECTIVE = Objective("accuracy on held-out rows", unit="points")


def made(
    step: int,
    kind: NodeKind,
    parent: int = 0,
    value: float | None = None,
    status: NodeStatus = NodeStatus.OK,
    name: str = "",
) -> Node:
    metric = None if value is None else Measurement({"": value})
    ended = None if status is NodeStatus.RUNNING else float(step)
    above = f"n{parent:04d}" if parent else None
    id_ = f"n{step:04d}"
    return Node(
        id_, step, kind, 3, parent=above, name=name, status=status, metric=metric, finished_at=ended
    )


NODES = (
    made(1, NodeKind.DRAFT, status=NodeStatus.BUGGY),
    made(2, NodeKind.DRAFT, value=0.8),
    made(3, NodeKind.DEBUG, 1, 0.82),
    made(4, NodeKind.HYPERPARAM, 3, 0.91234, name="learning rate of the last layer"),
    made(5, NodeKind.SEED, 4, 0.91234),
    made(6, NodeKind.IMPROVE, 4, status=NodeStatus.RUNNING),
)
SNAPSHOT = SearchSnapshot(
    Journal(OBJECTIVE, NODES),
    "stage 3, creative research",
    [("n0006", "run", 100.0, "epoch 3: loss \x1b[31m0.2")],
    Budgets(Use(5, 40), Use(3725, 7200), Use(130_000, 0), Use(0.25, 5)),
    142.0,
)
WIDE = """\
stage 3, creative research  accuracy on held-out rows 0.91234 points (n0004)
5 of 40 nodes  1:02:05 of 2:00:00  130,000 tokens  cost 0.25 of 5  Ctrl-C stops
✕ n0001 draft  buggy
  ● n0003 debug  0.82 points
    ● n0004 hyperparam learning rate of the last layer  0.91234 points  best
      ○ n0006 improve  running
● n0002 draft  0.8 points
  n0006 run 42 s: epoch 3: loss 0.2
"""


def drawn(snapshot: SearchSnapshot, width: int, rows: int = 30) -> str:
    target = io.StringIO()
    console = Console(file=target, width=width, color_system=None, force_terminal=False)
    console.print(search_tree(snapshot, rows))
    return "".join(f"{line.rstrip()}\n" for line in target.getvalue().splitlines())


def test_a_search_at_one_moment_at_two_widths() -> None:
    assert drawn(SNAPSHOT, 100) == WIDE
    for narrow, wide in zip(drawn(SNAPSHOT, 60).splitlines(), WIDE.splitlines(), strict=True):
        assert narrow == (wide if len(wide) <= 60 else f"{wide[:59]}…")


def test_a_search_that_begins() -> None:
    begun = replace(SNAPSHOT, journal=Journal(OBJECTIVE), stage="", running=(), budgets=Budgets())
    assert drawn(begun, 60) == (
        "starting  accuracy on held-out rows nothing measured yet\n0 nodes  0:00  Ctrl-C stops\n"
    )


def test_five_hundred_nodes_are_cut_to_the_rows_there_are() -> None:
    nodes = [made(1, NodeKind.DRAFT, value=0.99)]
    nodes += [made(step, NodeKind.IMPROVE, step // 2, 0.5) for step in range(2, 501)]
    long = replace(SNAPSHOT, journal=Journal(OBJECTIVE, nodes))
    lines = drawn(long, 80, rows=24).splitlines()
    assert len(lines) <= 24
    assert any("n0500" in line for line in lines)
    assert any("n0001" in line and "best" in line for line in lines)
    hidden = int(next(line for line in lines if "more nodes" in line).split()[1])
    assert hidden == 500 - sum(" improve" in line or " draft" in line for line in lines)


def test_names_of_others_bring_no_control_signs() -> None:
    hostile = made(1, NodeKind.DRAFT, value=1.0, name="a\x1b[31m\nb")
    text = drawn(replace(SNAPSHOT, journal=Journal(OBJECTIVE, [hostile])), 100)
    assert "\x1b" not in text
    assert len(text.splitlines()) == 4
