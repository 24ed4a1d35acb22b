"""Pictures of the terminal for README.md and docs/tutorial.md, drawn from real runs.

``python tests/docs_/terminal_pictures.py`` makes a project with `taskweaver init`, types the lines
of the tutorial into a chat on a terminal of its own, and writes ``docs/images/terminal/*.svg``: one
picture for each step, and the recording ``chat.svg``, which plays by itself. The built-in analyst
answers. Needs `pip install pyte`, a terminal emulator, and a minute.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from time import monotonic

import pyte

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "docs_")]

from screen import Screen  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "terminal"
COLUMNS, ROWS, SHOWN = 92, 900, 26
CELL, LINE, PAD = 8.0, 18, 14
PROMPT = "> "
PAUSE_S, LONGEST_S = 2.0, 2.0
"""Time in seconds for which the recording shows an answer, and a moment without change at most."""
COLORS = {
    "default": "#d8dee4", "black": "#8c959f", "red": "#ff8182", "green": "#6fdd8b",
    "brown": "#e3b341", "yellow": "#e3b341", "blue": "#80ccff", "magenta": "#d8b9ff",
    "cyan": "#76e3ea", "white": "#f6f8fa",
}  # fmt: skip

Run = tuple[str, str, bool]
"""Cells of one look: their text, colour, and whether they are bold."""
Row = tuple[Run, ...]


class Recording:
    """A chat on a terminal, whose picture is kept at each moment that differs."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self._emulator = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._emulator)
        self._folder = folder
        self._chat = Screen(*arguments, **environment)
        self._fed = 0
        self._since = monotonic()
        self.frames: list[tuple[float, list[Row]]] = []

    def play(self, seconds: float, until: str = "") -> None:
        """Draw what comes, until a line begins with a text or the time is over."""
        end = monotonic() + seconds
        while monotonic() < end:
            self._chat._read(0.05)
            new, self._fed = self._chat.drawn[self._fed :], len(self._chat.drawn)
            self._stream.feed(new)
            rows = self.rows()
            if not self.frames or rows != self.frames[-1][1]:
                self.frames.append((monotonic() - self._since, rows))
            line = self._emulator.display[self._emulator.cursor.y].rstrip()
            if until and not new and line == until:
                return
        assert not until, f"no prompt after {seconds} s: {self._chat.drawn[-800:]!r}"

    def type(self, text: str) -> None:
        """Type a line as a person does, and wait for the next prompt."""
        for at in range(0, len(text), 3):
            self._chat.type(text[at : at + 3])
            self.play(0.1)
        self.play(0.4)
        self._chat.type("\r")
        self.play(0.5)
        self.play(60, until=PROMPT.strip())

    def end(self) -> None:
        self._chat.type("/exit\r")
        self._chat.wait_for_end()

    def rows(self) -> list[Row]:
        """Return the rows from the first to that of the cursor."""
        lines = [self._emulator.buffer[at] for at in range(self._emulator.cursor.y + 1)]
        return [self._row([line[at] for at in range(COLUMNS)]) for line in lines]

    def _row(self, cells: Sequence[pyte.screens.Char]) -> Row:
        looks = [(cell.fg, cell.bold) for cell in cells]
        runs = []
        at = 0
        for (color, is_bold), group in groupby(looks):
            count = len(list(group))
            text = "".join(cell.data for cell in cells[at : at + count])
            at += count
            shown = COLORS.get(color.removeprefix("bright"), f"#{color}")
            runs.append((text.replace(f"{self._folder}/", ""), shown, is_bold))
        while runs and not runs[-1][0].strip():
            runs.pop()
        return tuple(runs)


def drawn(row: Row) -> str:
    """Return a row as SVG, at its left end."""
    parts, column = [], 0
    for text, color, is_bold in row:
        if text.strip():
            left = len(text) - len(text.lstrip())
            shown = html.escape(text.strip(), quote=False)
            weight = ' font-weight="700"' if is_bold else ""
            width = len(text.strip()) * CELL
            parts.append(
                f'<tspan x="{(column + left) * CELL:g}" textLength="{width:g}" fill="{color}"'
                f"{weight}>{shown}</tspan>"
            )
        column += len(text)
    return "".join(parts)


