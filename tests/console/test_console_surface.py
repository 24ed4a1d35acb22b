"""A terminal's live region, and who gets one."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from patience import PATIENCE_S
from rich.console import Console

from taskweaver.console.terminal.blocks import CodeBlock, RunBlock
from taskweaver.console.terminal.draw import ASCII
from taskweaver.console.terminal.surface import (
    LiveSurface,
    PlainSurface,
    is_plain,
    is_terminal,
    open_surface,
)

HERE = Path(__file__).parent
ON_A_TERMINAL = """
import sys
from pathlib import Path
from console_story import answered_round
from taskweaver.console.render import RoundView
from taskweaver.console.terminal.surface import open_surface

surface = open_surface()
view = RoundView(surface, lambda _branch: Path("/w"))
with surface.working(view.status):
    for event in answered_round():
        view.handle(event)
"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_a_terminal(**environment: str) -> str:
    """Run a round in a process with a terminal of its own; return what was drawn."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(HERE), "TERM": "xterm-256color", **environment}
    command = [sys.executable, "-c", ON_A_TERMINAL]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        drawn = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:
                break
            if not read:
                break
            drawn += read
    os.close(ours)
    return drawn.decode()


def test_a_terminal_gets_colour_boxes_and_one_live_region() -> None:
    drawn = on_a_terminal()
    assert "\x1b[" in drawn
    assert "╭─" in drawn
    assert "loading 2400 rows" in drawn
    assert "Traceback" not in drawn


def test_a_terminal_that_wants_none_of_it_gets_plain_lines() -> None:
    drawn = on_a_terminal(NO_COLOR="1")
    assert "\x1b" not in drawn
    assert "plan:" in drawn


def test_the_live_region_shows_what_is_written_beside_the_status() -> None:
    out = Terminal()
    surface = LiveSurface(Console(file=out, force_terminal=True, width=60, height=12), ASCII)
    was_asked = threading.Event()

    def status() -> str:
        was_asked.set()
        return "42 tokens"

    with surface.working(status):
        surface.ask_status("Planner: thinking")
        surface.preview(CodeBlock("\n".join(f"row_{n} = {n}" for n in range(50))))
        was_asked.clear()
        assert was_asked.wait(PATIENCE_S)
        was_asked.clear()
        assert was_asked.wait(PATIENCE_S)
        surface.show(RunBlock(True, 1.0))
    drawn = out.getvalue()
    assert "thinking" in drawn
    assert "42 tokens" in drawn
    assert "row_49" in drawn.replace("\x1b[", "")
    assert "ok ran" in drawn


def test_who_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_terminal(Terminal())
    assert not is_plain(Terminal())
    assert is_plain(io.StringIO())
    assert isinstance(open_surface(Terminal()), LiveSurface)
    monkeypatch.setenv("NO_COLOR", "1")
    assert is_plain(Terminal())
    assert isinstance(open_surface(Terminal()), PlainSurface)
    monkeypatch.setenv("TERM", "dumb")
    assert not is_terminal(Terminal())
