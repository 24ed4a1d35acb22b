"""Kernels that entered their sandbox by a fork: no more rights than those that started in it."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from kernels import BOXED, TIERS, Managers, answers, needs_bwrap, needs_landlock, run
from patience import PATIENCE_S

import taskweaver
from taskweaver.ces import template
from taskweaver.ces.errors import ForkRefused, SandboxUnavailable
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.process.marked import owned_mark, sweep_marked
from taskweaver.ces.sandbox import session_sandbox
from taskweaver.ces.sandbox.session_sandbox import SandboxPlan, sandbox_template
from taskweaver.ces.template import Anchor

LIBRARIES = next(path for path in map(Path, sys.path) if (path / "ipykernel").is_dir())
PACKAGE = Path(taskweaver.__file__).parents[1]

FACTS = r"""
import ctypes, os, resource, socket, stat
libc = ctypes.CDLL(None)
status = dict(line.split(':\t', 1) for line in open('/proc/self/status').read().splitlines())
names = 'CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters Uid Gid Groups Umask'
facts = {name: status[name] for name in [*names.split(), 'SigIgn', 'SigBlk']}
for name in ('uid_map', 'gid_map', 'setgroups', 'limits', 'oom_score_adj', 'cgroup'):
    facts[name] = open('/proc/self/' + name).read()
rows = facts['limits'].splitlines()
# Without a user namespace, the room for processes depends on what else this user runs.
if os.geteuid() and '4294967295' in facts['uid_map']:
    rows = [row for row in rows if not row.startswith('Max processes')]
facts['limits'] = ' '.join(rows).split()
facts['prctl'] = [libc.prctl(number, 0, 0, 0, 0) for number in (3, 7, 23, 27, 39)]
kinds = 'cgroup ipc mnt net pid time user uts'.split()
facts['ns'] = {kind: os.readlink('/proc/self/ns/' + kind) for kind in kinds}
lines = [line.split() for line in open('/proc/self/mountinfo')]
facts['mounts'] = sorted(' '.join(line[3:6] + line[line.index('-'):]) for line in lines)
facts['places'] = [os.getcwd(), os.readlink('/proc/self/root')]
facts['host'] = socket.gethostname()
def refused(attempt):
    try:
        return attempt() or ''
    except OSError as error:
        return error.strerror
facts['root'] = refused(lambda: sorted(os.listdir('/')))
program = os.open('/proc/self/exe', os.O_RDONLY)
facts['program'] = [
    refused(lambda: os.fchmod(program, stat.S_IMODE(os.fstat(program).st_mode))),
    refused(lambda: os.utime(program)),
    refused(lambda: os.open('/proc/self/exe', os.O_RDWR)),
]
os.close(program)
mounts = {line[0] for line in lines}
held = []
for fd in os.listdir('/proc/self/fd'):
    try:
        kind = os.fstat(int(fd)).st_mode
        info = open('/proc/self/fdinfo/' + fd).read().split()
        link = os.readlink('/proc/self/fd/' + fd)
    except OSError:
        continue
    is_path = stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISCHR(kind)
    if is_path and info[info.index('mnt_id:') + 1] not in mounts:
        held.append(link)
