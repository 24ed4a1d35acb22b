"""Text from models and kernels, made safe and short for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.utils.markup.characters import escaped_steering, without_steering
from taskweaver.utils.parsing import literal_value
from taskweaver.utils.redact import redact_known

T = TypeVar("T")
_LAST_CODE = re.compile(r"^(`{3,9})python\n(?:(?!\1).*(?:\n|\Z))*(?:\1\s*)?\Z", re.MULTILINE)
_FENCED = re.compile(r"^(`{3,9})(?:python)?\n(?P<code>.*?)\n\1[ \t]*$\n{0,2}", re.M | re.DOTALL)
_FENCE, _SPAN = r"^(`{3,9}|~{3,9})[^\n]*\n.*?^\1[ \t]*$", r"(?<!`)(`{1,3})[^`\n]+\2(?!`)"
_CODE = re.compile(f"{_FENCE}|{_SPAN}", re.DOTALL | re.MULTILINE)
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,40});")


def safe(text: str) -> str:
    """Return `text` without control sequences a terminal would obey instead of showing.

    The application's own keys are masked. Text that only looks like a secret is not: a person
    who is asked whether code may run sees all of it.
    """
    return without_steering(redact_known(text))


def safe_json(text: str) -> str:
    """Return JSON with the same value, in which a terminal finds nothing to obey."""
    return escaped_steering(redact_known(text))


def safe_markdown(text: str) -> str:
    """Return Markdown without references to characters that a terminal would obey."""
    return _REFERENCE.sub(lambda match: without_steering(unescape(match[0])) and match[0], text)


def without_marks(text: str) -> str:
    """Return Markdown as plain text: words that are bold, and characters that are referred to.

    Code, lists and tables read well as they are.
    """
    parts, at = [], 0
    for match in _CODE.finditer(text):
        parts += [_unmarked(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, _unmarked(text[at:])])


def _unmarked(text: str) -> str:
    return _REFERENCE.sub(
        lambda match: without_steering(unescape(match[0])), _BOLD.sub(r"\1", text)
    )


def without_code(order: str, shown: str = "") -> str:
    """Return an order without the Python code at its end, which is shown when it runs.

    Code that was `shown` before is left out wherever it stands.
    """
    return _LAST_CODE.sub("", without_fence(order, shown)).strip() or order


def without_fence(text: str, shown: str) -> str:
    """Return a text without the fenced blocks that repeat what was shown before."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]

    def kept(match: re.Match[str]) -> str:
        fenced = [line.rstrip() for line in match["code"].strip("\n").splitlines()]
        return "" if fenced == lines else match[0]

    return _FENCED.sub(kept, text).strip() if lines else text


def overwritten(line: str) -> str:
    """Return the visible part of a line with carriage returns (progress bars)."""
    return line.rstrip("\r").rpartition("\r")[2]


def depth_first(roots: Sequence[T], below: Callable[[T], Sequence[T]]) -> Iterator[tuple[int, T]]:
    """Yield the items of trees with their depths, each before its children."""
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, item = waiting.pop()
        yield depth, item
        waiting += [(depth + 1, child) for child in reversed(below(item))]


def head(text: str, lines: int, chars: int) -> str:
    """Return at most `lines` lines and `chars` characters of the beginning of `text`."""
    whole = text.rstrip().lstrip("\r\n")
    kept = "\n".join(whole.split("\n")[:lines])
    is_whole = kept == whole and len(kept) <= chars
    return kept if is_whole else kept[:chars].rstrip() + " ..."


def mebibytes(size_bytes: int) -> str:
    """Return a size in MiB, without decimals."""
    return f"{size_bytes / (1 << 20):,.0f} MiB"


def section(report: str, title: str) -> str:
    """Return the body of a section of a run's report, without its fence; empty if absent."""
    pattern = rf"^#{{2,3}} {re.escape(title)}\n(?:(`{{3,}})\w*\n(.*?)\n\1$|([^\n]*))"
    match = re.search(pattern, report, re.DOTALL | re.MULTILINE)
    if match is None:
        return ""
    return match[2] if match[1] else match[3]


def display_path(path: Path, start: Path | None = None) -> str:
    """Return a path as one would type it: relative to `start` (the current folder) if shorter."""
    whole, start = str(path), start or Path.cwd()
    if start == Path(start.anchor):
        return whole  # one character longer, and right from everywhere
    try:
        relative = str(path.relative_to(start))
    except ValueError:
        home = Path.home()
        relative = str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else whole
    return min(relative, whole, key=len)


def openable_path(path: Path) -> str:
    """Return a path to open a file by: relative inside of the current folder, else whole."""
    here = Path.cwd()
    return display_path(path, here) if path.is_relative_to(here) else str(path)


def as_rows(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Read the text of a value as a table: a list of like dictionaries, or one dictionary.

    Returns:
        Column names and rows, or None when the value is not a table.
    """
    if not text.lstrip().startswith(("[{", "{")) or len(text) > 20_000:
        return None
    try:
        value = literal_value(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, dict):
        return _rows_of_dict(value)
    if not isinstance(value, list):
        return None
    names = list(value[0])
    if not all(isinstance(row, dict) and list(row) == names for row in value):
        return None
    return [str(name) for name in names], [[_cell(item) for item in row.values()] for row in value]


def _rows_of_dict(value: dict[Any, Any]) -> tuple[list[str], list[list[str]]] | None:
    is_flat = not any(isinstance(item, dict | list | tuple | set) for item in value.values())
    return (["", "value"], [[str(k), _cell(v)] for k, v in value.items()]) if is_flat else None


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
