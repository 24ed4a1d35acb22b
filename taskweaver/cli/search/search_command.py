"""``taskweaver search``: an idea goes in, the best experiment comes out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from taskweaver.cli.options import FILE, PATH
from taskweaver.config.keys.known_keys import BY_NAME

_EXAMPLES = """\b
Examples:
  taskweaver -p lab search ideas/stencil.md         until the stages are through
  taskweaver -p lab search idea.md --time 8h --budget 5usd --workers 4
  taskweaver -p lab search --resume latest          continue after a stop or a crash
  taskweaver -p lab search list
  taskweaver -p lab search show latest
  taskweaver -p lab search open latest              the page, in your browser
  taskweaver -p lab chat --node latest/best         ask a node about itself"""
_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.I)
_MONEY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:usd|eur|\$|€)?", re.I)
F = TypeVar("F", bound=Callable[..., Any])


class SearchGroup(click.Group):
    """A group whose first word may be an idea: ``search idea.md`` is ``search run idea.md``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in that is meant."""
        is_known = bool(args) and (args[0] in self.commands or args[0] in {"-h", "--help"})
        if not args or is_known:
            return super().parse_args(ctx, args)
        close = get_close_matches(args[0], self.commands, n=1)
        if close and not Path(args[0]).exists():
            ctx.fail(f"There is no file {args[0]}. Did you mean `search {close[0]}`?")
        return super().parse_args(ctx, ["run", *args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of a search too: ``run`` is seldom written."""
        records = (option.get_help_record(ctx) for option in self.commands["run"].params)
        with formatter.section("Options of a search"):
            formatter.write_dl(list(filter(None, records)))
        super().format_options(ctx, formatter)


@click.group(
    "search",
    cls=SearchGroup,
    epilog=_EXAMPLES,
    subcommand_metavar="IDEA | --resume RUN | COMMAND ...",
)
def search_command() -> None:
    """Search for the best experiment: drafts, repairs, improvements, tuning, ablations.

    IDEA is a Markdown file with the task and the way to measure it. Ctrl-C stops cleanly:
    finished work is kept, and --resume continues. Runs are kept in the folder experiments/ of the
    project, with a report and a page each.
    """


def _seconds(_ctx: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise click.BadParameter("write a time with its unit, like 8h, 1h30m, 20m or 90s.")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _money(_ctx: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    match = _MONEY.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter("write an amount like 5 or 5usd.")
    return float(match[1])


_OF_KEYS = {
    "--workers --num_workers --num-workers": "search.workers",
    "--executor": "search.executor",
    "--scheduler": "search.scheduler",
    "--steps": "search.steps",
    "--tokens": "search.token_limit",
    "--seed": "search.seed",
    "--policy": "search.policy",
    "--phase_mode --phase-mode": "search.phase_mode",
    "--phase1_max_steps --phase1-max-steps": "search.phase1_max_steps",
    "--resources": "search.resources",
    "--memory_core_max_chars": "memory.core_max_chars",
    "--memory_recall_max_events": "memory.recall_max_events",
    "--memory_retrieval_k": "memory.retrieval_k",
    "--memory_max_compression_iterations": "memory.max_compression_iterations",
}
"""Options that stand for a key of the configuration, in the form of the key."""

_HIDDEN = ("memory.", "search.phase1")
"""Beginnings of keys whose options are read for the original's command lines alone."""


def _key_options(command: F) -> F:
    """Add the options of `_OF_KEYS`, named like their keys with ``_`` for the first dot."""
    for names, name in reversed(_OF_KEYS.items()):
        key = BY_NAME[name]
        kinds = {"int": click.IntRange(int(key.minimum or 0)), "path": FILE}
        kind = click.Choice(key.choices) if key.choices else kinds.get(key.type)
        command = click.option(
            *names.split(),
            name.replace(".", "_", 1),
            type=kind,
            help=key.doc,
            hidden=name.startswith(_HIDDEN),
        )(command)
    return command


@search_command.command()
@click.argument("idea", required=False)
@click.option("--load_ideas", "--load-ideas", type=PATH, hidden=True)
@click.option("--idea_idx", "--idea-idx", type=int, help="Which idea of a JSON list.")
@click.option("--name", help="Name of a new run's folder.")
@click.option("--resume", metavar="RUN", help="Continue a run; `latest` is the newest.")
@_key_options
@click.option(
    "--time",
    "search_time_limit_s",
    callback=_seconds,
    metavar="8h",
    help="Longest time of the run.",
)
@click.option("--budget", "search_cost_limit", callback=_money, metavar="5usd", help="Most money.")
@click.option("--config", "bfts", type=PATH, help="A bfts_config.yaml of the original.")
@click.option(
    "--memory/--no-memory", "memory_enabled", default=None, help="Whether nodes remember."
)
@click.option(
    "--memory_db",
    "--memory-db",
    type=PATH,
    help="File of a new run's memory; by default it is in the run's folder.",
)
@click.option("--enable_memgpt", "--enable-memgpt", is_flag=True, hidden=True)
@click.option("--until_input_ends", is_flag=True, hidden=True)
@click.option("--plain", is_flag=True, help="A line for each node, and no live tree.")
@click.pass_obj
def run(project: Path | None, /, *, idea: str | None, resume: str | None, **options: Any) -> None:
    """Search with IDEA, a Markdown file with the task and the way to measure it.

    Ctrl-C stops it cleanly: finished work is kept, and --resume continues.
    """
    from taskweaver.cli.search.run_search import search_and_show
    from taskweaver.cli.search.search_options import read_options
    from taskweaver.utils.named_files import Finder

    is_plain, is_owned = options.pop("plain"), options.pop("until_input_ends")
    path = options.pop("load_ideas")
    if idea:
        found = Finder(Path.cwd()).find(idea) or Finder(project).find(idea)
        path = found.path if found else Path(idea)
    choice = read_options(path, resume, options)
    sys.exit(search_and_show(project, choice, is_plain=is_plain, is_owned=is_owned))


@search_command.command(name="list")
@click.pass_obj
def list_(project: Path | None) -> None:
    """List the runs of the project, the newest first."""
    from taskweaver.cli.search.run_search import list_runs

    list_runs(project)


@search_command.command()
@click.argument("run", default="latest")
@click.pass_obj
def show(project: Path | None, run: str) -> None:
    """Show the tree of a run, and the best node."""
    from taskweaver.cli.search.run_search import show_run

    show_run(project, run)


@search_command.command()
@click.argument("run", default="latest")
@click.pass_obj
def report(project: Path | None, run: str) -> None:
    """Write report, page and all results of a run anew."""
    from taskweaver.cli.search.run_search import write_report

    write_report(project, run)


@search_command.command(name="open")
@click.argument("run", default="latest")
@click.pass_obj
def open_(project: Path | None, run: str) -> None:
    """Open the page of a run in the browser."""
    from taskweaver.cli.search.run_search import open_page

    open_page(project, run)
