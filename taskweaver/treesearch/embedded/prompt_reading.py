"""Reader of a prompt as it was rendered: headings, memory, the parent, the other attempts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"(`{3,})(.*)")
_VALUES = re.compile(r"VALUES = (\{.*\})")
_OTHER = re.compile(
    r"^- n\d+ (?P<kind>\w+)(?: (?P<name>\S+=\S+))?(?: of (?P<parent>n\d+))?: \S", re.MULTILINE
)
_CORE = re.compile(r"^- (?P<key>[\w.]+)(?: \[\d\])?: (?P<value>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Other:
    """Another attempt, as the digest lists it.

    Attributes:
        kind: Its kind.
        change: Its change, as ``name=value``; empty for none.
        parent: Id of its parent; empty for none.
    """

    kind: str
    change: str
    parent: str


def sections(prompt: str) -> dict[str, str]:
    """Return the text below each heading of the first level; fenced text has no headings."""
    found: dict[str, list[str]] = {}
    heading, fence = "", ""
    for line in prompt.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence and line.startswith("# "):
            heading = line[2:].strip()
            found[heading] = []
            continue
        found.setdefault(heading, []).append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def values_in(code: str) -> dict[str, Any]:
    """Return the values an attempt was written with."""
    found = _VALUES.search(code)
    return dict(json.loads(found[1])) if found else {}


def others(digest: str) -> list[Other]:
    """Return the other attempts."""
    return [
        Other(match["kind"], match["name"] or "", match["parent"] or "")
        for match in _OTHER.finditer(digest)
    ]


def number(text: str) -> float | None:
    """Return the number a text begins with; None when it begins with none."""
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def remembered(memory: str, key: str) -> Any:
    """Return a core key of a rendered memory, as data; None when it is not there."""
    for match in _CORE.finditer(memory):
        if match["key"] == key:
            try:
                return json.loads(match["value"])
            except ValueError:
                return None
    return None
