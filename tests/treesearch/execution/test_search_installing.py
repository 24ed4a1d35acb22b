"""Whole searches that install: step by step or at once, with a model that slips, and pip."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from search_lab import Climber, lab, proposal, remembering, search
from support import has_bwrap

from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.utils.files import write_yaml

SMALL = {
    "install": "iterative", "num_drafts": 1, "num_seeds": 0, "stage1_nodes": 1,
    "stage2_nodes": 0, "stage3_nodes": 0, "stage4_nodes": 0, "memory": False,
}  # fmt: skip
Prompt = Mapping[str, str]


def do(command: str, *, done: bool = False) -> str:
    return json.dumps({"command": command, "done": done, "notes": ""})


class Installer(Climber):
    """A climber whose attempts need something, and that says what to install, step by step.

    Attributes:
        steps: The prompts of the installer.
    """

    def __init__(
        self,
        replies: Sequence[str],
        *,
        wanted: Callable[[Prompt], list[Any]] = lambda _: ["install lib"],
        pip: Sequence[str] = (),
    ) -> None:
        super().__init__(fault=self._step)
        self._replies = list(replies)
        self._wanted = wanted
        self._pip = list(pip)
        self.steps: list[Prompt] = []

    def _step(self, prompt: Prompt) -> str | None:
        if "Progress" in prompt:
            self.steps.append(prompt)
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
            return remembering(prompt, reply)
        if "Kind of attempt" not in prompt:
            plan = {"goal_summary": "go up", "dependencies": {"pip": self._pip}}
            return remembering(prompt, json.dumps({"plan": plan}))
        return None

    def attempt(self, prompt: Prompt) -> dict[str, Any]:
        """Return an attempt that can only run where something was installed."""
        data = super().attempt(prompt)
        parts = data["phase_artifacts"]
        parts["download"] = {"commands": self._wanted(prompt)}
        parts["run"] = {"commands": ["test -e lib || test -d .pydeps", *parts["run"]["commands"]]}
        return data


def only(made: Search) -> Node:
    (node,) = made.state.journal.nodes
    return node


def steps_of(made: Search, node: str = "n0001") -> list[dict[str, Any]]:
    file = made.places.node(node).phase_logs / "phase1_steps.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def phase(node: Node, name: str = "download") -> Any:
    return next(one for one in node.phases if one.name == name)


def test_prose_and_what_is_not_allowed_do_no_harm(tmp_path: Path) -> None:
    model = Installer(
        [
            "Let me look for a manager of packages.",
            f"Sure! I need rights first:\n```json\n{do('sudo -n true || exit 9')}\n```\nThen more.",
            do("touch lib"),
            do("", done=True),
        ]
    )
    made = search(lab(tmp_path), model, **SMALL | {"memory": True})
    node = only(made)
    assert node.error is None
    assert [one.name for one in node.phases] == ["download", "coding", "compile", "run"]
    assert [one["exit_code"] for one in steps_of(made)] in ([9, 0, None], [0, 0, None])
    assert "no JSON object" in model.steps[1]["Parsing Feedback"]
    assert 'that were planned: ["install lib"]' in model.steps[2]["Phase plan"]
    log = made.places.folder / phase(node).log
    assert "$ touch lib" in log.read_text()
    with MemoryManager(made.places.memory) as store:
        assert "phase1_complete" in [event.kind for event in store["n0001"].events()]


def test_one_command_that_fails_again_and_again_ends_it(tmp_path: Path) -> None:
    fails = do("echo no such package >&2; exit 5")
    model = Installer([do("sleep 60"), fails])
    node = only(search(lab(tmp_path), model, **SMALL, download_timeout_s=1))
    assert "its time limit" in model.steps[1]["Progress"]
    assert node.error is not None
    assert node.error.kind == "DownloadError"
    assert "failed 3 times" in node.error.message
    assert "no such package" in node.error.message
    assert len(model.steps) == 4
    assert [one.name for one in node.phases] == ["download"]


def test_done_too_early_is_asked_about_once(tmp_path: Path) -> None:
    needs = ["little_thing>=1.0", "pytest", "json", 3, ""]
    mend = "mkdir -p lib .pydeps && touch .pydeps/little_thing.py"
    model = Installer([do("true"), do("", done=True), do(mend, done=True)], pip=needs)
    made = search(lab(tmp_path / "a"), model, **SMALL, phase0=True)
    assert only(made).error is None
    assert 'packages that are not here: little_thing"}]' in model.steps[2]["Progress"]


def test_an_installer_has_as_many_steps_as_configured(tmp_path: Path) -> None:
    model = Installer([do(f"echo {n}") for n in range(9)])
    search(lab(tmp_path), model, **SMALL | {"phase1_max_steps": 3})
    assert len(model.steps) == 3


def test_children_and_seeds_take_over_what_was_installed(tmp_path: Path) -> None:
    def wanted(prompt: Prompt) -> list[Any]:
        is_other = prompt["Kind of attempt"].startswith("improve")
        return [["install", "other" if is_other else "lib"]]

    model = Installer([do("touch lib", done=True)], wanted=wanted)
    sizes = {"num_seeds": 1, "stage2_nodes": 2, "stage3_nodes": 1}
    made = search(lab(tmp_path), model, **SMALL | sizes)
    nodes = made.state.journal.nodes
    assert {node.error for node in nodes} == {None}
    installed = [node.id for node in nodes if phase(node).status == "ok"]
    asked = [node for node in nodes if node.kind in {NodeKind.DRAFT, NodeKind.IMPROVE}]
    assert installed == [node.id for node in asked]
    assert len(model.steps) == len(asked) == 2
    tuned = next(node for node in nodes if node.kind is NodeKind.HYPERPARAM)
    assert phase(tuned).message == "Its parent installed the same."
    assert NodeKind.SEED in {node.kind for node in nodes}


def wheel(folder: Path, version: str) -> None:
    """Make a package as pip installs it."""
    info = f"little-{version}.dist-info"
    with zipfile.ZipFile(folder / f"little-{version}-py3-none-any.whl", "w") as file:
        file.writestr("little/__init__.py", f"VERSION = {version!r}\n")
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: little\nVersion: {version}\n"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not run here")
def test_pip_installs_into_the_workspace_and_replaces_a_version(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("1.0", "2.0"):
        wheel(folder, version)

    class Tuner(Installer):
        def attempt(self, prompt: Prompt) -> dict[str, Any]:
            is_first = prompt["Kind of attempt"] == "draft"
            # Without a look at all that is installed, three quarters of its time.
            options = f"--no-index --no-warn-conflicts --find-links {folder}"
            command = f"pip install {options} little=={'1.0' if is_first else '2.0'}"
            code = (
                "import json, little\n"
                "json.dump({'metric': float(little.VERSION)}, open('working/result.json', 'w'))\n"
            )
            files = [{"path": "main.py", "content": code}]
            return proposal(
                {"x": 0, "y": 0, "z": 0},
                download={"commands": [command]},
                compile={"commands": []},
                coding={"workspace": {"files": files}},
                run={"commands": ["python main.py"]},
            )

    config = {"execution.sandbox": "bwrap", "execution.read_only_paths": [str(folder)]}
    sizes = {"install": "batch", "num_seeds": 1, "stage2_nodes": 1}
    made = search(lab(tmp_path, **config), Tuner([""]), **SMALL | sizes)
    nodes = made.state.journal.nodes[:3]
    assert [node.value for node in nodes] == [1.0, 1.0, 2.0]
    assert [phase(node).status for node in nodes] == ["ok", "skipped", "ok"]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_what_was_fetched_is_in_the_memory_of_its_node(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x.org"]
    (origin / "kernel.py").write_text("def kernel(): ...\n")
    for step in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *step], cwd=origin, check=True)
    source = {"name": "r", "repo": f"file://{origin}", "dest": "/workspace/resources/r"}
    item = {"name": "base", "class": "template", "source": "github", "resource": "r"}
    write_yaml(tmp_path / "r.yaml", {"github": [source], "items": [item]})
    model = Installer(
        [do("test -e resources/r/kernel.py && touch lib", done=True)],
        wanted=lambda _: ["install lib"],
    )
    project = lab(tmp_path)
    sizes = {"stage2_nodes": 1, "resources": str(tmp_path / "r.yaml"), "memory": True}
    made = search(project, model, **SMALL | sizes)
    draft, child = made.state.journal.nodes
    assert (draft.error, child.error) == (None, None)
    assert "base (template, github), in /workspace/resources/r" in model.steps[0]["Resources"]
    with MemoryManager(made.places.memory) as store:
        index = {
            branch: store.mem_core_get(["RESOURCE_INDEX"], branch_id=branch)["RESOURCE_INDEX"]
            for branch in ("root", "n0001", "n0002")
        }
        (record,) = store["n0002"].records(tags=["resource:template:base"], limit=1)
    assert "pending" in index["root"]
    assert "available" in index["n0001"]
    assert index["n0002"] == index["n0001"]
    assert "def kernel()" in record.text
