"""The matplotlib backend of kernels: no screen; a figure becomes one file, once.

A figure that code saved itself is not written again. Any other figure that is shown, or still
open when the cell ends, is written as PNG. Figures of another client's cell are shown there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureManagerBase  # noqa: TID253 - imported by matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: TID253

from taskweaver.ces.inkernel.cell.artifacts import ARTIFACTS, free_name
from taskweaver.ces.inkernel.cell.figure_text import describe
from taskweaver.ces.inkernel.cell.foreign import FOREIGN, show_figure

_MARK = "_taskweaver_is_saved"


class FigureManager(FigureManagerBase):
    """Manager whose `show` writes the figures."""

    @classmethod
    def pyplot_show(cls, **_: Any) -> None:
        """Write every open figure, and close it."""
        collect_figures()


class FigureCanvas(FigureCanvasAgg):
    """An Agg canvas that remembers whether its figure was saved."""

    manager_class = FigureManager

    def print_figure(self, filename: Any, *args: Any, **kwargs: Any) -> Any:
        """Write the figure."""
        if isinstance(filename, str | Path):
            setattr(self.figure, _MARK, True)
        written = super().print_figure(filename, *args, **kwargs)
        if isinstance(filename, str | Path):
            ARTIFACTS.describe(Path(filename), describe(self.figure))
        return written


def collect_figures() -> None:
    """Write the open figures that code has not saved, list them, and close all."""
    from matplotlib import pyplot as plt

    for number in plt.get_fignums():
        figure = plt.figure(number)
        if FOREIGN.is_running:
            show_figure(figure)
        elif not getattr(figure, _MARK, False) and figure.axes:
            path = free_name("figure", ".png")
            figure.savefig(path, bbox_inches="tight", dpi=120)
            ARTIFACTS.add(path, "chart", preview=describe(figure))
        plt.close(figure)
