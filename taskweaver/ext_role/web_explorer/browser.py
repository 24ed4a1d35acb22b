"""A browser: the process, and a client of the DevTools protocol over the browser's pipe.

The process has a profile of its own, and ends with all it started. Messages are JSON and end with
NUL. One thread reads. Calls are made from one thread at a time, and events are handled in it, while
it waits for an answer: a handler may send commands, and never waits for one. Unhandled events are
kept up to a limit, beyond which the browser has to wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.role.errors import RoleError
from taskweaver.utils.system.platform import signal_name

INSTALL = (
    "install Chromium (Debian: `apt-get install chromium`) or Google Chrome, or set"
    " `web_explorer.browser_path` to the program of one"
)

NAMES = (
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
    "chromium-headless-shell",
    "chrome-headless-shell",
)
_GRACE_S = 3.0
_KILL_WAIT_S = 5.0
_STDERR_CHARS = 600
_FIRST_FREE_FD = 10
# The browser reads commands from descriptor 3 and writes answers to 4; nothing else is inherited.
_LAUNCH = (
    "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4);"
    " os.close(r); os.close(w); os.execv(sys.argv[3], sys.argv[3:])"
)
_FLAGS = (
    "--headless=new --remote-debugging-pipe --no-startup-window --disable-gpu --no-first-run"
    " --no-default-browser-check --disable-background-networking --disable-component-update"
    " --disable-default-apps --disable-domain-reliability --disable-extensions --disable-sync"
    " --disable-breakpad --disable-crash-reporter --disable-notifications --metrics-recording-only"
    " --no-pings --mute-audio --hide-scrollbars --password-store=basic --use-mock-keychain"
    " --disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication"
    ",Prerender2,BackForwardCache,SpareRendererForSitePerProcess"
    ",WebUIOmniboxPopup,WebUIOmniboxAimPopup"  # menus of the address bar: a process of 0.5 s CPU
    " --window-size=1280,1600"
).split()
_PASSED = frozenset(("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE"))
_PASSED_ENDS = ("_proxy", "_PROXY")
_PASSED_STARTS = ("LC_", "FONTCONFIG_")
_MAX_EVENTS = 1000
_MAX_MESSAGE_BYTES = 64 << 20
_READ_BYTES = 1 << 16
_JOIN_S = 5.0


class WebExplorerError(RoleError):
    """A problem of the WebExplorer.

    Attributes:
        problem: The problem, as the end of a sentence, or for a model to read.
    """

    def __init__(self, problem: str) -> None:
        super().__init__("web_explorer", problem)


class BrowserError(WebExplorerError):
    """The browser cannot be used any more. Another browser may."""


class NoBrowser(BrowserError):
    """There is no browser here that can be used."""


class ExplorationInterrupted(BrowserError):
    """The exploration was interrupted."""

    def __init__(self) -> None:
        super().__init__("interrupted")


class DeadlineExceeded(BrowserError):
    """The browser lives, but did not answer a call in time."""


class ProtocolError(BrowserError):
    """The browser refused a call."""


class PageError(WebExplorerError):
    """An action could not be done on the page. The browser can continue.

    Its problem has the remedy.
    """


def find_browser(path: str = "") -> Path:
    """Return the browser's program, by path or name. An empty text looks for the usual programs.

    Raises:
        NoBrowser: If there is none.
    """
    for name in (path,) if path else NAMES:
        found = shutil.which(name)
        if found is not None:
            return Path(found).absolute()
    if path:
        raise NoBrowser(f"`web_explorer.browser_path` is {path!r}, no program; {INSTALL}.")
    raise NoBrowser(f"no browser is installed; {INSTALL}.")


class BrowserProcess:
    """A running browser and the browser's profile.

    Attributes:
        profile: Its private folder: profile, home, temporary files, log. Removed at the end.
        commands: Descriptor that commands are written to.
        answers: Descriptor that answers and events are read from.
    """

    def __init__(self, program: Path) -> None:
        """Start the browser.

        Raises:
            BrowserError: If the process cannot be started.
        """
        self.profile = private_folder()
        self._log = self.profile / "browser.log"
        descriptors: list[int] = []
        try:
            descriptors += _pipe()
            descriptors += _pipe()
            theirs_in, self.commands, self.answers, theirs_out = descriptors
            self._process = self._start(program, theirs_in, theirs_out)
        except OSError as error:
            _close(descriptors)
            remove_folder(self.profile)
            raise BrowserError(f"{program} cannot be started: {error}") from error
        _close([theirs_in, theirs_out])

    def _start(self, program: Path, commands: int, answers: int) -> subprocess.Popen[bytes]:
        flags = [*_FLAGS, f"--user-data-dir={self.profile / 'profile'}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # it refuses to start as root with it
        numbers = [str(commands), str(answers)]
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, *numbers, str(program), *flags]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                launch,
                cwd=self.profile,
                env=_environment(self.profile, os.environ),
                pass_fds=(commands, answers),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the browser."""
        return self._process.pid

    def exit_text(self) -> str:
        """Describe the end of the process, with the last output if the process failed."""
        try:
            code = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        if code < 0:
            return f"killed by {signal_name(-code)}"
        printed = self._log.read_text("utf-8", "replace").strip() if self._log.exists() else ""
        return f"exit status {code}: {printed[-_STDERR_CHARS:]}" if code else "it ended"

    def end(self) -> None:
        """Wait for the end of the process, kill the remaining processes, and remove the profile.

        Its owner closes `commands` before, and `answers` afterwards.
        """
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_KILL_WAIT_S)
            _kill_those_of(str(self.profile))
        finally:
            remove_folder(self.profile)


