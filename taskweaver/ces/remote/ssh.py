"""A worker on another machine, started and reached by ssh.

ssh runs ``taskweaver worker --stdio`` there and forwards a socket of this machine to the worker's.
Its first line of output is the token. A worker outlives a lost connection by some minutes, so that
the next ssh finds it with its kernels.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import IO
from urllib.parse import unquote, urlsplit

from taskweaver.ces.claims import text
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.process.homes import private_folder, remove_folder

SCHEME = "ssh://"
_START_S, _END_S = 60.0, 20.0
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_OPTIONS = {
    "BatchMode": "yes",
    "ExitOnForwardFailure": "yes",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "StreamLocalBindUnlink": "yes",
}


class TunnelLost(OSError):
    """There is no connection to the worker now."""


@dataclass(frozen=True, slots=True)
class SshAddress:
    """An address ``ssh://[user@]host[:port][/project]``.

    Attributes:
        target: User and host, as ssh takes them.
        port: Port; None takes that of ssh's configuration.
        project: Project folder there, absolute; empty for none.
    """

    target: str
    port: int | None
    project: str

    @classmethod
    def parse(cls, url: str) -> SshAddress:
        """Return the parts of an address.

        Raises:
            KernelStartFailed: If it is none.
        """
        parts = urlsplit(url)
        names = [name for name in (parts.username, parts.hostname) if name]
        try:
            port, is_number = parts.port, True
        except ValueError:
            port, is_number = None, False
        is_named = parts.hostname is not None and all(map(_NAME.fullmatch, names))
        if not (is_number and is_named) or parts.password is not None:
            raise KernelStartFailed(
                f"execution.server is no address of ssh: {url}.", "ssh://user@host/project/folder"
            )
        return cls("@".join(names), port, unquote(parts.path.rstrip("/")))


class SshTunnel:
    """A way to a worker. Close it: the worker ends.

    Attributes:
        socket: Socket of this machine that leads to the worker's.
    """

    def __init__(self, address: SshAddress, program: str) -> None:
        """Prepare it; ssh is started by `open`.

        Args:
            address: The machine.
            program: Command of TaskWeaver there, as a shell takes it.
        """
        self._folder = private_folder()
        self.socket = self._folder / "api"
        far = f"/tmp/taskweaver-{secrets.token_hex(16)}/api"
        there = ["worker", "--stdio", "--socket", far]
        project = ["-p", address.project] if address.project else []
        port = [] if address.port is None else ["-p", str(address.port)]
        options = [part for name, value in _OPTIONS.items() for part in ("-o", f"{name}={value}")]
        forward = ["-L", f"{self.socket}:{far}"]
        command = f"{program} {shlex.join([*project, *there])}"
        self._command = ["ssh", "-T", *options, *port, *forward, address.target, command]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def open(self) -> str:
        """Start ssh unless it runs; return the token of the worker.

        Raises:
            TunnelLost: If there is no connection; its text has ssh's own words.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._token = self._start()
            return self._token

    def _start(self) -> str:
        log = (self._folder / "ssh.log").open("wb")
        with log:
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
                )
            except OSError as error:
                raise TunnelLost(f"ssh cannot be started: {error.strerror}") from error
        assert self._process.stdout is not None
        line = _line_within(self._process.stdout, self._process, _START_S)
        try:
            return str(json.loads(line)["token"])
        except (ValueError, LookupError, TypeError):
            self._process.kill()
            self._end()
            words = (self._folder / "ssh.log").read_text("utf-8", "replace").strip()
            raise TunnelLost(text(words, 500) or "the worker gave no sign of life") from None

    def _end(self) -> None:
        """End a process of ssh that may have ended already."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def close(self) -> None:
        """End the worker and ssh; safe to call again."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):  # it is gone: the worker ends by itself after a while
                    self._process.stdin.write(b"end\n")
                    self._process.stdin.flush()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)
            self._end()
        remove_folder(self._folder)


def _line_within(pipe: IO[bytes], process: subprocess.Popen[bytes], limit_s: float) -> bytes:
    """Return the next line of a process, which is ended if there is none in time."""
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        return pipe.readline(4096)
    finally:
        timer.cancel()
        timer.join()
