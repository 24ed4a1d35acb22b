"""JSON schemas of servers, and the part of them that is safe to check here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_PARTS = 2_000
_COSTLY = frozenset({"pattern", "patternProperties", "uniqueItems", "format"})
"""Keywords whose check can take time without bound: expressions that backtrack, comparing all."""


def checkable(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a schema without the keywords that are costly to check.

    Returns:
        The rest of it; None where its references lead back to themselves or to more than a bounded
        number of parts, which alone is for the server to check.
    """
    try:
        _count(schema, schema, ())
    except (_TooMuch, RecursionError):
        return None
    pruned = _pruned(schema)
    assert isinstance(pruned, dict)
    return pruned


class _TooMuch(Exception):
    """A schema has too many parts."""


def _count(
    part: object, root: Mapping[str, Any], followed: tuple[str, ...], so_far: int = 0
) -> int:
    """Count the parts of a schema, those behind each reference with it."""
    so_far += 1
    if so_far > _MOST_PARTS:
        raise _TooMuch
    if isinstance(part, Mapping):
        reference = part.get("$ref", part.get("$dynamicRef"))
        if isinstance(reference, str):
            if reference in followed:
                raise _TooMuch
            target = referred(reference, root)
            so_far = _count(target, root, (*followed, reference), so_far)
        for item in part.values():
            so_far = _count(item, root, followed, so_far)
    elif isinstance(part, list):
        for item in part:
            so_far = _count(item, root, followed, so_far)
    return so_far


def _pruned(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _pruned(item) for key, item in part.items() if not _is_costly(key, item)}
    return [_pruned(item) for item in part] if isinstance(part, list) else part


def _is_costly(key: str, item: object) -> bool:
    # A property may be called like a keyword; its value is then a schema.
    return key in _COSTLY and not (isinstance(item, Mapping) and key != "patternProperties")


def referred(reference: str, root: Mapping[str, Any]) -> object:
    """Return the part that ``#/a/b`` refers to; None for none."""
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
