"""Results of ``display(...)`` and of the last expression, as files and text, not messages.

Cells of other clients are an exception: see `foreign`.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook  # noqa: TID253 - runs inside the kernel
from ipykernel.zmqshell import ZMQDisplayPublisher  # noqa: TID253

from taskweaver.ces.inkernel.cell.artifacts import ARTIFACTS, free_name
from taskweaver.ces.inkernel.cell.bounded import SEQUENCES, bounded_repr
from taskweaver.ces.inkernel.cell.foreign import FOREIGN

MAX_DISPLAYS = 100
MAX_VALUE_CHARS = 64_000
_TABLE_MARK = 'class="dataframe"'


class QuietDisplayHook(ZMQShellDisplayHook):
    """Keeps the value of a cell for the report; sends that of another client's alone."""

    def compute_format_data(self, result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Format nothing for our own cells: the report does it once, bounded."""
        if FOREIGN.is_running:
            formatted: tuple[dict[str, Any], dict[str, Any]] = super().compute_format_data(result)
            return formatted
        return {}, {}

    def update_user_ns(self, result: Any) -> None:
        """Keep the last values of another client's cells, as ``_``, ``__`` and ``___``."""
        if FOREIGN.is_running:
            shell: Any = self.shell
            names = shell.user_ns
            names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), result


class FilePublisher(ZMQDisplayPublisher):
    """Writes displayed pictures and documents to files, prints the rest."""

    def publish(self, data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Save or print the displayed data; that of another client's cell is sent."""
        if FOREIGN.is_running:
            super().publish(data, *args, **kwargs)
            return
        if len(ARTIFACTS.items) >= MAX_DISPLAYS:
            return
        if not save_rich(data) and "text/plain" in data:
            sys.stdout.write(f"{data['text/plain']}\n")

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        """Clear the screen of another client; our own cells have none, and printed text stays."""
        if FOREIGN.is_running:
            super().clear_output(wait)


def bound_texts(shell: Any) -> None:
    """Show the beginning of long texts and bytes, also of those in a container."""

    def show(value: Any, printer: Any, _is_cycle: bool) -> None:  # noqa: FBT001 - IPython's
        printer.text(bounded_repr(value, MAX_VALUE_CHARS))

    formatter = shell.display_formatter.formatters["text/plain"]
    for kind in SEQUENCES:
        formatter.for_type(kind, show)


def save_rich(data: dict[str, Any]) -> bool:
    """Write the richest form of displayed data to a file; return whether there was one."""
    for mime, suffix, kind in (
        ("image/png", ".png", "image"),
        ("image/jpeg", ".jpg", "image"),
        ("image/svg+xml", ".svg", "svg"),
        ("text/html", ".html", "html"),
    ):
        content = data.get(mime)
        if content is None or _TABLE_MARK in str(content)[:2000]:
            continue
        path = free_name("display", suffix)
        is_binary = mime in {"image/png", "image/jpeg"}
        if is_binary and isinstance(content, str):
            content = base64.b64decode(content)
        path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        ARTIFACTS.add(path, kind, preview=str(data.get("text/plain", ""))[:200])
        return True
    return False
