"""Kernels: what cells give, and that whatever a cell does comes back as a result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from taskweaver.ces.common import Client, ExecutionResult, Stream
from taskweaver.ces.errors import KernelClosed, KernelError, KernelStartFailed, PluginLoadFailed
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import KernelManager, code_execution_service_factory, default_limits

LIMITS = replace(default_limits(), cell_timeout_s=20.0, output_limit_bytes=100_000)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    folder = tmp_path_factory.mktemp("shared")
    manager = code_execution_service_factory(folder, limits=LIMITS)
    client = manager.get_session_client("shared", cwd=folder / "cwd")
    client.execute_code("0", "1")
    yield client, folder / "cwd"
    manager.clean_up()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Client]:
    manager = code_execution_service_factory(tmp_path, limits=LIMITS)
    yield manager.get_session_client("fresh", cwd=tmp_path / "cwd")
    manager.clean_up()


def limited(tmp_path: Path, **limits: float | int) -> KernelManager:
    manager = code_execution_service_factory(tmp_path, limits=replace(LIMITS, **limits))  # type: ignore[arg-type]
    assert isinstance(manager, KernelManager)
    return manager


def run(client: Client, code: str) -> ExecutionResult:
    return client.execute_code("x", code)


def answers(client: Client) -> bool:
    return run(client, "20 + 1").output == 21


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("1 + 1", 2),
        ("x = 5", 5),
        ("'text'", "text"),
        ("[1, None, 2.5, 'é', {'a': [True]}]", [1, None, 2.5, "é", {"a": [True]}]),
        ("None", ""),
        ("1;", ""),
        ("", ""),
        ("{1}", "{1}"),
        ("(1, 2)", "(1, 2)"),
        ("b'bytes'", "b'bytes'"),
        ("float('nan')", "nan"),
        ("import numpy; numpy.float64(2.5)", 2.5),
        ("'\\ud800'", "?"),
    ],
)
def test_the_last_value_is_the_output(
    shared: tuple[Client, Path], code: str, output: object
) -> None:
    result = run(shared[0], code)
    assert result.is_success, result.error
    assert result.output == output


@pytest.mark.parametrize(
    "code",
    [
        "class Bad:\n    def __repr__(self): raise ValueError('no')\nBad()",
        "class Bad:\n    def __repr__(self): raise SystemExit\nBad()",
        "loop = []\nloop.append(loop)\nloop",
        "class Bad:\n    def _repr_html_(self): raise ValueError('no')\nBad()",
    ],
)
def test_a_value_that_cannot_be_shown_does_not_stop_the_report(
    shared: tuple[Client, Path], code: str
) -> None:
    assert run(shared[0], code).is_success
    assert answers(shared[0])


def test_a_cell_that_removes_its_own_folder_leaves_the_next_one_whole(fresh: Client) -> None:
    run(fresh, "import shutil, os\nshutil.rmtree(os.getcwd())")
    assert answers(fresh)


def test_a_plugin_that_hangs_while_loading_does_not_hold_the_stop(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    run(client, "1")
    failures: list[Exception] = []

    def load() -> None:
        try:
            client.load_plugin("slow", "while True: pass", {})
        except KernelError as error:
            failures.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    while client.state != "busy":
        assert thread.is_alive()
    manager.clean_up()
    thread.join(10)
    assert len(failures) == 1


def test_a_semicolon_at_the_end_harms_nothing_later(shared: tuple[Client, Path]) -> None:
    run(shared[0], "a = 1;")
    assert answers(shared[0])


def test_tables_show_whole(shared: tuple[Client, Path]) -> None:
    result = run(shared[0], "pd.DataFrame({f'column_{n}': range(20) for n in range(12)})")
    lines = result.output.splitlines()
    assert len(lines) == 21
    assert "column_0" in lines[0]
    assert "column_11" in lines[0]


def test_output_arrives_while_the_cell_runs_and_in_order(shared: tuple[Client, Path]) -> None:
    heard: list[tuple[Stream, str]] = []
    code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\n!echo three"
    result = shared[0].execute_code("x", code, lambda stream, text: heard.append((stream, text)))
    assert "".join(text for stream, text in heard if stream == "stdout") == "one\nthree\n"
    assert "".join(result.stderr) == "two\n"


def test_an_error_is_told_without_colours(shared: tuple[Client, Path]) -> None:
    result = run(shared[0], "print('before')\n1 / 0")
    assert (result.is_success, result.status) == (False, "error")
    assert "ZeroDivisionError: division by zero" in str(result.error)
    assert "\x1b" not in str(result.error)
    assert result.stdout == ["before\n"]


@pytest.mark.parametrize(
    "code", ["def f(:", "raise SystemExit(3)", "exit()", "input()", "import no_such_module"]
)
def test_what_fails_leaves_the_kernel_alive(shared: tuple[Client, Path], code: str) -> None:
    assert run(shared[0], code).status == "error"
    assert answers(shared[0])


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdout = None",
        "import os; os.chdir('/')",
        "import os; os.write(1, bytes(range(256)))",
        "print('\\ud800')",
        "import threading; threading.Thread(target=lambda: print('late' * 500)).start()",
        "import sys; sys.stdout.write('no newline')",
    ],
)
def test_odd_cells_leave_the_next_one_whole(shared: tuple[Client, Path], code: str) -> None:
    run(shared[0], code)
    assert answers(shared[0])
    assert run(shared[0], "import os; os.getcwd()").output == str(shared[1])


def test_variables_are_listed_shortly(shared: tuple[Client, Path]) -> None:
    code = (
        "frame = pd.DataFrame({'a': [1, 2]})\narray = np.zeros((100, 3))\nword = 'w' * 5000\n"
        "class Rude:\n    def __repr__(self): raise ValueError('no')\nrude = Rude()\n_hidden = 1"
    )
    variables = dict(run(shared[0], code).variables)
    assert variables["frame"].startswith("DataFrame 2x1: a:int64")
    assert "shape=(100, 3)" in variables["array"]
    assert len(variables["word"]) < 700
    assert "cannot be shown: ValueError" in variables["rude"]
    assert not {"_hidden", "pd", "np", "plt", "Rude"} & variables.keys()


def test_a_value_that_takes_forever_to_show_does_not_hold_the_report(fresh: Client) -> None:
    code = "class Slow:\n    def __repr__(self):\n        while True: pass\nslow = Slow()\nslow"
    result = run(fresh, code)
    assert result.is_success
    assert "too long" in result.output


def test_printing_without_end_is_cut_where_it_is_written(fresh: Client) -> None:
    memory = psutil.Process().memory_info().rss
    result = run(fresh, "for _ in range(2000): print('x' * 100_000)")
    assert result.is_success
    assert result.is_truncated
    assert sum(map(len, result.stdout)) == LIMITS.output_limit_bytes
    assert psutil.Process().memory_info().rss - memory < 64 << 20
    assert not run(fresh, "print('short')").is_truncated


def test_figures_become_files_once(shared: tuple[Client, Path]) -> None:
    shown = run(shared[0], "plt.plot([1, 2]); plt.title('Open'); None")
    assert [(a.type, a.preview) for a in shown.artifact] == [("chart", "Open")]
    saved = run(shared[0], "plt.plot([1, 2])\nplt.savefig('mine.png')")
    assert [a.file_name for a in saved.artifact] == ["mine.png"]
    both = run(shared[0], "plt.plot([1])\nplt.show()\nplt.plot([2])\nplt.show()")
    assert len(both.artifact) == 2
    assert all((shared[1] / a.file_name).read_bytes().startswith(b"\x89PNG") for a in both.artifact)
    assert run(shared[0], "1").artifact == []


def test_what_is_displayed_becomes_a_file_or_text(shared: tuple[Client, Path]) -> None:
    code = (
        "from IPython.display import HTML\ndisplay(HTML('<b>hi</b>'))\n"
        "display(pd.DataFrame({'a': [1]}))"
    )
    result = run(shared[0], code)
    assert [a.type for a in result.artifact] == ["html"]
    assert "a\n0  1" in "".join(result.stdout)
    rich = "class Rich:\n    def _repr_html_(self): return '<i>rich</i>'\nRich()"
    assert [a.type for a in run(shared[0], rich).artifact] == ["html"]


def test_files_a_cell_makes_are_listed(shared: tuple[Client, Path]) -> None:
    code = (
        "pd.DataFrame({'a': [1]}).to_csv('made.csv')\n"
        "import os\nos.makedirs('sub', exist_ok=True)\n"
        "open('sub/n.txt', 'w').write('1')"
    )
    result = run(shared[0], code)
    assert {a.file_name: a.type for a in result.artifact} == {"made.csv": "df", "sub/n.txt": "txt"}


def test_files_elsewhere_links_and_large_ones_are_not_listed(tmp_path: Path) -> None:
    manager = limited(tmp_path, artifact_limit_bytes=1000)
    client = manager.get_session_client("s", cwd=tmp_path / "cwd")
    (tmp_path / "secret.txt").write_text("secret")
    code = (
        "import os\nos.symlink('../secret.txt', 'link.txt')\nopen('../other.txt', 'w').write('1')\n"
        "open('large.bin', 'wb').write(bytes(2000))\n"
        "from taskweaver.ces.inkernel.artifacts import ARTIFACTS\nfrom pathlib import Path\n"
        "for name in ('../secret.txt', 'link.txt', '/etc/hostname', 'gone'):\n"
        "    ARTIFACTS.add(Path(name), 'file')"
    )
    result = run(client, code)
    manager.clean_up()
    assert result.is_success, result.error
    assert result.artifact == []


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("import os; os._exit(3)", "exit status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "SIG"),
    ],
)
def test_a_kernel_that_dies_is_replaced_and_the_loss_is_told(
    fresh: Client, code: str, part: str
) -> None:
    run(fresh, "kept = 1")
    result = run(fresh, code)
    assert (result.status, result.is_state_lost) == ("died", True)
    assert part in str(result.error)
    assert "all variables are gone" in str(result.error)
    assert "NameError" in str(run(fresh, "kept").error)


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)", "!sleep 60"])
def test_a_cell_that_takes_too_long_is_stopped_and_the_variables_stay(
    tmp_path: Path, code: str
) -> None:
    manager = limited(tmp_path, cell_timeout_s=1.0)
    client = manager.get_session_client("s")
    run(client, "kept = 7")
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", False)
    assert "execution.cell_timeout_s" in str(result.error)
    assert run(client, "kept").output == 7
    manager.clean_up()


def test_a_cell_that_ignores_interrupts_is_killed(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=0.5)
    client = manager.get_session_client("s")
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = run(client, code)
    assert (result.status, result.is_state_lost) == ("timeout", True)
    assert answers(client)
    manager.clean_up()


def test_an_interrupt_from_another_thread_ends_the_cell_only(fresh: Client) -> None:
    run(fresh, "kept = 3")
    heard = threading.Event()
    results: list[ExecutionResult] = []
    code = "print('started', flush=True)\nimport time\ntime.sleep(60)"
    thread = threading.Thread(
        target=lambda: results.append(fresh.execute_code("x", code, lambda *_: heard.set()))
    )
    thread.start()
    assert heard.wait(10)
    fresh.interrupt()
    thread.join(10)
    assert results[0].status == "interrupted"
    assert run(fresh, "kept").output == 3


def test_a_keyboard_interrupt_ends_the_cell_and_is_raised(fresh: Client) -> None:
    run(fresh, "kept = 3")

    def press(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    code = "print('started', flush=True)\nimport time\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        fresh.execute_code("x", code, press)
    assert run(fresh, "kept").output == 3


def test_callers_wait_for_their_turn(fresh: Client) -> None:
    results: dict[int, object] = {}

    def work(number: int) -> None:
        results[number] = fresh.execute_code(
            str(number), f"import time; time.sleep(0.1); {number}"
        ).output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {0: 0, 1: 1, 2: 2, 3: 3}


def test_stopping_ends_a_running_cell_and_the_client_stays_stopped(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    heard = threading.Event()
    code = "print('started', flush=True)\nimport time\ntime.sleep(60)"
    thread = threading.Thread(target=lambda: client.execute_code("x", code, lambda *_: heard.set()))
    thread.start()
    assert heard.wait(10)
    manager.clean_up()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(KernelClosed):
        run(client, "1")
    client.stop()


def test_children_of_a_kernel_end_with_it(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    code = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(99)']\n"
        "child = subprocess.Popen(command, start_new_session=True)\n"
        "child.pid"
    )
    pid = int(run(client, code).output)
    assert psutil.pid_exists(pid)
    manager.clean_up()
    assert not psutil.pid_exists(pid)


def test_a_killed_owner_leaves_no_kernel(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom taskweaver.ces.manager import code_execution_service_factory\n"
        "client = code_execution_service_factory(sys.argv[1]).get_session_client('s')\n"
        "print(client.execute_code('x', 'import os; os.getpid()').output, flush=True)\n"
        "client.execute_code('x', 'while True: pass')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        kernel = psutil.Process(int(owner.stdout.readline()))
        owner.send_signal(signal.SIGKILL)
    psutil.wait_procs([kernel], timeout=5)
    assert not kernel.is_running()


def test_no_key_of_the_host_is_in_the_kernel(
    fresh: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("LLM_API_KEY", "sk-canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    assert "canary" not in str(run(fresh, "import os; str(dict(os.environ))").output)


def test_sockets_and_descriptors_do_not_pile_up(tmp_path: Path) -> None:
    def cycle() -> None:
        manager = limited(tmp_path)
        assert answers(manager.get_session_client("s"))
        manager.clean_up()

    cycle()
    files = psutil.Process().num_fds()
    folders = set(Path(tempfile.gettempdir()).glob("tw-*"))
    for _ in range(3):
        cycle()
    assert psutil.Process().num_fds() <= files + 1
    assert set(Path(tempfile.gettempdir()).glob("tw-*")) == folders


def test_a_kernel_that_cannot_start_says_why(tmp_path: Path) -> None:
    manager = limited(tmp_path, start_timeout_s=0.01)
    with pytest.raises(KernelStartFailed, match=r"execution\.start_timeout_s"):
        run(manager.get_session_client("slow"), "1")
    gone = manager.get_session_client("gone", cwd=tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(KernelStartFailed, match="cannot be started"):
        run(gone, "1")
    manager.clean_up()


def test_memory_beyond_the_limit_is_an_error_of_the_cell(tmp_path: Path) -> None:
    manager = limited(tmp_path, memory_limit_bytes=1 << 30)
    client = manager.get_session_client("s")
    assert "MemoryError" in str(run(client, "data = bytearray(2 << 30)").error)
    assert answers(client)
    manager.clean_up()


PLUGIN = """
from taskweaver.plugin import Plugin, register_plugin, test_plugin

