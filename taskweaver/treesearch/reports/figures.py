"""Figures of a run, as PNG files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.run_statistics import Effect, RunFacts
from taskweaver.utils.files import write_bytes

MOST_BARS = 30
_LABEL_CHARS = 32
_SHAPES = {
    NodeKind.DRAFT: ("o", "#1f6f5c"),
    NodeKind.DEBUG: ("X", "#a2581a"),
    NodeKind.IMPROVE: ("^", "#2f5fa8"),
    NodeKind.HYPERPARAM: ("s", "#7a4fa3"),
    NodeKind.ABLATION: ("v", "#8a8378"),
    NodeKind.SEED: (".", "#c2a227"),
}
_REPETITION = {NodeKind.SEED: "repetition"}
_Draw = Callable[[Any], None]


def write_figures(journal: Journal, run_dir: Path, facts: RunFacts) -> dict[str, str]:
    """Write the figures there is something to show in, to ``figures/``.

    Returns:
        Title of each figure, by its path relative to the run's folder.

    Raises:
        OSError: If one cannot be written.
    """
    made: dict[str, str] = {}
    for name, title, draw, height in _figures(journal, facts):
        path = f"figures/{name}.png"
        write_bytes(run_dir / path, _render(draw, height))
        made[path] = title
    return made


def _figures(journal: Journal, facts: RunFacts) -> list[tuple[str, str, _Draw, float]]:
    history = run_statistics.history(journal, sorted(journal.finished, key=lambda node: node.step))
    measured = [node for node in journal.good if node.value is not None]
    ablations = worth_of_parts(journal, facts)[:MOST_BARS]
    found: list[tuple[str, str, _Draw, float]] = []
    if measured:
        found += [
            ("best", "Best so far", lambda axes: _best(axes, journal, history), 3.2),
            ("values", "Value per node", lambda axes: _values(axes, journal, measured), 3.6),
        ]
    if ablations:
        height = 1.2 + 0.32 * len(ablations)
        label = f"worth ({journal.objective.unit or journal.objective.name})"
        draw_parts: _Draw = lambda axes: _bars(axes, ablations, label)  # noqa: E731
        found.append(("ablations", "What each part is worth", draw_parts, height))
    return found


def worth_of_parts(journal: Journal, facts: RunFacts) -> list[Effect]:
    """Return the ablations that ran, the part that is worth most first.

    An ablation's gain is the gain of the rest without the part: the part's worth is the opposite.
    """
    ablations = [node for node in journal.good if node.kind is NodeKind.ABLATION]
    found = [e for e in run_statistics.effects(journal, facts, ablations) if e.gain is not None]
    return sorted(found, key=lambda effect: effect.gain or 0.0)


def _render(draw: _Draw, height: float) -> bytes:
    # The figure is made without pyplot, which would keep it, and set up a screen, for the process.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    draw(axes)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def _best(axes: Any, journal: Journal, history: Sequence[tuple[Node, float | None]]) -> None:
    points = [(node.step, value) for node, value in history if value is not None]
    steps, values = [step for step, _ in points], [value for _, value in points]
    axes.step(steps, values, where="post", color="#1f6f5c", linewidth=1.8)
    gains = [n for n in range(len(points)) if n == 0 or values[n] != values[n - 1]]
    axes.plot([steps[n] for n in gains], [values[n] for n in gains], "o", color="#1f6f5c", ms=4)
    for n in gains[-6:]:
        label = history[-len(points) :][n][0].id
        axes.annotate(_plain(label), (steps[n], values[n]), (4, -10), fontsize=7,
                      textcoords="offset points", color="#6d675d")  # fmt: skip
    axes.margins(y=0.12)  # room for a label below the first point
    _label(axes, journal)


def _values(axes: Any, journal: Journal, nodes: Sequence[Node]) -> None:
    size = 34 if len(nodes) < 200 else 10
    for kind, (shape, color) in _SHAPES.items():
        of_kind = [n for n in nodes if (NodeKind.SEED if n.repeats else n.kind) is kind]
        if of_kind:
            axes.scatter([node.step for node in of_kind], [node.value for node in of_kind],
                         s=size, marker=shape, color=color, alpha=0.8, linewidths=0,
                         label=f"{_REPETITION.get(kind, kind.value)} ({len(of_kind)})")  # fmt: skip
    _label(axes, journal)
    axes.figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)


def _bars(axes: Any, ablations: Sequence[Effect], label: str) -> None:
    worth = [-(effect.gain or 0.0) for effect in reversed(ablations)]
    names = [_plain(effect.node.name or effect.node.id) for effect in reversed(ablations)]
    colors = ["#2f5fa8" if value > 0 else "#c9c3b6" for value in worth]
    known = [effect.difference for effect in reversed(ablations)]
    errors = [found.error or 0.0 if found else 0.0 for found in known]
    axes.barh(range(len(worth)), worth, color=colors, xerr=errors if any(errors) else None)
    axes.set_yticks(range(len(worth)), names, fontsize=8)
    axes.axvline(0, color="#24211c", linewidth=0.8)
    axes.set_xlabel(_plain(label))


def _label(axes: Any, journal: Journal) -> None:
    from matplotlib.ticker import MaxNLocator

    objective = journal.objective
    axes.set_xlabel("node")
    axes.set_ylabel(_plain(f"{objective.name} ({objective.unit})" if objective.unit
                           else objective.name))  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _plain(text: str) -> str:
    """Return a label that is drawn as it is: no formulas, and only signs the font has."""
    line = re.sub(r"\s+", " ", text).strip()
    short = line if len(line) <= _LABEL_CHARS else f"{line[: _LABEL_CHARS - 1]}…"
    known = "".join(sign if ord(sign) in _signs() else "\ufffd" for sign in short)
    return known.replace("$", r"\$")


@cache
def _signs() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())
