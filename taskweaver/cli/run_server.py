"""The run of a server from start to end, and the browser that shows the page."""

from __future__ import annotations

import gc
import html
import os
import signal
import socket
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.cgroup_tree import enter_subgroup
from taskweaver.cli.open_app import open_app
from taskweaver.cli.printing import tell
from taskweaver.cli.signals import handling
from taskweaver.server.accounts import server_folder
from taskweaver.server.errors import ServerError
from taskweaver.utils.files import write_text
from taskweaver.utils.system.installation import install_command

_MOST_FILES = 65_536


def require_packages(extra: str, user: str, *names: str) -> None:
    """Check that the packages of an extra are installed, for the part that is their user.

    Raises:
        ServerError: If a package is missing.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ServerError(f"{user} needs {', '.join(missing)}:", install_command(extra))


def run_server(
    project: Path | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    *,
    is_behind_proxy: bool = False,
    has_browser: bool = False,
) -> None:
    """Serve a project until a signal arrives. Notices go to standard error.

    Args:
        project: The project folder; None looks for it.
        host: Address to listen at.
        port: Port to listen at; 0 takes a free one.
        hosts: Names by which clients may call the server, besides its address.
        is_behind_proxy: Whether a proxy on this machine names the clients.
        has_browser: Whether a browser opens the page.

    Raises:
        TaskWeaverError: If the project cannot be opened, or the address cannot be listened at.
    """
    require_packages("serve", "The server", "pydantic", "starlette", "uvicorn")
    from taskweaver.server.serving import address_of, listen

    _raise_file_limit()
    enter_subgroup()
    with ExitStack() as stack:
        listener = stack.enter_context(closing(listen(host, port)))
        app = stack.enter_context(open_app(project))
        tell(*app.warnings, f"Sandbox: {app.sandbox}")
        address = address_of(listener)

        def announce(token: str) -> None:
            whole = f"{address}/#token={token}" if token else address
            click.echo(f"TaskWeaver serves {app.app_dir} at {whole}")
            if has_browser:
                stack.callback(open_page(whole, app.workspace))

        names = (host, *hosts)
        serve_doors(app, listener, names, announce, is_behind_proxy=is_behind_proxy)


def _raise_file_limit() -> None:
    """Raise the limit of open files of this process: a session takes up to forty.

    Kernels have a limit of their own.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_FILES)
    with suppress(ValueError, OSError):  # a system with a bound below that which it states
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def serve_doors(
    app: TaskWeaverApp,
    listener: socket.socket,
    hosts: tuple[str, ...],
    on_start: Callable[[str], None],
    *,
    is_behind_proxy: bool = False,
) -> None:
    """Serve an application on a listening socket, until a signal or the end that is asked for.

    Args:
        app: The application.
        listener: The socket.
        hosts: Names by which clients may call the server, besides those of loopback.
        on_start: Called when requests are answered, with the token of the person who started the
            server, empty where users have their own.
        is_behind_proxy: Whether a proxy on this machine names the clients.

    Raises:
        ServerError: If the application runs no code itself, or cannot keep its users apart.
    """
    from taskweaver.doors.kernel_api.door import KernelApi
    from taskweaver.server.accounts import LOCAL_USER, new_token, open_accounts
    from taskweaver.server.databases.address import SharedDatabaseConfig
    from taskweaver.server.gate import Gate
    from taskweaver.server.operations import Door
    from taskweaver.server.serving import Server, make_application

    if app.kernels.get_kernel_mode() == "remote":
        raise ServerError("A server runs code itself.", "Remove execution.server from the project.")
    with ExitStack() as stack:
        shared = SharedDatabaseConfig(app.config)
        accounts = stack.enter_context(open_accounts(shared, app.workspace))
        users = accounts.users()
        require_walls(len(users), app.sandbox_tier)
        local = None if users else new_token()
        only_user = users[0].name if users else LOCAL_USER
        gate = Gate(accounts, local, app.log, "" if has_walls(app.sandbox_tier) else only_user)
        folder = server_folder(app.workspace)
        doors: list[Door] = [
            KernelApi(app.kernels, folder / "users", accounts.admission),
            *_user_doors(app, accounts, stack, shared),
        ]

        def begin() -> None:
            on_start(local.text if local else "")

        def stop() -> None:
            server.should_exit = True

        application = make_application(doors, gate, hosts, app.log)
        server = Server(application, doors, begin, is_behind_proxy=is_behind_proxy)
        # Garbage collections stop all threads: they leave out the objects that exist by now.
        gc.freeze()
        # The server hands the signals on when it has stopped; both have done their work then.
        with handling(signal.SIGTERM, stop), handling(signal.SIGINT, stop):
            server.run([listener])


def _user_doors(app: TaskWeaverApp, accounts: Any, stack: ExitStack, shared: Any) -> list[Any]:
    """Return the doors to the sessions of users. The MCP door needs the package mcp."""
    from taskweaver.doors.agent_api.door import AgentApi
    from taskweaver.doors.chat_completions.door import ChatCompletions
    from taskweaver.doors.page.door import PageDoor
    from taskweaver.server.agents.index import open_indexes
    from taskweaver.server.agents.sessions import AgentSessions

    indexes = open_indexes(shared, app.log)
    stack.callback(indexes.close)  # the sessions close it, unless the server never ran
    sessions = AgentSessions(app, accounts, server_folder(app.workspace) / "agents", indexes)
    doors = [AgentApi(sessions), ChatCompletions(sessions), PageDoor(sessions)]
    if None in map(find_spec, ("mcp", "mcp_types", "sse_starlette")):  # older ones lack the second
        return doors
    from taskweaver.doors.mcp.door import McpDoor

    return [*doors, McpDoor(sessions)]


def has_walls(tier: str) -> bool:
    """Return whether a sandbox separates the kernels of several users."""
    return tier == "bwrap"


def require_walls(users: int, tier: str) -> None:
    """Check that the code of several users is kept apart.

    Raises:
        ServerError: If there are several, and the sandbox does not separate their kernels.
    """
    if users > 1 and not has_walls(tier):
        raise ServerError(
            f"{users} users need the sandbox bwrap, and it is {tier} here: the code of one could"
            " reach the processes of another.",
            "Install bubblewrap and allow user namespaces, or run one server for each user.",
        )


def open_page(address: str, workspace: Path) -> Callable[[], None]:
    """Open the page in a browser, and return a function that removes the helper file.

    The browser gets the name of a private file that leads to the address: the arguments of its
    process, which other users of the machine can list, have no token.
    """
    folder = server_folder(workspace)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"open-{os.getpid()}.html"
    target = html.escape(f"0; url={address}", quote=True)
    write_text(file, f'<!doctype html><meta http-equiv="refresh" content="{target}">', mode=0o600)

    def remove() -> None:
        with suppress(OSError):  # it may be gone with its folder
            file.unlink()

    try:
        is_open = webbrowser.open(file.as_uri())
    except webbrowser.Error:
        is_open = False
    if not is_open:
        tell("No browser could be opened: open the address in one.")
    return remove
