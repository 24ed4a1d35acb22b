"""Kernels of a worker that ssh starts: a real sshd on loopback."""

from __future__ import annotations

import getpass
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from patience import PATIENCE_S
from ports import free_port
from support import make_project

from taskweaver import TaskWeaverApp
from taskweaver.ces.common import Client
from taskweaver.ces.errors import KernelError, KernelStartFailed
from taskweaver.ces.remote.connection import KernelServer
from taskweaver.ces.remote.manager import RemoteManager
from taskweaver.ces.remote.ssh import SshAddress

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None and "SSHD_REQUIRED" not in os.environ, reason="openssh-server is not installed"
)


@dataclass
class Sshd:
    """A running sshd.

    Attributes:
        port: Its port.
        public: Folder that every user can read.
        key: The key that it can let in.
    """

    port: int
    public: Path
    key: Path

    def address(self, user: str) -> str:
        """Let the key in as a user; return the address."""
        shutil.copy(self.key, self.public / f"keys-of-{user}")
        return f"ssh://{user}@127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Run sshd; put an ssh on the path that knows a key for it."""
    folder, public = tmp_path_factory.mktemp("ssh"), Path(tempfile.mkdtemp(prefix="ssh-"))
    public.chmod(0o755)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    settings = {
        "ListenAddress": "127.0.0.1", "HostKey": folder / "host",
        "AuthorizedKeysFile": public / "keys-of-%u", "PidFile": "none", "StrictModes": "no",
        "PasswordAuthentication": "no", "UsePAM": "no", "PermitRootLogin": "prohibit-password",
        "SetEnv": f"PYTHONPATH={os.pathsep.join(sys.path)}",
    }  # fmt: skip
    (folder / "sshd_config").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    (folder / "ssh_config").write_text(
        f"Host *\n  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n  LogLevel ERROR\n"
        f"  StrictHostKeyChecking no\n  UserKnownHostsFile {folder / 'known'}\n"
    )
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    real = shlex.join([shutil.which("ssh") or "ssh", "-F", str(folder / "ssh_config")])
    program.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    program.chmod(0o755)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it separates its privileges there
    process, port = start_sshd(folder / "sshd_config")
    with process, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        assert process.stderr is not None
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield Sshd(port, public, folder / "user.pub")
        process.terminate()
        process.wait(PATIENCE_S)
        drain.join()
    shutil.rmtree(public)


def start_sshd(config: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Return sshd and its port; it takes another one where a program has taken the first."""
    assert SSHD is not None, "install openssh-server"
    for _ in range(3):
        port = free_port()
        command = [SSHD, "-D", "-e", "-f", str(config), "-p", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert process.stderr is not None
        told = process.stderr.readline()
        if b"listening" in told:
            return process, port
        process.communicate(timeout=PATIENCE_S)
    raise AssertionError(f"sshd does not listen: {told.decode(errors='replace')}")


WORKER = ["worker", "--stdio", "--socket"]


def workers() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])  # None for those that have just ended
    return [item for item in found if (item.info["cmdline"] or [])[-4:-1] == WORKER]


# httpcore leaves a socket to the garbage collector when a connection to a local one fails.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_code_and_files_are_on_the_other_side(sshd: Sshd, tmp_path: Path) -> None:
    project = make_project(tmp_path / "far", {"llm.api_type": "offline"}, has_table=False)
    keys = {
        "execution.server": f"{sshd.address(getpass.getuser())}{project}",
        "execution.server_command": f"{shlex.quote(sys.executable)} -m taskweaver --trust",
    }
    with TaskWeaverApp(make_project(tmp_path / "here", keys), trust=True) as app:
        assert isinstance(app.kernels, RemoteManager)
        client = use(app.kernels, project, tmp_path)
        lose_the_connection(app.kernels, client)
    _, alive = psutil.wait_procs(workers(), timeout=PATIENCE_S)
    assert not alive
    assert list(Path("/tmp").glob("taskweaver-*/api")) == []


def use(manager: RemoteManager, project: Path, tmp_path: Path) -> Client:
    """Run code with files, and on a fork; return the client of the first kernel."""
    cwd = tmp_path / "here" / "cwd"
    client = manager.get_session_client("one", cwd=cwd)
    (cwd / "in.txt").write_text("from here")
    result = client.execute_code("x", "import os\nx = 7\n[os.getcwd(), open('in.txt').read()]")
    assert result.is_success, result.error
    assert result.output == [str(project / "workspace/server/users/local/one/cwd"), "from here"]

    snapshot = client.snapshot()
    fork = manager.fork_session_client(snapshot, "two", cwd=tmp_path / "here" / "fork")
    snapshot.close()
    assert fork.execute_code("x", "x + 1").output == 8

    return client


def lose_the_connection(manager: RemoteManager, client: Client) -> None:
    """Lose the connection in the middle of a cell: the worker goes on, and is found again."""
    tunnel = manager._server._tunnel
    assert tunnel is not None
    begun = threading.Event()

    def tear() -> None:
        assert begun.wait(PATIENCE_S)
        assert tunnel._process is not None
        tunnel._process.kill()

    thread = threading.Thread(target=tear)
    thread.start()
    pieces: list[str] = []

    def take(_stream: str, text: str) -> None:
        pieces.append(text)
        begun.set()

    code = "import time\nfor i in range(20):\n    print(i, flush=True)\n    time.sleep(0.1)\nx"
    torn = client.execute_code("x", code, take)
    thread.join()
    assert (torn.output, torn.is_state_lost) == (7, False)
    assert "".join(pieces) == "".join(f"{i}\n" for i in range(20))
    assert len(workers()) >= 1


@dataclass
class OrdinaryUser:
    """A user without rights.

    Attributes:
        name: Name of the account.
        home: Its folder.
        python: A Python that can be run with its rights, and has the packages.
    """

    name: str
    home: Path
    python: str


@pytest.fixture
def ordinary_user(sshd: Sshd) -> Iterator[OrdinaryUser]:
    """Make a user for as long as a test runs."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, as whom the other test logs in")
    if shutil.which("useradd") is None or shutil.which("userdel") is None:
        pytest.skip("there is no useradd to make a user with")
    name, home = f"tw-{secrets.token_hex(4)}", sshd.public / "home"
    # A password that no text has: an account without one counts as locked.
    command = [
        "useradd",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        str(home),
        "--password",
        "*",
    ]
    subprocess.run([*command, "--shell", "/bin/sh", name], check=True)
    try:
        home.mkdir()
        shutil.chown(home, name, name)
        yield OrdinaryUser(name, home, _python_for(name))
    finally:
        subprocess.run(["userdel", name], check=True)


