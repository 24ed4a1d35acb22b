"""Options, questions and output of ``taskweaver memory erase``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from taskweaver.cli.printing import print_json, say

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, dict[str, Any]] = {
    "--record record_id": {"type": click.IntRange(1), "metavar": "ID", "help": "A record."},
    "--event event_id": {"type": click.IntRange(1), "metavar": "ID", "help": "An event."},
    "--key": {"metavar": "KEY", "help": "A core key, on all branches."},
    "--text": {"help": "Every occurrence of a text; - reads it from the standard input."},
    "--logs folders": {
        "multiple": True,
        "type": click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
        "help": "A folder of prompt logs: files in it that hold the text are listed.",
    },
    "--dry-run": {"is_flag": True, "help": "Only print where it is."},
    "--yes": {"is_flag": True, "help": "Do not ask."},
}


def erasure_options(command: F) -> F:
    """Give a command the options of an erasure."""
    for name, options in reversed(_OPTIONS.items()):
        decorate: Any = click.option(*name.split(), **options)
        command = decorate(command)
    return command


def checked_erasure(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, with a text that comes by the standard input.

    Raises:
        click.UsageError: If not exactly one target is given, or no question can be answered.
    """
    names = ("record_id", "event_id", "key", "text")
    if sum(given[name] is not None for name in names) != 1:
        raise click.UsageError("Give one of --record, --event, --key and --text.")
    if given["text"] != "-":
        return dict(given)
    if not (given["yes"] or given["dry_run"]):
        raise click.UsageError("--text - reads the standard input: add --yes or --dry-run.")
    return {**given, "text": sys.stdin.read().rstrip("\n")}


def run_erasure(opened: Any, *, yes: bool, dry_run: bool, as_json: bool, **target: Any) -> bool:
    """Erase a target, after a question; return whether no file is known to hold it any more.

    The target is given as arguments of `BranchedMemory.erase`; a dry run only looks for it.

    Raises:
        click.Abort: If the answer is no.
    """
    if not (yes or dry_run):
        _print(opened.erase(**target, dry_run=True), as_json=False)
        click.confirm("Erase it? It cannot be brought back", abort=True)
    done = opened.erase(**target, dry_run=dry_run)
    _print(done, as_json=as_json)
    return bool(done.is_complete)


def _print(done: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
        return
    rows = ", ".join(f"{count} of {table}" for table, count in done.rows.items())
    click.echo(f"{rows or 'no rows'} {'would be erased' if done.is_dry else 'erased'}")
    for path in done.files:
        say(f"{'would be changed' if done.is_dry else 'changed'}: {path}")
    for item in done.untouched:
        say(f"not changed: {item.path}: {item.reason}")
