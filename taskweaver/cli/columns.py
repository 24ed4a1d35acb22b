"""Rows in columns on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_PREVIEW_CHARS = 400


def print_columns(title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns that fit the terminal; nothing when there are none."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from taskweaver.console.text import safe

    shown = [[safe(str(value))[:_PREVIEW_CHARS] for value in row] for row in rows]
    if not shown:
        return
    table = Table(box=None, pad_edge=False, title=safe(title), title_justify="left")
    for name in names:
        table.add_column(
            safe(name), overflow="fold", ratio=3 if name in {"text", "value"} else None
        )
    for row in shown:
        table.add_row(*(Text(value) for value in row))
    console = Console(highlight=False, soft_wrap=False)
    console.print(table)
    console.print()
