"""Searches whose attempts are one script each, in kernels that are forked."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE_S
from search_lab import FAST, Climber, lab, remembering, search

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.state_folder import StateFolder
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.session.round_states import RoundStates, Snapshots
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.scripts import Program, Script, ScriptRunner
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.record.runlog import RunState
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


def await_sign(sign: Path) -> None:
    """Wait until a script has made a file."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S * 100)):
        if sign.exists() or waiting.wait(0.01):
            return


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
    shutil.rmtree(project / "experiments/run/state")
    made = search(project, model, resume=True, steps=9)
    _, child, mended = made.state.journal.nodes
    assert child.error is not None
    assert child.error.kind == "ReplayError"
    whole = "This program was not run: it starts with the variables of n0001, which are gone"
    assert child.error.message.startswith(whole)
    assert "FileExistsError" in child.error.message
    assert whole in log_of(made.places.folder, child.id)
    with MemoryManager(made.places.memory) as store:
        assert any(whole in event.text for event in store[child.branch].events())
    assert mended.value == 7.0
    shown = [p for p in model.prompts if p.get("Kind of attempt") == "debug"]
    assert "It is new" in shown[0]["Instructions"]


COUNTED = (
    "import os\nimport numpy as np\nwith open('RUNS', 'a') as runs:\n    runs.write('ran ')\n"
    "data = np.full(50_000, 2.0)\ndef total(): return float(data.sum())\n"
) + RESULT % "total()"
WORSE = "assert not os.listdir('working')\ndata[0] = 1.0\n" + RESULT % "total()"


def counted(project: Path) -> Climber:
    """A model whose draft notes each of its runs; the other scripts are worse."""
    draft = COUNTED.replace("RUNS", str(project / "runs"))
    return scripts({"draft": draft, "hyperparam": WORSE})


def begin_and_be_killed(project: Path) -> None:
    """Search until the variables of the first node are stored, then end as by `kill -9`."""
    stored = project / "experiments/run/state/rounds/n0001"
    small = SINGLE | {"num_seeds": 0, "stage1_nodes": 1, "stage2_nodes": 4}
    settings = FAST | {f"search.{key}": value for key, value in small.items()}

    def kill(state: RunState) -> None:
        while state.journal.good:
            if any(stored.glob("*.json")):
                os.kill(os.getpid(), 9)

    with (
        TaskWeaverApp(project, model=counted(project)) as app,
        start_search(app, project / "idea.md", settings, name="run") as begun,
    ):
        begun.run(kill)


def test_a_resumed_run_restores_variables_and_runs_no_old_program(project: Path) -> None:
    program = f"from {__name__} import *\nbegin_and_be_killed(Path({str(project)!r}))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", program], env=env, check=False)
    assert killed.returncode == -9
    run = project / "experiments/run"

    def grow(count: int) -> str:
        """Make one node more; return where its kernel is from, and how often the draft ran."""
        made = search(project, counted(project), resume=True, steps=count)
        node = made.state.journal.nodes[-1]
        assert (len(made.state.journal), node.parent, node.value) == (count, "n0001", 99_999.0)
        origin = log_of(run, node.id).splitlines()[0]
        return f"{origin} {(project / 'runs').read_text()}".strip()

    again = "# a new kernel; run again in it, as their variables are gone: n0001"
    assert grow(2) == "# restored from stored variables of n0001 ran"
    for chunk in (run / "state/chunks").iterdir():
        if chunk.stat().st_size > 1 << 17:  # the array
            chunk.write_text("damaged")
    assert grow(3) == f"{again} ran ran"
    assert grow(4) == "# restored from stored variables of n0001 ran ran"
    shutil.rmtree(run / "state")
    assert grow(5) == f"{again} ran ran ran"


def test_a_timed_script_runs_once_earlier_variables_are_stored(project: Path) -> None:
    stored = str(project / "experiments/run/state/rounds/n0001")
    slow = "import time\nclass Slow:\n    def __getstate__(self):\n        time.sleep(1)\n"
    slow += "        return {}\nslow = Slow()\n"
    count = f"import os\ncount = os.path.exists({stored!r}) and len(os.listdir({stored!r}))\n"
    model = scripts({"draft": slow + RESULT % 7, "hyperparam": count + RESULT % "int(count)"})
    settings = SINGLE | {"stage1_nodes": 1, "num_seeds": 0, "timed": "always"}
    made = search(project, model, **settings)
    assert [node.value for node in made.state.journal.nodes] == [7.0, 1.0]


