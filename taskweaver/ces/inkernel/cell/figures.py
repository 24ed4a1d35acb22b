"""The matplotlib backend of kernels, without a screen: pictures become files or messages.

Figures stay open by number from cell to cell, so that they can be changed and shown again. A cell
draws into a new one unless it names an open one, as in a notebook. Its pictures are those of the
figures that it made, named, changed or asked for, each once, unless code saved the figure itself.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from functools import wraps
from hashlib import sha256
from math import isfinite, nan
from pathlib import Path
from typing import Any

from matplotlib import (  # noqa: TID253 - imported where a figure exists
    dates,
    rcParams,
    ticker,
)
from matplotlib._pylab_helpers import Gcf  # noqa: TID253
from matplotlib.backend_bases import FigureManagerBase  # noqa: TID253
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: TID253

from taskweaver.ces.inkernel.cell.current import (
    ARTIFACTS,
    FOREIGN,
    free_name,
    show_picture,
    type_of,
)

_Concise = dates.ConciseDateFormatter
_MOST_CHARS = 600
_MOST_LABELS = 8
_LABEL_CHARS = 40
_OWN = f"module://{__name__}"
_LAST = "_taskweaver_picture"
"""Attribute of a figure: the digest of its last picture, which a stored state keeps."""
_MOST_OPEN = 10
"""Figures of earlier cells that stay open: they hold the data that they draw."""


def describe(figure: Any) -> str:
    """Return titles, labels, ranges and numbers of points of a figure, in a line.

    A cell may put any objects into a figure; one that fails to describe itself does not keep the
    figure from being saved.
    """
    try:
        text = _described(figure)
    except Exception as error:  # noqa: BLE001 - any object's own code
        text = f"it cannot be described: {type(error).__name__}"
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "..."


def _described(figure: Any) -> str:
    title = figure.get_suptitle()
    parts = [_quoted(title)] if title else []
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    parts += ["; ".join(_of_axes(axes)) for axes in drawn]
    return " | ".join(parts) or "no axes"


def _of_axes(axes: Any) -> Iterator[str]:
    if axes.get_title():
        yield _quoted(axes.get_title())
    contents = list(_contents(axes))
    if not contents:
        yield "nothing is drawn in it"
        return
    limits = axes.dataLim
    yield _of_axis("x", axes.xaxis, limits.x0, limits.x1)
    yield _of_axis("y", axes.yaxis, limits.y0, limits.y1)
    yield from contents[:_MOST_LABELS]
    if len(contents) > _MOST_LABELS:
        yield f"and {len(contents) - _MOST_LABELS} more"


def _of_axis(name: str, axis: Any, low: float, high: float) -> str:
    label = axis.get_label_text()
    named = f"{name} {_quoted(label)}" if label else f"{name} (no label)"
    scale = f", {axis.get_scale()} scale" if axis.get_scale() != "linear" else ""
    return f"{named} {_range(axis, low, high)}{scale}"


def _range(axis: Any, low: float, high: float) -> str:
    formatter = axis.get_major_formatter()
    if not (isfinite(low) and isfinite(high)):
        return "without data"
    if isinstance(formatter, dates.DateFormatter | dates.AutoDateFormatter | _Concise):
        return " to ".join(dates.num2date(end).strftime("%Y-%m-%d") for end in (low, high))
    if isinstance(formatter, ticker.ScalarFormatter | ticker.LogFormatter):
        return f"{low:.6g} to {high:.6g}"
    freq = getattr(formatter, "freq", None)
    if freq is not None:  # the axis of pandas for periods labels few of its ticks
        from pandas import Period

        return " to ".join(str(Period(ordinal=round(end), freq=freq)) for end in (low, high))
    labels = [_cut(label) for tick in axis.get_ticklabels() if (label := tick.get_text())]
    more = ", ..." if len(labels) > _MOST_LABELS else ""
    return ", ".join(labels[:_MOST_LABELS]) + more


def _contents(axes: Any) -> Iterator[str]:
    from numpy import ma

    for line in axes.get_lines():
        drawn = sum(isfinite(x) and isfinite(y) for x, y in line.get_xydata())
        yield f"line{_label(line)} of {_count(drawn, 'point')}"
    for bars in axes.containers:
        if getattr(bars, "patches", ()):
            yield f"bars{_label(bars)}: {len(bars.patches)}"
    grouped = {id(patch) for bars in axes.containers for patch in getattr(bars, "patches", ())}
    patches = [patch for patch in axes.patches if id(patch) not in grouped]
    if patches:
        yield _count(len(patches), "shape")
    for points in axes.collections:
        drawn = sum(isfinite(x) and isfinite(y) for x, y in ma.filled(points.get_offsets(), nan))
        yield f"markers{_label(points)}: {drawn}"
    for image in axes.get_images():
        yield f"image of {' x '.join(map(str, image.get_array().shape[:2]))}"


def _label(artist: Any) -> str:
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") or not label else f" {_quoted(label)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _quoted(text: str) -> str:
    return f'"{_cut(text)}"'


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL_CHARS else line[:_LABEL_CHARS] + "..."


class FigureManager(FigureManagerBase):
    """Manager whose `show` writes the figures."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Not on import: this module is also read in notebooks that keep their own backend.
        pyplot: Any = Gcf
        pyplot.get_active, pyplot.set_active = _active, _activate
        super().__init__(*args, **kwargs)

    def show(self) -> None:
        """Write the figure."""
        show_figure(self.canvas.figure)

    @classmethod
    def pyplot_show(cls, **_: Any) -> None:
        """Write the figures of this cell, or else the last open figure."""
        last = Gcf.get_all_fig_managers()[-1:]
        if not collect_figures() and last:
            show_figure(last[0].canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    """An Agg canvas that draws for code, and leaves the figure changed until shown."""

    manager_class = FigureManager

    def draw(self) -> None:
        """Draw the figure."""
        is_changed = self.figure.stale
        super().draw()
        self.figure.stale = is_changed

    def print_figure(self, filename: Any, *args: Any, **kwargs: Any) -> Any:
        """Write the figure. A picture in the working directory counts as shown."""
        is_changed = self.figure.stale
        written = super().print_figure(filename, *args, **kwargs)
        if isinstance(filename, str | Path):
            path = Path(filename).resolve()
            path = path.with_suffix(path.suffix or ".png")
            ARTIFACTS.describe(path, describe(self.figure))
            is_inside = path.is_relative_to(ARTIFACTS.folder.resolve())
            if is_inside and type_of(path) in {"image", "svg"}:
                is_changed = False
                ARTIFACTS.shown.add(id(self.figure))
        self.figure.stale = is_changed
        return written


def _active() -> Any:
    """Return the manager of the figure that the cell draws into, or None for a new figure."""
    last = next(reversed(Gcf.figs.values()), None)
    return last if last is not None and last.num in ARTIFACTS.figures else None


def _activate(manager: Any) -> None:
    """Have the cell draw into a figure."""
    ARTIFACTS.figures.add(manager.num)
    Gcf.figs[manager.num] = manager
    Gcf.figs.move_to_end(manager.num)


def keep_backend() -> None:
    """Have pyplot keep this backend. Another client may choose a backend with a screen."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    plain: Any = getattr(pyplot, "switch_backend", None)
    if plain is None:
        return
    if not hasattr(plain, "__wrapped__"):

        @wraps(plain)
        def switch_backend(newbackend: Any) -> None:
            is_theirs = FOREIGN.is_running and str(newbackend).lower() != "agg"
            plain(newbackend if is_theirs else _OWN)

        pyplot.switch_backend = switch_backend
    # Chosen before pyplot was there.
    if str(dict.get(rcParams, "backend")).lower() == "agg":
        pyplot.switch_backend(_OWN)


def collect_figures() -> bool:
    """Write the figures that the cell made, named or changed, and return whether there are any."""
    keep_backend()
    managers = Gcf.get_all_fig_managers()
    due = [one for one in managers if one.num in ARTIFACTS.figures or one.canvas.figure.stale]
    for manager in due:
        if not _is_empty(manager.canvas.figure):
            show_figure(manager.canvas.figure, is_asked=manager.num in ARTIFACTS.figures)
    ARTIFACTS.figures.clear()
    closed = managers[:-_MOST_OPEN] + (due if FOREIGN.is_running else [])  # as a notebook does
    for manager in managers:
        if manager in closed or not isinstance(manager, FigureManager):
            Gcf.destroy(manager)
    return bool(due)


def show_figure(figure: Any, *, is_asked: bool = True) -> None:
    """Write a picture of a figure, or send the picture to another client.

    One that the cell has shown already is left out, and, unless the cell asks for the figure, one
    that an earlier cell has shown.
    """
    is_shown = id(figure) in ARTIFACTS.shown
    if is_shown and not figure.stale:
        return
    ARTIFACTS.shown.add(id(figure))
    if _is_empty(figure):
        sys.stdout.write(f"{figure!r}, nothing is drawn in it\n")
        return
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", bbox_inches="tight", dpi=120)
    figure.stale = False
    digest = sha256(drawn.getvalue()).hexdigest()
    if digest == getattr(figure, _LAST, "") and (is_shown or not is_asked):
        return
    setattr(figure, _LAST, digest)
    manager = figure.canvas.manager
    if manager is not None and manager.num in Gcf.figs:
        Gcf.figs.move_to_end(manager.num)  # `plt.show()` in the next cell means this one
    if FOREIGN.is_running:
        show_picture(drawn.getvalue(), repr(figure))
        return
    path = free_name("figure", ".png")
    path.write_bytes(drawn.getvalue())
    ARTIFACTS.add(path, "chart", preview=describe(figure))


def _is_empty(figure: Any) -> bool:
    return len(figure.get_children()) < 2  # its background


keep_backend()  # before the first figure: models' code begins with `matplotlib.use("Agg")`
