"""A worker: the kernel API on a local socket, for the ssh connection that started it.

A connection that is lost is followed by another: the second worker finds the first by its socket,
hands its token out, and holds a lease on it as long as its own connection lasts.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.serving.run_server import require_packages, serve_doors
from taskweaver.server.errors import ServerError
from taskweaver.utils.files import write_text

LINGER_S = 600.0
"""Time for which a worker waits for the next connection."""

_LOOK_S = 0.5
_TOKEN, _LEASE, _END = "token", "lease", "end"


def run_worker(project: Path | None, path: Path) -> None:
    """Serve the kernels of a project on a socket until the connections end.

    Args:
        project: The project folder; None looks for it.
        path: Absolute path of the socket, in a folder that this worker makes.

    Raises:
        TaskWeaverError: If the project cannot be opened, or the folder cannot be used.
    """
    require_packages()
    folder = path.parent
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _attach(folder)
        return
    except OSError as error:
        raise ServerError(f"{folder} cannot be made: {error.strerror}.") from error
    try:
        with closing(_listen(path)) as listener, open_app(project) as app:
            _serve(app, listener, folder)
    finally:
        for name in (path.name, _TOKEN, _LEASE, _END):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ServerError(f"{path} cannot be listened at: {error.strerror}.") from error
    return listener


def _serve(app: TaskWeaverApp, listener: socket.socket, folder: Path) -> None:
    is_over = threading.Event()

    def begin(token: str, stop: Callable[[], None]) -> None:
        write_text(folder / _TOKEN, token, mode=0o600)
        _announce(token)
        watcher.append(threading.Thread(target=_watch, args=(folder, is_over, stop), name="lease"))
        watcher[0].start()

    watcher: list[threading.Thread] = []
    try:
        serve_doors(app, listener, (), begin, has_users=False)
    finally:
        is_over.set()
        for thread in watcher:
            thread.join()


def _watch(folder: Path, is_over: threading.Event, stop: Callable[[], None]) -> None:
    """Stop the server at the end of the connection, or a while after the last one was lost."""
    reader = threading.Thread(target=_read, args=(folder,), name="input", daemon=True)
    reader.start()
    alone_s = 0.0
    while not is_over.wait(_LOOK_S):
        is_held = reader.is_alive() or _is_leased(folder)
        alone_s = 0.0 if is_held else alone_s + _LOOK_S
        if (folder / _END).exists() or alone_s >= LINGER_S:
            stop()
            return


def _read(folder: Path) -> None:
    """Wait for the end of standard input; note an orderly one."""
    for line in sys.stdin.buffer:
        if line.strip() == b"end":
            (folder / _END).touch(mode=0o600)
            return


def _announce(token: str) -> None:
    sys.stdout.write(json.dumps({"token": token}) + "\n")
    sys.stdout.flush()


def _attach(folder: Path) -> None:
    """Hold a lease on a worker that runs, until the end of standard input.

    Raises:
        ServerError: If the folder is another user's, or no worker's.
    """
    facts = folder.lstat()
    if folder.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ServerError(f"{folder} is not a folder of a worker of this user.")
    try:
        token = (folder / _TOKEN).read_text("utf-8")
        with _lease(folder):
            _announce(token)
            _read(folder)
    except OSError as error:
        raise ServerError(f"No worker runs in {folder}: {error.strerror}.") from error


@contextmanager
def _lease(folder: Path) -> Iterator[None]:
    import fcntl  # not at the top: the command is listed on systems that lack it

    with (folder / _LEASE).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def _is_leased(folder: Path) -> bool:
    import fcntl

    with (folder / _LEASE).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
