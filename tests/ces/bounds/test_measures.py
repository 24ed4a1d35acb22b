"""What the bounds measure: sizes of folders, logs and processes, and where groups can be made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from leftovers import groups_of
from ordinary import as_ordinary, can_be_ordinary

from taskweaver.ces import cgroup_tree
from taskweaver.ces.bounds import cgroup
from taskweaver.ces.bounds.bound import bounds_of, held_here
from taskweaver.ces.bounds.cgroup import ControlGroup, sweep_groups
from taskweaver.ces.bounds.folder_size import FolderSize
from taskweaver.ces.bounds.guard import trim_log
from taskweaver.ces.limits import LIMIT_KEYS, KernelLimits, half_of_memory
from taskweaver.config.config_mgt import AppConfigSource

MEBIBYTE = 1 << 20
ROLLUP_RUN = Path(__file__).with_name("rollup_run.py")


def measured(*folders: Path) -> int:
    size = FolderSize()
    for folder in folders:
        size.add(folder)
    size.settle(60, 0)
    return size.bytes


def test_a_folder_counts_links_as_themselves_and_hard_links_once(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "sub", outside):
        folder.mkdir(parents=True)
    (outside / "large").write_bytes(b"1" * 5 * MEBIBYTE)
    (inside / "sub" / "file").write_bytes(b"1" * MEBIBYTE)
    os.link(inside / "sub" / "file", inside / "again")
    (inside / "to a file").symlink_to(outside / "large")
    (inside / "to a folder").symlink_to(outside)
    os.mkfifo(inside / "pipe")
    assert MEBIBYTE <= measured(inside) < 2 * MEBIBYTE
    assert MEBIBYTE <= measured(inside, inside / "sub") < 2 * MEBIBYTE
    assert measured(inside / "to a folder") < MEBIBYTE, "a root that is a link is not followed"
    assert measured(tmp_path / "missing") == 0


def test_what_is_too_deep_is_estimated_by_the_space_that_is_gone(tmp_path: Path) -> None:
    size = FolderSize()
    size.add(tmp_path)
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("large", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, b"1" * 40 * MEBIBYTE)
    os.close(file)
    os.close(here)
    size.settle(60, 0)
    assert size.bytes >= 20 * MEBIBYTE


def test_growth_is_seen_although_others_free_as_much(tmp_path: Path) -> None:
    inside, other = tmp_path / "inside", tmp_path / "other"
    inside.mkdir()
    other.write_bytes(b"1" * 40 * MEBIBYTE)
    size = FolderSize()
    size.add(inside)
    size.settle(60, 24 * MEBIBYTE)
    (inside / "large").write_bytes(b"1" * 30 * MEBIBYTE)
    other.unlink()
    size.settle(60, 24 * MEBIBYTE)
    assert size.bytes >= 30 * MEBIBYTE


def test_a_folder_is_measured_a_little_at_a_time(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_bytes(b"1" * 8192)
    size = FolderSize()
    size.add(tmp_path)
    size.advance(0)
    first = size.bytes
    for _ in range(60):
        size.advance(0)
    assert first < size.bytes
    assert size.bytes >= 50 * 8192
    size.close()


def test_a_log_keeps_its_end(tmp_path: Path) -> None:
    path = tmp_path / "kernel.log"
    assert trim_log(path, 1000) == 0
    path.write_text("a" * 2000 + "the end\n")
    assert trim_log(path, 1000) == 2008
    assert path.read_text().endswith("the end\n")
    assert path.read_text().startswith("[1,508 bytes were removed here]\n")
    assert trim_log(path, 1000) == 0
    assert trim_log(path, 0) == 0


def test_a_log_that_became_a_link_or_a_pipe_is_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("v" * 5000)
    path = tmp_path / "kernel.log"
    path.symlink_to(victim)
    assert trim_log(path, 10) == 0
    assert victim.read_text() == "v" * 5000
    path.unlink()
    os.mkfifo(path)
    assert trim_log(path, 0) == 0


def test_the_default_limits_are_those_of_a_configuration_that_sets_none(tmp_path: Path) -> None:
    source = AppConfigSource(app_base_path=str(tmp_path))
    assert KernelLimits.from_source(source) == KernelLimits.default()
    assert KernelLimits.default().memory_limit_bytes == half_of_memory()


@pytest.mark.parametrize("name", LIMIT_KEYS)
def test_each_limit_follows_its_key(name: str, tmp_path: Path) -> None:
    source = AppConfigSource(config={f"execution.{name}": 7}, app_base_path=str(tmp_path))
    defaults = asdict(KernelLimits.default())
    changed = asdict(KernelLimits.from_source(source)).items() - defaults.items()
    assert len(changed) == 1


def test_each_bound_names_what_holds_it() -> None:
    held = bounds_of(KernelLimits.default(), "landlock", {"memory", "pids"})
    watched = bounds_of(KernelLimits.default(), "landlock", frozenset())
    assert [str(bound).partition(": ")[2][:13] for bound in held[:2]] == ["control group"] * 2
    assert all("watched while" in str(bound) for bound in watched[:2])
    assert "no limit (execution.cpu_limit_s)" in str(held[-1])


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the mount of control groups; its file `self` names the own group."""
    monkeypatch.setattr(cgroup_tree, "_MOUNT", tmp_path)
    monkeypatch.setattr(cgroup_tree, "_OWN", tmp_path / "self")
    return tmp_path


