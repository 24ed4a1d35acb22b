"""Installing step by step or at once: the loop alone, and whole searches with pip."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from search_lab import ONE, PLACE, Climber, lab, proposal, remembering, search
from support import has_bwrap

from taskweaver.ces.command import Command, CommandLimits, CommandResult, run_command
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.execution.installation import (
    STEPS_FILE,
    Decision,
    InstallerResult,
    phase1_iterative_driver,
    read_decision,
)
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.utils.files import write_yaml


def do(command: str, *, done: bool = False, notes: str = "") -> dict[str, Any]:
    return {"command": command, "done": done, "notes": notes}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    limits = CommandLimits(timeout_s=0.5)
    return lambda text: run_command(Command(text, tmp_path, limits=limits))


def install(run: Any, *replies: Any, **options: Any) -> tuple[InstallerResult, list[Any]]:
    """Install as a model says, whose last reply is repeated; return also what it was shown."""
    left, shown = list(replies), list[Any]()

    def ask(progress: Mapping[str, Any]) -> Decision:
        shown.append(progress)
        return read_decision(json.dumps(left.pop(0) if len(left) > 1 else left[0]))

    return phase1_iterative_driver(ask, run, 5, **options), shown


def test_step_by_step(run: Any, tmp_path: Path) -> None:
    replies = [do("echo one > f; cat f", notes="first"), do("cat f none"), do("cat f", done=True)]
    result, shown = install(run, *replies, folder=tmp_path / "logs")
    assert (result.ending, result.is_ok) == ("done", True)
    assert [step.exit_code for step in result.steps] == [0, 1, 0]
    assert shown[0] == {"step": 1, "max_steps": 5, "history": []}
    assert shown[1]["history"][0]["stdout_summary"] == "one"
    assert "No such file" in shown[2]["history"][1]["stderr_summary"]
    lines = (tmp_path / "logs" / STEPS_FILE).read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert [(step["step"], step["command"], step["done"]) for step in kept] == [
        (1, "echo one > f; cat f", False), (2, "cat f none", False), (3, "cat f", True),
    ]  # fmt: skip
    assert kept[0]["notes"] == "first"


def test_endings(run: Any) -> None:
    done = do("", done=True)
    for replies, ending, codes in (
        ([do("true"), done], "done", [0, None]),
        ([{"done": True}], "done", [None]),
        # Whoever says it beside the command does not know yet that it fails: it goes on.
        ([do("false", done=True), do("true"), done], "done", [1, 0, None]),
        ([do("exit 7"), done], "done", [7, None]),  # said afterwards, it counts: a probe may fail
        ([do("true"), do("  ")], "empty_command", [0, None]),
        ([do("true")], "max_steps", [0] * 5),
        ([do("exit 3")], "repeated", [3] * 3),
    ):
        result, _ = install(run, *replies)
        assert (result.ending, [step.exit_code for step in result.steps]) == (ending, codes)
        assert result.is_ok == (ending == "done")


def test_a_reply_that_is_no_decision(run: Any) -> None:
    for bad in (
        None, {"command": 3}, {"command": "a\0"}, {"command": "a\ud800"},
        {"command": "ls", "done": "yes"}, {"command": "x" * 200_000}, {"command": [1]},
    ):  # fmt: skip
        with pytest.raises((ValueError, PhasePlanError)):
            read_decision(json.dumps(bad))
    assert read_decision('{"command": ["ls", "a b"]}') == ("ls 'a b'", False, "")
    cancelled, _ = install(lambda _: CommandResult("cancelled"), do("true"))
    assert cancelled.ending == "cancelled"


def test_what_is_missing_is_told_and_it_goes_on(run: Any, tmp_path: Path) -> None:
    def check() -> str:
        return "" if (tmp_path / "lib").exists() else "there is no lib"

    done = do("", done=True)
    result, shown = install(run, done, do("touch lib"), done, check=check, folder=tmp_path)
    assert result.ending == "done"
    assert "there is no lib" in shown[1]["history"][0]["stderr_summary"]
    assert "there is no lib" in (tmp_path / STEPS_FILE).read_text()
    assert install(run, done, check=lambda: "all")[0].ending == "max_steps"


SMALL = ONE | {"install": "iterative", "memory": False}
Prompt = Mapping[str, str]


def said(command: str, *, done: bool = False) -> str:
    return json.dumps(do(command, done=done))


class Installer(Climber):
    """A climber whose attempts need something, and that says what to install, step by step."""

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
    wordy = f"Sure! I need rights first:\n```json\n{do('sudo -n true || exit 9')}\n```\nThen more."
    first, last = "Let me look for a manager of packages.", said("", done=True)
    model = Installer([first, wordy, said("touch lib"), last])
    made = search(lab(tmp_path), model, **SMALL | {"memory": True})
    node = only(made)
    assert node.error is None
    assert [one["exit_code"] for one in steps_of(made)] in ([9, 0, None], [0, 0, None])
    assert "no JSON object" in model.steps[1]["Parsing Feedback"]
    assert 'that were planned: ["install lib"]' in model.steps[2]["Phase plan"]
    log = made.places.folder / phase(node).log
    assert "$ touch lib" in log.read_text()
    with MemoryManager(made.places.memory) as store:
        assert "phase1_complete" in [event.kind for event in store["n0001"].events()]


def test_one_command_that_fails_again_and_again_ends_it(tmp_path: Path) -> None:
    fails = said("echo no such package >&2; exit 5")
    model = Installer([said("sleep 60"), fails])
    node = only(search(lab(tmp_path), model, **SMALL, download_timeout_s=1))
    assert "its time limit" in model.steps[1]["Progress"]
    assert node.error.kind == "DownloadError"
    assert "failed 3 times" in node.error.message
    assert "no such package" in node.error.message
    assert len(model.steps) == 4
    assert [one.name for one in node.phases] == ["download"]


def test_done_too_early_is_asked_about_once(tmp_path: Path) -> None:
    needs = ["little_thing>=1.0", "pytest", "json", 3, ""]
    mend = "mkdir -p lib .pydeps && touch .pydeps/little_thing.py"
    model = Installer([said("true"), said("", done=True), said(mend, done=True)], pip=needs)
    made = search(lab(tmp_path / "a"), model, **SMALL, phase0=True)
    assert only(made).error is None
    assert 'packages that are not here: little_thing"}]' in model.steps[2]["Progress"]


def test_replies_that_are_no_decision_are_asked_for_again_as_others(tmp_path: Path) -> None:
    bad = json.dumps({"command": "ls", "done": "yes"})
    model = Installer([bad, said("touch lib", done=True)])
    assert only(search(lab(tmp_path / "a"), model, **SMALL)).error is None
    assert "done must be true or false" in model.steps[1]["Parsing Feedback"]
    model = Installer([bad])
    node = only(search(lab(tmp_path / "b"), model, **SMALL | {"retries": 2}))
    assert node.error.kind == "DownloadError"
    assert "No decision was made" in node.error.message
    assert len(model.steps) == 2


def test_an_installer_has_as_many_steps_as_configured(tmp_path: Path) -> None:
    model = Installer([said(f"echo {n}") for n in range(9)])
    search(lab(tmp_path), model, **SMALL | {"phase1_max_steps": 3})
    assert len(model.steps) == 3


def test_children_and_seeds_take_over_what_was_installed(tmp_path: Path) -> None:
    def wanted(prompt: Prompt) -> list[Any]:
        is_other = prompt["Kind of attempt"].startswith("improve")
        return [["install", "other" if is_other else "lib"]]

    model = Installer([said("touch lib", done=True)], wanted=wanted)
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
    metadata = f"Metadata-Version: 2.1\nName: little\nVersion: {version}\n"
    with zipfile.ZipFile(folder / f"little-{version}-py3-none-any.whl", "w") as file:
        file.writestr("little/__init__.py", f"VERSION = {version!r}\n")
        file.writestr(f"{info}/METADATA", metadata)
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
            coding, run = [{"path": "main.py", "content": code}], {"commands": ["python main.py"]}
            return proposal(PLACE, download={"commands": [command]}, coding=coding, run=run)

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
    model = Installer([said("test -e resources/r/kernel.py && touch lib", done=True)])
    sizes = {"stage2_nodes": 1, "resources": str(tmp_path / "r.yaml"), "memory": True}
    made = search(lab(tmp_path), model, **SMALL | sizes)
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
