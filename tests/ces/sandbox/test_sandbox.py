"""Sandboxes: how they start, what they grant, and that a weaker one is noticed.

tests/attacks has what code cannot do in one.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from kernels import (
    BOXED,
    FORKS,
    LIMITS,
    TIERS,
    Managers,
    answers,
    needs_bwrap,
    needs_landlock,
    run,
    warmed,
)  # fmt: skip
from leftovers import groups_of
from patience import PATIENCE_S
from sizes import some

from taskweaver.ces.errors import KernelStartFailed, SandboxUnavailable
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.manager import KernelManager
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.sandbox import sandbox
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.ces.sandbox.seccomp import REFUSED

Enter = Callable[..., Kernel]


@pytest.fixture(scope="module")
def entering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    """The owner of kernels that enter the strongest sandbox, with the usual libraries.

    They are forked from one warm process.
    """
    with warmed(tmp_path_factory.mktemp("entering"), LIMITS, SandboxPolicy()) as manager:
        yield manager


@pytest.fixture
def enter(entering: KernelManager) -> Iterator[Callable[..., Kernel]]:
    """Return what makes clients of that owner, which end with the test."""
    with ExitStack() as stack:

        def made(name: str, **given: Any) -> Kernel:
            client = entering.get_session_client(name, **given)
            stack.callback(client.stop)
            return client

        yield made


def assert_calls_are_refused(client: Kernel) -> None:
    """Check all calls; arguments are invalid, so that one that is not refused does nothing."""
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    numbers = {name: row[column] for name, row in REFUSED.items() if row[column] is not None}
    code = (
        f"import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\nnumbers = {numbers}\n"
        "def error(number):\n"
        "    ctypes.set_errno(0)\n"
        "    libc.syscall(number, -1, -1, -1, -1, -1, -1)\n"
        "    return ctypes.get_errno()\n"
        "[name for name, number in numbers.items() if error(number) != errno.EPERM]"
    )
    assert run(client, code).output == []
    # One call is refused by its argument: the question is allowed, protections stay on.
    asked = "[libc.personality(kind) >= 0 for kind in (0xffffffff, 0x0040000)]"
    assert run(client, asked).output == [True, False]


@needs_bwrap
def test_a_snapshot_is_closed_to_its_kernel_and_open_to_its_owner(
    entering: KernelManager, enter: Enter, tmp_path: Path
) -> None:
    folder = tmp_path / "session"
    client = enter("s", session_dir=folder)
    with ExitStack() as stack:
        run(client, "n = 41; import os")
        snapshot = client.snapshot()
        stack.callback(snapshot.close)
        assert snapshot.footprint.resident_bytes > 0
        code = (
            "opened = []\n"
            "for pid in open(f'/proc/self/task/{os.getpid()}/children').read().split():\n"
            "    try: open(f'/proc/{pid}/mem', 'r+b').close(); opened.append(pid)\n"
            "    except OSError: n += 0.5\n"
            "opened, n"
        )
        assert run(client, code).output == "([], 41.5)"
        own = {"session_dir": folder, "cwd": folder / "branches" / "b"}
        fork = snapshot.fork("fork", **own)
        stack.callback(fork.stop)
        assert run(fork, "n, len(os.listdir('/proc/self/fd')) > 3").output == "(41, True)"
        assert run(fork, "open('/proc/self/mem', 'rb').close()").is_success
        assert fork.footprint().resident_bytes > 0


@needs_bwrap
def test_a_kernel_that_entered_works_and_is_refused_every_call_of_the_list(enter: Enter) -> None:
    client = enter("work")
    assert_calls_are_refused(client)
    assert_work_goes_on(client)


@pytest.mark.parametrize("tier", TIERS)
def test_a_kernel_that_is_started_inside_works_and_is_refused_the_same(
    managers: Managers, tier: Tier
) -> None:
    client = managers(policy=SandboxPolicy(tier=tier), limits=BOXED).get_session_client("s")
    assert_calls_are_refused(client)
    assert_work_goes_on(client)


def assert_work_goes_on(client: Kernel) -> None:
    """Check tables, figures, fonts and pools in a kernel."""
    table = "pd.DataFrame({'a': [1, 2]}).to_csv('a.csv'); len(pd.read_csv('a.csv'))"
    assert run(client, table).output == 2
    figure = run(client, "plt.plot([1, 2]); plt.title('T'); None")
    (preview,) = (artifact.preview for artifact in figure.artifact)
    assert preview.startswith('"T"; ')
    assert (client.place.folder / "cwd" / "a.csv").exists()
    fonts = "import os; d = os.environ['MPLCONFIGDIR']; [n for n in os.listdir(d) if 'font' in n]"
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "taskweaver" / "matplotlib"
    made_outside = sorted(path.name for path in cache.glob("fontlist-*"))
    assert run(client, fonts).output == made_outside != []
    run(client, "from concurrent.futures import ProcessPoolExecutor as Pool")
    pool = "with Pool(2) as p: r = list(p.map(abs, [-1, 2]))\nr"
    assert run(client, pool).output == [1, 2]
    assert run(client, "import os; sorted(os.listdir('/proc/self/fd'))[:1]").output == ["0"]


@needs_bwrap
def test_sessions_that_open_at_once_have_sandboxes_of_their_own(enter: Enter) -> None:
    clients = [enter(f"at once {number}") for number in some(range(5), 3)]
    for client in clients:
        client.start()
    code = "import os; [os.readlink('/proc/self/ns/' + n) for n in ('pid', 'mnt', 'user')]"
    found = [tuple(run(client, code).output) for client in clients]
    assert len({link for links in found for link in links}) == 3 * len(clients)
    numbers = [run(client, "float(np.random.random())").output for client in clients]
    assert len(set(numbers)) == len(clients)
    # matplotlib, which the warm process has imported, keeps its settings inside.
    code = "import matplotlib, os, tempfile; os.path.realpath(matplotlib.get_configdir())"
    assert run(clients[0], code).output == "/tmp/.matplotlib"
    assert run(clients[0], "open(os.path.join(matplotlib.get_cachedir(), 'x'), 'w')").is_success
    assert run(clients[0], "tempfile.gettempdir()").output == "/tmp"


def test_a_fork_stays_inside_and_everything_ends_with_the_session(
    managers: Managers, tmp_path: Path
) -> None:
    manager = managers(policy=SandboxPolicy())
    client = manager.get_session_client("main", session_dir=tmp_path / "s")
    run(client, "x = 41")
    snapshot = client.snapshot()
    cwd = tmp_path / "s" / "branches" / "b" / "cwd"
    child = snapshot.fork("b", session_dir=tmp_path / "s", cwd=cwd)
    snapshot.close()
    assert run(child, "x + 1").output == 42
    assert "Read-only" in str(run(child, "open('/usr/x', 'w')").error)
    run(child, "import os; os._exit(1)")
    assert run(client, "x").output == 41
    assert answers(child)
    run(client, "import subprocess as s; s.Popen(['sleep', '600.25'], start_new_session=True)")
    client.stop()
    assert answers(child)
    child.stop()
    ours = [p for p in psutil.process_iter(["cmdline"]) if "600.25" in (p.info["cmdline"] or [])]
    _, alive = psutil.wait_procs(ours, timeout=PATIENCE_S)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_what_is_granted_is_there(managers: Managers, tmp_path: Path) -> None:
    readable, writable = tmp_path / "readable", tmp_path / "writable"
    for folder in (readable, writable):
        folder.mkdir()
        (folder / "f").write_text("given")
    with socket.create_server(("127.0.0.1", 0)) as server:
        policy = SandboxPolicy(has_network=True, read_only=(readable,), writable=(writable,))
        client = managers(policy=policy).get_session_client("s")
        assert run(client, f"open({str(readable / 'f')!r}).read()").output == "given"
        assert not run(client, f"open({str(readable / 'f')!r}, 'w')").is_success
        assert run(client, f"open({str(writable / 'f')!r}, 'w').write('new')").is_success
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); 1"
        assert run(client, code).output == 1
    assert (writable / "f").read_text() == "new"


@pytest.fixture
def _untried() -> Iterator[None]:
    """Let each sandbox be tried anew in a test, and after it."""
    sandbox.require.cache_clear()
    yield
    sandbox.require.cache_clear()


@pytest.mark.usefixtures("_untried")
def test_a_sandbox_that_cannot_be_had_is_an_error_or_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="not installed"):
        SandboxRequest("bwrap", SandboxPolicy()).choose()
    monkeypatch.setattr(sandbox, "system_call_filter", lambda **_: bytes(8))
    chosen = SandboxRequest("auto", SandboxPolicy()).choose()
    assert chosen.policy is None
    assert "without a sandbox: bubblewrap is not installed" in chosen.warning
    assert "Landlock does not run" in chosen.warning
    assert SandboxRequest("none", SandboxPolicy()).choose().warning == ""


@needs_landlock
@pytest.mark.usefixtures("_untried")
def test_landlock_is_second_best(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = SandboxRequest("auto", SandboxPolicy()).choose()
    assert chosen.policy == SandboxPolicy(tier="landlock")
    assert "weaker sandbox" in chosen.warning
    assert "bubblewrap is not installed" in chosen.warning


@pytest.mark.parametrize("tier", TIERS)
def test_a_link_in_place_of_a_working_directory_leads_nowhere(
    managers: Managers, tmp_path: Path, tier: Tier
) -> None:
    outside, session = tmp_path / "outside", tmp_path / "session"
    outside.mkdir()
    manager = managers(policy=SandboxPolicy(tier=tier, read_only=(outside,)))
    first = manager.get_session_client("first", session_dir=session)
    made = run(first, "import os; os.symlink('../../outside', '../branches/second')")
    assert made.is_success, made.error
    first.stop()  # the sandbox ends with its last kernel
    place = session / "branches" / "second"
    with pytest.raises(KernelStartFailed, match="cannot be used"):
        manager.get_session_client("second", session_dir=session, cwd=place)
    assert list(outside.iterdir()) == []


@needs_landlock
def test_landlock_is_not_passed_by_another_kind_of_tcp(tmp_path: Path) -> None:
    attempts = [
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(address)",  # MPTCP
        "socket.socket().sendto(b'x', socket.MSG_FASTOPEN, address)",
        "socket.socket().sendmsg([b'x'], [], socket.MSG_FASTOPEN, address)",
        "libc.sendmmsg(socket.socket().fileno(), bytes(64), 1, socket.MSG_FASTOPEN) == 0 or no()",
    ]
    lines = "import ctypes, socket, sys\naddress = ('127.0.0.1', int(sys.argv[1]))\n"
    lines += "libc = ctypes.CDLL(None)\ndef no(): raise OSError\n"
    for attempt in attempts:
        lines += f"try:\n    {attempt}\n    print('reached')\nexcept OSError:\n    pass\n"
    lines += "a, b = socket.socketpair()\na.send(b'x')\nprint(b.recv(1))"
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [sys.executable, "-I", "-c", lines, str(server.getsockname()[1])]
        with sandbox.confined(SandboxPolicy(tier="landlock"), [tmp_path], words) as confined:
            done = subprocess.run(confined.command, capture_output=True, text=True, check=False)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert done.stdout == "b'x'\n", done.stderr


@pytest.mark.usefixtures("_untried")
def test_a_sandbox_that_cannot_be_tried_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.tempfile, "tempdir", "/nowhere")
    assert "without a sandbox" in SandboxRequest("auto", SandboxPolicy()).choose().warning


@pytest.mark.skipif("landlock" not in TIERS or os.getuid() != 0, reason="needs control groups")
def test_with_landlock_what_cut_itself_loose_ends_too(managers: Managers) -> None:
    manager = managers(policy=SandboxPolicy(tier="landlock"), limits=BOXED)
    words = "['/usr/bin/env', '-i', '/usr/bin/setsid', '/usr/bin/sleep', '600.77']"
    made = run(manager.get_session_client("s"), f"import subprocess; subprocess.Popen({words}).pid")
    assert isinstance(made.output, int), made.error
    if not groups_of(os.getpid()):
        pytest.skip("no control group can be made here")
    manager.clean_up()
    # Whose child it is now may not have noticed yet.
    left = [p for p in psutil.process_iter() if p.pid == made.output]
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []


@needs_bwrap
def test_granted_paths_keep_their_rights_in_each_other_and_may_be_missing(tmp_path: Path) -> None:
    data, cwd = tmp_path / "data", tmp_path / "cwd"
    for folder in (data / "raw" / "new", cwd):
        folder.mkdir(parents=True)
    policy = SandboxPolicy(
        read_only=(data / "raw", tmp_path / "missing"),
        writable=(data / "raw" / "new", data, tmp_path / "gone"),
    )
    words = ["touch", str(data / "a"), str(data / "raw" / "b"), str(data / "raw" / "new" / "c")]
    with sandbox.confined(policy, [cwd], words) as confined:
        subprocess.run(confined.command, pass_fds=confined.pass_fds, cwd=cwd, check=False)
    assert sorted(path.name for path in data.rglob("?")) == ["a", "c"]


@needs_bwrap
def test_a_home_folder_is_not_needed(managers: Managers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert answers(managers(policy=SandboxPolicy(), limits=BOXED).get_session_client("one"))


WEAKER = (
    ("--die-with-parent", 1), ("--new-session", 1), ("--unshare-ipc", 1), ("--unshare-pid", 1),
    ("--unshare-uts", 3), ("--unshare-net", 1), ("--remount-ro", 2), ("--seccomp", 2),
    ("--tmpfs", 2),
)  # fmt: skip
WEAKER_FOR_ROOT = (("--cap-drop", 2), ("--unshare-user", 1), ("--ro-bind /proc/sys", 3))


def found(words: list[str], option: str) -> int:
    name, _, value = option.partition(" ")
    places = [n for n, word in enumerate(words) if word == name]
    return next(n for n in reversed(places) if not value or words[n + 1] == value)


@needs_bwrap
@pytest.mark.usefixtures("_untried")
@pytest.mark.parametrize(("option", "count"), [*WEAKER, *WEAKER_FOR_ROOT])
def test_a_recipe_without_one_of_its_lines_is_noticed(
    monkeypatch: pytest.MonkeyPatch, option: str, count: int
) -> None:
    if os.getuid() and (option, count) in WEAKER_FOR_ROOT:
        pytest.skip("for an ordinary user the system itself refuses this")
    whole = sandbox.bwrap_command

    def without(*given: Any) -> list[str]:
        words = whole(*given)
        if option == "--unshare-user":
            words.remove("--disable-userns")
        if option == "--tmpfs":  # of /tmp
            place = found(words, option)
            return [*words[: place - 4], "--bind", "/tmp", "/tmp", *words[place + count :]]
        place = found(words, option)
        return [*words[:place], *words[place + count :]]

    monkeypatch.setattr(sandbox, "bwrap_command", without)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    with pytest.raises(SandboxUnavailable, match="does not hold"):
        sandbox.require("bwrap")


@needs_bwrap
@pytest.mark.usefixtures("_untried")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can write there")
def test_a_system_that_can_be_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sandbox.bwrap_command

    def writable(*given: Any) -> list[str]:
        words = whole(*given)
        words[words.index("--ro-bind")] = "--bind"
        return words

    monkeypatch.setattr(sandbox, "bwrap_command", writable)
    with pytest.raises(SandboxUnavailable, match="write to the system"):
        sandbox.require("bwrap")
    Path("/usr/taskweaver-probe").unlink(missing_ok=True)


@needs_bwrap
def test_a_kernel_that_computes_too_long_ends(managers: Managers) -> None:
    manager = managers(policy=SandboxPolicy(), is_warm=True, limits=BOXED, cpu_limit_s=2)
    client = manager.get_session_client("s")
    assert "killed by SIGXCPU" in str(run(client, "while True: pass").error)
    assert answers(client)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A device that is nowhere else: what is written to it finds no room."""
    path = tmp_path / "nvidia7"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        path.open("rb").close()
    except PermissionError:
        pytest.skip("no device can be made here, or none be opened")
    return path