def _python_for(user: str) -> str:
    """Return a Python that a user can run; skip the test where there is none."""
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    check = ["-c", "import ipykernel, pandas, starlette, taskweaver"]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError):
            options = {"user": user, "group": user, "extra_groups": [], "cwd": "/"}
            if subprocess.run([python, *check], env=env, check=False, **options).returncode == 0:
                return python
    pytest.skip("no Python with the packages can be run by another user")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_code_runs_with_the_rights_of_an_ordinary_user(
    sshd: Sshd, ordinary_user: OrdinaryUser, tmp_path: Path
) -> None:
    user = ordinary_user
    project = make_project(user.home / "far", {"llm.api_type": "offline"})
    for path in (project, *project.rglob("*")):
        shutil.chown(path, user.name, user.name)
    keys = {
        "execution.server": f"{sshd.address(user.name)}{project}",
        "execution.server_command": f"{shlex.quote(user.python)} -m taskweaver --trust",
    }
    with TaskWeaverApp(make_project(tmp_path / "here", keys), trust=True) as app:
        assert isinstance(app.kernels, RemoteManager)
        client = use(app.kernels, project, tmp_path)
        who = client.execute_code("x", "import getpass\n[getpass.getuser(), os.getuid() > 0]")
        assert who.output == [user.name, True]
        refused = client.execute_code("x", "open('/etc/shadow').read()")
        assert "Permission denied" in str(refused.error)
    _, alive = psutil.wait_procs(workers(), timeout=PATIENCE_S)
    assert not alive
    owners = {path.owner() for path in (project / "workspace").rglob("*")}
    assert owners == {user.name}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_machine_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as deaf:  # has a port, which no other program gets, and does not listen
        deaf.bind(("127.0.0.1", 0))
        server = KernelServer(f"ssh://127.0.0.1:{deaf.getsockname()[1]}/x", "", try_s=0.1)
        with pytest.raises(KernelError, match="does not answer"):
            server.ask("GET", "/health")
        server.close()


@pytest.mark.parametrize(
    "url",
    ["ssh://", "ssh://-oProxyCommand=x/p", "ssh://a:b@host/p", "ssh://host:x/p", "ssh://a b/"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(KernelStartFailed, match="no address of ssh"):
        SshAddress.parse(url)
    good = SshAddress.parse("ssh://ann@gpu.example.org:2222/data/my%20project/")
    assert (good.target, good.port, good.project) == (
        "ann@gpu.example.org", 2222, "/data/my project",
    )  # fmt: skip
