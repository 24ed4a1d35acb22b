"""Objects of the library in a child that was forked after they were made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S
from support import make_project

SCRIPT = """
import json, os, sys

from support import planner_reply
from taskweaver import TaskWeaver

forked = []


def outcomes():
    found = {}
    for name, use in USES.items():
        try:
            found[name] = str(use())
        except Exception as error:
            found[name] = type(error).__name__
    tw.close()  # does nothing here
    session.close()
    return found


def fork():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        print(json.dumps(outcomes()), flush=True)
        sys.exit()  # with what a program does at its end
    assert os.waitpid(child, 0)[1] == 0


def model(messages):
    if "fork" in str(messages[-1]["content"]) and not forked:
        forked.append(True)
        child = os.fork()
        if not child:
            print(json.dumps(outcomes()), flush=True)
            os._exit(0)  # in the middle of a round, from the thread that plays it
        assert os.waitpid(child, 0)[1] == 0
    return planner_reply("User", "heard you")


tw = TaskWeaver(sys.argv[1], model=model)
session = tw.session()
kernel = tw.app.get_session()
USES = {
    "ask": lambda: tw.ask("x"),
    "app": lambda: tw.app.get_session(),
    "session": lambda: session.ask("x"),
    "core": lambda: kernel.run_code("1"),
    "with": lambda: tw.__enter__(),
}
fork()
kernel.run_code("kept = 7")
fork()
print(json.dumps(str(session.ask("fork in the middle"))))
print(json.dumps(kernel.run_code("kept").post_list[-1].message))
tw.close()
if not os.fork():
    with TaskWeaver(sys.argv[1], model=model) as own:
        print(json.dumps(str(own.ask("x"))), flush=True)
    sys.exit()
os.wait()
"""


def test_a_forked_child_is_refused_and_harms_nothing_of_its_parent(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", {"execution.zygote": True}, has_table=False)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(project)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    *children, said, kept, own = map(json.loads, done.stdout.splitlines())
    refused = dict.fromkeys(("ask", "app", "session", "core", "with"), "MadeBeforeFork")
    assert children == [refused] * 3
    assert (said, "7" in kept, own) == ("heard you", True, "heard you")
