"""Blocks as plain lines: for pipes, logs, ``NO_COLOR`` and terminals that cannot do more.

Own words are ASCII, so that they reach any encoding; text from outside is passed on.
"""

from __future__ import annotations

from textwrap import indent

from taskweaver.console.terminal import blocks
from taskweaver.console.terminal.blocks import Block, Outcome, describe_effort, format_seconds
from taskweaver.console.terminal.text import head, without_marks

ORDER_LINES, ORDER_CHARS = 6, 600
VALUE_LINES, VALUE_CHARS = 40, 8_000


def spell(block: Block) -> str:
    """Return a block as text, without a line end."""
    match block:
        case blocks.PlanBlock(text):
            return f"\nplan:\n{indent(text, '  ')}"
        case blocks.ThoughtBlock(text):
            return f"\nthought:\n{indent(text, '  ')}"
        case blocks.OrderBlock(sender, receiver, text):
            arrow = f"{sender} -> {receiver}" if receiver else sender
            return f"\n{arrow}: {head(text, ORDER_LINES, ORDER_CHARS)}"
        case blocks.CodeBlock(text):
            return f"\ncode:\n{indent(text, '  ')}"
        case blocks.AnswerBlock(text, gave_up):
            return f"\n{'not done: ' if gave_up else ''}{without_marks(text)}"
        case _:
            return _spell_outcome(block)


def _spell_outcome(block: Outcome) -> str:
    said = ""
    match block:
        case blocks.OutputBlock(lines, is_error):
            said = "\n".join(f"  {'!' if is_error else '|'} {line}" for line in lines)
        case blocks.RunBlock(is_ok, seconds):
            said = f"{'ran' if is_ok else 'failed'} ({format_seconds(seconds)})"
        case blocks.ValueBlock(text):
            said = f"result:\n{indent(head(text, VALUE_LINES, VALUE_CHARS), '  ')}"
        case blocks.TracebackBlock(text):
            said = f"error:\n{indent(text, '  ')}"
        case blocks.FilesBlock(paths):
            said = "\n".join(f"file: {path}" for path in paths)
        case blocks.NoteBlock(text, is_warning):
            said = f"{'warning: ' if is_warning else ''}{text}"
        case blocks.FactsBlock(rows):
            width = max((len(name) for name, _ in rows), default=0)
            said = "\n".join(f"  {name:{width}}  {text}" for name, text in rows)
        case blocks.FailureBlock(text):
            said = f"\nfailed: {text}"
        case blocks.SummaryBlock():
            said = f"\n({describe_effort(block)})"
    return said