facts['held'] = held
facts['mapped'] = [line for line in open('/proc/self/maps') if line.split()[1][1::2] == 'ws']
facts['environment'] = sorted(os.environ)
facts
"""
COMPARE = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy
folder, tier, *libraries, code = sys.argv[1:]
limits = KernelLimits.default()
limits = replace(limits, process_limit=300, file_limit_bytes=64 << 20, cpu_limit_s=500)
kinds = 'cgroup ipc mnt net pid time user uts'.split()
found = {'outside': {kind: os.readlink('/proc/self/ns/' + kind) for kind in kinds}}
for way in ('entered', 'started'):
    policy = SandboxPolicy(tier=tier, read_only=tuple(map(Path, libraries)))
    place = Path(folder, way)
    manager = code_execution_service_factory(
        place, limits=limits, sandbox=policy, is_warm=way == 'entered'
    )
    try:
        client = manager.get_session_client('s', session_dir=place / 's', cwd=place / 's' / 'cwd')
        result = client.execute_code('x', code)
        found[way] = result.output or result.error
        found[way + ' environ'] = client.execute_code(
            'y', "open('/proc/self/environ').read().split(chr(0))"
        ).output
        assert not manager.start_problem, manager.start_problem
    finally:
        manager.clean_up()
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=TIERS)
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Facts of a kernel that entered, and of one that was started in the sandbox.

    The warm process has imported the usual libraries, which hold files and memory.
    """
    folder = tmp_path_factory.mktemp("compared") / "own"
    folder.mkdir()
    path = os.pathsep.join([str(PACKAGE), str(LIBRARIES)])
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(folder),
                 "XDG_CACHE_HOME": str(folder)}  # fmt: skip
    words = [sys.executable, "-c", COMPARE, folder, request.param, LIBRARIES, PACKAGE, FACTS]
    done = subprocess.run(
        words, env=variables, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert isinstance(found["entered"], dict), found["entered"]
    assert isinstance(found["started"], dict), found["started"]
    return found | {"tier": request.param}


def without_names(value: Any, way: str) -> str:
    """Return a fact without the names of private folders, which are random."""
    if isinstance(value, list):
        return str(sorted(without_names(entry, way) for entry in value))
    text = json.dumps(value).replace(f"own/{way}", "own/way")
    return re.sub(r"tw-\d+-\w+", "tw", re.sub(r"taskweaver-\d+[-\w]*", "group", text))


SAME = (
    "CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters Uid Gid Groups Umask"
    " SigIgn SigBlk uid_map gid_map setgroups limits oom_score_adj cgroup prctl mounts root places"
    " host program environment"
).split()


def test_a_kernel_that_entered_is_like_one_that_was_started_there(compared: dict[str, Any]) -> None:
    entered, started = (
        {fact: without_names(compared[way][fact], way) for fact in SAME}
        for way in ("entered", "started")
    )
    assert entered == started


def test_every_namespace_of_the_sandbox_is_joined(compared: dict[str, Any]) -> None:
    outside = compared["outside"]
    entered, started = (
        {kind for kind, link in compared[way]["ns"].items() if link != outside[kind]}
        for way in ("entered", "started")
    )
    assert entered == started
    if compared["tier"] == "bwrap":
        assert entered >= {"user", "mnt", "pid", "net", "ipc", "uts"}


def test_no_file_and_no_memory_of_the_outside_is_held(compared: dict[str, Any]) -> None:
    assert compared["entered"]["held"] == []
    assert compared["entered"]["mapped"] == []


def test_the_interpreter_outside_cannot_be_changed(compared: dict[str, Any]) -> None:
    if compared["tier"] == "landlock":
        pytest.skip("Landlock does not keep the modes of files")
    assert "" not in compared["entered"]["program"]


def test_the_environment_of_the_process_tells_nothing_more(compared: dict[str, Any]) -> None:
    entered, started = (
        {entry.partition("=")[0] for entry in compared[f"{way} environ"]}
        for way in ("entered", "started")
    )
    assert entered <= started
    homes = [entry for entry in compared["entered environ"] if entry.startswith("HOME=")]
    assert homes == ["HOME=/"]


# Each of these lines is run in a process that a warm one has forked, before it enters.
WEAKER = {
    "files stay open": "entry.replace_files = lambda *_: None",
    "the terminal session is kept": "os.setsid = lambda: None",
    "capabilities are kept": "confine._drop_capabilities = lambda libc: None",
    "programs may give rights": "confine._NO_NEW_PRIVILEGES = 39",
    "no system call is refused": "confine._SET_SECCOMP = 3",
    "nothing is given up": "entry.give_up_rights = lambda policy: None",
    "memory is shared": "import mmap; shared = mmap.mmap(-1, 4096)",
    "the network is kept": "without(0x40000000)",
    "shared memory of processes is kept": "without(0x08000000)",
    "the name of the machine is kept": "without(0x04000000)",
    "process ids are kept": "without(0x20000000)",
    "mounts are kept": "without(0x00020000)",
    "users are kept": "without(0x10000000)",
    "nothing is joined": "entry._join = lambda anchor, namespaces: None",
}
# It becomes no kernel, and needs nothing of one: that would be most of its start.
MUTATED = """
import ctypes, os, sys, types
from taskweaver.ces.inkernel.sandbox import confine
from taskweaver.ces.inkernel.sandbox import entry
from taskweaver.ces.inkernel import launcher, template
template._OF_KERNELS = ()
sys.modules["taskweaver.ces.inkernel.application"] = types.SimpleNamespace(make_app=None)
join = entry._join
def without(flag):
    entry._join = lambda anchor, namespaces: join(anchor, namespaces & ~flag)
{line}
launcher.main()
"""
READ_LINE = """
enter = template.enter
def weakened(*given):
    exec(open({place!r}).read(), globals())
    return enter(*given)
template.enter = weakened
"""


@contextmanager
def mutated(line: str) -> Iterator[None]:
    whole = template.launcher_command

    def command(kind: str, *given: Any) -> list[str]:
        words = whole(kind, *given)
        return [words[0], "-c", MUTATED.replace("{line}", line), *words[3:]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template, "launcher_command", command)
        yield


@pytest.fixture
def _tidy() -> Iterator[None]:
    """Remove the files that attempts of root leave where the sandbox does not hold."""
    yield
    Path("/usr/taskweaver-probe").unlink(missing_ok=True)
    if Path("/taskweaver-probe").exists():
        Path("/taskweaver-probe").rmdir()


def tried(tier: Tier, folder: Path) -> None:
    plan = SandboxPlan(SandboxPolicy(tier=tier), BOXED, is_warm=True)
    sandbox_template(plan, folder / "warm.log", lambda: True).close()


Attempt = Callable[[Tier, str], None]


@pytest.fixture(scope="module")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempt]:
    """Tries a sandbox that a process enters after a line of code; one warm process forks all."""
    folder, kept = tmp_path_factory.mktemp("entries"), dict[Tier, template.Template]()

    def attempt(tier: Tier, line: str) -> None:
        def warm(*given: Any, **more: Any) -> SimpleNamespace:
            if tier not in kept:
                kept[tier] = template.warm_template(*given, **more)
            return SimpleNamespace(enter=kept[tier].enter, close=lambda: None)

        (folder / "line").write_text(line)
        read_line = READ_LINE.format(place=str(folder / "line"))
        with mutated(read_line), pytest.MonkeyPatch.context() as at:
            at.setattr(session_sandbox, "warm_template", warm)
            tried(tier, folder)

    for tier in TIERS:
        attempt(tier, "")
    yield attempt
    for tier in TIERS:  # what was refused was no fault of the process
        attempt(tier, "")
        kept[tier].close()


