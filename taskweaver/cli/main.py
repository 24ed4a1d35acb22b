"""The command line. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from taskweaver import __version__
from taskweaver.cli.conversations.sessions import sessions
from taskweaver.cli.evaluation.eval_command import eval_command
from taskweaver.cli.memory.command import memory
from taskweaver.cli.opening.folder import TRUST_CHOICE, require_folder
from taskweaver.cli.opening.trust import trust
from taskweaver.cli.options import FILE, FOLDER, PATH
from taskweaver.cli.projects.plugin import plugin
from taskweaver.cli.projects.role import role
from taskweaver.cli.search.search_command import search
from taskweaver.cli.serving.serve_command import serve_command, web_command
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
  taskweaver -p sales --resume            continue where you left
  taskweaver -p sales check a.receipt.json  confirm an answer without a model
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


class Commands(click.Group):
    """Command group that reports an error in one line; ``--debug`` adds the traceback."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; ``server`` is the original's name of ``serve``."""
        return super().get_command(ctx, "serve" if cmd_name == "server" else cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _end(ctx, "interrupted", INTERRUPTED)
        except BrokenPipeError:  # whoever read has left; click ends quietly then
            raise
        except (TaskWeaverError, OSError) as error:
            _end(ctx, str(error), USAGE)


def _end(ctx: click.Context, reason: str, status: int) -> NoReturn:
    """Say why, in one line; called while the error is being handled."""
    from taskweaver.console.terminal.surface import is_plain
    from taskweaver.console.terminal.text import safe
    from taskweaver.utils.redact import redact

    if ctx.params.get("debug"):
        import traceback

        click.echo(redact(traceback.format_exc()), err=True, nl=False)
    line = f"error: {safe(redact(' '.join(reason.split())))}"
    click.secho(line, err=True, fg=None if is_plain(sys.stderr) else "red")
    ctx.exit(status)


def _server_url(_ctx: click.Context, _option: click.Parameter, url: str | None) -> None:
    if url is not None:
        raise click.UsageError(f"Set execution.server, or run: EXECUTION_SERVER={url} taskweaver")


def chat_options(command: F) -> F:
    """Add the options for the question and its answer."""
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
        click.option("--node", metavar="RUN/NODE", help="Continue from a node of a search."),
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
    if ctx.invoked_subcommand is None:
        asked.pop("debug")
        ctx.invoke(chat, **asked)


@commands.command()
@chat_options
@click.pass_obj
def chat(
    project: Path | None,
    *,
    message: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    resume: str | None,
    node: str | None,
) -> None:
    """Ask questions; the default command."""
    require_folder(project)
    if node is not None:
        from taskweaver.cli.opening.projects import open_app
        from taskweaver.treesearch.service import session_on_node

        with open_app(project) as app:
            resume = session_on_node(app, node)
    piped = _piped_text() if message is None else None
    asked = message if message is not None else piped
    if asked is None:
        if as_json:
            raise click.UsageError("--json needs a question: use --message, or pipe it in.")
        from taskweaver.cli.conversations.chat import converse

        converse(project, files, resume)
        return
    if not asked.strip():
        raise click.UsageError("Nothing was asked: the message is empty.")
    from taskweaver.cli.conversations.messages import messages_in, piped_messages
    from taskweaver.cli.conversations.script import run_script

    is_piped = piped is not None
    messages = piped_messages(asked) if is_piped else messages_in(asked)
    status = run_script(
        project, messages, files, is_echoed=is_piped, as_json=as_json, resume=resume
    )
    sys.exit(status)


@commands.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option("-p", "--project", "same", metavar="DIR", type=FOLDER, help="The same as FOLDER.")
@click.pass_obj
def init(project: Path | None, folder: Path | None, same: Path | None) -> None:
    """Make a project folder: configuration, examples, sample data."""
    target = folder or same or project
    if target is None:
        raise click.UsageError("Which folder? For example: taskweaver init sales")
    from taskweaver.cli.projects.init import create_project

    for line in create_project(target):
        click.echo(line)


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option(
    "--forget-models", is_flag=True, help="First forget what was learnt of models' endpoints."
)
@click.pass_obj
def doctor(project: Path | None, *, as_json: bool, forget_models: bool) -> None:
    """Check what works here, and name the remedy for the rest."""
    require_folder(project)
    from taskweaver.cli.projects.doctor import examine

    sys.exit(examine(project, as_json=as_json, are_models_forgotten=forget_models))


@commands.command()
@click.pass_obj
def acp(project: Path | None) -> None:
    """Answer an editor by the Agent Client Protocol, on standard input and output."""
    require_folder(project)
    from taskweaver.cli.conversations.acp_stdio import run_acp

    run_acp(project)


@commands.command()
@click.pass_obj
def mcp(project: Path | None) -> None:
    """Serve the project to other programs as an MCP server, on standard input and output."""
    require_folder(project)
    from taskweaver.cli.conversations.mcp_stdio import serve_mcp

    serve_mcp(project)


@commands.command()
@click.argument("session", required=False)
@click.option("--branch", metavar="B", help="A branch; by default the current one.")
@click.pass_obj
def attach(project: Path | None, *, session: str | None, branch: str | None) -> None:
    """Print a connection file, by which Jupyter clients join the kernel of a session.

    Without SESSION it is the one that was used last. The kernel is that of the process that has
    the session open; where there is none, it runs until this command ends.
    """
    require_folder(project)
    from taskweaver.cli.conversations.attach import attach_to

    attach_to(project, session, branch)


@commands.command()
@click.option("--sys-prefix", is_flag=True, help="For this environment, not for the user.")
def kernelspec(*, sys_prefix: bool) -> None:
    """Install a kernel for Jupyter: notebooks then start theirs here, warm and in a sandbox."""
    from taskweaver.doors.jupyter.kernel_spec import install_spec

    click.echo(str(install_spec(sys.prefix if sys_prefix else None)))


@commands.command()
@click.option("--stdio", is_flag=True, required=True, help="End with standard input.")
@click.option("--socket", "path", required=True, type=PATH, help="Local socket, in a new folder.")
@click.pass_obj
def worker(project: Path | None, *, stdio: bool, path: Path) -> None:
    """Run code for another machine, whose ssh starts this: see execution.server."""
    require_folder(project)
    from taskweaver.cli.serving.run_worker import run_worker

    if not (stdio and path.is_absolute()):
        raise click.UsageError("--socket must be an absolute path.")
    run_worker(project, path)


commands.add_command(eval_command)
commands.add_command(memory)
commands.add_command(role)
commands.add_command(plugin)
commands.add_command(sessions)
commands.add_command(search)
commands.add_command(serve_command)
commands.add_command(trust)
commands.add_command(web_command)


@commands.command()
@click.argument("experience", type=FILE)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another value.")
@click.option("--data", multiple=True, metavar="OLD=NEW", help="Another file for a data file.")
@click.option("--repair", is_flag=True, help="Let the model correct a cell that fails.")
@click.option("--json", "as_json", is_flag=True, help="Print each step as a line of JSON.")
@click.pass_obj
def replay(
    project: Path | None,
    *,
    experience: Path,
    settings: tuple[str, ...],
    data: tuple[str, ...],
    repair: bool,
    as_json: bool,
) -> None:
    """Run a saved conversation again without a model, and compare the results.

    EXPERIENCE is a file that /save wrote. The exit status is 1 when a result is not as recorded.
    """
    require_folder(project)
    from taskweaver.cli.conversations.replay import replay_file

    files = {old: Path(new) for old, new in map(_pair, data)}
    values = dict(map(_pair, settings))
    sys.exit(replay_file(project, experience, values, files, repair=repair, as_json=as_json))


@commands.command()
@click.argument("receipt", type=PATH)
@click.option("--data", multiple=True, metavar="NAME=PATH", help="A file to use as an input.")
@click.option(
    "--trust", "is_trusted", is_flag=True, help="Run its code also where there is no sandbox."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.pass_obj
def check(
    project: Path | None, *, receipt: Path, data: tuple[str, ...], is_trusted: bool, as_json: bool
) -> None:
    """Run the cells of a receipt again without a model, and compare all that it records.

    RECEIPT is a file that /export receipt wrote. The exit status is 1 when something differs.
    """
    require_folder(project)
    from taskweaver.cli.conversations.check import check_file

    files = {name: Path(path) for name, path in map(_pair, data)}
    sys.exit(check_file(project, receipt, files, is_trusted=is_trusted, as_json=as_json))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise click.UsageError(f"{text!r} must be like name=value.")
    return name.strip(), value.strip()


def _piped_text() -> str | None:
    """Return the piped input, or None at a terminal."""
    if sys.stdin is None or sys.stdin.closed:
        return ""
    return None if sys.stdin.isatty() else sys.stdin.read()
