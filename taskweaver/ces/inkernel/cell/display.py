"""Results of ``display(...)`` and of the last expression, as files and text, not messages.

Cells of other clients are an exception: see `current`.
"""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook  # noqa: TID253 - runs inside the kernel
from ipykernel.zmqshell import ZMQDisplayPublisher  # noqa: TID253

from taskweaver.ces.inkernel.cell.current import ARTIFACTS, FOREIGN, free_name
from taskweaver.ces.inkernel.cell.values import SEQUENCES, bounded_repr

DisplayData = dict[str, Any]
MAX_DISPLAYS = 100
MAX_VALUE_CHARS = 64_000
_TABLE_MARK = 'class="dataframe"'
_STYLED_ROWS = 60
_BARE = re.compile(r"<[\w.]+(?: object)?(?: at 0x\w+)?>")
_TEXTS = ("text/markdown", "text/latex", "application/json", "application/javascript")


class QuietDisplayHook(ZMQShellDisplayHook):
    """Hook that keeps values of cells for the report, but sends values to another client."""

    def compute_format_data(self, result: Any) -> tuple[DisplayData, DisplayData]:
        """Format nothing for our own cells: the report does so once, bounded."""
        if FOREIGN.is_running:
            formatted: tuple[DisplayData, DisplayData] = super().compute_format_data(result)
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

    def publish(self, data: DisplayData, *args: Any, **kwargs: Any) -> None:
        """Save or print the displayed data, or send the data of another client's cell."""
        if FOREIGN.is_running:
            super().publish(data, *args, **kwargs)
            return
        display_id = (kwargs.get("transient") or {}).get("display_id", "")
        if data and (len(ARTIFACTS.items) >= MAX_DISPLAYS or not save_rich(data, display_id)):
            sys.stdout.write(f"{text_of(data)}\n")

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        """Clear the screen of another client. Printed text of our own cells stays."""
        if FOREIGN.is_running:
            super().clear_output(wait)


def set_formats(shell: Any) -> None:
    """Show the beginning of long texts and bytes, also in a container, and figures as pictures."""

    def draw(figure: Any) -> None:
        from taskweaver.ces.inkernel.cell.figures import show_figure

        show_figure(figure)

    def show(value: Any, printer: Any, _is_cycle: bool) -> None:  # noqa: FBT001 - IPython's
        printer.text(bounded_repr(value, MAX_VALUE_CHARS))

    formatter = shell.display_formatter.formatters["text/plain"]
    for kind in SEQUENCES:
        formatter.for_type(kind, show)
    own: Any = shell.display_formatter.ipython_display_formatter
    own.for_type_by_name("matplotlib.figure", "Figure", draw)
    formatter.for_type_by_name(
        "pandas.io.formats.style",
        "Styler",
        lambda table, printer, _: printer.text(table.to_string(max_rows=_STYLED_ROWS)),
    )


def text_of(data: DisplayData) -> str:
    """Return displayed data as text: the plain one, unless that only names the object's class."""
    plain = str(data.get("text/plain", ""))
    if plain and not _BARE.fullmatch(plain):
        return plain
    for mime in _TEXTS:
        if mime in data:
            content = data[mime]
            return content if isinstance(content, str) else json.dumps(content, default=str)
    if "text/html" in data:
        words = html.unescape(re.sub(r"<[^>]*>", " ", str(data["text/html"])))
        return " ".join(words.split()) or plain
    return plain or f"<{', '.join(data)}: data without a text>"


def save_rich(data: DisplayData, display_id: str = "") -> bool:
    """Write the richest form of displayed data to a file, and return whether there is a rich form.

    A display of the same id, if not empty, is written over the one before in the cell.
    """
    for mime, suffix, kind in (
        ("image/png", ".png", "image"),
        ("image/jpeg", ".jpg", "image"),
        ("image/svg+xml", ".svg", "svg"),
        ("text/html", ".html", "html"),
    ):
        content = data.get(mime)
        if content is None or _TABLE_MARK in str(content)[:2000]:
            continue
        before = ARTIFACTS.displays.get(display_id + suffix) if display_id else None
        path = before or free_name("display", suffix)
        if mime in {"image/png", "image/jpeg"} and isinstance(content, str):
            content = base64.b64decode(content)
        path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        if before is None:
            ARTIFACTS.displays[display_id + suffix] = path
            ARTIFACTS.add(path, kind, preview=text_of(data)[:200])
        return True
    return False
