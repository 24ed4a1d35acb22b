"""Run a program as an ordinary user where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

NOBODY = 65534
_PREPARE = """
set -e
if [ ! -x "$2" ]; then exit 99; fi
home=$1; inner=$3; python=$2; shift 3
# Where Python lies below a closed home folder, that folder is shown open and empty but for it.
if [ -n "$inner" ]; then
    place=$(mktemp -d)
    mount --bind "$inner" "$place"
    mount -t tmpfs -o mode=755 none "$home"
    mkdir -p "$inner"
    mount --bind "$place" "$inner"
    umount "$place"; rmdir "$place"
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$python" "$@"
"""


def can_be_ordinary() -> bool:
    """Return whether a program can be run as an ordinary user."""
    if os.geteuid() != 0:
        return True
    tools = all(map(shutil.which, ("unshare", "setpriv", "mount")))
    if not tools:
        return False
    return as_ordinary(["-c", "import taskweaver"]).returncode == 0


def as_ordinary(
    arguments: list[str], groups: tuple[Path, ...] = (), cwd: str = "/"
) -> subprocess.CompletedProcess[str]:
    """Run Python as an ordinary user.

    Args:
        arguments: Arguments for Python.
        groups: Control groups that the process is moved into first.
        cwd: Working directory.
    """
    command = [sys.executable, *arguments]
    if os.geteuid() == 0:
        real = Path(sys.executable).resolve()
        home = Path.home()
        inner = str(home / real.relative_to(home).parts[0]) if home in real.parents else ""
        first = [str(home), sys.executable, inner]
        command = ["unshare", "-m", "sh", "-c", _PREPARE, "sh", *first, *arguments]
    join = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
    return subprocess.run(
        ["sh", "-c", f'{join}exec "$@"', "sh", *command],
        cwd=cwd, env={"PATH": os.defpath, "HOME": "/tmp", "MPLBACKEND": "Agg"},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
