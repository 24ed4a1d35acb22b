"""A search at a terminal: the live tree, and what is said meanwhile."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_cli_search import LastingClimber, climbing, configure
from warm_commands import BARE_FIGURES, WarmCommands

pytestmark = pytest.mark.measured

FORTY = {f"search.stage{number}_nodes": 10 for number in range(1, 5)} | {"memory.enabled": False}


def drawn_until(handle: int, text: str, drawn: str = "") -> str:
    """Read what a terminal is sent until a text is in it, or all of it; return it."""
    while not text or text not in drawn:
        try:
            read = os.read(handle, 65536).decode(errors="replace")
        except OSError:  # the other end is closed
            break
        if not read:
            break
        drawn += read
    return drawn


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project whose model answers by rules; each attempt after the first lasts."""
    climber = LastingClimber()
    climber.lasts = True
    with climbing(tmp_path, climber) as project:
        configure(project, FORTY)
        yield project


def test_what_is_said_stands_above_the_live_tree(
    project: Path, warm_commands: WarmCommands
) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    arguments = ["-p", str(project), "search", str(project / "climb.md"), "--name", "a"]
    with subprocess.Popen(
        [*warm_commands.program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", BARE_FIGURES: "1"},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        drawn = drawn_until(ours, "n0002")
        assert "stage 1, initial implementation" in drawn
        assert "Ctrl-C stops" in drawn
        process.send_signal(signal.SIGINT)
        rest = drawn_until(ours, "", "")
    os.close(ours)
    assert process.returncode == 0, drawn + rest
    # It is written where the tree was taken away, and the tree again below it.
    assert "\x1b[2Kstopping: what is being tried is given up, the rest is kept ..." in rest
    last = rest.rpartition("initial implementation")[2]
    assert " of 40 nodes" in last
    assert "Ctrl-C stops" not in last
    assert "stopped; continue with: " in last
