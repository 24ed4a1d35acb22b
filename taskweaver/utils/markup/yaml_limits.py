"""Limits that keep a YAML text from using up the stack or the memory of the program.

A text of a hundred kilobytes can be nested so deeply that PyYAML's C loader crashes the process,
and a few aliases of aliases stand for more values than any memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

_MOST_DEPTH = 200
_MOST_VALUES = 2_000_000
"""Values a text may stand for when each alias is written out."""
_MOST_MERGES = 100
_PREFIX = re.compile(r"^[ \-?]+", re.MULTILINE)


class YamlTooLarge(ValueError):
    """A text that is nested too deeply, or stands for too many values."""


@cache
def limited_loader() -> Any:
    """Return the safe loader, in its C form if there is one, with a limit to merged mappings."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def flatten_mapping(self: Any, node: Any) -> None:
        merged = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
        count = sum(len(value.value) for value in merged)
        base.flatten_mapping(self, node)
        self.merged_pairs = getattr(self, "merged_pairs", 0) + (len(node.value) if merged else 0)
        if count > _MOST_MERGES or self.merged_pairs > _MOST_VALUES:
            raise YamlTooLarge("it merges too many mappings")

    return type("_LimitedLoader", (base,), {"flatten_mapping": flatten_mapping})


def require_shallow(text: str) -> None:
    """Raise if a text is nested too deeply to be loaded.

    Raises:
        YamlTooLarge: If it is.
        yaml.YAMLError: If it is not YAML up to there.
    """
    brackets = text.count("[") + text.count("{")
    columns = max((len(match[0]) for match in _PREFIX.finditer(text)), default=0)
    if brackets + 2 * columns < _MOST_DEPTH:
        return
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=limited_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise YamlTooLarge("it is nested too deeply")


def require_small(text: str, data: Any) -> None:
    """Raise if data have far more values than the text they are of: aliases repeat them.

    Raises:
        YamlTooLarge: If they are.
    """
    if "*" in text and "&" in text and _expanded(data) > _MOST_VALUES:
        raise YamlTooLarge("its aliases stand for too many values")


def _expanded(data: Any) -> int:
    """Return the number of values when each alias is written out, one for a value in itself."""
    sizes: dict[int, int] = {}
    unfinished: set[int] = set()
    waiting = [data]
    while waiting:
        value = waiting[-1]
        parts = list(_parts(value))
        missing = [part for part in parts if id(part) not in sizes]
        missing = [part for part in missing if id(part) not in unfinished]  # it holds itself
        if id(value) in sizes or not missing:
            sizes.setdefault(id(value), 1 + sum(sizes.get(id(part), 1) for part in parts))
            unfinished.discard(id(value))
            waiting.pop()
        else:
            unfinished.add(id(value))
            waiting += missing
    return sizes[id(data)]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set):
        yield from value
