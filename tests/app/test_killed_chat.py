"""A chat that is killed at any moment keeps each acknowledged round, and leaves nothing running."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from leftovers import groups_of
from sizes import some
from support import has_bwrap, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp

KILLS = int(os.environ.get("KILLS", "2"))
"""How often a chat is killed; `make long` does it 1,000 times."""
_PER_SESSION = 25
"""Kills before the chat goes on in a new session: resuming reads the whole conversation."""
_WHILE_IT_STARTS = 0.25
"""Share of the kills that come while the program, the sandbox or the kernel starts."""
_GONE_WITHIN_S = 10.0
CHATTING = """
import os, sys, tempfile
print("pid", os.getpid(), flush=True)
tempfile.tempdir = None  # where it was forked, another folder is known
from support import code_reply, planner_reply
from taskweaver.app.app import TaskWeaverApp

def model(messages):
    words = str(messages[-1]["content"])
    if "ProgramApe" in str(messages[0]["content"]):
        return code_reply(f"count = {words.count('round')} + 1; open('file', 'a').write('x')")
    if "From: User" in words:
        return planner_reply("CodeInterpreter", "compute")
    return planner_reply("User", "done")

class Tell:
    def handle(self, event):
        if event.t.value == "post_end":
            print("post", flush=True)

with TaskWeaverApp(sys.argv[1], model=model) as app:
    session = app.resume_session() if sys.argv[2] == "resume" else app.get_session()
    print("opened", flush=True)
    for number in range(int(sys.argv[3])):
        round_ = session.send_message(f"round {number}", Tell())
        assert "error" not in round_.post_list[-2].message.lower(), round_.post_list[-2].message
        print("round", round_.id, len(round_.post_list), flush=True)
"""


@dataclass
class Place:
    """A project whose chats are killed, with a folder for temporary files of its own.

    Keeps the number of posts of each round that was acknowledged, by id, and the ids of processes.
    """

    project: Path
    temporary: Path
    told: dict[str, int] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)

    def chat(self, how: str, rounds: int = 1000) -> subprocess.Popen[str]:
        """Start a chat, new or to ``resume``."""
        kept = ("PATH", "XDG_CACHE_HOME", "XDG_STATE_HOME")
        own = dict.fromkeys(("TMPDIR", "HOME"), str(self.temporary))
        return subprocess.Popen(
            [sys.executable, "-c", CHATTING, str(self.project), how, str(rounds)],
            env={name: os.environ[name] for name in kept}
            | own | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def note(self, lines: list[str]) -> None:
        self.pids += [int(line.split()[1]) for line in lines if line.startswith("pid ")]
        parts = [line.split() for line in lines if line.startswith("round ")]
        self.told |= {part[1]: int(part[2]) for part in parts if len(part) == 3}

    def kill_one(self, rng: random.Random, how: str) -> None:
        """Start a chat and kill it at some moment."""
        with self.chat(how) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            begun, lines = process.stdout.readline(), list[str]()
            if rng.random() >= _WHILE_IT_STARTS:
                lines = [process.stdout.readline() for _ in range(rng.randint(2, 9))]
            moment_s = rng.uniform(0.0, 0.3 if lines else 2.0)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment_s)  # some moment, not one that anything waits for
            os.kill(int(begun.split()[1]), signal.SIGKILL)
            lines += process.stdout.read().splitlines()
            self.note([begun, *lines])
            assert process.wait() == -9, process.stderr.read()

    def processes(self) -> list[psutil.Process]:
        mark, found = os.fsencode(self.project), []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                place = Path(f"/proc/{process.pid}")
                texts = [place.joinpath(name).read_bytes() for name in ("environ", "cmdline")]
                is_ours = process.pid == os.getpid()
                if not is_ours and any(mark in text for text in texts):
                    found.append(process)
        return found

    def check_rounds(self) -> None:
        """Compare the rounds of the newest session with those that were acknowledged."""
        with TaskWeaverApp(self.project, model=lambda _: planner_reply("User", "hi")) as app:
            session = app.resume_session()
            rounds = {one.id: one for one in session.memory.conversation.rounds}
            assert session.send_message("still there?").state == "finished"
        missing = self.told.keys() - rounds.keys()
        assert not missing, f"acknowledged rounds are lost: {missing}"
        for id_, posts in self.told.items():
            assert (rounds[id_].state, len(rounds[id_].post_list)) == ("finished", posts)
        assert all(one.state in {"finished", "failed"} for one in rounds.values())


@pytest.fixture(params=["bwrap", "none"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "bwrap" and not has_bwrap():
        pytest.skip("bubblewrap does not run here")
    if request.param not in some(["bwrap", "none"], 1) and has_bwrap():
        pytest.skip("killed in bubblewrap; without a sandbox as well by `make long`")
    keys = {"execution.sandbox": request.param, "execution.zygote": True}
    temporary = Path(tempfile.mkdtemp(prefix="killed-", dir="/tmp"))  # names of sockets are short
    yield Place(make_project(tmp_path / "project", keys, has_table=False), temporary)
    shutil.rmtree(temporary)


@pytest.mark.timeout(600 + 20 * KILLS)
def test_a_killed_chat_loses_no_round_and_leaves_nothing(place: Place) -> None:
    # The first two: in the second round, and while it resumes.
    rng, how, acknowledged = random.Random(10), "new", 0
    for number in range(KILLS):
        if number % _PER_SESSION == 0:
            acknowledged, how, place.told = acknowledged + len(place.told), "new", {}
            print(f"{number} kills, {acknowledged} acknowledged rounds", flush=True)
        place.kill_one(rng, how)
        deadline = time.monotonic() + _GONE_WITHIN_S
        while (left := place.processes()) and time.monotonic() < deadline:
            psutil.wait_procs(left, timeout=0.1)
        assert left == []
        if place.told:
            how = "resume"
            place.check_rounds()
    acknowledged += len(place.told)
    for _ in range(3):  # starts that find what the killed ones left: an ended process may linger
        with place.chat(how, 1) as last:
            lines, errors = last.communicate()
        assert last.returncode == 0, errors
        place.note(lines.splitlines())
        how = "resume"
        if not any(map(groups_of, place.pids)):
            break
    place.check_rounds()
    assert [path.name for path in place.temporary.glob("tw-*")] == []
    assert not any(map(groups_of, place.pids))
    assert place.processes() == []
    print(f"{KILLS} kills, {acknowledged} acknowledged rounds")
    assert acknowledged
