"""Run the attacks as root and as an ordinary user, each with a home folder of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from attacks.run import SECRET
from patience import PATIENCE_S

from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.policy import Tier
from taskweaver.ces.sandbox import sandbox

TIERS = (*get_args(Tier), "none")
USERS = ("root", "user")
_NUMBER = "23456"
"""A user id that nobody on the machine has."""
_TESTS = Path(__file__).parents[1]
# In a mount namespace: the interpreter is shown where an ordinary user may not look, in a folder
# that covers the closed one.
_SHOW = """
set -e
mkdir "$2"
mount --bind "$1" "$2"
mount -t tmpfs -o mode=755 tmpfs "$0"
mkdir -p "$1"
mount --bind "$2" "$1"
mount -o remount,ro,bind,mode=755 "$1"
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A tier, and the user who runs the attacks in it.

    Attributes:
        tier: A value of ``execution.sandbox``.
        user: ``root`` or ``user``.
    """

    tier: str
    user: str

    @property
    def title(self) -> str:
        """The name in the table and in the files."""
        return f"{self.tier}, {self.user}"

    def why_not(self) -> str:
        """Return why it cannot be run here; empty if it can."""
        if self.tier != "none":
            try:
                sandbox.require(self.tier)  # type: ignore[arg-type]
            except SandboxUnavailable as error:
                return error.reason
        if os.geteuid() != 0:
            return "" if self.user == "user" else "only root can run it"
        return "" if self.user == "root" else _why_no_user()


def _run(user: str, names: Mapping[str, Sequence[str]]) -> dict[str, dict[str, bool]]:
    """Run the attacks of a user, one tier after the other; return the results by tier.

    `names` has the names of the attacks of each tier, none for all.
    """
    # Names of sockets are short: not below the folder of the tests.
    with tempfile.TemporaryDirectory(prefix="a-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = [sys.executable, "-m", "attacks.run", str(folder / "range"), json.dumps(names)]
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(_TESTS),
            "XDG_STATE_HOME": str(folder / "state"), "LLM_AUTO_DETECT": "false",
            "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder / "tmp"),
            "ATTACKS": os.environ.get("ATTACKS", ""),
            SECRET: f"sibling-secret-{os.urandom(8).hex()}",
        }  # fmt: skip
        for place in ("range", "tmp", "state", "cache"):
            (folder / place).mkdir()
        for place in ("cache/taskweaver/matplotlib", ".cache/matplotlib"):
            _bring_fonts(folder / place)
        if user == "user" and os.geteuid() == 0:
            command = _as_user(command, folder)
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True,
            timeout=len(names) * PATIENCE_S, check=False, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        results: dict[str, dict[str, bool]] = json.loads(done.stdout.splitlines()[-1])
        return results


def run_all(
    columns: Iterable[Column], names: Callable[[Column], Sequence[str]] = lambda _: ()
) -> dict[str, dict[str, bool]]:
    """Run attacks in some columns, both users at a time; return the results by column's title.

    Args:
        columns: The columns.
        names: Returns the names of the attacks for a column; none for all.
    """
    wanted: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        wanted.setdefault(column.user, {})[column.tier] = list(names(column))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(_run, wanted, wanted.values()))
    return {
        Column(tier, user).title: found
        for user, tiers in zip(wanted, results, strict=True)
        for tier, found in tiers.items()
    }


COLUMNS = tuple(Column(tier, user) for tier in TIERS for user in USERS)


def _bring_fonts(folder: Path) -> None:
    """Copy matplotlib's list of fonts, where the tests have made one: making it takes seconds."""
    made = Path(os.environ.get("XDG_CACHE_HOME", "/nowhere")) / "taskweaver" / "matplotlib"
    folder.mkdir(parents=True)
    for path in made.glob("fontlist-*.json"):
        shutil.copy(path, folder)


def _as_user(command: list[str], folder: Path) -> list[str]:
    """Return a command that runs another as an ordinary user, who owns a folder."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, int(_NUMBER), int(_NUMBER))
    dropped = [
        "setpriv", f"--reuid={_NUMBER}", f"--regid={_NUMBER}", "--clear-groups",
        "--inh-caps=-all", *command,
    ]  # fmt: skip
    script, arguments = "", [""]
    closed = _closed_folder(Path(sys.base_prefix))
    if closed is not None:
        arguments = [str(closed), sys.base_prefix, str(folder / "python")]
        script = _SHOW
    script += f"exec {shlex.join(dropped)}"
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, *arguments]


def _closed_folder(path: Path) -> Path | None:
    """Return the outermost folder above a path that others may not enter."""
    above = [folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001]
    return above[0] if above else None


@cache
def _why_no_user() -> str:
    """Return why root cannot run a program as an ordinary user here; empty if it can."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = "import taskweaver, encodings; print('here')"
        done = subprocess.run(
            _as_user([sys.executable, "-c", program], folder), capture_output=True, text=True,
            check=False, cwd=folder,
        )  # fmt: skip
    return "" if done.stdout == "here\n" else f"no program runs as an ordinary user: {done.stderr}"
