"""What works on macOS works without the names of Linux; Windows is told what to do."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from patience import PATIENCE_S
from sizes import some, spread
from support import make_project

import taskweaver

FIXTURES = Path(__file__).parents[1] / "fixtures"


def on(system: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(system), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def environment(system: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(FIXTURES / system)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the defaults: a sandbox and a warm kernel where there are such."""
    config = {"llm.api_type": "offline", "execution.sandbox": "auto", "execution.zygote": True}
    return make_project(tmp_path / "project", config)


ROUNDS = """
import json, sys, threading
from pathlib import Path
from click.testing import CliRunner
from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.memory.attachment import AttachmentType

def outcome(round_):
    kind = AttachmentType.execution_result
    return [a.content for post in round_.post_list for a in post.get_attachment(kind)][-1]

with TaskWeaverApp(Path(sys.argv[1])) as app:
    session = app.get_session()
    asked = session.send_message("how many rows are in tiny.csv?")
    session.run_code("kept = 20")
    child = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True).pid"
    child = outcome(session.run_code(child))
    timer = threading.Timer(1.0, session.interrupt)
    timer.start()
    slow = session.run_code("import time; time.sleep(600)")
    timer.join()
    name = session.fork("other")
    session.checkout(name)
    why, lost = session.why_restored, outcome(session.run_code("kept"))
    session.checkout("main")
    kept = outcome(session.run_code("kept + 1"))
    died = outcome(session.run_code("import os; os._exit(3)"))
    again = outcome(session.run_code("1 + 1"))
    memory = session.kernel_memory.resident_bytes
    session.wait_until_stored()
told = []
for command in (["doctor"], ["-m", "/plugins"], ["search", sys.argv[2], "--plain"]):
    done = CliRunner().invoke(commands, ["-p", sys.argv[1], *command])
    told.append([done.exit_code, " ".join(done.output.split())])
print(json.dumps({
    "warnings": app.warnings, "state": asked.state, "answer": asked.answer.text, "child": child,
    "slow": outcome(slow), "why": why, "lost": lost, "kept": kept, "died": died, "again": again,
    "memory": memory, "told": told,
}), flush=True)

app = TaskWeaverApp(Path(sys.argv[1]))
session = app.get_session()
session.run_code("import os; open('pid', 'w').write(str(os.getpid()))")
print((session.execution_cwd / "pid").read_text(), flush=True)
sys.stdin.read()
"""


def test_on_macos_a_session_runs_code_and_ends_all_it_started_and_commands_say_what_works(
    project: Path,
) -> None:
    (project / "idea.md").write_text("# An idea\n\nTry it.\n")
    command = [sys.executable, "-c", ROUNDS, str(project), str(project / "idea.md")]
    with subprocess.Popen(
        command, env=environment("macos"), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        found = json.loads(owner.stdout.readline())
        kernel = psutil.Process(int(owner.stdout.readline()))
        owner.kill()  # all it started ends then, too
    assert psutil.wait_procs([kernel], timeout=PATIENCE_S)[1] == []
    assert found["warnings"][0].startswith("macOS: chats, plugins and roles work; code runs with")
    assert "without a sandbox: there is none for macOS" in found["warnings"][1]
    assert found["state"] == "finished"
    assert "2" in found["answer"]
    assert "KeyboardInterrupt" in found["slow"]
    assert "macOS has no forks of running programs" in found["why"]
    assert "NameError" in found["lost"]
    assert "21" in found["kept"]
    assert "exit status 3" in found["died"]
    assert "2" in found["again"]
    assert found["memory"] > 0
    assert not psutil.pid_exists(int(found["child"].strip("`\n ").splitlines()[-1].split()[-1]))
    assert [status for status, _ in found["told"]] == [0, 0, 2]
    doctor, chat, search = [said for _, said in found["told"]]
    assert "warn system macOS: chats, plugins and roles work" in doctor
    assert "ok kernel 1+1 is 2" in doctor
    assert "macOS: chats, plugins and roles work" in chat
    assert "A search needs Linux; this is macOS." in search


IMPORTS = """
import importlib, sys
from taskweaver.utils.system.platform import UnsupportedPlatform

failed = ()
for name in sys.argv[1:]:
    if name.startswith(failed):
        continue  # its package is imported before it, and fails as it did
    try:
        importlib.import_module(name)
    except UnsupportedPlatform as error:
        print(error)
        failed += (f"{name}.",)
"""
SENTENCE = "Windows: use WSL 2, https://aka.ms/wsl, and install TaskWeaver in its Linux."


def test_no_import_fails_on_windows_without_the_reason() -> None:
    found = pkgutil.walk_packages(taskweaver.__path__, "taskweaver.", onerror=lambda _: None)
    inside = ("taskweaver.ces.inkernel", "taskweaver.__main__")
    modules = [module for module in found if not module.name.startswith(inside)]
    packages = [module.name for module in modules if module.ispkg]
    others = [module.name for module in modules if not module.ispkg]
    number = len(packages) + len(others) // 16
    tried = some([*packages, *spread(others, len(others) // 16)], number)
    done = on("windows", "-c", IMPORTS, *tried)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {SENTENCE}


@pytest.mark.parametrize("arguments", [["doctor"], ["-m", "hello"], []])
def test_the_command_on_windows_is_one_sentence(project: Path, arguments: list[str]) -> None:
    done = on("windows", "-m", "taskweaver", "-p", str(project), *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {SENTENCE}\n")
