"""Consumption as a response reports it."""

from __future__ import annotations

from typing import Any

from taskweaver.llm.types import Usage


def read_usage(value: Any) -> Usage | None:
    """Return the consumption of a call; None where it is not reported."""
    if not isinstance(value, dict):
        return None
    prompt, completion = value.get("input_tokens"), value.get("output_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    if prompt <= 0 or completion < 0:
        return None
    return Usage(
        prompt,
        completion,
        calls=1,
        cached_tokens=_detail(value, "input_tokens_details", "cached_tokens"),
        reasoning_tokens=_detail(value, "output_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    count = details.get(name) if isinstance(details, dict) else 0
    return count if isinstance(count, int) and count > 0 else 0
