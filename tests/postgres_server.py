"""A PostgreSQL server of the machine's own packages, for as long as a test module runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE_S
from ports import free_port

PASSWORD = "p@ss:wörd/%1"
QUOTED = "p%40ss%3Aw%C3%B6rd%2F%251"


def _binaries() -> Path | None:
    """Return the folder of the server's commands, which Debian does not put on the path."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server on loopback; yield the address of its superuser's database.

    The test is skipped where no server is installed, unless ``POSTGRES_REQUIRED`` is set.
    """
    binaries = _binaries()
    if binaries is None:
        problem = "no PostgreSQL server is installed (Debian: apt install postgresql)"
        (pytest.fail if os.environ.get("POSTGRES_REQUIRED") else pytest.skip)(problem)
    # The server refuses to run as root; the package brings a user for it.
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="taskweaver-postgres-"))

    def run(command: str, *arguments: str) -> None:
        subprocess.run(
            [str(binaries / command), *arguments],
            cwd=folder,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=PATIENCE_S,
        )

    try:
        (folder / "password").write_text(PASSWORD, "utf-8")
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(folder / "password", user)
        data = str(folder / "data")
        secret = f"--pwfile={folder / 'password'}"
        run("initdb", "-D", data, "-U", "boss", "-A", "scram-sha-256", secret, "-E", "UTF8", "-N")
        options = "-c listen_addresses=127.0.0.1 -c unix_socket_directories="
        options += " -c fsync=off -c autovacuum=off -c logging_collector=off"

        def start() -> int:
            port = free_port()
            own = f"-c port={port} {options}"
            run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", own, "start")
            return port

        try:
            port = start()
        except subprocess.CalledProcessError:  # another program may have taken the port meanwhile
            port = start()
        try:
            yield f"postgresql://boss:{QUOTED}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
