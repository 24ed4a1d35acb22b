"""``taskweaver memory``: a memory file, looked into, compared, merged and erased from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from taskweaver.cli.opening import register_secrets_around
from taskweaver.cli.options import FILE, JSON, NEW_FILE
from taskweaver.cli.printing import amounts, print_json, print_table, say
from taskweaver.console.terminal.text import depth_first
from taskweaver.memory.branched import (
    BranchedMemory,
    BranchedMemoryError,
    MemoryConfig,
    RecordNotVisible,
    UnknownBranch,
)
from taskweaver.memory.branched.operation_log import ROWS_FILE
from taskweaver.memory.branched.types import Moment, day, plain_record
from taskweaver.memory.vectors.embedders import static_embedder
from taskweaver.utils.sqlite_files import remove_database

_MOST_INDENTED = 16

_EXAMPLES = """\b
Examples:
  taskweaver memory tree run/memory.sqlite
  taskweaver memory show run/memory.sqlite idea-3
  taskweaver memory show run/memory.sqlite idea-3 --prompt
  taskweaver memory search run/memory.sqlite "linker error" -b idea-3
  taskweaver memory diff run/memory.sqlite idea-3 idea-4
  taskweaver memory export run/memory.sqlite idea-3.jsonl -b idea-3"""

_FILE = click.argument("file", type=FILE)
_BRANCH = click.option("-b", "--branch", metavar="ID", help="A branch; by default the root.")


@click.group("memory", epilog=_EXAMPLES)
def memory_command() -> None:
    """Inspect a memory file: branches, their contents and their differences."""


def _open(file: Path) -> Any:
    """Open a file for reading. An empty file, which would become a memory, is refused."""
    if not file.stat().st_size:
        raise UnknownBranch(f"The file {file} is empty: it has no memory yet.")
    register_secrets_around(file.resolve().parent, Path.cwd())
    config = MemoryConfig(memory_log_enabled=False)
    return BranchedMemory(file, config, embedder=static_embedder())


def _open_logged(file: Path) -> Any:
    """Open a file for changes, and continue the log of rows where one exists."""
    register_secrets_around(file.resolve().parent, Path.cwd())
    places = (file.parent / "logs", file.parent)
    log_dir = next((place for place in places if (place / ROWS_FILE).is_file()), None)
    config = MemoryConfig(memory_log_enabled=log_dir is not None, log_dir=log_dir)
    return BranchedMemory(file, config)


def _id(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """Return an id, which may be written as prompts show it."""
    text = value.removeprefix("#")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise click.BadParameter(f"{value!r} is no id; ids are numbers, such as 7 or #7.")
    return int(text)


def _moment(_context: click.Context, _parameter: click.Parameter, value: str) -> Moment | None:
    """Parse a row number or a time. Without a zone the time is UTC, and a day means its end."""
    try:
        if not value or value.isdigit():
            return int(value) if value else None
        time = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither a row number nor a time like 2026-05-31."
        ) from error
    return time + timedelta(days=1) if len(value) == len("2026-05-31") else time


def _branch(opened: Any, name: str | None) -> Any:
    """Return the handle of a branch, by default of the root."""
    found = opened.root if name is None else opened[name]
    if found is None:
        raise UnknownBranch("The memory is empty: it has no branch yet.")
    return found


@memory_command.command()
@_FILE
@JSON
def tree(file: Path, *, as_json: bool) -> None:
    """Show the branches, and how much each wrote."""
    with _open(file) as opened:
        branches = opened.branches()
        counts = opened.counts()
    if as_json:
        print_json([{**asdict(branch), "wrote": counts[branch.id]} for branch in branches])
        return
    if not branches:
        click.echo("The memory is empty: it has no branch yet.", err=True)
    children: dict[int | None, list[Any]] = {}
    for branch in branches:
        children.setdefault(branch.parent, []).append(branch)
    roots = children.get(None, [])
    for depth, branch in depth_first(roots, lambda branch: children.get(branch.number, [])):
        marks = [mark for mark in (branch.live and "live", branch.state) if mark and mark != "open"]
        wrote = ", ".join(_rows(count, what) for what, count in counts[branch.id].items() if count)
        line = f"{'  ' * min(depth, _MOST_INDENTED)}{branch.id}"
        say("  ".join(filter(None, [line, " ".join(marks), wrote])))


@memory_command.command()
@_FILE
@click.argument("branch", required=False)
@click.option(
    "--at", callback=_moment, metavar="ROW|TIME", help="As it was at a row of `history`, or a time."
)
@click.option("--prompt", "as_prompt", is_flag=True, help="As a prompt shows it.")
@click.option("-n", "limit", type=click.IntRange(1), default=20, help="Most rows of a kind.")
@JSON
def show(
    file: Path, branch: str | None, *, at: Moment | None, as_prompt: bool, limit: int, as_json: bool
) -> None:
    """Show the contents of a branch: core, digest, events, records, closed records."""
    with _open(file) as opened:
        shown = _branch(opened, branch)
        if as_prompt:
            say(shown.render(at=at).text)
            return
        names = {item.number: item.id for item in opened.branches()}
        core = list(shown.core.entries(at=at).values())
        digest = shown.digest(at=at)
        events = shown.events(limit=limit, at=at)
        records = shown.records(limit=limit, at=at)
        closed = shown.closed(at=at)[:limit]
    if not (core or digest or events or records or closed):
        click.echo("This branch sees nothing yet.", err=True)
    if as_json:
        found = {"core": core, "events": events, "archival": records, "closed": closed}
        print_json({**found, "digest": digest})
        return
    print_table("core", ("key", "value", "importance", "of"), (
        (entry.key, entry.value, entry.importance, names[entry.branch]) for entry in core
    ))  # fmt: skip
    if digest is not None:
        by = names[digest.branch]
        say(f"summary of {digest.count} earlier events, by {by}\n{digest.text}\n")
    print_table("events", ("id", "kind", "text", "times", "of"), (
        (event.seq, event.kind, event.text, event.count, names[event.branch]) for event in events
    ))  # fmt: skip
    print_table("archival", ("id", "text", "tags", "of"), (
        (item.id, item.text, ", ".join(item.tags), names[item.branch]) for item in records
    ))  # fmt: skip
    print_table("no longer true", ("id", "text", "from", "to", "replaced by"), (
        (item.id, item.text, day(item.valid_from or item.created_at), day(item.valid_to or 0.0),
         item.replaced_by or "") for item in closed
    ))  # fmt: skip


@memory_command.command()
@_FILE
@click.argument("query")
@_BRANCH
@click.option("-k", type=click.IntRange(1), default=10, help="Most records.")
@click.option("-t", "--tag", "tags", multiple=True, help="Only records with this tag.")
@JSON
def search(
    file: Path, query: str, *, branch: str | None, k: int, tags: Sequence[str], as_json: bool
) -> None:
    """Search the archival records a branch sees, best first, and the events of its conversation.

    Events of the conversation are left out with --tag, and of the JSON.
    """
    with _open(file) as opened:
        searched = _branch(opened, branch)
        found = searched.search(query, k, tags=tags)
        events = [] if tags else searched.find_events(query, k)
        names = opened.names([item.branch for item in found])
    if as_json:
        print_json([plain_record(item, names) for item in found])
        return
    is_newest = bool(found) and found[0].match == "recency"
    if tags and not found:
        say(f"Branch {searched.id} has no record with these tags.")
    elif not events and (is_newest or not found):
        newest = " These are the newest records." if found else ""
        say(f"Nothing matches in the records and events that {searched.id} sees.{newest}")
    print_table("conversation", ("seq", "text"), ((item.seq, item.text) for item in events))
    if events and is_newest:
        return
    print_table("records", ("id", "text", "tags", "of"), (
        (item.id, item.text, ", ".join(item.tags), names[item.branch]) for item in found
    ))  # fmt: skip


@memory_command.command()
@_FILE
@click.argument("first")
@click.argument("second")
@JSON
def diff(file: Path, first: str, second: str, *, as_json: bool) -> None:
    """Show how the views of two branches differ."""
    with _open(file) as opened:
        found = opened.diff(first, second)
        texts = {
            item.id: item.text for branch in (second, first) for item in opened[branch].records()
        }
    if as_json:
        print_json(found)
        return
    print_table("core", ("key", first, second), (
        (key, *("-" if value is None else value for value in pair))
        for key, pair in found.core.items()
    ))  # fmt: skip
    for name, events, ids in zip((first, second), found.events, found.archival, strict=True):
        print_table(f"only {name}", ("what", "text"), [
            *(("event", text) for text in events),
            *((f"record {id_}", texts[id_]) for id_ in ids),
        ])  # fmt: skip
    if not (found.core or any(found.events) or any(found.archival)):
        say(f"{first} and {second} see the same.")


@memory_command.command()
@_FILE
@click.argument("branch", required=False)
@click.option("-n", "limit", type=click.IntRange(1), default=50, help="Most rows.")
@JSON
def history(file: Path, branch: str | None, *, limit: int, as_json: bool) -> None:
    """Show the entries a branch itself wrote, newest first."""
    with _open(file) as opened:
        steps = _branch(opened, branch).history(limit=limit)
    if as_json:
        print_json(steps)
        return
    print_table(
        "history", ("seq", "tier", "text"), ((step.seq, step.tier, step.text) for step in steps)
    )


@memory_command.command()
@_FILE
@click.argument("target", type=NEW_FILE)
@click.option("-b", "--branch", metavar="ID", help="A branch; by default everything.")
def export(file: Path, target: Path, *, branch: str | None) -> None:
    """Write a branch with all visible entries, or everything, as JSON Lines."""
    with _open(file) as opened:
        rows = opened.export(target, branch)
    click.echo(f"{rows} rows written to {target}")


@memory_command.command()
@_FILE
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="The page; by default memory_database.html beside the file.",
)
def page(file: Path, *, output: Path | None) -> None:
    """Write the whole memory as one HTML page, to look at in a browser."""
    target = output or file.with_name("memory_database.html")
    with _open(file) as opened:
        opened.write_page(target, title=f"Memory: {file.name}")
    click.echo(f"{target} written; open it in a browser")


@memory_command.command("import")
@click.argument("file", type=NEW_FILE)
@click.argument("source", type=FILE)
def import_(file: Path, source: Path) -> None:
    """Add the branches of an export to a memory file, which is made if missing."""
    is_new = not file.exists()
    try:
        with _open_logged(file) as opened:
            names = opened.import_(source)
    except BranchedMemoryError:
        if is_new:
            remove_database(file)
        raise
    say(f"{_branches(len(names))} added: {', '.join(names)}")


@memory_command.command()
@_FILE
@click.argument("branch")
@click.argument("number", metavar="ID", callback=_id)
def delete(file: Path, branch: str, number: int) -> None:
    """Hide a record or an event from a branch on, by the id that `show` lists (7, or #7).

    Ancestors, siblings and branches that exist already keep it, and so does the file.
    """
    with _open_logged(file) as opened:
        handle = opened[branch]
        operations = {"record": handle.forget, "event": handle.forget_event}
        for kind, forget in operations.items():
            try:
                forget(number)
            except RecordNotVisible:
                continue
            say(f"{kind} {number} is hidden from {branch} on")
            return
    raise RecordNotVisible(f"Branch {branch!r} sees no record or event {number}.")


@memory_command.command()
@_FILE
@click.option("--record", "record_id", type=click.IntRange(1), metavar="ID", help="A record.")
@click.option("--event", "event_id", type=click.IntRange(1), metavar="ID", help="An event.")
@click.option("--key", metavar="KEY", help="A core key, on all branches.")
@click.option("--text", help="Every occurrence of a text; - reads it from the standard input.")
@click.option(
    "--logs",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="A folder of prompt logs: files in it that hold the text are listed.",
)
@click.option("--dry-run", is_flag=True, help="Only print where it is.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
def erase(
    file: Path, *, folders: Sequence[Path], dry_run: bool, yes: bool, as_json: bool, **target: Any
) -> None:
    """Remove a record, an event, a core key or a text for good: from all branches, and from logs.

    Backups, exports and other copies of the file are not reached. The exit status is 1 when a
    file may still hold the text.
    """
    if sum(value is not None for value in target.values()) != 1:
        raise click.UsageError("Give one of --record, --event, --key and --text.")
    is_asking = not (yes or dry_run)
    if target["text"] == "-":
        if is_asking:
            raise click.UsageError("--text - reads the standard input: add --yes or --dry-run.")
        target["text"] = sys.stdin.read().rstrip("\n")
    with _open_logged(file) as opened:
        if is_asking:
            _print(opened.erase(**target, folders=folders, dry_run=True), as_json=False)
            click.confirm("Erase it? It cannot be brought back", abort=True)
        done = opened.erase(**target, folders=folders, dry_run=dry_run)
        _print(done, as_json=as_json)
    sys.exit(0 if done.is_complete else 1)


@memory_command.command()
@_FILE
@JSON
def verify(file: Path, *, as_json: bool) -> None:
    """Check a file. The exit status is 1 when something is wrong."""
    with _open(file) as opened:
        health = opened.verify()
    if as_json:
        print_json(health)
    else:
        for problem in health.problems:
            say(f"problem: {problem}")
        rows = ", ".join(_rows(count, table) for table, count in health.rows.items() if count)
        state = "sound" if health.is_sound else "damaged"
        click.echo(f"{state}: {_branches(health.branches)}, {rows or 'no rows'}")
    sys.exit(0 if health.is_sound else 1)


@memory_command.command()
@_FILE
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@JSON
def gc(file: Path, *, dry_run: bool, as_json: bool) -> None:
    """Remove entries that only pruned branches can read."""
    with _open_logged(file) as opened:
        garbage = opened.collect_garbage(dry_run=dry_run)
    if as_json:
        print_json(garbage)
        return
    verb = "would be removed" if dry_run else "removed"
    click.echo(f"{_branches(len(garbage.branches))} and {amounts(garbage.rows)} {verb}")


def _branches(count: int) -> str:
    return f"{count} branch{'' if count == 1 else 'es'}"


def _rows(count: int, table: str) -> str:
    """Return a number of rows with the name of their table, which is a plural."""
    return f"{count} {table.removesuffix('s') if count == 1 else table}"


def _print(done: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    click.echo(f"{amounts(done.rows)} {'would be erased' if done.is_dry else 'erased'}")
    for path in done.files:
        say(f"{'would be changed' if done.is_dry else 'changed'}: {path}")
    for item in done.untouched:
        say(f"not changed: {item.path}: {item.reason}")
