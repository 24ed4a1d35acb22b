"""Kernels of a worker that ssh starts: a real sshd on loopback."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support import make_project

from taskweaver import TaskWeaverApp
from taskweaver.ces.errors import KernelError, KernelStartFailed
from taskweaver.ces.remote.connection import KernelServer
from taskweaver.ces.remote.manager import RemoteManager
from taskweaver.ces.remote.ssh import SshAddress

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None and "SSHD_REQUIRED" not in os.environ, reason="openssh-server is not installed"
)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run sshd for this user; put an ssh on the path that knows its key; give its address."""
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    settings = {
        "ListenAddress": "127.0.0.1", "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized", "PidFile": "none", "StrictModes": "no",
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
        yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}"
        process.terminate()
        process.wait(30)
        drain.join()


def start_sshd(config: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Return sshd and its port; it takes another one where a program has taken the first."""
    assert SSHD is not None, "install openssh-server"
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [SSHD, "-D", "-e", "-f", str(config), "-p", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert process.stderr is not None
        told = process.stderr.readline()
        if b"listening" in told:
            return process, port
        process.communicate(timeout=60)
    raise AssertionError(f"sshd does not listen: {told.decode(errors='replace')}")


WORKER = ["worker", "--stdio", "--socket"]


def workers() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])  # None for those that have just ended
    return [item for item in found if (item.info["cmdline"] or [])[-4:-1] == WORKER]


# httpcore leaves a socket to the garbage collector when a connection to a local one fails.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_code_and_files_are_on_the_other_side(sshd: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "far", {"llm.api_type": "offline"})
    keys = {
        "execution.server": f"{sshd}{project}",
        "execution.server_command": f"{shlex.quote(sys.executable)} -m taskweaver --trust",
    }
    with TaskWeaverApp(make_project(tmp_path / "here", keys), trust=True) as app:
        assert isinstance(app.kernels, RemoteManager)
        use_and_tear(app.kernels, project, tmp_path)
    _, alive = psutil.wait_procs(workers(), timeout=60)
    assert not alive
    assert list(Path("/tmp").glob("taskweaver-*/api")) == []


def use_and_tear(manager: RemoteManager, project: Path, tmp_path: Path) -> None:
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

    # The connection is lost in the middle of a cell: the worker goes on, and is found again.
    tunnel = manager._server._tunnel
    assert tunnel is not None
    begun = threading.Event()

    def tear() -> None:
        assert begun.wait(60)
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
