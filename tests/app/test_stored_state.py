"""Variables come back from disk: after a resume, a crash, a kill; and no cell runs by itself."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from rounds import add_plugin, run
from support import NO_SNAPSHOTS, Listener, Script, has_bwrap, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.console.terminal.text import section
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.session.errors import RoundInterrupted, SessionError
from taskweaver.session.export import export
from taskweaver.session.session import Session


def opened(project: Path, **config: object) -> TaskWeaverApp:
    script = Script([planner_reply("User", "ha")] * 9)
    return TaskWeaverApp(project, model=script, config=NO_SNAPSHOTS | config)


def ran_before(project: Path, *cells: str, **config: object) -> list[str]:
    """Run cells in a session, with its state stored after each, close it; return their results."""
    with opened(project, **config) as app:
        session = app.get_session()
        results = []
        for cell in cells:
            results.append(run(session, cell))
            session.wait_until_stored()
        return results


KEPT = (
    "import random, sqlite3, collections; number = random.random()",
    "frame = pd.DataFrame({'a': range(1000)}); alias = frame; views = [frame, {'f': frame}]",
    "class Point:\n    made = 0\n    def __init__(self, x): self.x = x; Point.made += 1\n"
    "points = [Point(1), Point(2)]; twice = lambda p: p.x * factor; factor = 2",
    "con = sqlite3.connect('facts.db'); lines = open('log.txt', 'a'); lines.write('once\\n')",
    "holder = {'con': con, 'rest': 5}; lines.flush()",
)
"""Cells whose variables can be stored, but for two."""


def test_a_resumed_session_has_its_variables_and_rebuilds_those_that_cannot_be_stored(
    project: Path,
) -> None:
    ran_before(project, *KEPT)
    with opened(project) as app:
        resumed = app.resume_session()
        assert resumed.kernel_state == "not started"
        notice = "\n".join(resumed.restore_notice())
        assert "con (sqlite3.Connection)" in notice
        assert "made in round 4" in notice
        assert "lines" in notice
        assert "/rebuild" in notice
        assert "points" not in notice
        assert resumed.restore_notice() == []
        assert "not in the restored state" in run(resumed, "con.execute('SELECT 1')")
        assert run(resumed, "holder['rest']") == "5"
        number = resumed.memory.conversation.rounds[0].post_list[-1].message
        assert run(resumed, "number") in number
        assert run(resumed, "alias is frame, views[0] is frame, views[1]['f'] is frame") == (
            "(True, True, True)"
        )
        assert run(resumed, "isinstance(points[0], Point), Point.made, twice(points[1])") == (
            "(True, 2, 4)"
        )
        assert run(resumed, "factor = 5; Point(1); twice(points[1]), Point.made") == "(10, 3)"
    with opened(project) as app:
        check_rebuilding(app.resume_session())


def check_rebuilding(resumed: Session) -> None:
    """Check that the lost cells run on a scratch copy, which is taken over when asked for."""
    rebuilt = resumed.rebuild()
    assert [step.code[:3] for step in rebuilt.steps] == ["con", "hol"]
    log = resumed.execution_cwd / "log.txt"
    assert log.read_text() == "once\n"
    assert "log.txt" in rebuilt.files
    rebuilt.discard()
    assert not (resumed.workspace / "branches" / "rebuilt-1").exists()
    assert [branch.name for branch in resumed.branches()] == ["main"]
    again = resumed.rebuild()
    again.accept()
    assert resumed.branch == "rebuilt-1"
    assert run(resumed, "con.execute('SELECT 2').fetchone()[0], holder['rest']") == "(2, 5)"
    assert log.read_text() == "once\n"
    resumed.checkout("main")
    assert "not in the restored state" in run(resumed, "con.execute('SELECT 1')")


def test_the_roles_learn_once_which_variables_are_gone_and_the_user_does_not_say_it(
    project: Path, tmp_path: Path
) -> None:
    ran_before(project, "import sqlite3; con = sqlite3.connect(':memory:'); n = 1")
    script = Script([planner_reply("User", "ha")] * 2)
    with TaskWeaverApp(project, model=script) as app:
        session, listener = app.resume_session(), Listener()
        session.send_message("tell me a joke", listener)
        session.send_message("another one", listener)
        rounds = session.memory.conversation.rounds
        assert "con (sqlite3.Connection)" in rounds[1].user_query
        session.fork("before", at_round=1)
        assert session.diff("main", "before").rounds == (["tell me a joke", "another one"], [])
        export(rounds, tmp_path / "report.md", title="t")
    assert "con (sqlite3.Connection)" in script.last(0)
    assert "con (sqlite3.Connection)" not in script.last(1)
    warnings = listener.messages(RoundEventType.round_warning)
    assert sum("con (sqlite3.Connection)" in warning for warning in warnings) == 1
    report = (tmp_path / "report.md").read_text("utf-8")
    assert "> tell me a joke" in report
    assert "con (sqlite3.Connection)" not in report


def test_a_resumed_session_is_as_it_was_and_no_cell_runs_again_by_itself(project: Path) -> None:
    """An appended file keeps its one line, and the random number in the history stays true."""
    add_plugin(project, "twice", 'def twice(x: int) -> int:\n    """Double."""\n    return 2 * x')
    seed = "r = np.random.default_rng(7); random.seed(3); np.random.seed(4); "
    draw = "(random.random(), float(np.random.rand()), float(r.random()))"
    number, _, expected, *_ = ran_before(
        project,
        "import os, random, time; open('ledger.txt', 'a').write('paid\\n'); n = random.random(); n",
        seed + draw,
        draw,
        "os.environ['TZ'] = 'Asia/Tokyo'; time.tzset(); np.seterr(all='raise'); twice(2)",
        f"twice = 5; {seed}{draw}",
    )
    with opened(project) as app:
        session = app.resume_session()
        session.send_message("tell me a joke")
        assert session.kernel_state == "not started"
        ledger = session.execution_cwd / "ledger.txt"
        assert ledger.read_text() == "paid\n"
    with opened(project) as app:
        session = app.resume_session()
        assert session.restore_notice() == []
        with pytest.raises(SessionError, match="nothing to rebuild"):
            session.rebuild()
        assert run(session, draw) == expected, "random generators go on where they stood"
        assert run(session, "n") == number
        assert run(session, "time.localtime(0).tm_hour, np.geterr()['over']") == "(9, 'raise')"
        assert run(session, "twice") == "5", "the variable, not the plugin of its name"
        assert ledger.read_text() == "paid\n"


def test_a_kernel_that_died_leaves_no_stale_alias_or_global(project: Path) -> None:
    """Objects are also changed by another name, by a function, and by a text that is code."""
    with opened(project) as app:
        session = app.get_session()
        run(session, "a = [1]; b = a; holder = {'a': a}; total = low = high = 0; other = 3")
        run(session, "def add(n):\n    global total\n    total += n; deeper()")
        run(session, "deeper = lambda: globals().update(low=1)")
        died = "a.append(2); add(5); exec('high = 1'); import os; os._exit(3)"
        said = session.run_code(died).post_list[-1].message
        assert "the variables are those of the end of round 3" in said
        for name in ("a", "b", "holder", "total", "low", "high"):
            assert "round 4 may have changed it" in run(session, name), name
        assert run(session, "other") == "3"


def test_variables_of_the_session_reach_branches_whose_kernel_was_not_forked(project: Path) -> None:
    body = 'class Look(Plugin):\n    def __call__(self) -> str:\n        """Return who asks."""\n'
    add_plugin(
        project, "look", body + "        return self.ctx.get_session_var('user', 'nobody')\n"
    )
    with opened(project) as app:
        session = app.get_session()
        session.update_session_var({"user": "Ada"})
        assert run(session, "look()") == "Ada"
        session.checkout(session.fork("start", at_round=0))
        assert run(session, "look()") == "Ada"


LOST = "import sqlite3; con = sqlite3.connect(':memory:')"


def test_a_rebuilt_result_shows_what_it_changes_and_is_taken_over_once_or_never(
    project: Path,
) -> None:
    """The cell of a lost variable sets others back to the value they had then."""
    ran_before(project, f"{LOST}; total = 0; same = 1", "total += 5")
    with opened(project) as app:
        session = app.resume_session()
        rebuilt = session.rebuild()
        assert rebuilt.variables == {"total": ("5", "0")}
        assert not rebuilt.is_same
        run(session, "total = 2")
        with pytest.raises(SessionError, match="went on"):
            rebuilt.accept()
        assert (session.branch, run(session, "total")) == ("main", "2")
        rebuilt.discard()
        rebuilt = session.rebuild()
        rebuilt.accept()
        with pytest.raises(SessionError, match="accepted or discarded"):
            rebuilt.accept()
        rebuilt.discard()
        assert run(session, "con.execute('SELECT 1').fetchone()[0]") == "1"


def test_rebuilding_can_be_interrupted(project: Path) -> None:
    slow = "if 'rebuilt' in os.getcwd():\n    open('began', 'w').close()\n    time.sleep(60)"
    ran_before(project, f"{LOST}; import os, time\n{slow}", f"other = con.cursor()\n{slow}")
    with opened(project) as app:
        session = app.resume_session()
        began = session.workspace / "branches" / "rebuilt-1" / "cwd" / "began"
        is_done = threading.Event()

        def interrupt() -> None:
            while not began.exists() and not is_done.wait(0.05):
                pass
            session.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(RoundInterrupted):
                session.rebuild()
        finally:
            is_done.set()
            thread.join()
        assert not began.parent.exists()


def test_rebuilding_names_cells_that_failed_and_do_not_run_again(project: Path) -> None:
    ran_before(project, f"{LOST}\n1/0")
    with opened(project) as app, pytest.raises(SessionError, match="failed"):
        app.resume_session().rebuild()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A function that makes a project with a stored session anew, as when it was closed.

    It lies at the same place each time, where its state is known as this installation's own.
    """
    folder = tmp_path_factory.mktemp("stored")
    project, kept = make_project(folder / "project", has_table=False), folder / "kept"
    ran_before(project, "big = list(range(400_000)); small = 5")
    shutil.copytree(project, kept)

    def again() -> Path:
        shutil.rmtree(project)
        shutil.copytree(kept, project)
        return project

    return again


