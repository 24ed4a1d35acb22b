"""Foreign text in Markdown: it is shown, and never read as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from taskweaver.utils.text import fenced, shorten

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;"}
_ADDRESS = re.compile(r"(?i)(https?|ftp)(:)|\b(www)(\.)|(@)")


def inline(text: object, limit_chars: int = 200) -> str:
    """Return text for the inside of a line: nothing in it is markup, a link or a line's end."""
    line = " ".join(str(text).split())
    short = line if len(line) <= limit_chars else f"{line[: limit_chars - 1].rstrip()}…"
    return _ADDRESS.sub(_broken_address, _SPECIAL.sub(r"\\\1", short.translate(_ENTITIES)))


def _broken_address(match: re.Match[str]) -> str:
    # Most renderers make links of bare addresses.
    scheme, colon, www, _, at = match.groups()
    if at:
        return "&#64;"
    return f"{scheme}&#58;" if colon else f"{www}&#46;"


def block(text: str, limit_chars: int, language: str = "text") -> str:
    """Return text as a block that is shown as it is, its middle left out when it is long."""
    return fenced(shorten(text, limit_chars), language)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; columns of numbers end with ``:``."""
    names = [name.rstrip(":") for name in header]
    rule = ["---:" if name.endswith(":") else "---" for name in header]
    lines = [names, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