@register_plugin
class Greeter(Plugin):
    def __call__(self, name):
        self.ctx.log("info", "greeter", f"greeting {name}")
        self.ctx.add_artifact("card", "card.txt", "txt", f"Hello {name}", "a card")
        return f"{self.config['word']} {name}, {self.ctx.get_session_var('mood', 'calm')}"

@test_plugin(name="greets")
def greets(plugin):
    assert plugin("you").startswith("Hi")

@test_plugin(name="fails")
def fails(plugin):
    assert plugin("you") == "never"
"""


def test_plugins_and_session_variables_survive_a_restart(fresh: Client) -> None:
    fresh.update_session_var({"mood": "glad"})
    fresh.load_plugin("greet", PLUGIN, {"word": "Hi"})
    result = run(fresh, "greet('Ann')")
    assert result.output == "Hi Ann, glad"
    assert result.log == [("info", "greeter", "greeting Ann")]
    assert [(a.type, a.original_name, a.preview) for a in result.artifact] == [
        ("txt", "card.txt", "a card")
    ]
    run(fresh, "import os; os._exit(1)")
    assert run(fresh, "greet('Ann')").output == "Hi Ann, glad"
    (failure,) = fresh.test_plugin("greet")
    assert failure.startswith("fails")
    assert fresh.test_plugin("nobody") == ["nobody is not loaded"]


@pytest.mark.parametrize(
    "source",
    [
        "def broken(:",
        "raise RuntimeError('no')",
        "x = 1",
        "import os; os._exit(1)",
        PLUGIN + PLUGIN,
    ],
    ids=["syntax", "raises", "registers nothing", "exits", "registers two"],
)
def test_a_plugin_that_does_not_load_is_named_and_the_kernel_goes_on(
    fresh: Client, source: str
) -> None:
    with pytest.raises(PluginLoadFailed, match="odd"):
        fresh.load_plugin("odd", source, {})
    assert answers(fresh)


def test_uploads_stay_in_the_working_directory(fresh: Client, tmp_path: Path) -> None:
    assert fresh.upload_file("a.txt", b"1") == "a.txt"
    assert run(fresh, "open('a.txt').read()").output == "1"
    (tmp_path / "cwd" / "link.txt").symlink_to(tmp_path / "outside.txt")
    fresh.upload_file("link.txt", b"2")
    assert not (tmp_path / "outside.txt").exists()
    for name in ("../b.txt", "/etc/b", "", "..", "a\0b"):
        with pytest.raises(ValueError, match="not the name of a file"):
            fresh.upload_file(name, b"1")


def test_a_forked_child_that_leaves_does_not_hang_the_session(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=5.0)
    client = manager.get_session_client("s")
    run(client, "import os, sys\nif os.fork() == 0:\n    sys.exit(0)")
    assert run(client, "1").status in {"ok", "timeout", "died"}
    assert answers(client)
    manager.clean_up()


def test_a_broken_interpreter_is_replaced(tmp_path: Path) -> None:
    manager = limited(tmp_path, cell_timeout_s=3.0)
    client = manager.get_session_client("s")
    run(client, "import builtins; builtins.len = None")
    run(client, "1")
    assert answers(client)
    manager.clean_up()


def test_limits_are_plain_values() -> None:
    assert default_limits() == KernelLimits(60.0, 600.0, 0, 1 << 20, 256 << 20)