def test_state_of_a_copied_session_is_loaded_only_after_consent(
    stored: Callable[[], Path], tmp_path: Path
) -> None:
    project, other = stored(), tmp_path / "other"
    shutil.copytree(project, other)
    with opened(other) as app:
        session = app.resume_session()
        assert "/trust" in session.restore_notice()[0]
        session.trust_state()
        assert run(session, "small") == "5"
    copied = tmp_path / "third"
    shutil.copytree(project, copied)
    with opened(copied) as app:
        session = app.resume_session()
        assert "is not defined" in run(session, "small")
        session.wait_until_stored()
        session.trust_state()  # still loads what was put aside when the cell ran
        with pytest.raises(SessionError, match="trusted already"):
            session.trust_state()
        session.checkout(session.fork("before", at_round=1))
        assert run(session, "small") == "5"


@pytest.mark.parametrize("zeros", [10, 0], ids=["changed", "empty"])
def test_a_damaged_chunk_is_named_and_the_session_goes_on(
    stored: Callable[[], Path], zeros: int
) -> None:
    project = stored()
    chunks = project.glob("workspace/sessions/*/state/chunks/*")
    chunk = max(chunks, key=lambda path: path.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-10] + bytes(zeros) if zeros else b"")
    with opened(project) as app:
        session = app.resume_session()
        message = session.run_code("small").post_list[-1].message
        assert "`big`" in message
        assert section(message, "Result") == "5"
        assert not chunk.exists()
        assert run(session, "small = 7; small") == "7"


