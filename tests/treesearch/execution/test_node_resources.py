"""Resources of a run, in a node's folder: copied, or shown."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import has_bwrap

from taskweaver.ces.command.command import Command, run_command
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.memory.branched.run.resource_file import Item, read_resource_file
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.resources import (
    stage_resources,
    with_resources,
)
from taskweaver.utils.files import write_yaml

Read = Callable[..., list[Item]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    host = tmp_path / "host"
    (host / "t" / "sub").mkdir(parents=True)
    (host / "t" / "sub" / "m.c").write_text("int x;")
    (host / "big.csv").write_text("a,b\n1,2\n")
    (host / "setup.sh").write_text("echo set up\n")

    def read(*items: dict[str, Any], **lists: Any) -> list[Item]:
        local = {"name": "host", "host_path": str(host), "mount_path": "/workspace/shown/host"}
        usual = {"source": "local", "resource": "host"}
        data = {"local": [local], "items": [usual | item for item in items]} | lists
        write_yaml(tmp_path / "resources.yaml", data)
        return read_resource_file(tmp_path / "resources.yaml")

    return read


ITEMS = (
    {"name": "base", "class": "template", "path": "t"},
    {"name": "setup.sh", "class": "setup", "path": "setup.sh"},
    {"name": "table", "class": "dataset", "path": "big.csv"},
)


def test_local_items_are_staged(read: Read, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    for _ in range(2):  # and once more, over what is there
        staged = stage_resources(read(*ITEMS), workspace)
    names = [str(path.relative_to(workspace)) for path in staged]
    assert names == [
        "resources/dataset/table", "resources/setup/setup.sh", "resources/template/base",
    ]  # fmt: skip
    copy = workspace / "resources/template/base/sub/m.c"
    assert copy.read_text() == "int x;"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o444
    assert (workspace / "resources/dataset/table").readlink() == tmp_path / "host" / "big.csv"
    assert (workspace / "shown/host/setup.sh").read_text() == "echo set up\n"


@pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")
def test_they_can_be_read_and_not_written_in_the_sandbox(read: Read, tmp_path: Path) -> None:
    items, workspace = read(*ITEMS), tmp_path / "w"
    workspace.mkdir()
    stage_resources(items, workspace)
    policy = with_resources(SandboxPolicy(), items)
    reads = "cat /workspace/resources/dataset/table /workspace/shown/host/setup.sh"
    done = run_command(Command(reads, workspace, sandbox=policy))
    assert done.tail == "a,b\n1,2\necho set up\n"
    writes = "echo x >> /workspace/shown/host/big.csv"
    assert not run_command(Command(writes, workspace, sandbox=policy)).is_ok
    assert (tmp_path / "host" / "big.csv").read_text() == "a,b\n1,2\n"


def test_a_link_in_the_way_is_not_followed(read: Read, tmp_path: Path) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "f").write_text("kept")
    (workspace / "resources").symlink_to(outside)
    stage_resources(read(*ITEMS), workspace)
    assert [path.name for path in outside.iterdir()] == ["f"]
    (workspace / "shown" / "host").unlink()
    (workspace / "shown").rmdir()
    (workspace / "shown").symlink_to(outside)
    with pytest.raises(SearchError, match="is a link"):
        stage_resources(read(*ITEMS), workspace)
    assert [path.name for path in outside.iterdir()] == ["f"]


def test_what_cannot_be_staged_is_told(read: Read, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "host" / "out").symlink_to("/etc")
    bad = [
        ({"name": "x", "class": "template", "path": "none"}, "missing"),
        ({"name": "x", "class": "template", "path": "out"}, "missing"),
        ({"name": "../x", "class": "template", "path": "t"}, "slash"),
        ({"name": "..", "class": "dataset", "path": "t"}, "slash"),
    ]
    for item, problem in bad:
        with pytest.raises(SearchError, match=problem):
            stage_resources(read(item), workspace)
    (workspace / "shown" / "host").unlink()
    (workspace / "shown" / "host").mkdir()
    with pytest.raises(SearchError, match="is there already"):
        stage_resources(read(*ITEMS), workspace)
    for place in ("/workspace", "/workspace/resources", "/workspace/resources/template"):
        local = {"name": "host", "host_path": str(tmp_path / "host"), "mount_path": place}
        with pytest.raises(SearchError):
            stage_resources(read(*ITEMS, local=[local]), workspace)
    assert sorted(os.listdir(tmp_path / "host")) == ["big.csv", "out", "setup.sh", "t"]  # noqa: PTH208
