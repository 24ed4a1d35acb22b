"""Resources that are fetched: repositories by git, data and models from a hub on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hub_server import COMMIT, Hub, serving
from phase_plans import artifacts
from support import has_bwrap

from taskweaver.ces.command.command import CommandLimits
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.memory.branched.run.resource_file import read_resource_file
from taskweaver.memory.branched.run.resources import build_resource_snapshot
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.materials import read_materials
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.execution.resources import stage_resources
from taskweaver.treesearch.model.limits import PhaseLimits
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.utils.files import write_yaml

GIT = ["git", "-c", "user.name=n", "-c", "user.email=e@x.org"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
needs_hub = pytest.mark.skipif(
    find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [*GIT, *words], cwd=folder, check=True, capture_output=True, text=True
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits; the first one has a tag."""
    folder = tmp_path_factory.mktemp("git") / "r.git"
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


@pytest.fixture
def origin(repository: Path, tmp_path: Path) -> Path:
    """A copy of the repository, which a test may change."""
    return shutil.copytree(repository, tmp_path / "or igin" / "r.git", symlinks=True)


Fetch = Callable[..., JobResult]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    """Fetch one source into a node's folder."""

    def fetch(
        kind: str, source: dict[str, Any], node: str = "n", run: str = "true", **fields: Any
    ) -> JobResult:
        file = resource_file(tmp_path / f"{node}.yaml", kind, source, path=fields.pop("path", "."))
        plan = PhasePlan.from_dict(artifacts(run={"commands": [run]}))
        logs = tmp_path / "logs" / node
        job = Job(tmp_path, node, tmp_path / node, logs, plan, **fields)
        return run_job(read_materials(file).prepared(job, []))

    return fetch


def resource_file(file: Path, kind: str, *sources: dict[str, Any], path: str = ".") -> Path:
    """Write a resource file with an item for each source."""
    named = [{"name": f"s{n}"} | source for n, source in enumerate(sources)]
    items = [
        {"name": s["name"], "class": "template", "source": kind, "resource": s["name"],
         "path": path}
        for s in named
    ]  # fmt: skip
    write_yaml(file, {kind: named, "items": items})
    return file


def problem(result: JobResult) -> str:
    assert result.error
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
    assert done.output.split() == ["lib:", "n", "ew", "lib/n", "ew:", *sorted(
        ["README.md", "out.md", "outside", "src"]
    )]  # fmt: skip
    shutil.rmtree(origin)
    assert fetch("github", source).error is None, "what is there is fetched no more"
    assert "does not appear to be a git repository" in problem(fetch("github", source, "m"))
    assert not (tmp_path / "m" / "lib" / "n ew").exists()


@needs_git
@pytest.mark.parametrize("what", ["tag", "commit"])
def test_a_repository_at_a_revision(origin: Path, fetch: Fetch, tmp_path: Path, what: str) -> None:
    revision = "v1" if what == "tag" else git(origin, "rev-parse", "v1")
    source = {"repo": f"file://{origin}", "ref": revision, "dest": "/workspace/-old"}
    assert fetch("github", source, path="src/one.py").error is None
    assert sorted(os.listdir(tmp_path / "n" / "-old")) == [".git", "src"]  # noqa: PTH208