def _pipe() -> list[int]:
    """Return a reading and a writing end, both out of the way of descriptors 3 and 4."""
    ends: list[int] = []
    low = os.pipe()
    try:
        ends += [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD) for end in low]
    finally:
        _close(low)
    return ends


def _close(descriptors: list[int] | tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _environment(home: Path, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the browser's environment: no keys, and no folder to write to but the browser's."""
    passed = {
        name: value
        for name, value in outer.items()
        if name in _PASSED or name.endswith(_PASSED_ENDS) or name.startswith(_PASSED_STARTS)
    }
    return passed | {"HOME": str(home), "TMPDIR": str(home)}


def _kill_those_of(home: str) -> None:
    """Kill the helpers with sessions of their own, in whose commands the folder's name stands."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == home or home in " ".join(process.cmdline()):
                process.kill()
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or of another user
    psutil.wait_procs(found, timeout=_KILL_WAIT_S)


@dataclass(frozen=True, slots=True)
class DevToolsEvent:
    """An event, e.g. ``Page.loadEventFired``, in a page's session or of the browser."""

    method: str
    params: Mapping[str, Any]
    session: str


class DevTools:
    """The protocol's client, and owner of the browser's `process`."""

    def __init__(self, program: Path, on_event: Callable[[DevToolsEvent], None]) -> None:
        """Start a browser. `on_event` handles events, in the thread of the call that waits.

        Raises:
            BrowserError: If it cannot be started.
        """
        self._on_event = on_event
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._last_id = 0
        self._awaited: int | None = None
        self._reply: Mapping[str, Any] | None = None
        self._events: deque[DevToolsEvent] = deque()
        self._end = ""
        self._is_interrupted = False
        self._is_closed = False
        self.process = BrowserProcess(program)
        self._reader = threading.Thread(target=self._read, name="devtools-reader", daemon=True)
        self._reader.start()

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: str = "",
        within_s: float,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Call a method and wait for the result, handling events meanwhile.

        Args:
            method: Name of the method.
            params: Its arguments.
            session: Id of the page's protocol session; empty for the browser itself.
            within_s: Longest wait in seconds.
            is_lost: Returns whether no answer will come, because the page is gone.

        Raises:
            ProtocolError: If the browser refuses, or the page is gone.
            DeadlineExceeded: If it does not answer in time.
            ExplorationInterrupted: If the exploration is interrupted.
            BrowserError: If it has ended.
        """
        id_ = self._send(method, params, session, is_awaited=True)
        try:
            if not self.wait(lambda: self._reply is not None or is_lost(), within_s=within_s):
                problem = f"the browser did not answer {method} within {within_s:g} s"
                raise DeadlineExceeded(problem)
            with self._changed:
                if self._is_closed:  # what the browser said while it ended is no answer
                    raise BrowserError("the browser ended: it was closed")
                reply = self._reply or self._loss()
        finally:
            with self._changed:
                self._reply, self._awaited = None, None
        if "error" in reply:
            message = str(reply["error"].get("message", "unknown error"))
            raise ProtocolError(f"{method} (call {id_}): {message}")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str = ""
    ) -> None:
        """Call a method without waiting for the result.

        Raises:
            BrowserError: If the browser has ended.
        """
        self._send(method, params, session, is_awaited=False)

    def wait(self, is_done: Callable[[], bool], *, within_s: float) -> bool:
        """Handle events until a condition holds, and return whether the condition holds.

        Raises:
            ExplorationInterrupted: If the exploration is interrupted.
            BrowserError: If the browser has ended.
        """
        deadline = time.monotonic() + within_s
        while True:
            with self._changed:
                left_s = deadline - time.monotonic()
                self._changed.wait_for(
                    lambda: self._events or self._end or self._is_interrupted or is_done(),
                    max(left_s, 0),
                )
                self._check()
                event = self._events.popleft() if self._events else None
                self._changed.notify_all()
            if event is not None:
                self._on_event(event)
            if is_done():
                return True
            if left_s <= 0:
                return False

    def interrupt(self) -> None:
        """Make the call that waits, or the next one, end with `ExplorationInterrupted`."""
        with self._changed:
            self._is_interrupted = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Allow calls again after an interruption."""
        with self._changed:
            self._is_interrupted = False

    def close(self) -> None:
        """End the browser with all processes and remove the profile. Safe to call again."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._end = self._end or "it was closed"
            self._changed.notify_all()
        with self._sending:
            os.close(self.process.commands)  # a browser that can still read ends by this
        try:
            self.process.end()
            self._reader.join(_JOIN_S)  # whoever could write to it has ended
        finally:
            os.close(self.process.answers)

    def _loss(self) -> Mapping[str, Any]:
        """Return the reply of a page that is gone, unless the browser went with the page."""
        if self._end:
            raise BrowserError(f"the browser ended: {self._end}")
        return {"error": {"message": "the page is gone"}}

    def _check(self) -> None:
        if self._is_interrupted:
            raise ExplorationInterrupted
        if self._end and self._reply is None and not self._events:
            raise BrowserError(f"the browser ended: {self._end}")

    def _send(
        self, method: str, params: Mapping[str, Any] | None, session: str, *, is_awaited: bool
    ) -> int:
        with self._changed:
            if self._end:
                raise BrowserError(f"the browser ended: {self._end}")
            self._last_id += 1
            id_ = self._last_id
            if is_awaited:
                self._awaited = id_
        message: dict[str, Any] = {"id": id_, "method": method, "params": dict(params or {})}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        with self._sending:
            if self._is_closed:
                raise BrowserError("the browser ended: it was closed")
            try:
                while data:
                    data = data[os.write(self.process.commands, data) :]
            except OSError as error:
                raise BrowserError(f"the browser ended: {self.process.exit_text()}") from error
        return id_

    def _read(self) -> None:
        """Read messages until the browser ends or the client is closed."""
        end = ""
        try:
            end = self._read_messages()
        except (OSError, ValueError) as error:
            end = f"its connection broke: {error}"
        finally:
            with self._changed:
                self._end = self._end or end or "its connection broke"
                self._changed.notify_all()

    def _read_messages(self) -> str:
        buffer = bytearray()
        while True:
            data = os.read(self.process.answers, _READ_BYTES)
            if not data:
                return self.process.exit_text()
            seen = len(buffer)
            buffer += data
            while (end := buffer.find(b"\0", seen)) >= 0:
                message = bytes(buffer[:end])
                del buffer[: end + 1]
                seen = 0
                self._take(json.loads(message))
            if len(buffer) > _MAX_MESSAGE_BYTES:
                return f"it sent a message of more than {_MAX_MESSAGE_BYTES >> 20} MiB"

    def _take(self, message: dict[str, Any]) -> None:
        with self._changed:
            if "id" in message:
                if message["id"] == self._awaited:
                    self._reply = message
            elif "method" in message:
                self._changed.wait_for(lambda: len(self._events) < _MAX_EVENTS or self._is_closed)
                session = str(message.get("sessionId", ""))
                self._events.append(
                    DevToolsEvent(message["method"], message.get("params", {}), session)
                )
            self._changed.notify_all()
