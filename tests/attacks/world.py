"""What stands outside of the sandbox: files with a secret, listeners, a process, an owner."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.sandbox.probe import NAMESPACES
from taskweaver.ces.sandbox.seccomp import REFUSED

PRELUDE = """
import ctypes, errno, os, platform, resource, shutil, signal, socket, stat, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def refused(*call):
    ctypes.set_errno(0)
    return libc.syscall(*call) < 0 and ctypes.get_errno() in {errno.EPERM, errno.ENOSYS}
"""
_SENT_WAIT_S = 0.2
_DEATH_WAIT_S = 0.2


def _namespace(kind: str) -> str:
    return str(Path(f"/proc/self/ns/{kind}").readlink())


class World:
    """What stands outside.

    Attributes:
        secret: A text that stands in files and environments outside and nowhere else.
        names: What code is given of it: values by name.
        log: The kernel's log.
    """

    def __init__(self, folder: Path, secret: str, log: Path) -> None:
        """Make the files and processes.

        Args:
            folder: An empty folder.
            secret: The secret.
            log: The kernel's log.
        """
        self.secret = secret
        self.log = log
        self._folder, self._out, home = folder, folder / "out", folder / "home"
        self._open = ExitStack()
        self._heard = b""
        for path in (self._out, home):
            path.mkdir()
            (path / f"file-of-{secret}").touch()
        canary = self._out / "canary"
        canary.write_text(f"{secret}\n")
        (self._out / "deletable").touch()
        self._open.enter_context(canary.open())  # to be read by the descriptor
        self._streams = [self._listener(socket.AF_INET, ("127.0.0.1", 0))]
        self._streams.append(self._listener(socket.AF_UNIX, str(self._out / "s")))
        self._streams.append(self._listener(socket.AF_UNIX, f"\0tw-{os.getpid()}"))
        self._datagrams = self._listener(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
        self.names: dict[str, Any] = {
            "OUT": str(self._out), "CANARY": str(canary), "HOME": str(home),
            "DELETABLE": str(self._out / "deletable"), "OWNER": os.getpid(),
            "PORT": self._streams[0].getsockname()[1], "PORT6": self._port6(),
            "UDP": self._datagrams.getsockname()[1], "UNIX": str(self._out / "s"),
            "ABSTRACT": f"\0tw-{os.getpid()}", "MACHINE": socket.gethostname(),
            "NUMBERS": {name: row[column] for name, row in REFUSED.items()},
            "NAMESPACES": {kind: _namespace(kind) for kind in NAMESPACES},
        }  # fmt: skip
        self._victim = self._new_victim()

    def _listener(self, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
        listener = self._open.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(64)
        listener.setblocking(False)
        return listener

    def _port6(self) -> int:
        """Listen by IPv6, too, where the machine has it; return the port."""
        with suppress(OSError):
            self._streams.append(self._listener(socket.AF_INET6, ("::1", 0)))
            return int(self._streams[-1].getsockname()[1])
        return 0

    def _new_victim(self) -> subprocess.Popen[bytes]:
        place = self._out / f"home-of-{self.secret}"
        place.mkdir(exist_ok=True)
        environment = {"PATH": os.defpath, "VICTIM_SECRET": self.secret}
        victim = subprocess.Popen(
            ["sleep", "600.5"], cwd=place, env=environment, stdin=subprocess.DEVNULL
        )
        self.names["VICTIM"] = victim.pid
        return victim

    def marker(self, slug: str) -> Path:
        """Return the file outside that an attack tries to make."""
        return self._out / slug

    def deputy(self, slug: str) -> Path:
        """Return the folder that a host operation is lured to; it is made on first call."""
        lure = self._folder / f"lure-{slug}"
        if not lure.exists():
            lure.mkdir(mode=0o700)
        return lure

    def was_called(self, slug: str) -> bool:
        """Return whether a listener has received an attack's name."""
        for listener in self._streams:
            with suppress(BlockingIOError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.settimeout(_SENT_WAIT_S)
                        self._heard += connection.recv(4096)
        with suppress(BlockingIOError):
            while True:
                self._heard += self._datagrams.recv(4096)
        return slug.encode() + b";" in self._heard

    @staticmethod
    def is_reachable(port: int) -> bool:
        """Return whether a connection to a port of this machine is accepted."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 2):
            return True
        return False

    @property
    def victim_has_ended(self) -> bool:
        """Whether the process outside was ended; it is replaced then."""
        with suppress(subprocess.TimeoutExpired):
            self._victim.wait(_DEATH_WAIT_S)
        has_ended = self._victim.returncode is not None
        if has_ended:
            self._victim = self._new_victim()
        return has_ended

    def close(self) -> None:
        """End the process and close the listeners."""
        self._victim.kill()
        self._victim.wait()
        self._open.close()