@pytest.mark.parametrize("tier", TIERS)
def test_a_whole_entry_is_accepted(attempt: Attempt, tier: Tier) -> None:
    attempt(tier, "held = os.open('/', os.O_RDONLY)")  # it does not come along


@needs_bwrap
@pytest.mark.usefixtures("_tidy")
@pytest.mark.parametrize("name", WEAKER)
def test_an_entry_without_one_of_its_steps_is_noticed(attempt: Attempt, name: str) -> None:
    with pytest.raises((SandboxUnavailable, ForkRefused)):
        attempt("bwrap", WEAKER[name])


@needs_landlock
@pytest.mark.usefixtures("_tidy")
@pytest.mark.parametrize(
    "line",
    ["confine._confine_files = lambda *given, **more: None", WEAKER["no system call is refused"],
     WEAKER["nothing is given up"], WEAKER["programs may give rights"]],
)  # fmt: skip
def test_an_entry_with_landlock_without_one_of_its_steps_is_noticed(
    attempt: Attempt, line: str
) -> None:
    with pytest.raises((SandboxUnavailable, ForkRefused)):
        attempt("landlock", line)


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user does not own the interpreter")
def test_an_interpreter_that_could_be_changed_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Anchor, "path", lambda _, path: str(path))
    with mutated(""), pytest.raises(SandboxUnavailable, match="its own program"):
        tried("bwrap", tmp_path)


