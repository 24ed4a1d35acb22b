"""Forks, files and exports of a session whose code attacks the host's file operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from races import state_of
from sizes import forks
from support import code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.policy import Tier
from taskweaver.ces.sandbox import sandbox
from taskweaver.console.commands.receipts import export_target
from taskweaver.errors import TaskWeaverError
from taskweaver.session.session import Session

FORKS = forks(1)
"""How often the session is forked meanwhile; `make long` does it twenty times."""
# Puts a link to the victim in the place of whatever appears beside the working directory.
ATTACK = """
import os, sys
branches, victim = sys.argv[1:]
while True:
    try:
        for name in os.listdir(branches):
            for place in (f"{branches}/{name}/cwd", f"{branches}/{name}"):
                if not place.endswith(".old") and not os.path.islink(place):
                    os.rename(place, f"{place}.{os.urandom(4).hex()}.old")
                    os.symlink(victim, place)
    except OSError:
        pass
"""


def write(messages: object) -> str:
    text = str(messages[-1]["content"])  # type: ignore[index]
    return code_reply(text.rpartition("run: ")[2].split("\n")[0])


@pytest.fixture(params=["bwrap", "landlock"])
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    tier: Tier = request.param
    try:
        sandbox.require(tier)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    config: dict[str, Any] = {"session.roles": ["code_interpreter"], "execution.sandbox": tier}
    with TaskWeaverApp(
        make_project(tmp_path / "project", has_table=False), model=write, config=config
    ) as app:
        yield app.get_session()


@pytest.mark.timeout(600 + 20 * FORKS)
def test_code_that_swaps_branches_for_links_reaches_nothing(
    session: Session, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    (victim / "cwd").mkdir(parents=True, mode=0o700)
    victim.chmod(0o700)
    before = state_of(victim)
    files = "[open(f'evil-{n}.pth', 'w').close() for n in range(200)]"
    assert session.send_message(f"run: {files}").state == "finished"
    start = (
        "import subprocess, sys, os; open('a.py', 'w').write(" + repr(ATTACK) + ");"
        f" _ = subprocess.Popen([sys.executable, 'a.py', '../branches', {str(victim)!r}],"
        " start_new_session=True); os.path.isdir('../branches')"
    )
    assert "True" in session.send_message(f"run: {start}").post_list[-1].message
    for n in range(FORKS):
        with suppress(TaskWeaverError):
            session.fork(f"idea-{n}")
            session.checkout(f"idea-{n}")
            session.send_message("run: 1", files=[{"name": "added.txt", "content": "x"}])
        with suppress(TaskWeaverError), export_target(session, "sub/out.md") as (draft, _):
            draft.write_text("x")
        with suppress(TaskWeaverError):
            session.diff("main", f"idea-{n}")
        session.checkout("main")
        with suppress(TaskWeaverError):
            session.undo()
        session.checkout("main")
    assert state_of(victim) == before
