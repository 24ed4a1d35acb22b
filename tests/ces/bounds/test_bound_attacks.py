"""Attacks on each bound: with the bounds off they succeed, with them on they do not.

They run in real kernels, in each sandbox, as root and as an ordinary user, with a control group
and without one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kernels import TIERS
from ordinary import NOBODY, as_ordinary, can_be_ordinary
from patience import PATIENCE_S

from taskweaver.ces.bounds.bound import held_here

RUN = Path(__file__).with_name("attack_run.py")
WANTED = {
    # Attack: what it makes of the machine, and the key that keeps it from it.
    "memory": (450, "execution.memory_limit_mb"),
    "memory of a child": ("450", "execution.memory_limit_mb"),
    "memory in files": (480, "execution.memory_limit_mb"),
    "processes": (150, "execution.process_limit"),
    "threads": (150, "execution.process_limit"),
    "open files": (400, "execution.open_file_limit"),
    "one file": (16, "execution.file_limit_mb"),
    "working folder": (60, "execution.folder_limit_mb"),
    "deleted files": (60, "execution.folder_limit_mb"),
    "kernel.log": (6, "execution.log_limit_mb"),
}
IS_LONG = os.environ.get("ATTACKS") == "all"
"""Whether each way of holding a bound is tried with each sandbox, as `make long` does."""
CASES = [
    ("bwrap", "root", "groups"), ("bwrap", "ordinary", "watched"),
    ("landlock", "ordinary", "delegated"),
]  # fmt: skip
if IS_LONG:
    CASES += [
        ("none", "root", "watched"), ("landlock", "root", "groups"),
        ("landlock", "ordinary", "watched"), ("none", "ordinary", "watched"),
    ]  # fmt: skip


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder that is open to others, as pytest's is not."""
    with tempfile.TemporaryDirectory(prefix="bounds-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o777)
        yield folder


def attacked(tier: str, who: str, groups: str, limits: str, folder: str) -> dict[str, Any]:
    """Run the attacks in a process of their own; skip where this machine cannot."""
    require(tier, who)
    holds = "watched" if groups == "watched" else "groups"
    arguments = [str(RUN), tier, holds, limits, folder]
    if who == "ordinary":
        with delegated(wanted=groups == "delegated") as places:
            done = as_ordinary(arguments, places)
    else:
        words = [sys.executable, *arguments]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def require(tier: str, who: str) -> None:
    """Skip where there is no such sandbox, or no such user."""
    is_root = os.geteuid() == 0
    if who == "root" and not is_root:
        pytest.skip("the tests do not run as root")
    if who == "ordinary" and is_root and not can_be_ordinary():
        pytest.skip("no program can be run as an ordinary user here")
    if tier not in {"none", *TIERS}:
        pytest.skip(f"{tier} does not run here")


@contextmanager
def delegated(*, wanted: bool) -> Iterator[tuple[Path, ...]]:
    """Give control groups of version 1 that belong to the ordinary user; none where not wanted."""
    if not wanted:
        yield ()
        return
    mounts = [Path("/sys/fs/cgroup") / name for name in ("memory", "pids")]
    if os.geteuid() != 0 or not all((mount / "cgroup.procs").exists() for mount in mounts):
        pytest.skip("no control group can be given to an ordinary user here")
    places = tuple(mount / f"tw-test-{os.getpid()}" for mount in mounts)
    try:
        for place in places:
            place.mkdir()
            for path in (place, place / "cgroup.procs", place / "tasks"):
                os.chown(path, NOBODY, NOBODY)
        yield places
    finally:
        for place in places:
            for folder in (*place.glob("taskweaver-*"), place):
                with suppress(OSError):  # it was not made
                    folder.rmdir()


@pytest.mark.long  # that a key is named below proves that an attack went beyond its bound
@pytest.mark.parametrize("tier", ["bwrap", "landlock", "none"] if IS_LONG else ["none"])
def test_without_bounds_the_attacks_succeed(tier: str, folder: str) -> None:
    who = "root" if os.geteuid() == 0 else "ordinary"
    found = attacked(tier, who, "watched", "off", folder)
    made = {name: found[name]["output"] for name in WANTED}
    assert made == {name: figure for name, (figure, _) in WANTED.items()}
    assert found["log bytes"] >= 6 << 20
    assert all(bound["limit"] == 0 for bound in found["bounds"])


@pytest.mark.parametrize(("tier", "who", "groups"), CASES, ids=["-".join(case) for case in CASES])
def test_with_bounds_each_attack_ends_and_its_key_is_named(
    tier: str, who: str, groups: str, folder: str
) -> None:
    found = attacked(tier, who, groups, "on", folder)
    for name, (_, key) in WANTED.items():
        assert key in found[name]["said"], name
        assert found[name]["after"] == 21, f"no cell runs after {name}"
    assert found["log bytes"] <= 1 << 20
    assert found["memory"]["status"] == "died"
    # 120 MiB in a kernel and in its snapshot, which the ordinary user may not look into.
    assert found["shared"] == {"output": 120, "error": None}
    # 48 MiB in eight snapshots count once after the kernel deleted them.
    assert found["deleted"] == {"output": 48, "error": None, "seen": True}
    assert found["kept"] == [1, 1]
    # What a cell left behind is counted and named.
    assert "2 processes that cells started still run: sleep (2)." in found["left behind"]["said"]
    assert found["left"] == "2 processes that cells started still run: sleep (2)."
    mechanisms = {bound["name"]: bound["mechanism"] for bound in found["bounds"]}
    has_groups = groups == "delegated" or (groups == "groups" and "memory" in held_here())
    assert (mechanisms["memory"] == "control group") == has_groups
    if not has_groups:
        is_counted = tier == "bwrap" and who == "ordinary"
        wanted = "limit of the sandbox's user namespace" if is_counted else "watched"
        assert mechanisms["processes"].startswith(wanted)
