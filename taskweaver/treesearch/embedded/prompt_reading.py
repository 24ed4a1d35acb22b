"""Reads a prompt the way it was rendered: headings, the code of the parent, the other attempts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_VALUES = re.compile(r"VALUES = (\{.*\})")
_OTHER = re.compile(
    r"^- (?P<id>n\d+) (?P<kind>\w+)(?: (?P<name>\S+=\S+))?(?: of (?P<parent>n\d+))?:"
    r" (?P<outcome>[^.\s]+(?:\.\d+)?(?:e[+-]?\d+)?)",
    re.MULTILINE,
)
_CORE = re.compile(r"^- (?P<key>[\w.]+)(?: \[\d\])?: (?P<value>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Other:
    """Another attempt, as the digest tells of it.

    Attributes:
        id: Its id.
        kind: Its kind.
        change: What it changed, as ``name=value``; empty for nothing.
        parent: What it was made from; empty for nothing.
        value: What it reached; None when it failed.
    """

    id: str
    kind: str
    change: str
    parent: str
    value: float | None


def sections(prompt: str) -> dict[str, str]:
    """Return the text below each heading of the first level."""
    marks = list(_HEADING.finditer(prompt))
    ends = [*(mark.start() for mark in marks[1:]), len(prompt)]
    return {
        mark[1].strip(): prompt[mark.end() : end].strip()
        for mark, end in zip(marks, ends, strict=True)
    }


def values_in(code: str) -> dict[str, Any]:
    """Return the values an attempt was written with."""
    found = _VALUES.search(code)
    return dict(json.loads(found[1])) if found else {}


def others(digest: str) -> list[Other]:
    """Return the other attempts."""
    return [
        Other(
            match["id"], match["kind"], match["name"] or "", match["parent"] or "",
            number(match["outcome"]),
        )
        for match in _OTHER.finditer(digest)
    ]  # fmt: skip


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