def picture(frames: Sequence[tuple[float, Sequence[Row]]], name: str) -> str:
    """Return an SVG of one frame, or of several that follow one another for ever."""
    height = max(len(rows) for _, rows in frames) * LINE
    width = COLUMNS * CELL
    known: dict[Row, str] = {}
    strip = []
    for at, (_, rows) in enumerate(frames):
        for number, row in enumerate(rows):
            if drawn(row):
                key = known.setdefault(row, f"r{len(known)}")
                strip.append(f'<use href="#{key}" y="{at * height + (number + 1) * LINE - 5}"/>')
    texts = "".join(f'<text id="{key}">{drawn(row)}</text>' for row, key in known.items())
    style = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
    last = -(len(frames) - 1) * height
    style += f"#film{{transform:translateY({last}px)}}"
    if len(frames) > 1:
        total = frames[-1][0] - frames[0][0] + 2 * PAUSE_S
        steps = "".join(
            f"{(at - frames[0][0]) / total:.3%}{{transform:translateY({-number * height}px)}}"
            for number, (at, _) in enumerate(frames)
        )
        style += (
            f"@keyframes film{{{steps}100%{{transform:translateY({last}px)}}}}"
            "@media (prefers-reduced-motion:no-preference)"
            f"{{#film{{animation:film {total:.1f}s step-end infinite}}}}"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 2 * PAD:g}'
        f' {height + 2 * PAD:g}" role="img" aria-label="{html.escape(name)}">'
        f"<style>{style}</style><defs>{texts}</defs>"
        '<rect width="100%" height="100%" rx="8" fill="#161b22"/>'
        f'<svg x="{PAD}" y="{PAD}" width="{width:g}" height="{height}"'
        f' viewBox="0 0 {width:g} {height}"><g id="film">{"".join(strip)}</g></svg></svg>\n'
    )


def questions() -> list[tuple[str, list[str]]]:
    """Return the steps of the tutorial: the picture of each, and the lines that are typed."""
    text = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    found = re.findall(r"```chat\n(.*?)```\n\n!\[[^]]*\]\(images/terminal/(\S+)\.svg\)", text, re.S)
    return [(name, re.findall("^> (.*)$", block, re.M)) for block, name in found]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve()
        quiet = {"HOME": place, "XDG_STATE_HOME": place, "LLM_API_TYPE": "offline"}
        os.chdir(place)
        made = [sys.executable, "-m", "taskweaver", "init", "shop"]
        subprocess.run(made, check=True, env={**os.environ, **quiet}, stdout=subprocess.DEVNULL)
        recording = Recording(home, "--trust", "-p", "shop", **quiet, COLUMNS=str(COLUMNS))
        recording.play(30, until=PROMPT.strip())
        shown: list[tuple[float, list[Row]]] = []
        for name, lines in questions():
            before = len(recording.rows()) - 1
            for line in lines:
                recording.type(line)
            step = recording.rows()[before:-1]
            (FOLDER / f"{name}.svg").write_text(picture([(0.0, step)], f"Chat: {lines[0]}"))
            if name in ("ask", "chart", "fork"):
                recording.play(PAUSE_S)
                shown = list(recording.frames)
        recording.end()
    frames = thinned([(at, rows[-SHOWN:]) for at, rows in shown])
    (FOLDER / "chat.svg").write_text(picture(frames, "A chat with TaskWeaver, recorded"))


def thinned(frames: Sequence[tuple[float, list[Row]]]) -> list[tuple[float, list[Row]]]:
    """Return frames at least 0.4 seconds apart, the last of each, and not long ones."""
    kept: list[tuple[float, list[Row]]] = []
    before = now = 0.0
    for at, rows in frames:
        now, before = now + min(at - before, LONGEST_S), at
        if kept and now - kept[-1][0] < 0.4:
            kept[-1] = (kept[-1][0], rows)
        else:
            kept.append((now, rows))
    return kept


if __name__ == "__main__":
    main()
