"""Effects of a case beyond questions in the project's sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taskweaver.trust.keys import risk_of

_PLAIN_ROLES = frozenset(
    {
        "planner", "code_interpreter", "code_interpreter_plugin_only", "code_interpreter_cli_only",
        "document_retriever", "echo", "recepta", "image_reader",
    }
)  # fmt: skip
"""Packaged roles that stay on this machine."""


def risky_keys(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the configuration keys of a case that need the user's consent."""
    for name, value in config.items():
        risk = risk_of(name)
        if risk == "roles" and isinstance(value, list) and _PLAIN_ROLES.issuperset(value):
            continue
        if risk != "harmless":
            yield f"the configuration key {name}"