class Scripts:
    """Runs scripts without a search."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._manager = code_execution_service_factory(folder)
        stack.callback(self._manager.clean_up)
        self.begin(0)

    def begin(self, limit_bytes: int, most: int = 1) -> None:
        """Go on as a resumed run, which stores variables up to a limit, and keeps snapshots."""
        place = self._folder / "run"
        stored = StateFolder(self._folder / "state", limit_bytes)
        states = RoundStates(Snapshots(math.inf, most), stored, TelemetryLogger(), frozenset)
        self._stack.callback(states.close)
        new = partial(self._manager.get_session_client, session_dir=place)
        self.runner = ScriptRunner(new, place, True, 60.0, states, lambda node: ([node], node))

    def result(self, program: Program, *before: Program) -> JobResult:
        """Run a program."""
        place = self._folder / "run/branches" / program.node_id
        return self.runner.run(Script(program, place, self._folder / "log", before))

    def run(self, program: Program, *before: Program) -> str:
        """Run a program that works; return its output, and where its kernel is from."""
        result = self.result(program, *before)
        assert result.error is None, result.error
        return f"{result.output.strip()} {result.phases[0].message}"


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Scripts]:
    """Scripts that go on with each other's variables."""
    with ExitStack() as stack:
        yield Scripts(tmp_path, stack)


FIRST = Program("a", "import os\nseen = [os.environ['TASKWEAVER_SEED']]\n" + RESULT % 1, 1)
AGAIN = "seen.append(os.environ['TASKWEAVER_SEED'])\nprint(seen)\n" + RESULT % "len(seen)"
SECOND, THIRD, FOURTH, LAST = (Program(name, AGAIN, n) for n, name in enumerate("bcde", 2))
GONE = "run again in it, as their variables are gone:"


def test_variables_that_are_neither_kept_nor_stored_are_made_again(line: Scripts) -> None:
    line.run(FIRST)
    assert line.run(SECOND, FIRST) == "['1', '2'] forked from the kernel of a"
    assert line.run(THIRD, FIRST) == f"['1', '3'] a new kernel; {GONE} a"
    assert line.run(FOURTH, FIRST, SECOND) == f"['1', '2', '4'] a new kernel; {GONE} a, b"
    said = line.run(LAST, FIRST, SECOND, FOURTH, THIRD)
    assert said == f"['1', '2', '4', '3', '5'] forked from the kernel of d; {GONE} c"


def test_the_snapshot_that_is_forked_again_and_again_is_kept(line: Scripts) -> None:
    line.begin(0, most=2)
    line.run(FIRST)
    for program in (SECOND, THIRD, FOURTH):
        assert "forked from the kernel of a" in line.run(program, FIRST)


def test_variables_come_from_the_last_node_that_stored_all_of_them(line: Scripts) -> None:
    lossy = SECOND._replace(code="lost = (number for number in seen)\n" + AGAIN)
    line.begin(1 << 30)
    line.run(FIRST)
    line.run(lossy, FIRST)
    line.begin(1 << 30)
    origin = f"restored from stored variables of a; {GONE} b"
    assert line.run(FOURTH, FIRST, lossy) == f"['1', '2', '4'] {origin}"
    assert line.run(THIRD, FIRST) == "['1', '3'] restored from stored variables of a"


@pytest.mark.parametrize(("limit_bytes", "before"), [(0, ()), (1 << 30, ("a",))])
def test_a_kernel_that_cannot_be_forked_hands_stored_variables_on(
    line: Scripts, limit_bytes: int, before: tuple[str, ...]
) -> None:
    thread = "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\n"
    line.begin(limit_bytes)
    line.run(FIRST._replace(code=thread + FIRST.code))
    parent = Node("a", 1, NodeKind.DRAFT, 1, status=NodeStatus.OK)
    child = Node("b", 2, NodeKind.HYPERPARAM, 2, parent="a")
    assert line.runner.line(child, parent) == before
    if before:
        assert line.run(SECOND, FIRST) == "['1', '2'] restored from stored variables of a"


SLOW = (
    "from pathlib import Path\nimport time\nclass Slow:\n"
    "    def __getstate__(self): return {}\n    def __setstate__(self, state):\n"
    "        if Path('GO').exists():\n            Path('SIGN').touch()\n"
    "            time.sleep(600)\nslow = Slow()\n"
)


def test_a_script_is_given_up_while_its_variables_are_restored(
    line: Scripts, tmp_path: Path
) -> None:
    sign, go = tmp_path / "sign", tmp_path / "go"
    code = SLOW.replace("GO", str(go)).replace("SIGN", str(sign))
    line.begin(1 << 30)
    line.run(FIRST._replace(code=code + FIRST.code))
    line.runner.states.finish()  # what is stored is read back for a proof, and would give the sign
    line.begin(1 << 30)
    go.touch()
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(line.result, SECOND, FIRST)
        await_sign(sign)
        line.runner.cancel("b")
        error = future.result(PATIENCE_S).error
    assert error is not None
    assert error.message == "The script was cancelled."


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
        await_sign(sign)
        stopped.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert len(stopped.state.journal) == 0
