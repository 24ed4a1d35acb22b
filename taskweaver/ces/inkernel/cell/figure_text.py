"""Descriptions of figures, made from their axes: what a reader without eyes can know of a chart."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, nan
from typing import Any

from matplotlib import dates, ticker  # noqa: TID253 - imported where a figure exists

_Concise = dates.ConciseDateFormatter
_MOST_CHARS = 600
_MOST_LABELS = 8
_LABEL_CHARS = 40


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
        return _periods(freq, low, high)
    labels = [_cut(label) for tick in axis.get_ticklabels() if (label := tick.get_text())]
    more = ", ..." if len(labels) > _MOST_LABELS else ""
    return ", ".join(labels[:_MOST_LABELS]) + more


def _periods(freq: Any, low: float, high: float) -> str:
    from pandas import Period

    return " to ".join(str(Period(ordinal=round(end), freq=freq)) for end in (low, high))


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
