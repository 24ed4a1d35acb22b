"""Files by which Jupyter finds kernels: a running kernel, and the kind that Jupyter starts.

A connection file lets clients join the kernel of a session. A specification of kernels makes
Jupyter start them by the provisioner, and a line of configuration makes Jupyter servers fork them.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.session.storage.stored_sessions import stored_sessions
from taskweaver.utils.files import write_text


class AttachedKernel(NamedTuple):
    """A kernel that Jupyter clients can join.

    Attributes:
        session_id: The session.
        branch: The branch; empty if another process runs the kernel.
        file: The connection file.
        problems: Variables that are not restored, in lines for the user.
    """

    session_id: str
    branch: str
    file: Path
    problems: tuple[str, ...] = ()

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process has the session open, and runs the kernel."""
        return not self.branch


@contextmanager
def attached(
    app: TaskWeaverApp, session_id: str | None = None, branch: str | None = None
) -> Iterator[AttachedKernel]:
    """Give the kernel of a session to Jupyter clients.

    Where another process has the session open, it is that process's kernel. Otherwise the session
    is opened here, and its kernel runs with its variables to the end of the block; the cells of
    clients are recorded then, and their variables stored.

    Args:
        app: The project.
        session_id: The session; None for the one that was used last.
        branch: Its branch; None for the current one.

    Raises:
        SessionError: If there is no such session or branch, or no kernel of it here.
        KernelError: If the kernel cannot be started.
    """
    sessions = app.session_manager
    if session_id is None:
        found = stored_sessions(sessions.sessions_folder)
        if not found:
            raise SessionError("There is no session to attach to yet; ask something first.")
        session_id = found[0].session_id
    try:
        session = app.get_session(session_id)
    except SessionInUse:
        file = _running(sessions.sessions_folder / session_id, branch)
        yield AttachedKernel(session_id, "", file)
        return
    with session:
        name = branch or session.branch
        problems = session.at(name).start_kernel()
        file = sessions.connection_file(session_id, name)
        if not file.exists():
            raise SessionError("The session's kernel is on another machine; attach to it there.")
        yield AttachedKernel(session_id, name, file, tuple(problems))


def _running(folder: Path, branch: str | None) -> Path:
    """Return the connection file of a kernel that another process runs."""
    name = f"{folder.name}-{branch}.json" if branch else "*.json"
    files = [file for file in sorted(folder.glob(f"kernels/{name}")) if _answers(file)]
    if not files:
        raise SessionError(
            f"Session {folder.name} is open in another process, where no kernel of it runs yet:"
            " it starts with the first cell. Ask something there first."
        )
    if len(files) > 1:
        names = [file.stem.removeprefix(f"{folder.name}-") for file in files]
        raise SessionError(
            f"Several kernels of session {folder.name} run: name one by --branch"
            f" ({', '.join(names)})."
        )
    return files[0]


def _answers(file: Path) -> bool:
    """Return whether a kernel listens at the addresses of a connection file."""
    try:
        facts = json.loads(file.read_text("utf-8"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(f"{facts['ip']}-{facts['shell_port']}")
    except (OSError, ValueError, KeyError):
        return False  # left behind by a process that was killed
    return True


SPEC_NAME = "taskweaver"
_PROVISIONER = "taskweaver-provisioner"
_EXTENSION = "taskweaver.doors.jupyter.fork_api"


def install_spec(prefix: str | None) -> Path:
    """Write the kernel specification, and enable the server extension; return the first's folder.

    Args:
        prefix: Prefix of an environment; None takes the folder of the user.

    Raises:
        OSError: If it cannot be written.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_core.paths import jupyter_config_dir

    spec = {
        # Without this package in the environment of the Jupyter server, it refuses the kernel.
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python (TaskWeaver, sandboxed)",
        "language": "python",
        "interrupt_mode": "signal",
        "metadata": {"kernel_provisioner": {"provisioner_name": _PROVISIONER}},
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        manager = KernelSpecManager()
        place = manager.install_kernel_spec(folder, SPEC_NAME, user=prefix is None, prefix=prefix)
    config = Path(jupyter_config_dir()) if prefix is None else Path(prefix, "etc", "jupyter")
    enabled = {"ServerApp": {"jpserver_extensions": {_EXTENSION: True}}}
    write_text(config / "jupyter_server_config.d/taskweaver.json", json.dumps(enabled) + "\n")
    return Path(place)