def test_a_damaged_manifest_is_named_and_the_session_goes_on(stored: Callable[[], Path]) -> None:
    (manifest,) = stored().glob("workspace/sessions/*/state/rounds/main/*.json")
    whole = manifest.read_text()
    newer = json.dumps(json.loads(whole) | {"format": 99})
    damages = {whole[:50]: "cannot be read", "[]": "cannot be read", newer: "of another version"}
    for damaged, said in damages.items():
        manifest.write_text(damaged)
        with opened(manifest.parents[6]) as app:
            notice = "\n".join(app.resume_session().restore_notice())
            assert said in notice
            assert "/rebuild" in notice
    with opened(manifest.parents[6]) as app:
        session = app.resume_session()
        assert "is not defined" in run(session, "small")
        assert run(session, "small = 7; small") == "7"


def test_a_kernel_without_its_variables_is_not_forked(stored: Callable[[], Path]) -> None:
    """Plugins are loaded before a cell is refused; a fork of that kernel would have no variable."""
    project = stored()
    add_plugin(project, "twice", 'def twice(x: int) -> int:\n    """Double."""\n    return 2 * x')
    refusing = {
        "code_interpreter.code_verification_on": True,
        "code_interpreter.blocked_functions": ["len"],
    }
    with opened(project, **refusing) as app:
        session = app.resume_session()
        assert session.kernel_state == "not started"
        session.run_code("len([])")
        assert session.kernel_state == "ready"
        session.fork("idea")
        session.checkout("idea")
        assert "not restored yet" in session.why_restored
        assert run(session, "small") == "5"
        session.checkout("main")
        assert run(session, "small") == "5"


