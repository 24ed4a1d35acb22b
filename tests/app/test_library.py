"""The names of the library, which are imported when they are used, and the files of a round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import Script, code_reply, make_project

import taskweaver
from taskweaver import TaskWeaverApp
from taskweaver.app.app import TaskWeaverApp as DirectApp

pytestmark = pytest.mark.usefixtures("no_states")


def test_the_package_names_the_application_and_imports_it_on_demand() -> None:
    code = (
        "import sys, taskweaver\n"
        "heavy = {'yaml', 'taskweaver.app', 'taskweaver.config', 'click', 'rich', 'injector'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from taskweaver import TaskWeaverApp\n"
        "from taskweaver.utils import read_yaml\n"
        "assert TaskWeaverApp.__module__ == 'taskweaver.app.app'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert TaskWeaverApp is DirectApp
    with pytest.raises(AttributeError, match="has no attribute 'TaskWaver'"):
        _ = taskweaver.TaskWaver


def test_a_round_names_the_files_that_its_code_wrote(tmp_path: Path) -> None:
    code = "open('one.txt', 'w').write('1'); import matplotlib.pyplot as plt; plt.plot([1]); 5"
    config = {"session.roles": ["code_interpreter"]}
    project = make_project(tmp_path / "project", has_table=False)
    with TaskWeaverApp(project, config, model=Script([code_reply(code)])) as app:
        session = app.get_session()
        round_ = session.send_message("draw")
        assert round_.artifacts
        assert all((session.execution_cwd / name).is_file() for name in round_.artifacts)
        assert "one.txt" in {Path(name).name for name in round_.artifacts}
