"""The command line. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from taskweaver import __version__
from taskweaver.cli.options import FILE, FOLDER, TRUST_CHOICE, require_folder
from taskweaver.cli.printing import print_error
from taskweaver.errors import TaskWeaverError

USAGE, INTERRUPTED = 2, 130
LATEST = "latest"

EXAMPLES = """\b
Examples:
  taskweaver init sales                   make a project folder with sample data
  taskweaver -p sales                     ask questions about it
  taskweaver -p sales -m "describe orders.csv"
  taskweaver --file my.csv -m "plot Count per month" --json
  echo "how many rows has my.csv?" | taskweaver
  taskweaver -p sales --resume            continue where you left off
  taskweaver -p sales check a.receipt.json  confirm an answer without a model
  taskweaver setup                        choose the model that answers
  taskweaver -p sales doctor              say what works here
  taskweaver -p sales search idea.md      search for the best experiment, overnight
  taskweaver -p sales role new price_list make a role of your own
  taskweaver -p sales plugin new my_tool  write a function the model can call
  taskweaver -p sales eval my_cases.yaml  try the model on cases, count calls and tokens
  taskweaver trust sales                  decide what the folder may run
  taskweaver -p sales acp                 serve it to an editor (Agent Client Protocol)
  taskweaver -p sales attach              let JupyterLab join the last session's kernel
  taskweaver -p sales mcp                 serve it to other programs (MCP, stdio)
  taskweaver -p sales web                 open it in a browser
  taskweaver -p sales serve               serve it over HTTP
  taskweaver memory tree memory.sqlite    look into a branched memory

\b
Exit status: 0 answered, 1 not answered, 2 wrong usage or configuration,
130 interrupted."""

F = TypeVar("F", bound=Callable[..., Any])


_LAZY = {
    "acp": (
        "joining",
        "Answer an editor by the Agent Client Protocol, on standard input and output.",
    ),
    "attach": ("joining", "Print a connection file for Jupyter clients."),
    "check": ("rerun", "Run the cells of a receipt again, and compare."),
    "doctor": ("doctor", "Check what works here, and name the remedy for the rest."),
    "eval": ("eval", "Play cases against the configured model."),
    "init": ("projects", "Make a project folder: configuration, examples, sample data."),
    "kernelspec": ("joining", "Install a kernel for Jupyter."),
    "mcp": ("joining", "Serve the project to other programs as an MCP server."),
    "memory": ("memory", "Inspect a memory file: branches, contents, differences."),
    "plugin": ("plugins", "Write and test functions of your own for the model."),
    "replay": ("rerun", "Run a saved conversation again without a model."),
    "role": ("projects", "Make a role of your own."),
    "search": ("search.search_command", "Search for the best experiment."),
    "serve": ("serve", "Serve the project over HTTP, until Ctrl-C."),
    "setup": ("setup", "Choose the model that answers, and test it."),
    "sessions": ("sessions", "List, delete and repair the sessions of a project."),
    "trust": ("opening", "Show what a project runs and loosens, and decide again."),
    "web": ("serve", "Open the project in a browser, until Ctrl-C."),
}
"""Commands that are imported when they run: their module and a line about each."""


class Commands(click.Group):
    """Command group that reports an error in one line. ``--debug`` adds the traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *_LAZY])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. ``server`` is the original's name of ``serve``."""
        name = "serve" if cmd_name == "server" else cmd_name
        if name not in _LAZY:
            return super().get_command(ctx, name)
        module = import_module(f"taskweaver.cli.{_LAZY[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing a command."""
        lines = {name: command.get_short_help_str(80) for name, command in self.commands.items()}
        lines |= {name: line for name, (_, line) in _LAZY.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_error("interrupted", is_debug=ctx.params.get("debug", False))
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:  # whoever read has left; click ends quietly then
            raise
        except (TaskWeaverError, OSError) as error:
            print_error(str(error), is_debug=ctx.params.get("debug", False))
            ctx.exit(USAGE)


def _server_url(_ctx: click.Context, _option: click.Parameter, url: str | None) -> None:
    if url is not None:
        raise click.UsageError(f"Set execution.server, or run: EXECUTION_SERVER={url} taskweaver")


def chat_options(command: F) -> F:
    """Add the options for the question and the answer."""
    options = (
        click.option("-m", "--message", metavar="TEXT", help="Ask one question and exit."),
        click.option(
            "-f",
            "--file",
            "files",
            multiple=True,
            metavar="PATH",
            type=FILE,
            help="Add a file to the first question; may be repeated.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print each round as a line of JSON."),
        click.option(
            "--resume",
            metavar="[ID]",
            is_flag=False,
            flag_value=LATEST,
            help="Continue an earlier session; without an id, with the last one.",
        ),
        click.option("--node", metavar="RUN/NODE", help="Fork a node of a search, and chat."),
        click.option("--detach", is_flag=True, help="With --node: in a session of its own."),
        click.option("--server-url", hidden=True, expose_value=False, callback=_server_url),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-p",
    "--project",
    metavar="DIR",
    type=FOLDER,
    help="Project folder; by default the nearest one above the current folder.",
)
@chat_options
@click.option(
    "--trust/--no-trust",
    "trusted",
    default=None,
    help="Open the project with all it runs and loosens, or without; by default you are asked.",
)
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.version_option(__version__, prog_name="taskweaver")
@click.pass_context
def commands(
    ctx: click.Context, /, *, project: Path | None, trusted: bool | None, **asked: Any
) -> None:
    """Ask questions about your data: a plan, code and a live Python kernel answer.

    Without a command it opens a chat. Each line of standard input is a question or a command.
    """
    ctx.obj = project
    ctx.meta[TRUST_CHOICE] = trusted
    if ctx.invoked_subcommand != "init":
        require_folder(project)
    if ctx.invoked_subcommand is None:
        asked.pop("debug")
        ctx.invoke(chat, **asked)


@commands.command()
@chat_options
@click.pass_obj
def chat(  # noqa: PLR0913 - an option each
    project: Path | None,
    *,
    message: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    resume: str | None,
    node: str | None,
    detach: bool,
) -> None:
    """Ask questions (the default command)."""
    from taskweaver.cli.chat import converse, earlier_session

    opened = earlier_session(resume, node, is_detached=detach)
    piped = _piped_text() if message is None else None
    asked = message if message is not None else piped
    if asked is None:
        if as_json:
            raise click.UsageError("--json needs a question: use --message, or pipe it in.")
        converse(project, files, opened)
        return
    if not asked.strip():
        raise click.UsageError("Nothing was asked: the message is empty.")
    from taskweaver.cli.script import messages_in, piped_messages, run_script

    is_piped = piped is not None
    messages = piped_messages(asked) if is_piped else messages_in(asked)
    status = run_script(
        project, messages, files, is_echoed=is_piped, as_json=as_json, opened=opened
    )
    sys.exit(status)


def _piped_text() -> str | None:
    """Return the piped input, or None at a terminal."""
    if sys.stdin is None or sys.stdin.closed:
        return ""
    return None if sys.stdin.isatty() else sys.stdin.read()
