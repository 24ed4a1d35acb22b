"""``taskweaver serve`` and ``web``: a project over HTTP, and the users of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from taskweaver.cli.options import JSON
from taskweaver.cli.printing import print_json, print_table

_COUNT = click.IntRange(min=0)
_PORT = click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen at; 0 takes a free one.",
)


@click.group("serve", invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@_PORT
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name by which clients call the server, as behind a proxy; may be repeated.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Believe X-Forwarded-For, -Proto and -Prefix of a proxy on this machine.",
)
@click.pass_context
def serve_command(
    ctx: click.Context, *, host: str, port: int, hosts: tuple[str, ...], behind_proxy: bool
) -> None:
    """Serve the project over HTTP, until Ctrl-C.

    Without users the address that is printed has a token, good until the end of the program. With
    users each has a token of their own.
    """
    if ctx.invoked_subcommand is None:
        from taskweaver.cli.run_server import run_server

        run_server(ctx.obj, host, port, hosts, is_behind_proxy=behind_proxy)


@click.command("web")
@_PORT
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@click.pass_obj
def web_command(project: Path | None, /, *, port: int, no_browser: bool) -> None:
    """Open the project in a browser, until Ctrl-C.

    The same as `serve` on this machine, and a browser at its page.
    """
    from taskweaver.cli.run_server import run_server

    run_server(project, "127.0.0.1", port, (), has_browser=not no_browser)


@serve_command.group()
def users() -> None:
    """List, add and remove the users of the server."""


@users.command("list")
@JSON
@click.pass_obj
def list_users(project: Path | None, *, as_json: bool) -> None:
    """List the users with their quotas."""
    with _accounts(project) as accounts:
        found = accounts.users()
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("There are no users; the server serves the person who starts it.")
    names = ("cost", "tokens", "kernels", "memory_mb", "disk_mb", "sessions", "requests")
    rows = [
        (
            user.name,
            user.role,
            *("-" if (limit := getattr(user.quota, name)) is None else limit for name in names),
        )
        for user in found
    ]
    print_table("Users", ("name", "role", *names), rows)


@users.command("add")
@click.argument("name")
@click.option("--role", default="user", type=click.Choice(["admin", "user"]), show_default=True)
@click.option("--cost", type=click.FloatRange(min=0), help="Most money for model calls.")
@click.option("--tokens", type=_COUNT, help="Most tokens of model calls.")
@click.option("--kernels", type=_COUNT, help="Most kernels at a time.")
@click.option("--memory-mb", type=_COUNT, help="Most memory in MiB of the kernels together.")
@click.option("--disk-mb", type=_COUNT, help="Most disk space in MiB of the files together.")
@click.option("--sessions", default=100, type=_COUNT, help="Most open sessions.")
@click.option("--requests", default=200, type=_COUNT, help="Most requests and streams at a time.")
@click.pass_obj
def add_user(project: Path | None, /, *, name: str, role: str, **limits: Any) -> None:
    """Add a user, and print the token, which is shown this once."""
    from taskweaver.server.admission import Quota

    with _accounts(project) as accounts:
        chosen = "admin" if role == "admin" else "user"
        click.echo(accounts.add(name, chosen, Quota(**limits)).text)


@users.command("token")
@click.argument("name")
@click.pass_obj
def renew_token(project: Path | None, *, name: str) -> None:
    """Print a new token of a user. The old token is invalid from now on."""
    with _accounts(project) as accounts:
        click.echo(accounts.renew_token(name).text)


@users.command("remove")
@click.argument("name")
@click.pass_obj
def remove_user(project: Path | None, *, name: str) -> None:
    """Remove a user. The token is invalid from now on, and the user's files stay."""
    with _accounts(project) as accounts:
        accounts.remove(name)
    click.echo(f"{name} is removed.")


@serve_command.command()
@click.option("-n", "count", default=50, show_default=True, type=click.IntRange(min=1))
@JSON
@click.pass_obj
def audit(project: Path | None, *, count: int, as_json: bool) -> None:
    """Print the last entries of the audit log."""
    with _accounts(project) as accounts:
        found = accounts.audit(count)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            entry.user or "-",
            entry.address,
            entry.action,
            entry.target,
            entry.outcome,
        )
        for entry in found
    ]
    print_table("Audit", ("time (UTC)", "user", "address", "action", "path", "outcome"), rows)


def _accounts(project: Path | None) -> Any:
    from taskweaver.cli.opening import read_source, stored_consent
    from taskweaver.cli.run_server import require_packages
    from taskweaver.server.accounts import open_accounts
    from taskweaver.server.databases.address import SharedDatabaseConfig
    from taskweaver.trust.errors import ProjectNotTrusted

    require_packages("serve", "The server", "pydantic", "starlette", "uvicorn")
    is_granted, inspection = stored_consent(project)
    if not is_granted and "server.database" in inspection.keys:
        # Without it the users would be those of the files, which no server reads.
        raise ProjectNotTrusted(str(inspection.folder), inspection.lines)
    source = read_source(project)
    return open_accounts(
        SharedDatabaseConfig(source), Path(source.get_path("workspace.workspace_path"))
    )
