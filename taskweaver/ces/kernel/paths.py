"""Folders and files of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from taskweaver.ces.bounds.guard import SessionGuard
from taskweaver.utils.file_system.safe_fs import Folder, is_plain_name


@dataclass(frozen=True, slots=True)
class KernelPaths:
    """Folders and files of a kernel.

    `calls` is a private folder with the sockets of the session's `HostCalls`, which kernels may not
    write; `devices` may be used by kernels of its sandbox.
    """

    env_id: str
    session_id: str
    folder: Path
    cwd: Path
    log_path: Path
    calls: Path
    guard: SessionGuard
    devices: tuple[Path, ...] = ()

    def write_file(self, name: str, content: bytes) -> None:
        """Write a file into the working directory.

        Raises:
            ValueError: If the name leaves the directory.
        """
        if not is_plain_name(name):
            raise ValueError(f"{name!r} is not the name of a file without folders")
        with Folder.at(self.cwd) as folder, folder.replacing(name) as target:
            target.write(content)
