"""Cells of other Jupyter clients: their results are messages, as in any kernel, and no files."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ForeignCell:
    """The cell of another client that runs now, if any.

    Attributes:
        is_running: Whether the cell that runs is one of another client.
    """

    is_running = False

    @contextmanager
    def running(self, shell: Any) -> Iterator[None]:
        """Show results and figures of the code in a block to the client that sent it."""
        before = shell.ast_node_interactivity
        shell.ast_node_interactivity = "last_expr"  # the value of an assignment is not shown
        self.is_running = True
        try:
            yield
        finally:
            self.is_running = False
            shell.ast_node_interactivity = before


FOREIGN = ForeignCell()


def show_picture(png: bytes, text: str) -> None:
    """Send a picture, and a text in its place, to the client whose cell runs."""
    from IPython.display import display

    display({"image/png": base64.b64encode(png).decode(), "text/plain": text}, raw=True)
