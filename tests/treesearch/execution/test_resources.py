"""Resources of a run, in a node's folder: copied, shown, or fetched."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from phase_plans import LIMITS, artifacts
from support import has_bwrap

from taskweaver.ces.command import Command, run_command
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.memory.branched.run.resource_file import Item, read_resource_file
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.execution.resources import (
    read_materials,
    stage_resources,
    with_resources,
)
from taskweaver.treesearch.model.phase_plan import PhasePlan
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
    names = [str(path.relative_to(workspace / "resources")) for path in staged]
    assert names == ["dataset/table", "setup/setup.sh", "template/base"]
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
    shutil.rmtree(workspace / "shown")
    (workspace / "shown").symlink_to(outside)
    with pytest.raises(SearchError, match="is a link"):
        stage_resources(read(*ITEMS), workspace)
    assert [path.name for path in outside.iterdir()] == ["f"]


def test_what_cannot_be_staged_is_told(read: Read, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "host" / "out").symlink_to("/etc")
    (tmp_path / "host" / "huge").touch()
    os.truncate(tmp_path / "host" / "huge", (1 << 30) + 1)  # it takes no room
    bad = [
        ({"name": "x", "class": "template", "path": "none"}, "missing"),
        ({"name": "x", "class": "template", "path": "out"}, "missing"),
        ({"name": "../x", "class": "template", "path": "t"}, "slash"),
        ({"name": "..", "class": "dataset", "path": "t"}, "slash"),
        ({"name": "x", "class": "document", "path": "huge"}, r"1024 MiB .* Make it a dataset"),
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
    assert sorted(os.listdir(tmp_path / "host")) == ["big.csv", "huge", "out", "setup.sh", "t"]  # noqa: PTH208


GIT = ["git", "-c", "user.name=n", "-c", "user.email=e@x.org"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
HUB = """
import pathlib
def snapshot_download(name, *, repo_type, revision, local_dir):
    place = pathlib.Path(local_dir)
    place.mkdir(parents=True)
    (place / "asked").write_text(f"{name} {repo_type} {revision}")
    if name == "o/gone":
        raise OSError("there is no o/gone")
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository of two commits; the first one has a tag."""
    folder = tmp_path / "or igin" / "r.git"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "1")
    (folder / "src" / "one.py").write_text("ONE = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "README.md").write_text("two\n")
    (folder / "out.md").symlink_to("/etc/passwd")
    (folder / "outside").symlink_to("/etc")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "two")
    return folder


Fetch = Callable[..., JobResult]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    """Fetch one source into a node's folder."""

    def fetch(
        kind: str, source: dict[str, Any], node: str = "n", run: str = "true", path: str = "."
    ) -> JobResult:
        materials = read_materials(resource_file(tmp_path / "r.yaml", kind, source, path))
        plan = PhasePlan.from_dict(artifacts(run={"commands": [run]}))
        job = Job(tmp_path, node, tmp_path / node, tmp_path / "logs" / node, plan, LIMITS)
        return run_job(materials.prepared(job, []))

    return fetch


def resource_file(file: Path, kind: str, source: dict[str, Any], path: str = ".") -> Path:
    """Write a resource file with an item of a source."""
    item = {"name": "s0", "class": "template", "source": kind, "resource": "s0", "path": path}
    write_yaml(file, {kind: [{"name": "s0"} | source], "items": [item]})
    return file


def problem(result: JobResult) -> str:
    assert result.error.kind == "DownloadError"
    return result.error.message


@needs_git
def test_a_repository_is_fetched_whole_and_once(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib/n ew"}
    half = tmp_path / "n" / "lib" / "n ew.partial"
    half.mkdir(parents=True)  # as an attempt that was killed leaves it
    (half / "junk").touch()
    done = fetch("github", source, run="ls lib lib/*")
    assert done.error is None
    assert done.output.split() == "lib: n ew lib/n ew: README.md out.md outside src".split()
    shutil.rmtree(origin)
    assert fetch("github", source).error is None, "what is there is fetched no more"
    assert "does not appear to be a git repository" in problem(fetch("github", source, "m"))
    assert not (tmp_path / "m" / "lib" / "n ew").exists()


@needs_git
def test_a_repository_at_a_revision(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    revision = git(origin, "rev-parse", "v1")
    source = {"repo": f"file://{origin}", "ref": revision, "dest": "/workspace/-old"}
    said = problem(fetch("github", source, path="src/two.py"))
    assert "The resource s0 is missing: s0/src/two.py." in said
    assert not (tmp_path / "n" / "-old").exists()
    # The same folder, when the mistake is mended.
    assert fetch("github", source, path="src/one.py").error is None
    assert sorted(os.listdir(tmp_path / "n" / "-old")) == [".git", "src"]  # noqa: PTH208
    assert "remote ref none" in problem(fetch("github", source | {"ref": "none"}, "m"))


@needs_git
def test_github_is_asked_for_a_name_which_is_no_command(
    origin: Path, fetch: Fetch, tmp_path: Path
) -> None:
    mirror = f'[url "file://{origin.parent}/"]\n  insteadOf = https://github.com/o/\n'
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / ".gitconfig").write_text(mirror)  # it is the home of what runs there
    source = {"repo": "o/r.git", "dest": "/workspace/lib"}
    assert fetch("github", source).error is None
    assert (tmp_path / "n" / "lib" / "README.md").read_text() == "two\n"
    source = {"repo": "file:///none; touch x; :", "ref": "a;touch x"}
    source["dest"] = "/workspace/$(touch y)"
    problem(fetch("github", source, "m", path="$(touch z)"))
    assert [path.name for path in (tmp_path / "m").iterdir() if len(path.name) == 1] == []


def test_places_that_runs_empty_are_refused(tmp_path: Path) -> None:
    for place, said in (("/workspace/working/d", "runs empty it"), ("/workspace", "not be it")):
        file = resource_file(tmp_path / "r.yaml", "github", {"repo": "o/r", "dest": place})
        with pytest.raises(SearchError, match=said):
            read_materials(file)


def test_a_data_set_is_fetched_from_a_hub_whole_or_not_at_all(fetch: Fetch, tmp_path: Path) -> None:
    for node in ("n", "m"):
        (tmp_path / node / ".pydeps").mkdir(parents=True)
        (tmp_path / node / ".pydeps/huggingface_hub.py").write_text(HUB)
    source = {"type": "dataset", "repo_id": "o/d", "revision": "v1", "dest": "/workspace/data/d"}
    done = fetch("huggingface", source, path="asked", run="cat data/d/asked")
    assert (done.error, done.output) == (None, "o/d dataset v1")
    said = problem(fetch("huggingface", source | {"repo_id": "o/gone"}, "m"))
    assert "there is no o/gone" in said
    assert not (tmp_path / "m" / "data/d").exists()