def test_in_version_2_the_nearest_group_that_hands_controllers_on_is_the_parent(
    mount: Path,
) -> None:
    """As systemd arranges it for an ordinary user's programs."""
    app = mount / "user.slice" / "user@1000.service" / "app.slice"
    scope = app / "terminal.scope"
    scope.mkdir(parents=True)
    for folder in (mount, *mount.glob("**/*/")):
        hands_on = "" if folder == scope else "cpu memory pids"
        (folder / "cgroup.subtree_control").write_text(f"{hands_on}\n")
    (mount / "self").write_text(f"0::/{scope.relative_to(mount)}\n")
    assert next(cgroup_tree.parents("memory")) == app
    assert list(cgroup_tree.parents("io")) == []


def service_group(mount: Path, processes: str) -> Path:
    """Lay out the group of a systemd unit with ``Delegate=memory pids``."""
    service = mount / "system.slice" / "taskweaver.service"
    service.mkdir(parents=True)
    (service / "cgroup.procs").write_text(processes)
    (service / "cgroup.controllers").write_text("memory pids\n")
    for folder in (mount, service.parent, service):
        (folder / "cgroup.subtree_control").write_text("")
    (mount / "self").write_text("0::/system.slice/taskweaver.service\n")
    return service


def test_a_server_in_a_group_of_its_own_moves_below_and_divides_the_group(mount: Path) -> None:
    service = service_group(mount, f"{os.getpid()}\n")
    cgroup_tree.enter_subgroup()
    assert (service / "server" / "cgroup.procs").read_text() == str(os.getpid())
    assert (service / "cgroup.subtree_control").read_text() == "+memory +pids"
    # As the system then tells it.
    (service / "cgroup.subtree_control").write_text("memory pids\n")
    (service / "server" / "cgroup.subtree_control").write_text("")
    (mount / "self").write_text("0::/system.slice/taskweaver.service/server\n")
    assert next(cgroup_tree.parents("memory")) == service
    cgroup_tree.enter_subgroup()
    assert not (service / "server" / "server").exists()


def test_a_group_that_others_are_in_is_left_as_it_is(mount: Path) -> None:
    service = service_group(mount, f"{os.getpid()}\n{os.getppid()}\n")
    cgroup_tree.enter_subgroup()
    assert not (service / "server").exists()
    assert (service / "cgroup.subtree_control").read_text() == ""


def test_the_limit_of_a_container_halves_what_is_taken(mount: Path) -> None:
    (mount / "box").mkdir()
    (mount / "cgroup.subtree_control").write_text("memory")
    (mount / "box" / "memory.max").write_text(f"{64 * MEBIBYTE}\n")
    (mount / "self").write_text("0::/box\n")
    assert half_of_memory() == 32 * MEBIBYTE
    (mount / "box" / "memory.max").write_text("max\n")
    assert half_of_memory() > 32 * MEBIBYTE


@pytest.mark.skipif("pids" not in held_here(), reason="no control group can be made here")
def test_a_process_that_runs_joins_a_group_and_is_held_and_ended_in_it() -> None:
    group = ControlGroup(8, 200 << 20)
    code = (
        "import subprocess, sys; sys.stdin.readline()\n"
        "x = [subprocess.Popen(['sleep', '60'], stderr=-3) for _ in range(20)]"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        group.add(process.pid)
        assert group.processes() == [process.pid]
        _, said = process.communicate(b"\n")
    assert b"BlockingIOError" in said
    assert group.events().refused >= 1
    assert 0 < len(group.processes()) <= 8
    group.kill()
    assert group.processes() == []
    group.remove()
    assert "pids" not in group.held


@pytest.mark.parametrize("hands_on", ["memory pids", "cpu memory pids"])
def test_groups_of_a_user_are_in_one_with_its_weight(
    mount: Path, monkeypatch: pytest.MonkeyPatch, hands_on: str
) -> None:
    """In version 2, where a process of two groups would be in the last alone."""
    weights: dict[str, set[Path]] = {}

    def set_limit(folder: Path, controller: str, _limit: int) -> None:
        weights.setdefault(controller, set()).add(folder)

    monkeypatch.setattr(cgroup, "_set_limit", set_limit)
    server = mount / "service" / "server"
    server.mkdir(parents=True)
    for folder, names in ((mount, "cpu memory pids"), (server.parent, hands_on), (server, "")):
        (folder / "cgroup.subtree_control").write_text(names)
    (mount / "self").write_text("0::/service/server\n")
    groups = [ControlGroup(10, 1 << 30, "ann") for _ in range(2)]
    user = mount / "service" / f"taskweaver-{os.getpid()}-ann"
    assert [group.held for group in groups] == [set(hands_on.split())] * 2
    assert weights.get("cpu", {user}) == {user}
    assert len(weights["memory"]) == len(list(user.iterdir())) == 2
    for group in groups:
        assert user.exists()
        group.remove()
    assert not user.exists()


@pytest.mark.skipif("pids" not in held_here(), reason="no control group can be made here")
def test_groups_of_owners_that_were_killed_are_removed() -> None:
    code = (
        "import os; from taskweaver.ces.bounds.cgroup import ControlGroup\n"
        "ControlGroup(8, 200 << 20, 'ann'); print(os.getpid())"
    )
    owner = int(subprocess.check_output([sys.executable, "-c", code]))
    assert groups_of(owner)
    sweep_groups()
    assert not groups_of(owner)


def test_a_group_that_cannot_be_made_is_empty(mount: Path) -> None:
    (mount / "self").write_text("0::/\n")
    group = ControlGroup(10, 1 << 30)
    assert not group.held
    assert group.joined(["true"]) == ["true"]
    assert group.processes() == []
    group.kill()
    group.remove()


@pytest.mark.skipif(not can_be_ordinary(), reason="no program can be run as an ordinary user here")
def test_a_closed_process_is_measured_by_its_own_file_and_another_file_is_refused() -> None:
    done = as_ordinary([str(ROLLUP_RUN)])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("own") > 1 << 20
    assert set(found.values()) == {0}, found