@needs_git
def test_what_a_repository_does_not_have(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib"}
    assert "remote ref none" in problem(fetch("github", source | {"ref": "none"}))
    said = problem(fetch("github", source, path="src/two.py"))
    assert "The resource s0 is missing: s0/src/two.py." in said
    assert not (tmp_path / "n" / "lib").exists()
    # The same folder, when the mistake is mended.
    assert fetch("github", source, path="src/one.py").error is None


@needs_git
def test_github_is_asked_for_a_name_alone(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    mirror = f'[url "file://{origin.parent}/"]\n  insteadOf = https://github.com/o/\n'
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / ".gitconfig").write_text(mirror)  # it is the home of what runs there
    source = {"repo": "o/r.git", "dest": "/workspace/lib"}
    assert fetch("github", source).error is None
    assert (tmp_path / "n" / "lib" / "README.md").read_text() == "two\n"


@needs_git
def test_links_that_lead_out_are_not_followed(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib"}
    assert fetch("github", source).error is None
    os.mkfifo(tmp_path / "n" / "lib" / "wait.md")
    (item,) = build_resource_snapshot(tmp_path / "n.yaml", tmp_path / "n").items
    assert item.availability == "available"
    # A directory link is among the directories, which are not entered.
    assert item.tree.splitlines() == ["README.md", "out.md", "wait.md", "src/one.py"]
    assert item.content == "== README.md\ntwo\n\n== src/one.py\nONE = 1"
    # A program may put a link where the folder was.
    shutil.rmtree(tmp_path / "n" / "lib")
    (tmp_path / "n" / "lib").symlink_to(origin)
    (item,) = build_resource_snapshot(tmp_path / "n.yaml", tmp_path / "n").items
    assert (item.availability, item.tree, item.content) == ("missing", "", "")


@needs_git
def test_a_file_over_the_limit(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    (origin / "huge").write_bytes(os.urandom(2 << 20))
    git(origin, "add", "huge")
    git(origin, "commit", "-q", "-m", "huge")
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib"}
    problem(fetch("github", source, limits=PhaseLimits(command=CommandLimits(file_bytes=1 << 20))))
    assert not (tmp_path / "n" / "lib").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, where one may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@needs_git
def test_a_full_disk(origin: Path, fetch: Fetch, small_disk: Path) -> None:
    (origin / "huge").write_bytes(os.urandom(2 << 20))
    git(origin, "add", "huge")
    git(origin, "commit", "-q", "-m", "huge")
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib"}
    assert "No space left on device" in problem(fetch("github", source, small_disk.name))
    assert not (small_disk / "lib").exists()


def test_a_template_that_does_not_fit(tmp_path: Path, small_disk: Path) -> None:
    host = tmp_path / "host"
    host.mkdir()
    (host / "big").write_bytes(os.urandom(2 << 20))
    source = {"host_path": str(host), "mount_path": "/workspace/host"}
    for path in ("big", "."):
        items = read_resource_file(resource_file(tmp_path / "r.yaml", "local", source, path=path))
        with pytest.raises(SearchError, match="No space left on device"):
            stage_resources(items, small_disk)


@needs_git
def test_two_nodes_fetch_the_same_at_once(origin: Path, fetch: Fetch, tmp_path: Path) -> None:
    source = {"repo": f"file://{origin}", "dest": "/workspace/lib"}
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda node: fetch("github", source, node), ["n", "m"]))
    assert [done.error for done in both] == [None, None]
    assert (tmp_path / "n/lib/README.md").read_text() == (tmp_path / "m/lib/README.md").read_text()


@needs_git
def test_names_are_no_commands(fetch: Fetch, tmp_path: Path) -> None:
    source = {
        "repo": "file:///none; touch x; :",
        "ref": "a;touch x",
        "dest": "/workspace/$(touch y)",
    }
    problem(fetch("github", source, path="$(touch z)"))
    assert [path.name for path in (tmp_path / "n").iterdir() if len(path.name) == 1] == []


def test_places_that_runs_empty_are_refused(tmp_path: Path) -> None:
    for place, said in (("/workspace/working/d", "runs empty it"), ("/workspace", "not be it")):
        source = {"repo": "o/r", "dest": place}
        file = resource_file(tmp_path / "r.yaml", "github", source)
        with pytest.raises(SearchError, match=said):
            read_materials(file)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {
        "dataset:o/d": {"a.csv": b"1,2\n" * 1000, "sub/b.txt": b"x"},
        "model:o/m": {"weights": b"w"},
        "space:o/evil": {"../../evil": b"x"},
    }
    with serving(Hub(files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@needs_hub
def test_a_data_set_is_fetched_and_a_cut_file_goes_on(
    hub: Hub, fetch: Fetch, tmp_path: Path
) -> None:
    hub.cut["a.csv"] = 1
    source = {"type": "dataset", "repo_id": "o/d", "revision": "v1", "dest": "/workspace/data/d"}
    done = fetch("huggingface", source, path="sub/b.txt", run="wc -l data/d/a.csv")
    assert done.error is None
    assert done.output == "1000 data/d/a.csv\n"
    assert f"HEAD /datasets/o/d/resolve/{COMMIT}/a.csv" in hub.asked
    asked = len(hub.asked)
    assert fetch("huggingface", source).error is None
    assert len(hub.asked) == asked, "what is there is fetched no more"


@needs_hub
@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(
            {"repo_id": "o/m", "revision": "v9"}, "Revision Not Found", marks=pytest.mark.long
        ),
        ({"repo_id": "o/m"}, "resolve/{COMMIT}/gone"),
        ({"repo_id": "o/evil", "type": "space"}, "evil"),
    ],
)
def test_what_a_hub_does_not_have(
    hub: Hub, fetch: Fetch, tmp_path: Path, source: dict[str, Any], said: str
) -> None:
    hub.missing = frozenset({"gone"})
    result = fetch("huggingface", source | {"dest": "/workspace/m"})
    assert said.replace("{COMMIT}", COMMIT) in problem(result)
    assert not (tmp_path / "n" / "m").exists()
    assert not (tmp_path / "evil").exists()


@needs_hub
@pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")
def test_only_the_download_has_the_network(hub: Hub, fetch: Fetch) -> None:
    source = {"repo_id": "o/m", "dest": "/workspace/m"}
    policy = SandboxPolicy(has_network=True)
    run = f"cat m/weights; ! python -c 'import urllib.request as u; u.urlopen(\"{hub.url}\")'"
    done = fetch("huggingface", source, run=run, sandbox=policy)
    assert done.error is None
    assert done.output.startswith("w")
    assert "Network is unreachable" in done.output or "refused" in done.output
    none = fetch("huggingface", source, "m", sandbox=SandboxPolicy())
    problem(none)
