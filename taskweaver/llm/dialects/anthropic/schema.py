"""JSON schemas as Anthropic's structured outputs take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNKNOWN = frozenset(
    (
        "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems"
        " uniqueItems minProperties maxProperties"
    ).split()
)
_BY_NAME = frozenset({"properties", "$defs", "definitions"})


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without bounds, and with objects that hold what they name and no more."""
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _BY_NAME and isinstance(value, Mapping):
            found[name] = {key: _narrowed(part) for key, part in value.items()}
        elif name == "oneOf":
            found["anyOf"] = _narrowed(value)
        elif name not in _UNKNOWN and not (name == "minItems" and value not in (0, 1)):
            found[name] = _narrowed(value)
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def _narrowed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return narrowed(value)
    return [_narrowed(part) for part in value] if isinstance(value, list) else value
