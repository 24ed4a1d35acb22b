"""Windows of hosted models by name, for servers that state none; a short table, asked last."""

from __future__ import annotations

import re

_WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(rf"(?:^|/){name}"), window)
    for name, window in (
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-5", 272_000),
        (r"gpt-4o|chatgpt-4o|gpt-4-turbo|o1-(?:mini|preview)", 128_000),
        (r"o[134](?![0-9])", 200_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4(?:-\d{4})?$", 8_192),
        (r"gpt-3\.5-turbo", 16_385),
        (r"claude-", 200_000),
        (r"gemini-(?:1\.5|2|3)", 1_000_000),
        (r"deepseek-(?:chat|reasoner)", 128_000),
        (r"qwen-(?:plus|turbo|flash)", 128_000),
        (r"qwen-max", 32_768),
        (r"glm-4", 128_000),
    )
)


def named_window(model: str) -> int:
    """Return the window of a hosted model of this name; 0 where it is not in the table."""
    name = model.lower()
    return next((window for pattern, window in _WINDOWS if pattern.search(name)), 0)
