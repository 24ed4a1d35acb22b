"""Folders and files of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from taskweaver.ces.bounds.guard import SessionGuard
from taskweaver.ces.cell_tables import CellTables
from taskweaver.ces.kernel.operations import IdleOutput
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name

_CONNECTIONS = "kernels"
_MOST_CHARS = 100


def connection_file(folder: Path, client_id: str) -> Path:
    """Return the Jupyter connection file of a kernel in the folder of the session.

    It is there while the kernel runs with its variables; code in a sandbox cannot read it.
    """
    is_name = is_plain_name(client_id) and len(client_id) <= _MOST_CHARS
    name = client_id if is_name else sha256(client_id.encode("utf-8", "replace")).hexdigest()
    return folder / _CONNECTIONS / f"{name}.json"


def write_file(cwd: Path, name: str, content: bytes) -> str:
    """Write a file into a working directory, and return the file's name there.

    Raises:
        ValueError: If the name leaves the directory.
    """
    if not is_plain_name(name):
        raise ValueError(f"{name!r} is not the name of a file without folders")
    with Folder.at(cwd) as folder, folder.replacing(name) as target:
        target.write(content)
    return name


@dataclass(frozen=True, slots=True)
class KernelPaths:
    """Folders and files of a kernel.

    Attributes:
        env_id: Id of the environment.
        session_id: Id of the session.
        folder: Folder of the session.
        cwd: Its working directory.
        log_path: File for the process's own output.
        calls: Private folder with the sockets of the session's `HostCalls`; kernels may not write
            there.
        guard: Keeps the session within its bounds.
        devices: Devices that kernels of its sandbox may use.
        tables: Keeps the tables that its cells end with, if they are wanted.
        output: Waits for its output between operations.
    """

    env_id: str
    session_id: str
    folder: Path
    cwd: Path
    log_path: Path
    calls: Path
    guard: SessionGuard
    devices: tuple[Path, ...] = ()
    tables: CellTables = field(default_factory=CellTables)
    output: IdleOutput = field(default_factory=IdleOutput)

    @property
    def connection_file(self) -> Path:
        """File by which other programs reach the kernel (see `connection_file`)."""
        return connection_file(self.folder, self.session_id)
