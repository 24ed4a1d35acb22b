"""Text made safe and short, and the looks of blocks."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from taskweaver.console.terminal.blocks import (
    AnswerBlock,
    Block,
    CodeBlock,
    FactsBlock,
    FailureBlock,
    FilesBlock,
    NoteBlock,
    OrderBlock,
    OutputBlock,
    PlanBlock,
    RunBlock,
    SummaryBlock,
    ThoughtBlock,
    TracebackBlock,
    ValueBlock,
    format_seconds,
)
from taskweaver.console.terminal.draw import ASCII, Glyphs, draw, glyphs_for
from taskweaver.console.terminal.plain import spell
from taskweaver.console.terminal.surface import LiveSurface, PlainSurface
from taskweaver.console.terminal.text import (
    as_rows,
    display_path,
    head,
    overwritten,
    safe,
    safe_json,
    section,
    without_code,
    without_marks,
)

ALL: tuple[Block, ...] = (
    PlanBlock("1. look"), ThoughtBlock("hmm"), OrderBlock("Planner", "CodeInterpreter", "do it"),
    OrderBlock("Planner", "", "do"), CodeBlock("x = 1"), OutputBlock(("a", "b")),
    OutputBlock(("c",), is_error=True), RunBlock(True, 0.5), RunBlock(False, 61),
    ValueBlock("[{'a': 1, 'b': 2.5}]"), TracebackBlock("ValueError: no"),
    FilesBlock(("a.png", "b.csv")), NoteBlock("by the way"), NoteBlock("odd", is_warning=True),
    AnswerBlock("# Title\n\n- one"), AnswerBlock("no", gave_up=True),
    FactsBlock((("/help", "list"), ("/load", "add"))), FactsBlock(()), FailureBlock("it broke"),
    SummaryBlock(True, 4.25, 1200, True, 0.5), SummaryBlock(False, 0.1),
)  # fmt: skip


def drawn(block: Block, glyphs: Glyphs = ASCII, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw(block, glyphs))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("block", ALL, ids=repr)
def test_every_block_can_be_drawn_and_holds_the_words_it_is_spelled_with(block: Block) -> None:
    assert spell(block).isascii()
    text = drawn(block)
    plain = spell(block).replace("'", "")
    for word in ("look", "CodeInterpreter", "ValueError", "b.csv", "/load", "it broke", "1,200"):
        assert (word in text) == (word in plain)


def test_values_are_drawn_as_tables_and_foreign_markup_is_text() -> None:
    text = drawn(ValueBlock("[{'city': 'Ulm', 'n': 1200.5}, {'city': 'Bonn', 'n': 3.0}]"), Glyphs())
    assert "city" in text.splitlines()[1]
    assert "1,200.5" in text
    assert "70 more rows" in drawn(ValueBlock(repr([{"n": n} for n in range(100)])))
    wide = "  ".join(f"column{n}" for n in range(30))
    assert len(drawn(ValueBlock(f"{wide}\n{wide}")).splitlines()) == 2
    markup = NoteBlock("[bold]x"), OrderBlock("A", "B", "[red]y"), FilesBlock(("[a].png",))
    assert all("[" in drawn(block) for block in markup)
    assert as_rows("{'mean': 2.0, 'n': 3}") == (["", "value"], [["mean", "2"], ["n", "3"]])
    assert "bank (http://evil.test/x)" in drawn(AnswerBlock("[bank](http://evil.test/x)"))


def test_what_is_no_table_stays_text() -> None:
    for text in ("{'a': [1]}", "[{'a': 1}, {'b': 1}]", "[{'a': 1", "{1, 2}", "plain", "[{**x}]"):
        assert as_rows(text) is None


def test_signs_follow_the_encoding_and_durations_read_well() -> None:
    assert (glyphs_for("utf-8").good, glyphs_for("cp1252")) == ("✓", ASCII)
    assert list(map(format_seconds, (0.042, 12.34, 125))) == ["0.04 s", "12.3 s", "2 min 05 s"]


def test_sections_of_a_report_are_found_whatever_their_fence() -> None:
    result, output = "````\n```\nx\n```\n````", "```\no\n```"
    report = f"### Execution\nThe code ran.\n\n### Result\n{result}\n\n### Output\n{output}"
    assert section(report, "Result") == "```\nx\n```"
    assert section(report, "Output") == "o"
    assert section(report, "Execution") == "The code ran."
    assert section(report, "Error") == ""


def test_text_is_cut_at_lines_and_characters() -> None:
    assert head("\n  a\nb\n\n", 2, 10) == "  a\nb"
    assert head("a\nb\nc", 2, 10) == "a\nb ..."
    assert head("x" * 20, 2, 10) == "x" * 10 + " ..."


def test_safe_text_keeps_tabs_lines_and_letters() -> None:
    assert safe("a\tb\r\nc ü 漢") == "a\tb\nc ü 漢"
    assert safe("\x9b31mred\udc80") == "31mred\ufffd"
    assert overwritten("1%\r2%\r") == "2%"


def test_a_path_is_shown_the_shortest_way(tmp_path: Path) -> None:
    assert display_path(tmp_path / "a" / "b.png", tmp_path) == str(Path("a/b.png"))
    assert display_path(Path.home() / "x.csv", tmp_path) == str(Path("~/x.csv"))
    assert display_path(Path("/elsewhere/x.csv"), tmp_path) == "/elsewhere/x.csv"
    assert display_path(Path("/elsewhere/x.csv"), Path("/")) == "/elsewhere/x.csv"


HOSTILE = (
    "\x1b]0;owned\x07title", "\x1b]52;c;ZXZpbA==\x07clip",
    "\x1b]8;;http://evil.test\x1b\\bank\x1b]8;;\x1b\\", "\x9d52;c;ZXZpbA==\x9cc1",
    "\x9b2Jclear \x9b31mred", "\x1bP+q544e\x1b\\dcs \x1b_apc\x1b\\ \x1b^pm\x1b\\ \x1bc reset",
    "\x1b\x1b[0m[2J nested \x1b", "bidi \u202egnp.exe \u2066x\u2069 \u200f\u200e\u061c",
    "tags \U000e0041\U000e0042 \ufeff\u2060\u200b", "lines\u2028two\x85three\x0bfour\rfive\x08\x7f",
    "[bank](http://evil.test) <http://evil.test> ![x](http://evil.test/x.png)",
    "&#x202e;gnp &rlm;x &#27;[2J &#155;2J &#8238; &ZeroWidthSpace;", "`\x1b[2J` ```\n\x1b[2J\n```",
)  # fmt: skip
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def blocks_of(text: str) -> list[Block]:
    kinds = (PlanBlock, ThoughtBlock, CodeBlock, ValueBlock, TracebackBlock, AnswerBlock, NoteBlock)
    return [
        *(kind(text) for kind in (*kinds, FailureBlock)), OrderBlock(text, text, text),
        OutputBlock((text,)), FilesBlock((text,)), FactsBlock(((text, text),)),
    ]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_no_block_carries_what_a_terminal_obeys(text: str) -> None:
    for block in blocks_of(text):
        stream = io.StringIO()
        PlainSurface(stream).show(block)
        assert not OBEYED.search(stream.getvalue())
        console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
        LiveSurface(console, ASCII).show(block)
        assert isinstance(console.file, io.StringIO)
        # What is left are colours of our own.
        shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
        assert not OBEYED.search(shown)
    told = safe_json(json.dumps({"a": text}, ensure_ascii=False))
    assert not OBEYED.search(told)
    assert json.loads(told) == {"a": text}


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("**73.4** rows, 2 ** 3 and a*b", "73.4 rows, 2 ** 3 and a*b"),
        ("&#36;5 &lt; &#96;x&#96; &#27;[31m", "$5 < `x` [31m"),
        ("`**a**` and **b**", "`**a**` and b"),
        ("**a**\n```\n**kwargs** &lt;\n```\n**b**", "a\n```\n**kwargs** &lt;\n```\nb"),
        ("`" * 50_000 + "**b**", "`" * 50_000 + "b"),
    ],
)
def test_plain_answers_have_no_marks_outside_of_code(markdown: str, plain: str) -> None:
    assert without_marks(markdown) == plain


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        ("Compute it\n```python\na = 1\n\nb = 2\n```", "Compute it"),
        ("Compute it\n```python\na = 1\nb", "Compute it"),
        ("Use\n```python\na\n```\nand plot it", "Use\n```python\na\n```\nand plot it"),
        ("Read this\n```\ntext\n```", "Read this\n```\ntext\n```"),
        ("```python\na\n```", "```python\na\n```"),
        ("Go\n```python\n" + "a\n" * 20_000 + "```\nx", None),
    ],
)
def test_code_at_the_end_of_an_order_is_left_to_its_run(order: str, shown: str | None) -> None:
    assert without_code(order) == (order if shown is None else shown)


def test_code_that_was_shown_is_left_out_of_an_order_wherever_it_stands() -> None:
    order = "Run\n```python\na = 1\n```\nand keep\n```\nb\n```\nPlease."
    assert without_code(order, "a = 1\n") == "Run\nand keep\n```\nb\n```\nPlease."
    assert without_code("```\n" * 20_000, "a").count("```") == 20_000
