"""Blocks as rich renderables: for a terminal that can show colours and boxes."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from taskweaver.console.terminal import blocks
from taskweaver.console.terminal.blocks import Block, Outcome, describe_effort, format_seconds
from taskweaver.console.terminal.plain import ORDER_CHARS, ORDER_LINES, VALUE_CHARS, VALUE_LINES
from taskweaver.console.terminal.text import as_rows, head, safe_markdown

THEME = "ansi_dark"
MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs blocks begin with."""

    role: str = "●"
    arrow: str = "→"
    good: str = "✓"
    bad: str = "✗"
    bar: str = "│"
    file: str = "▸"
    dot: str = "·"
    spinner: str = "dots"


ASCII = Glyphs("*", "->", "ok", "!!", "|", ">", ",", "line")


def glyphs_for(encoding: str) -> Glyphs:
    """Return signs the encoding can carry."""
    return Glyphs() if encoding.lower().startswith("utf") else ASCII


def draw(block: Block, glyphs: Glyphs) -> RenderableType:
    """Return a block as a renderable."""
    match block:
        case blocks.PlanBlock(text):
            return Panel(
                Text(text), title="Plan", title_align="left", border_style="blue", expand=False
            )
        case blocks.ThoughtBlock(text):
            return Padding(Text(text, style="dim italic"), (0, 0, 0, 2))
        case blocks.OrderBlock(sender, receiver, text):
            return _order(sender, receiver, text, glyphs)
        case blocks.CodeBlock(text):
            return Padding(Syntax(text, "python", theme=THEME, word_wrap=True), (0, 0, 0, 2))
        case blocks.AnswerBlock(text, gave_up):
            # Without links of the terminal: their text may name another address than they open.
            body = Markdown(safe_markdown(text), code_theme=THEME, hyperlinks=False)
            warning = Text("This could not be done.", style="yellow")
            return Padding(Group(warning, body) if gave_up else body, (1, 0, 0, 0))
        case _:
            return _draw_outcome(block, glyphs)


def _draw_outcome(block: Outcome, glyphs: Glyphs) -> RenderableType:
    drawn: RenderableType = ""
    match block:
        case blocks.OutputBlock(lines, is_error):
            bar, style = (f"  {glyphs.bar} ", "dim"), "red" if is_error else ""
            drawn = Text("\n").join(Text.assemble(bar, (line, style)) for line in lines)
        case blocks.RunBlock(is_ok, seconds):
            said = "ran" if is_ok else "failed"
            drawn = Text("  ").join(
                [Text(), _sign(said, glyphs, is_good=is_ok), _dim(format_seconds(seconds))]
            )
        case blocks.ValueBlock(text):
            drawn = Padding(_value(text), (0, 0, 0, 2))
        case blocks.TracebackBlock(text):
            drawn = Padding(Text(text, style="red"), (0, 0, 0, 2))
        case blocks.FilesBlock(paths):
            drawn = Text("\n").join(Text(f"  {glyphs.file} {path}", style="cyan") for path in paths)
        case blocks.NoteBlock(text, is_warning):
            drawn = Padding(Text(text, style="yellow" if is_warning else "dim"), (0, 0, 0, 2))
        case blocks.FactsBlock(rows):
            drawn = _facts(rows)
        case blocks.FailureBlock(text):
            drawn = _sign(text, glyphs, is_good=False)
        case blocks.SummaryBlock(is_ok=is_ok):
            drawn = Text.assemble(
                "\n", _sign("", glyphs, is_good=is_ok), _dim(describe_effort(block))
            )
    return drawn


def _sign(text: str, glyphs: Glyphs, *, is_good: bool) -> Text:
    sign, style = (glyphs.good, "green") if is_good else (glyphs.bad, "red")
    return Text(f"{sign} {text}", style=style)


def _facts(rows: tuple[tuple[str, str], ...]) -> RenderableType:
    drawn = Table.grid(padding=(0, 2))
    for name, text in rows:
        drawn.add_row(Text(f"  {name}", style="cyan"), Text(text))
    return drawn


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def _order(sender: str, receiver: str, text: str, glyphs: Glyphs) -> RenderableType:
    name = Style(color="blue" if sender == "Planner" else "magenta", bold=True)
    who = Text.assemble((f"{glyphs.role} {sender}", name))
    if receiver:
        who.append(f" {glyphs.arrow} {receiver}", "dim")
    short = head(text, ORDER_LINES, ORDER_CHARS)
    if "\n" in short:
        return Group(who, Padding(Text(short), (0, 0, 0, 2)))
    return Text.assemble(who, "  ", short)


def _value(text: str) -> RenderableType:
    table = as_rows(text)
    if table is None:
        # A data frame is laid out already; folding its lines would spoil the columns.
        return Text(head(text, VALUE_LINES, VALUE_CHARS), no_wrap=True, overflow="ellipsis")
    names, rows = table
    drawn = Table(*names, header_style="bold", border_style="dim")
    for row in rows[:MOST_ROWS]:
        drawn.add_row(*map(Text, row))
    rest = len(rows) - MOST_ROWS
    return Group(drawn, Text(f"{rest:,} more rows", style="dim")) if rest > 0 else drawn
