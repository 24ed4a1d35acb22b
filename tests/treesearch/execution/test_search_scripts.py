"""Searches whose attempts are one script each, in kernels that are forked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import PATIENCE_S
from search_lab import FAST, Climber, lab, remembering, search

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.execution.scripts import Program, Script, ScriptRunner
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.service import start_search

SINGLE = {
    "phase_mode": "single", "stage1_nodes": 2, "num_drafts": 1, "stage2_nodes": 1,
    "stage3_nodes": 0, "stage4_nodes": 0, "num_seeds": 1,
}  # fmt: skip
RESULT = "import json\njson.dump({'metric': %s}, open('working/result.json', 'w'))\n"


def scripts(by_kind: Mapping[str, str]) -> Climber:
    """A model that writes the script of each kind."""

    def fault(prompt: Mapping[str, str]) -> str | None:
        kind = prompt.get("Kind of attempt", "").split(" ")[0]
        if kind not in by_kind:
            return None
        answer = {"plan": f"a {kind}", "name": "", "code": by_kind[kind]}
        return remembering(prompt, json.dumps(answer))

    return Climber(fault=fault)


def log_of(run: Path, node: str) -> str:
    return (run / "logs/0-run/phase_logs" / f"node_{node}" / "run.log").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return lab(tmp_path)


def test_a_child_has_the_variables_of_its_parent(tmp_path: Path) -> None:
    model = scripts(
        {
            "draft": "import os\ndata = list(range(5))\n" + RESULT % "sum(data)",
            "hyperparam": "data.append(90)\n"
            + RESULT % "sum(data) + int(os.environ['TASKWEAVER_SEED'])",
        }
    )
    made = search(lab(tmp_path), model, **SINGLE)
    draft, seed, child, again = [n for n in made.state.journal.nodes if not n.is_fresh]
    assert (draft.value, seed.value, child.value) == (10.0, 10.0, 100.0)
    assert [node.kind for node in (seed, again)] == [NodeKind.SEED] * 2
    assert again.value == 101.0
    assert "a new kernel" in log_of(made.places.folder, "n0001")
    assert "forked from the kernel of n0001" in log_of(made.places.folder, child.id)
    shown = [p for p in model.prompts if p.get("Kind of attempt", "").startswith("hyperparam")]
    assert "Its variables are those the program of the parent left" in shown[0]["Instructions"]


def test_a_kernel_that_cannot_be_forked_is_new(tmp_path: Path) -> None:
    model = scripts({"draft": "data = 1\n" + RESULT % "data", "hyperparam": RESULT % "data"})
    settings = SINGLE | {"fork_kernels": False, "num_seeds": 0}
    made = search(lab(tmp_path), model, **settings)
    child = made.state.journal.nodes[-1]
    assert child.status is NodeStatus.BUGGY
    assert child.error is not None
    assert "NameError" in child.error.message
    shown = [p for p in model.prompts if p.get("Kind of attempt", "").startswith("hyperparam")]
    assert "It is new" in shown[0]["Instructions"]


DRAFT = (
    "import json, os\nplace = os.path.abspath('working/data.json')\n"
    "data = list(range(5))\nopen(place, 'w').write(json.dumps(data))\n"
    "drawn = int(os.environ['TASKWEAVER_SEED'])\n"
) + RESULT % "sum(data)"
ADDED = "assert not os.listdir('working')\ndata.append(90)\n" + RESULT % (
    "sum(data) + len(json.load(open(place))) + 1000 * drawn + int(os.environ['TASKWEAVER_SEED'])"
)


def test_a_program_that_fails_is_mended_where_it_began(project: Path) -> None:
    wrong = "data.append(50)\n1 / 0"
    model = scripts({"draft": DRAFT, "hyperparam": wrong, "debug": ADDED})
    settings = SINGLE | {"stage2_nodes": 2, "num_seeds": 0, "debug_prob": 1.0}
    made = search(project, model, **settings)
    draft, failed, mended = made.state.journal.nodes
    assert (failed.status, mended.value) == (NodeStatus.BUGGY, 105.0)
    assert failed.line == mended.line == (draft.id,)
    shown = [p for p in model.prompts if p.get("Kind of attempt") == "debug"]
    assert "are those the parent's program began with" in shown[0]["Instructions"]


def test_a_kernel_that_cannot_be_made_again_is_missed_aloud(project: Path) -> None:
    once = f"open({str(project / 'once')!r}, 'x').close()\n" + DRAFT
    model = scripts({"draft": once, "hyperparam": ADDED, "debug": RESULT % 7})
    settings = SINGLE | {"stage2_nodes": 2, "num_seeds": 0, "debug_prob": 1.0}
    search(project, model, **settings, steps=1)
    made = search(project, model, resume=True, steps=9)
    _, child, mended = made.state.journal.nodes
    assert child.error is not None
    assert child.error.kind == "ReplayError"
    whole = "This program was not run: it starts with the variables of n0001, whose kernel is gone"
    assert child.error.message.startswith(whole)
    assert "FileExistsError" in child.error.message
    assert whole in log_of(made.places.folder, child.id)
    with MemoryManager(made.places.memory) as store:
        assert any(whole in event.text for event in store[child.branch].events())
    assert mended.value == 7.0
    shown = [p for p in model.prompts if p.get("Kind of attempt") == "debug"]
    assert "It is new" in shown[0]["Instructions"]


def test_a_state_that_was_given_up_is_made_again(tmp_path: Path) -> None:
    first = Program("a", "import os\nseen = [os.environ['TASKWEAVER_SEED']]\n" + RESULT % 1, 1)
    again = "seen.append(os.environ['TASKWEAVER_SEED'])\nprint(seen)\n" + RESULT % "len(seen)"
    second, third, fourth, last = (Program(name, again, n) for n, name in enumerate("bcde", 2))
    manager = code_execution_service_factory(tmp_path)
    runner = ScriptRunner(manager, tmp_path / "run", True, 60.0, most_states=1)

    def run(program: Program, *before: Program) -> str:
        place = tmp_path / "run/branches" / program.node_id
        result = runner.run(Script(program, place, tmp_path / "log", before))
        assert result.error is None
        return f"{result.output.strip()} {result.phases[0].message}"

    with ExitStack() as stack:
        stack.callback(manager.clean_up)
        stack.callback(runner.close)
        runner.start()
        run(first)
        assert run(second, first) == "['1', '2'] forked from the kernel of a"
        gone = "run again in it, as their kernels are gone:"
        assert run(third, first) == f"['1', '3'] a new kernel; {gone} a"
        assert run(fourth, first, second) == f"['1', '2', '4'] a new kernel; {gone} a, b"
        said = run(last, first, second, fourth, third)
        assert said == f"['1', '2', '4', '3', '5'] forked from the kernel of d; {gone} c"


WRONG = (
    ("1 / 0", NodeStatus.BUGGY, "ZeroDivisionError"),
    ("import os\nos.kill(os.getpid(), 9)", NodeStatus.BUGGY, ""),
    ("import time\ntime.sleep(600)", NodeStatus.TIMEOUT, "stopped after 8 s"),
    ("raise SystemExit(3)", NodeStatus.BUGGY, ""),
    ("x = 1", NodeStatus.BUGGY, "working/result.json"),
)


def test_scripts_that_go_wrong_fail_their_nodes_alone(project: Path) -> None:
    codes = [code for code, _, _ in WRONG]

    def fault(prompt: Mapping[str, str]) -> str | None:
        is_draft = prompt.get("Kind of attempt") == "draft"
        code = codes.pop(0) if is_draft else RESULT % 4
        return json.dumps({"plan": "", "code": code}) if "Kind of attempt" in prompt else None

    count = len(WRONG)
    few = SINGLE | {"stage1_nodes": count + 1, "num_drafts": count, "stage2_nodes": 0}
    few |= {"num_seeds": 0, "run_timeout_s": 8.0, "debug_prob": 1.0}
    made = search(project, Climber(fault=fault), memory=False, **few)
    *drafts, mended = made.state.journal.nodes
    for draft, (code, status, words) in zip(drafts, WRONG, strict=True):
        assert draft.status is status, (code, draft.error)
        assert draft.error is not None
        assert words in draft.error.message
    assert mended.value == 4.0


def test_a_script_is_given_up_when_the_search_is_stopped(project: Path, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    code = f"import time\nopen({str(sign)!r}, 'w').close()\ntime.sleep(600)"
    settings = FAST | {f"search.{key}": value for key, value in SINGLE.items()}
    with (
        TaskWeaverApp(project, model=scripts({"draft": code})) as app,
        start_search(app, project / "idea.md", settings, name="run") as stopped,
    ):
        thread = threading.Thread(target=stopped.run, args=[lambda _: None])
        thread.start()
        waiting = threading.Event()
        for _ in range(2000):
            if sign.exists() or waiting.wait(0.01):
                break
        stopped.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert len(stopped.state.journal) == 0
