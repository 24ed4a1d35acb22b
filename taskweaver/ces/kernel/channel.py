"""Talking to one kernel: a request, the output meanwhile, the reply.

Everything is received in the thread that asks: one poll waits for the reply, for output, for the
death of the process and for the deadline together. A slow listener loses no output of a kernel
that keeps its limits. Code may send anything in its kernel's name, signed, so each message is
checked: one of another form is left out, and all of them are bounded. Requests of other Jupyter
clients of the kernel are seen here too: `ForeignCells` has their code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from taskweaver.ces.common import CellStatus, OutputHandler, Stream

Ending = Literal["reply", "died", "deadline"]
Message = dict[str, Any]

_IDLE_WAIT_S = 2.0
_HELLO_INTERVAL_S = 0.2
_LOOK_S = 1.0
_MOST_WAITING = 20_000  # messages
_MOST_AT_ONCE = 500  # messages between two looks at the clock
_LARGEST_BYTES = 64 << 20
_MOST_FOREIGN = 100  # cells
_MOST_FOREIGN_CHARS = 20_000


@dataclass(slots=True)
class Exchange:
    """A request to a kernel, and the reply with the output before, as far as received.

    `left_chars` is the size of the output that is still taken. The kernel carries the request out
    once `has_begun`, and has sent all of its output once `is_idle`.

    Attributes:
        request_id: Id of the request.
        ending: Why waiting ended.
        status: How the request ended, once it has.
        reply: Content of the reply; empty unless `ending` is ``reply``.
        stdout: Pieces of standard output.
        stderr: Pieces of standard error.
        is_cut: Whether output was left out here, which a kernel that keeps its limits never needs.
    """

    request_id: str = ""
    ending: Ending = "deadline"
    status: CellStatus = "ok"
    reply: dict[str, Any] = field(default_factory=dict)
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    is_cut: bool = False
    on_output: OutputHandler | None = None
    left_chars: int = 0
    is_replied: bool = False
    is_idle: bool = False
    has_begun: bool = False

    def take_reply(self, message: Message) -> None:
        """Take the reply, if a message belongs to this request."""
        if message["parent_header"].get("msg_id") == self.request_id:
            self.reply = message["content"]
            self.is_replied = True

    def take_output(self, message: Message) -> None:
        """Take a piece of output, also of code that an earlier request left running."""
        content = message["content"]
        is_own = message["parent_header"].get("msg_id") == self.request_id
        self.has_begun = self.has_begun or is_own
        if message["msg_type"] == "stream":
            self._take_text(content.get("name"), content.get("text"))
        elif is_own and message["msg_type"] == "status":
            self.is_idle = content.get("execution_state") == "idle"

    def _take_text(self, name: object, text: object) -> None:
        if not isinstance(text, str) or name not in ("stdout", "stderr"):
            return
        stream: Stream = "stderr" if name == "stderr" else "stdout"
        self.is_cut = self.is_cut or len(text) > self.left_chars
        text = text[: self.left_chars]
        self.left_chars -= len(text)
        clean = text if text.isascii() else text.encode("utf-8", "replace").decode()
        clean = clean.replace("\r\n", "\n")
        (self.stderr if stream == "stderr" else self.stdout).append(clean)
        if self.on_output is not None:
            self.on_output(stream, clean)


@dataclass(slots=True)
class ForeignCells:
    """Cells that other clients of the kernel ran, as far as messages tell.

    Attributes:
        codes: Their code, oldest first; the first `_MOST_FOREIGN` since they were last taken.
        running: Id of the request that the kernel carries out now; empty for none of theirs.
        last_request: Time of their last request, of any kind, in seconds of the monotonic clock.
    """

    codes: list[str] = field(default_factory=list)
    running: str = ""
    last_request: float = -math.inf

    def take(self) -> list[str]:
        """Return the code of ended and running cells, once."""
        codes, self.codes = self.codes, []
        return codes

    def note(self, message: Message) -> None:
        """Take note of a message about the request of another client."""
        parent, content = message["parent_header"], message["content"]
        if parent.get("msg_id"):  # else it is of no request, as the news that the kernel starts
            self.last_request = time.monotonic()
        if parent.get("msg_type") != "execute_request":
            return
        if message["msg_type"] == "execute_input":
            code = content.get("code")
            if isinstance(code, str) and code.strip() and len(self.codes) < _MOST_FOREIGN:
                self.codes.append(code[:_MOST_FOREIGN_CHARS])
        elif message["msg_type"] == "error" and self.codes:
            failed = self.codes[-1].replace("\n", "\n# ")
            self.codes[-1] = f"# This cell failed:\n# {failed}"
        elif message["msg_type"] == "status":
            is_busy = content.get("execution_state") == "busy"
            self.running = str(parent.get("msg_id")) if is_busy else ""


class KernelChannel:
    """Sockets to one kernel. Not for use by two threads at once.

    Attributes:
        foreign: Cells of other clients, as far as messages were received.
        output_fd: File descriptor that becomes readable when output has come, once all before it
            is taken.
    """

    def __init__(self, connection: dict[str, Any], death_fd: int, limit_chars: int) -> None:
        import zmq
        from jupyter_client.session import Session

        self._zmq = zmq
        key = connection["key"]
        self._session = Session(
            key=key if isinstance(key, bytes) else key.encode(), check_pid=False
        )
        self._context = zmq.Context()
        self._shell = self._socket(zmq.DEALER, connection, "shell_port")
        self._control = self._socket(zmq.DEALER, connection, "control_port")
        self._iopub = self._socket(zmq.SUB, connection, "iopub_port")
        self._iopub.setsockopt(zmq.SUBSCRIBE, b"")
        self.output_fd = int(self._iopub.getsockopt(zmq.FD))
        self._death_fd = death_fd
        self._limit_chars = limit_chars
        self.foreign = ForeignCells()
        self._poller = zmq.Poller()
        for source in (self._shell, self._iopub, death_fd):
            self._poller.register(source, zmq.POLLIN)

    def _socket(self, kind: int, connection: dict[str, Any], port: str) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.rcvhwm = _MOST_WAITING
        socket.setsockopt(self._zmq.MAXMSGSIZE, _LARGEST_BYTES)
        socket.reconnect_ivl = 10
        socket.connect(f"ipc://{connection['ip']}-{connection[port]}")
        return socket

    def handshake(self, timeout_s: float, is_wanted: Callable[[], bool] = lambda: True) -> Ending:
        """Wait until the kernel answers and output reaches us, as long as wanted."""
        deadline = time.monotonic() + timeout_s
        while is_wanted() and time.monotonic() < deadline:
            waiting = Exchange(self._send("kernel_info_request", {}))
            self._receive(waiting, min(deadline, time.monotonic() + _HELLO_INTERVAL_S))
            if waiting.ending == "died":
                return "died"
            if waiting.is_replied and waiting.is_idle:
                return "reply"
        return "deadline"

    def send(self, code: str, payload: str, on_output: OutputHandler | None = None) -> Exchange:
        """Send a cell with a request to the kernel's own side, see `inkernel.kernel`."""
        content = {
            "code": code,
            # The kernel's own operations have no code: no history, and no sign for other clients.
            "silent": not code,
            "store_history": bool(code),
            "user_expressions": {"taskweaver": payload},
            "allow_stdin": False,
            # An interrupted cell must not make the kernel refuse the next one.
            "stop_on_error": False,
        }
        request_id = self._send("execute_request", content)
        return Exchange(request_id, on_output=on_output, left_chars=self._limit_chars)

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        message: Any = self._session.send(self._shell, kind, content)
        return str(message["header"]["msg_id"])

    def look(self) -> ForeignCells:
        """Receive all output until now, and return the cells of other clients.

        Messages of a cell that ended can still be on their way: those before the answer to a
        question have come with it. A cell that runs keeps the kernel from answering.
        """
        question = Exchange(self._send("kernel_info_request", {}))
        self._receive(question, time.monotonic() + _LOOK_S)
        return self.foreign

    def take_idle(self) -> bool:
        """Take output of no awaited request, and return whether there is more."""
        return self._drain(self._iopub, self._note) == _MOST_AT_ONCE

    def _note(self, message: Message, waiting: Exchange | None = None) -> None:
        """Take a message on output, of the request that is waited for or of another client."""
        if message["parent_header"].get("session") != self._session.session:
            self.foreign.note(message)
        elif waiting is not None:
            waiting.take_output(message)

    def wait(self, waiting: Exchange, deadline: float, interruption: int | None = None) -> None:
        """Receive until the reply, the death of the kernel, or the deadline.

        `deadline` is on the monotonic clock; a file descriptor `interruption`, once readable, ends
        the wait like it.
        """
        if interruption is not None:
            self._poller.register(interruption, self._zmq.POLLIN)
        try:
            self._receive(waiting, deadline, interruption)
        finally:
            if interruption is not None:
                self._poller.unregister(interruption)
        if waiting.is_replied and not waiting.is_idle:
            waiting.ending = "reply"
            self._receive(waiting, time.monotonic() + _IDLE_WAIT_S)
            waiting.ending = "reply"

    def ask_to_shut_down(self) -> None:
        """Ask the kernel to end by itself."""
        self._session.send(self._control, "shutdown_request", {"restart": False})

    def close(self) -> None:
        """Close the sockets."""
        self._context.destroy(linger=0)

    def _receive(self, waiting: Exchange, deadline: float, interruption: int | None = None) -> None:
        """Receive messages until the request is answered, the kernel dies, or it is time."""
        while not (waiting.is_replied and waiting.is_idle):
            left_s = deadline - time.monotonic()
            ready = dict(self._poller.poll(max(0, int(left_s * 1000) + 1))) if left_s > 0 else {}
            if self._iopub in ready:
                self._drain(self._iopub, partial(self._note, waiting=waiting))
            if self._shell in ready:
                self._drain(self._shell, waiting.take_reply)
            if ready.keys() == {self._death_fd}:
                waiting.ending = "died"
                return
            if not ready or interruption in ready:
                waiting.ending = "reply" if waiting.is_replied else "deadline"
                return
        waiting.ending = "reply"

    def _drain(self, socket: Any, take: Callable[[Message], None]) -> int:
        """Receive at most `_MOST_AT_ONCE` waiting messages, and return the number."""
        for number in range(_MOST_AT_ONCE):
            try:
                frames = socket.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return number
            message = self._message(frames)
            if message is not None:
                take(message)
        return _MOST_AT_ONCE

    def _message(self, frames: list[bytes]) -> Message | None:
        """Return a message, or None for a torn, unsigned or malformed message."""
        try:
            _, parts = self._session.feed_identities(frames)
            message: Message = self._session.deserialize(parts)
        except Exception:  # noqa: BLE001 - what is no message breaks its reader in any way
            return None
        is_good = isinstance(message["parent_header"], dict)
        return message if is_good and isinstance(message["content"], dict) else None
