"""What code cannot do in the sandbox. Each attempt is also made without one, where it succeeds."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from kernels import LIMITS, answers, run

from taskweaver.ces import sandbox
from taskweaver.ces.common import Client
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.manager import KernelManager, code_execution_service_factory
from taskweaver.ces.sandbox import SandboxPolicy, choose

try:
    sandbox.require_bwrap()
except SandboxUnavailable as error:
    if os.environ.get("SANDBOX_REQUIRED"):
        raise
    pytest.skip(str(error), allow_module_level=True)

ATTEMPTS = {
    "write a file outside": "open(OUT + '/1', 'w').close(); done = True",
    "append to a file outside": "open(CANARY, 'a').close(); done = True",
    "write through a shell": "import os; done = os.system('touch ' + OUT + '/2') == 0",
    "write through a child": "import subprocess as s; done = s.call(['touch', OUT + '/3']) == 0",
    "copy a file out": "import shutil; shutil.copy(__import__('sys').executable, OUT); done = True",
    "write a table outside": "pd.DataFrame({'a': [1]}).to_csv(OUT + '/4.csv'); done = True",
    "write an array outside": "np.save(OUT + '/5.npy', np.ones(2)); done = True",
    "make a folder outside": "import os; os.mkdir(OUT + '/6'); done = True",
    "write with the C library": (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        "done = libc.open((OUT + '/7').encode(), 0o101, 0o600) >= 0"
    ),
    "delete a file outside": "import os; os.rename(DELETABLE, DELETABLE + '2'); done = True",
    "read a file outside": "done = 'secret' in open(CANARY).read()",
    "read it as a table": "done = 'secret' in str(pd.read_csv(CANARY).columns)",
    "read it through a shell": "r = !cat $CANARY\ndone = 'secret' in str(r)",
    "list a folder outside": "import os; done = 'canary' in os.listdir(OUT)",
    "read through a link": (
        "import os; os.path.lexists('l') and os.remove('l'); os.symlink(CANARY, 'l')\n"
        "done = 'secret' in open('l').read()"
    ),
    "write through a link": (
        "import os; os.path.lexists('o') and os.remove('o'); os.symlink(OUT, 'o')\n"
        "open('o/8', 'w').close(); done = True"
    ),
    "link a file in": "import os; os.link(CANARY, 'h'); done = True; os.remove('h')",
    "read the conversation": "done = 'secret' in open('../memory.sqlite').read()",
    "change the conversation": "open('../memory.sqlite', 'r+').close(); done = True",
    "read another session": "done = 'secret' in open('../../other/memory.sqlite').read()",
    "change an installed library": "import os; done = os.access(os.path.dirname(np.__file__), 2)",
    "change this program": "import os, taskweaver as t; done = os.access(t.__path__[0], 2)",
    "connect to the machine": (
        "import socket; socket.create_connection(('127.0.0.1', PORT), 2); done = True"
    ),
    "fetch from the machine": (
        "import urllib.request as u, socket\n"
        "try: u.urlopen(f'http://127.0.0.1:{PORT}', timeout=1)\n"
        "except (TimeoutError, socket.timeout): done = True"
    ),
    "connect to a local socket": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect(UNIX); done = True"
    ),
    "connect to an abstract socket": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect(ABSTRACT); done = True"
    ),
    "signal another process": "import os; os.kill(VICTIM, 0); done = True",
    "see other processes": (
        "import os; done = any(open(f'/proc/{p}/cmdline').read().startswith('sleep')\n"
        "    for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid())"
    ),
    "read another's environment": "done = 'PATH' in open(f'/proc/{VICTIM}/environ').read()",
    "open another's files": "import os; done = bool(os.listdir(f'/proc/{VICTIM}/fd'))",
    "see the network's devices": "import os; done = len(os.listdir('/sys/class/net')) > 0",
    "see the machine's devices": "import os; done = os.path.exists('/sys/block')",
    "see the machine's routes": "done = len(open('/proc/net/route').read().splitlines()) > 1",
    "leave a file in shared memory": "open('/dev/shm/tw-probe', 'w').close()",
    "use a vsock": "import socket; socket.socket(40, socket.SOCK_STREAM); done = True",
    "read the home folder": "import os; done = 'canary-home' in os.listdir(HOME)",
}
EFFECT_ONLY = {"leave a file in shared memory"}


@dataclass
class World:
    """What there is outside."""

    names: str
    out: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    out, home = folder / "out", folder / "home"
    out.mkdir()
    home.mkdir()
    (out / "canary").write_text("secret\n")
    (home / "canary-home").write_text("")
    (out / "deletable").write_text("")
    abstract = f"\0tw-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as hidden,
        subprocess.Popen(["sleep", "600", "0"]) as victim,
    ):
        unix.bind(str(out / "s"))
        hidden.bind(abstract)
        unix.listen()
        hidden.listen()
        values = {
            "OUT": str(out), "CANARY": str(out / "canary"), "DELETABLE": str(out / "deletable"),
            "PORT": tcp.getsockname()[1], "UNIX": str(out / "s"), "ABSTRACT": abstract,
            "VICTIM": victim.pid, "HOME": str(home),
        }  # fmt: skip
        yield World("; ".join(f"{name} = {value!r}" for name, value in values.items()), out)
        victim.kill()


def opened(folder: Path, policy: SandboxPolicy | None) -> KernelManager:
    made = code_execution_service_factory(folder, limits=LIMITS, sandbox=policy)
    assert isinstance(made, KernelManager)
    return made


@pytest.fixture(scope="module", params=["boxed", "plain"])
def kernel(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Client]]:
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("own", "other"):
        (folder / "sessions" / name).mkdir(parents=True)
        (folder / "sessions" / name / "memory.sqlite").write_text("secret")
    manager = opened(folder, SandboxPolicy() if request.param == "boxed" else None)
    client = manager.get_session_client("own")
    assert run(client, world.names).is_success
    yield request.param, client
    manager.clean_up()


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_outside_is_reached(kernel: tuple[str, Client], attempt: str) -> None:
    tier, client = kernel
    (Path("/dev/shm") / "tw-probe").unlink(missing_ok=True)
    run(client, f"done = False\n{ATTEMPTS[attempt]}")
    has_succeeded = run(client, "bool(done)").output
    if attempt in EFFECT_ONLY:
        has_succeeded = (Path("/dev/shm") / "tw-probe").exists()
    if tier == "plain" and not has_succeeded:
        pytest.skip("this machine does not allow it to anybody")
    assert has_succeeded is (tier == "plain")
    assert answers(client)


def test_ordinary_work_goes_on_inside(tmp_path: Path) -> None:
    manager = opened(tmp_path, SandboxPolicy())
    client = manager.get_session_client("s")
    table = "pd.DataFrame({'a': [1, 2]}).to_csv('a.csv'); len(pd.read_csv('a.csv'))"
    assert run(client, table).output == 2
    figure = run(client, "plt.plot([1, 2]); plt.title('T'); None")
    assert [artifact.preview for artifact in figure.artifact] == ["T"]
    assert (tmp_path / "sessions" / "s" / "cwd" / "a.csv").exists()
    fonts = "import os; [name for name in os.listdir('/tmp/.matplotlib') if 'fontlist' in name]"
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "taskweaver" / "matplotlib"
    made_outside = sorted(path.name for path in cache.glob("fontlist-*"))
    assert run(client, fonts).output == made_outside != []
    run(client, "from concurrent.futures import ProcessPoolExecutor as Pool")
    pool = "with Pool(2) as p: r = list(p.map(abs, [-1, 2]))\nr"
    assert run(client, pool).output == [1, 2]
    assert run(client, "import os; sorted(os.listdir('/proc/self/fd'))[:1]").output == ["0"]
    manager.clean_up()


def test_a_fork_stays_inside_and_everything_ends_with_the_session(tmp_path: Path) -> None:
    before = set(psutil.pids())
    manager = opened(tmp_path, SandboxPolicy())
    client = manager.get_session_client(
        "main", session_dir=tmp_path / "s", cwd=tmp_path / "s" / "cwd"
    )
    run(client, "x = 41")
    snapshot = client.snapshot()
    cwd = tmp_path / "s" / "branches" / "b" / "cwd"
    child = manager.fork_session_client(snapshot, "b", session_dir=tmp_path / "s", cwd=cwd)
    snapshot.close()
    assert run(child, "x + 1").output == 42
    assert "Read-only" in str(run(child, "open('/usr/x', 'w')").error)
    run(child, "import os; os._exit(1)")
    assert run(client, "x").output == 41
    assert answers(child)
    run(client, "import subprocess as s; s.Popen(['sleep', '600'], start_new_session=True)")
    client.stop()
    assert answers(child)
    child.stop()
    manager.clean_up()
    new = [psutil.Process(pid) for pid in set(psutil.pids()) - before if psutil.pid_exists(pid)]
    ours = [process for process in new if process.name() in {"bwrap", "sleep"}]
    _, alive = psutil.wait_procs(ours, timeout=5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_what_is_granted_is_there(tmp_path: Path) -> None:
    readable, writable = tmp_path / "readable", tmp_path / "writable"
    for folder in (readable, writable):
        folder.mkdir()
        (folder / "f").write_text("given")
    with socket.create_server(("127.0.0.1", 0)) as server:
        policy = SandboxPolicy(has_network=True, read_only=(readable,), writable=(writable,))
        manager = opened(tmp_path / "env", policy)
        client = manager.get_session_client("s")
        assert run(client, f"open({str(readable / 'f')!r}).read()").output == "given"
        assert not run(client, f"open({str(readable / 'f')!r}, 'w')").is_success
        assert run(client, f"open({str(writable / 'f')!r}, 'w').write('new')").is_success
        port = server.getsockname()[1]
        assert (
            run(
                client, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); 1"
            ).output
            == 1
        )
        manager.clean_up()
    assert (writable / "f").read_text() == "new"


def test_a_sandbox_that_cannot_be_had_is_an_error_or_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.require_bwrap.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="not installed"):
            choose("bwrap", SandboxPolicy())
        chosen = choose("auto", SandboxPolicy())
        assert chosen.policy is None
        assert "without a sandbox: bubblewrap is not installed" in chosen.warning
        assert choose("none", SandboxPolicy()).warning == ""
    finally:
        sandbox.require_bwrap.cache_clear()


def without_processes_of_its_own(words: list[str]) -> list[str]:
    words.remove("--unshare-pid")
    return words


def with_a_system_that_can_be_written(words: list[str]) -> list[str]:
    words[words.index("--ro-bind")] = "--bind"
    return words


@pytest.mark.parametrize(
    "weaken", [without_processes_of_its_own, with_a_system_that_can_be_written]
)
def test_a_sandbox_that_does_not_hold_is_noticed(
    monkeypatch: pytest.MonkeyPatch, weaken: Callable[[list[str]], list[str]]
) -> None:
    if os.getuid() and weaken is with_a_system_that_can_be_written:
        pytest.skip("only root can write there")
    whole = sandbox.bwrap_command
    monkeypatch.setattr(sandbox, "bwrap_command", lambda *given: weaken(whole(*given)))
    sandbox.require_bwrap.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="does not hold"):
            sandbox.require_bwrap()
    finally:
        sandbox.require_bwrap.cache_clear()
