"""The bounds on resources as a user and a model see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import Listener, Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.module.event_emitter import RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

LEFT = "import subprocess; left = [subprocess.Popen(['sleep', '50']) for _ in range(2)]"
SAID = "2 processes that cells started still run: sleep (2)."
ALONE = {"session.roles": ["code_interpreter"]}


def test_what_a_cell_leaves_behind_is_reported_to_user_and_model(tmp_path: Path) -> None:
    listener, script = Listener(), Script([code_reply(LEFT), code_reply("20 + 1")])
    project = make_project(tmp_path / "project", has_table=False)
    with TaskWeaverApp(project, model=script, config=ALONE) as app:
        session = app.get_session()
        first = session.send_message("go", listener)
        assert listener.messages(RoundEventType.round_warning) == [SAID]
        assert SAID in first.post_list[-1].message
        session.send_message("on", listener)
        assert listener.messages(RoundEventType.round_warning) == [SAID, SAID]
    assert SAID in script.last()


def test_doctor_and_the_application_list_the_same_bounds(tmp_path: Path) -> None:
    config = {"execution.memory_limit_mb": 700, "execution.open_file_limit": 0}
    project = make_project(tmp_path / "project", config, has_table=False)
    with TaskWeaverApp(project) as app:
        listed = [str(bound) for bound in app.bounds]
        assert listed == [str(bound) for bound in app.get_session().bounds]
    assert listed[0].startswith("memory 700 MiB: ")
    assert "open files no limit (execution.open_file_limit)" in listed
    found = json.loads(
        CliRunner().invoke(commands, ["-p", str(project), "doctor", "--json"]).output
    )
    assert [row["detail"] for row in found if row["name"] == "limit"] == listed