OPENS = (
    "import os, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\nassert os.read(fd, 2) == bytes(2)\n"
    "try: os.write(fd, b'x')\nexcept OSError as error: print(error.errno)\n"
    "print(os.path.isdir('/sys/devices'), os.path.isdir('/sys/fs'))\n"
)


@pytest.mark.parametrize("tier", TIERS)
def test_devices_are_used_only_where_they_are_given(
    tier: Tier, device: Path, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    words = [sys.executable, "-I", "-S", "-c", OPENS, str(device)]
    for devices in [(device, tmp_path / "missing"), ()]:
        policy = SandboxPolicy(tier=tier, devices=devices)
        with sandbox.confined(policy, [inside], words) as confined:
            done = subprocess.run(
                confined.command, pass_fds=confined.pass_fds, cwd=inside, check=False,
                capture_output=True, text=True,
            )  # fmt: skip
        if devices:
            assert done.stdout.split()[:2] == [str(errno.ENOSPC), "True"], done.stderr
            assert tier == "landlock" or done.stdout.split()[2] == "False"
        else:
            assert done.returncode != 0


@needs_bwrap
def test_kernels_of_a_session_may_be_given_devices(
    enter: Enter, device: Path, tmp_path: Path
) -> None:
    code = f"import os; os.access({str(device)!r}, os.R_OK)"
    given = enter("given", session_dir=tmp_path / "given", devices=(device,))
    other = enter("other", session_dir=tmp_path / "other")
    assert run(given, code).output is True
    assert run(other, code).output is False


@needs_bwrap
@pytest.mark.parametrize("is_warm", [False, True])
def test_a_sandbox_that_is_given_up_while_it_is_made_leaves_nobody(
    managers: Managers, tmp_path: Path, is_warm: bool
) -> None:
    def inside() -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended
                if os.fsencode(tmp_path) in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    for number in range(FORKS if is_warm else 3 * FORKS):
        manager = managers(str(number), SandboxPolicy(), is_warm=is_warm, limits=BOXED)
        manager.get_session_client("s").start()
        while not inside():
            continue  # it takes less than any wait
        manager.clean_up()
        assert inside() == []
