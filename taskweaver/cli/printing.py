"""Output of the command line, made safe for terminals: lines, tables, JSON, errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

_PREVIEW_CHARS = 400
_WIDE = 10_000


def safe(text: str) -> str:
    """Return foreign text that a terminal can show (see `console.terminal.text.safe`)."""
    from taskweaver.console.terminal import text as texts

    return texts.safe(text)


def amounts(counts: Mapping[str, int]) -> str:
    """Return numbers of rows by table as text, sorted."""
    listed = [f"{count} of {table}" for table, count in sorted(counts.items())]
    return ", ".join(listed) or "nothing"


def print_json(data: object, indent: int | None = 2) -> None:
    """Print data as JSON, on one line without an indent.

    Dataclasses become objects, further values without a JSON form text.
    """
    from taskweaver.console.terminal.text import safe_json

    click.echo(safe_json(json.dumps(data, ensure_ascii=False, indent=indent, default=_plain)))


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else str(value)


def colored(text: str, color: str | None) -> str:
    """Return a text in a colour, or unchanged where standard output takes no colours."""
    from taskweaver.console.terminal.surface import is_plain

    return text if color is None or is_plain(sys.stdout) else click.style(text, fg=color)


def say(text: str, color: str | None = None, *, err: bool = False) -> None:
    """Print foreign text, in a colour where the output takes colours."""
    click.echo(safe(text) if err else colored(safe(text), color), err=err)


def say_marked(mark: str, color: str | None, text: str) -> None:
    """Print foreign text behind a coloured mark."""
    click.echo(f"{colored(safe(mark), color)} {safe(text)}")


def tell(*notices: str) -> None:
    """Print notices to standard error, a line each."""
    for notice in notices:
        say(f"taskweaver: {notice}", err=True)


def print_error(reason: str, *, is_debug: bool) -> None:
    """Print an error in one line, with the traceback of the error being handled if asked for."""
    from taskweaver.console.terminal.surface import is_plain
    from taskweaver.utils.redact import redact

    if is_debug:
        import traceback

        click.echo(redact(traceback.format_exc()), err=True, nl=False)
    line = f"error: {safe(redact(' '.join(reason.split())))}"
    click.secho(line, err=True, fg=None if is_plain(sys.stderr) else "red")


def print_table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns that fit the terminal. Without rows nothing is printed.

    A file or another program gets each row as wide as it is, so that words can be found in it.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [[safe(str(value))[:_PREVIEW_CHARS] for value in row] for row in rows]
    if not shown:
        return
    table = Table(box=None, pad_edge=False, title=safe(title) or None, title_justify="left")
    for name in names:
        table.add_column(
            safe(name), overflow="fold", ratio=3 if name in {"text", "value"} else None
        )
    for row in shown:
        table.add_row(*(Text(value) for value in row))
    is_folded = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, soft_wrap=False, width=None if is_folded else _WIDE)
    console.print(table)
    console.print()