@needs_bwrap
def test_a_process_that_outlives_its_sandbox_is_noticed(
    monkeypatch: pytest.MonkeyPatch, attempt: Attempt
) -> None:
    monkeypatch.setattr(session_sandbox, "_END_WAIT_S", 0.2)
    close, kept = Anchor.close, list[Anchor]()
    with monkeypatch.context() as patch, ExitStack() as stack:
        stack.callback(lambda: [close(anchor) for anchor in kept])
        patch.setattr(Anchor, "close", lambda anchor: kept.append(anchor))
        with pytest.raises(SandboxUnavailable, match="outlive its owner"):
            attempt("bwrap", "")


@needs_bwrap
def test_where_no_sandbox_is_entered_kernels_start_in_it_and_the_reason_is_kept(
    tmp_path: Path, managers: Managers
) -> None:
    line = "def refuse(*_): raise OSError(1, 'setns is refused')\nentry._join = refuse"
    with mutated(line):
        manager = managers(policy=SandboxPolicy(), limits=BOXED, is_warm=True)
        first = manager.get_session_client("first")
        assert answers(first)
        assert answers(manager.get_session_client("second"))
    assert "setns is refused" in manager.start_problem
    assert "setns is refused" in (tmp_path / "env" / "warm.log").read_text()
    assert not run(first, "open('/usr/x', 'w')").is_success


@needs_bwrap
def test_a_first_process_takes_notice_of_the_ends_of_those_that_entered(managers: Managers) -> None:
    manager = managers(policy=SandboxPolicy(), limits=BOXED, is_warm=True)
    client = manager.get_session_client("s")
    assert answers(client)
    assert manager._boxes
    (box,) = manager._boxes._boxes.values()
    inherits = ctypes.CDLL(None).prctl
    inherits(36, 1, 0, 0, 0)  # orphans come to this process, as in a container
    try:
        warm = manager._zygote and manager._zygote.template()
        assert warm
        os.kill(warm.pid, signal.SIGKILL)
        assert warm._process.has_ended(5)
        client.stop()
        assert not psutil.pid_exists(box._template.pid)
    finally:
        inherits(36, 0, 0, 0, 0)


@pytest.mark.parametrize("tier", TIERS)
def test_sessions_outlive_the_warm_process_and_later_ones_get_another(
    managers: Managers, tier: Tier, tmp_path: Path
) -> None:
    manager = managers(policy=SandboxPolicy(tier=tier), limits=BOXED, is_warm=True)
    session = tmp_path / "session"
    first = manager.get_session_client("first", session_dir=session)
    run(first, "x = 41")
    warm = warm_processes()
    assert len(warm) == 1
    warm[0].kill()
    warm[0].wait()
    assert run(first, "x").output == 41
    assert answers(manager.get_session_client("second"))
    assert manager.start_problem == ""
    assert [process.pid for process in warm_processes()] != [warm[0].pid]
    snapshot = first.snapshot()
    branch = session / "branches" / "b" / "cwd"
    child = snapshot.fork("branch", session_dir=session, cwd=branch)
    snapshot.close()
    assert run(child, "x + 1").output == 42


def warm_processes() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if {"warm", "-m"} <= set(child.cmdline())]


def test_processes_of_an_owner_that_was_killed_are_swept() -> None:
    def sleeping(mark: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["/bin/sleep", "600"], env={"TASKWEAVER_KERNEL_ID": mark})

    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    own, pid = owned_mark(), f"{os.getpid():010d}"
    assert pid in own
    orphan = sleeping(own.replace(pid, f"{ended.pid:010d}"))
    elsewhere = sleeping(own.replace("box-", "box-1").replace(pid, f"{ended.pid:010d}"))
    living = sleeping(own)
    try:
        sweep_marked()  # or an application that another test starts meanwhile
        assert orphan.wait(PATIENCE_S) == -signal.SIGKILL
        assert elsewhere.poll() is None  # process ids of another namespace mean other processes
        assert living.poll() is None
    finally:
        for process in (orphan, elsewhere, living):
            process.kill()
            process.wait()