TRIALS = int(os.environ.get("KILLS", "1"))
"""How many chats are killed: of many the first is new; a single one and the others are resumed."""
CHATTING = """
import os, sys
from support import Script
from taskweaver.app.app import TaskWeaverApp

print(os.getpid(), flush=True)
with TaskWeaverApp(sys.argv[1], model=Script([])) as app:
    session = app.resume_session() if sys.argv[2:] else app.get_session()
    for number in range(len(session.memory.conversation.rounds), 1000):
        session.run_code(f"a = {number}; b = [{number}] * 200_000; c{number % 5} = {number}; a")
        print("round", number, flush=True)
"""


def test_a_kill_at_any_moment_never_leaves_a_stale_value(
    project: Path, command_line: CommandLine
) -> None:
    """Each variable has its value of the last shown round, or is named as missing.

    Where no state was stored yet, that is said instead.
    """
    rng = random.Random(5)
    if TRIALS == 1:
        ran_before(project, "a = -1; b = [-1]")
    for trial in range(TRIALS):
        arguments = ["resume"] if trial or TRIALS == 1 else []
        with subprocess.Popen(
            [*command_line.script, CHATTING, str(project), *arguments],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            for _ in range(rng.randint(1, 4)):
                line = process.stdout.readline()
            for _ in range(rng.randint(0, 200_000)):
                pass  # some moment after the answer was shown
            os.kill(pid, signal.SIGKILL)
            shown = int((process.stdout.read().splitlines() or [line])[-1].split()[1])
        with opened(project) as app:
            session = app.resume_session()
            lost = session.restoring()
            missing = {item.name for item in lost.lost} if lost is not None else set()
            newest = len(session.memory.conversation.rounds) - 1
            assert newest >= shown
            if lost is not None and lost.stored is None:  # killed before any state was stored
                assert lost.lines()[0].startswith("No variables of this session are stored. ")
                assert "NameError" in run(session, "a")
            elif "a" in missing:
                assert "may have changed it" in session.run_code("a").post_list[-1].message
            else:
                assert int(run(session, "a")) in {newest, newest - 1}
                assert int(run(session, "b[0]")) in {newest, newest - 1}
            run(session, "a = b = 0")


def test_a_warm_and_sandboxed_kernel_restores_too(tmp_path: Path) -> None:
    if not has_bwrap():
        pytest.skip("no bubblewrap")
    config: dict[str, Any] = {"execution.zygote": True, "execution.sandbox": "bwrap"}
    project = make_project(tmp_path / "project", config, has_table=False)
    (number,) = ran_before(project, "import random; frame = pd.DataFrame({'a': [1]}); x = 5; x")
    look = "import glob, os; sorted(os.listdir('..')), glob.glob('/tmp/**/chunks', recursive=True)"
    with opened(project) as app:
        session = app.resume_session()
        assert run(session, "x") == number
        assert run(session, "len(frame)") == "1"
        assert "state" not in run(session, look)
