"""Jupyter clients that join the kernel of a session."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import nbformat
import pytest
from command_line import CommandLine
from jupyter_clients import ask, joined
from nbclient import NotebookClient
from patience import PATIENCE_S
from support import NO_STATES, Listener, make_project

from taskweaver import TaskWeaverApp
from taskweaver.doors.jupyter.attaching import attached
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import PostEventType
from taskweaver.session.errors import SessionError
from taskweaver.session.export import export
from taskweaver.session.session import Session

CONFIG = {"llm.api_type": "offline", "execution.zygote": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("attach") / "p", CONFIG, has_table=False)


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[TaskWeaverApp]:
    with TaskWeaverApp(folder, NO_STATES) as opened:
        yield opened


@pytest.fixture
def keeping(folder: Path) -> Iterator[TaskWeaverApp]:
    with TaskWeaverApp(folder) as opened:
        yield opened


@pytest.fixture
def session(app: TaskWeaverApp) -> Iterator[Session]:
    with app.get_session() as opened:
        opened.run_code("x = 41")
        yield opened


def connection(app: TaskWeaverApp, session: Session) -> Path:
    return app.session_manager.connection_file(session.session_id, session.branch)


def contents(session: Session, kind: AttachmentType) -> list[str]:
    posts = session.memory.conversation.rounds[-1].post_list
    return [str(item.content) for post in posts for item in post.get_attachment(kind)]


def test_a_client_sees_rich_results_of_its_own_requests(
    app: TaskWeaverApp, session: Session
) -> None:
    with joined(connection(app, session)) as client:
        frame = ask(client, "import pandas as pd; df = pd.DataFrame({'a': [x, 1]}); df")
        assert frame.data("execute_result") == {"text/html", "text/plain"}
        drawn = "import matplotlib.pyplot as plt; plt.plot([1, 2]);"
        assert "image/png" in ask(client, drawn).data("display_data")
        assert "image/png" in ask(client, drawn + "plt.show()").data("display_data")
        assert ask(client, "_.shape").text == "(2, 1)"
        assert ask(client, "y = 5").messages == []
        assert ask(client, "print(x); 1 / 0").error == "ZeroDivisionError"
        assert "text/html" in ask(client, "%%html\n<b>x</b>").data("display_data")
        assert ask(client, "", user_expressions={"v": "x + 1"}).status == "ok"
    assert not list(session.execution_cwd.glob("*.png"))


def test_own_cells_stay_as_they_are_beside_a_client(app: TaskWeaverApp, session: Session) -> None:
    with joined(connection(app, session)) as client:
        ask(client, "import matplotlib.pyplot as plt\ny = [x]")
        session.run_code("plt.plot([1, 2]); y")
        agg = ask(client, "import matplotlib; matplotlib.use('Agg'); plt.plot([3]); plt.show()")
        assert [kind for kind, _ in agg.messages] == ["display_data"]  # of its own figure alone
        assert "[41]" in contents(session, AttachmentType.execution_result)[0]
        assert "figure_1.png" in contents(session, AttachmentType.artifact_paths)[0]
        assert ask(client, "y").data("execute_result") == {"text/plain"}


def test_cells_of_a_client_become_a_round_and_are_restored(keeping: TaskWeaverApp) -> None:
    session = keeping.get_session()
    session.run_code("x = 41")
    with joined(connection(keeping, session)) as client:
        ask(client, "stranger = [x, 1]")
    session.stop()
    again = keeping.get_session(session.session_id)
    asked = again.memory.conversation.rounds[-1].user_query
    assert "ran outside of this conversation" in asked
    assert "stranger = [x, 1]" in asked
    again.run_code("print(sum(stranger))")
    assert "42" in contents(again, AttachmentType.execution_result)[0]
    again.stop()


def test_an_exported_notebook_has_the_cells_of_a_client_and_runs(
    app: TaskWeaverApp, session: Session, tmp_path: Path
) -> None:
    with joined(connection(app, session)) as client:
        ask(client, "stranger = [x, 1]")
        ask(client, "1 / 0")
    session.run_code("sum(stranger)")
    target = tmp_path / "story.ipynb"
    export(session.memory.conversation.rounds, target, title="t", folder=session.execution_cwd)
    notebook = nbformat.read(target, as_version=4)
    nbformat.validate(notebook)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert "stranger = [x, 1]\n\n# This cell failed:\n# 1 / 0" in sources
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebook.cells[-2].outputs[-1]["data"]["text/plain"] == "42"


def test_a_fork_has_the_variables_of_a_client(app: TaskWeaverApp, session: Session) -> None:
    with joined(connection(app, session)) as client:
        ask(client, "class Odd: pass\nodd = Odd()")
        session.checkout(session.fork("b"))
        assert session.why_restored == ""
        session.run_code("type(odd).__name__")
        assert "Odd" in contents(session, AttachmentType.execution_result)[0]
        ask(client, "odd = None")
        with joined(connection(app, session)) as other:
            assert "Odd" in ask(other, "odd").text


def test_an_own_cell_waits_for_one_of_a_client(folder: Path) -> None:
    limited, release = {"execution.cell_timeout_s": 0.5}, folder / "release"
    with TaskWeaverApp(folder, limited) as app, app.get_session() as session:
        session.run_code("x = 1")
        with joined(connection(app, session)) as client:
            code = (
                "import os, time\nbegan = time.monotonic()\n"
                f"while not os.path.exists({str(release)!r}) or time.monotonic() - began < 1:\n"
                "    time.sleep(0.01)\n"
                "x = 2"
            )
            request = client.execute(code)
            while client.get_iopub_msg(timeout=PATIENCE_S)["msg_type"] != "execute_input":
                continue
            running = Listener()
            round_ = threading.Thread(target=session.run_code, args=("print(x)", running))
            round_.start()
            while not running.messages(PostEventType.post_status_update):
                round_.join(0.05)
            release.touch()
            round_.join(PATIENCE_S)
            reply = client.get_shell_msg(timeout=PATIENCE_S)
            assert reply["parent_header"]["msg_id"] == request
            assert reply["content"]["status"] == "ok"
        assert "2" in contents(session, AttachmentType.execution_result)[0]


def test_attach_runs_a_kernel_or_finds_that_of_another_process(
    keeping: TaskWeaverApp, folder: Path, command_line: CommandLine
) -> None:
    session = keeping.get_session()
    session.run_code("x = 41")
    id_ = session.session_id
    attach = partial(command_line.run, "-p", str(folder), "attach", env=os.environ)
    found = attach(id_)
    assert found.returncode == 0, found.stderr
    file = Path(found.stdout.strip())
    assert file == connection(keeping, session)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Another process runs the kernel" in found.stderr
    assert "no kernel of it runs yet" in attach(id_, "--branch", "b").stderr
    session.stop()
    assert not file.exists()
    with attached(keeping, id_) as here:
        assert (here.file, here.branch, here.is_elsewhere) == (file, "main", False)
        with joined(here.file) as client:
            assert ask(client, "x").text == "41"
    with pytest.raises(SessionError, match="There is no session"), attached(keeping, "20200101"):
        pass
