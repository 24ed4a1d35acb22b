"""The browser's process: found, started with a profile of its own, ended with all it started."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.ext_role.web_explorer.errors import INSTALL, BrowserError, NoBrowser
from taskweaver.utils.system.signals import signal_name

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


def find_browser(path: str = "") -> Path:
    """Return the browser's program, by its path or name; empty looks for the usual ones.

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
    """A running browser and its profile.

    Attributes:
        profile: Its private folder: profile, home, temporary files, log. Removed at the end.
        commands: Descriptor that commands are written to.
        answers: Descriptor that answers and events are read from.
    """

    def __init__(self, program: Path) -> None:
        """Start it.

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
        """Describe the end of the process, with the end of its output if it failed by itself."""
        try:
            code = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        if code < 0:
            return f"killed by {signal_name(-code)}"
        printed = self._log.read_text("utf-8", "replace").strip() if self._log.exists() else ""
        return f"exit status {code}: {printed[-_STDERR_CHARS:]}" if code else "it ended"

    def end(self) -> None:
        """Wait for it to end by itself, kill the remaining processes, and remove the profile.

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
    """Return the browser's environment: no keys, and nothing outside its folder to write to."""
    passed = {
        name: value
        for name, value in outer.items()
        if name in _PASSED or name.endswith(_PASSED_ENDS) or name.startswith(_PASSED_STARTS)
    }
    return passed | {"HOME": str(home), "TMPDIR": str(home)}


def _kill_those_of(home: str) -> None:
    """Kill the helpers that made sessions of their own; the folder's name is in each of them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == home or home in " ".join(process.cmdline()):
                process.kill()
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or of another user
    psutil.wait_procs(found, timeout=_KILL_WAIT_S)
