"""The configuration keys of the WebExplorer."""

from __future__ import annotations

from taskweaver.config.keys.key import Key

EXPLORER_KEYS: tuple[Key, ...] = (
    Key(
        "web_explorer.browser_path",
        "path",
        None,
        "Program of a Chromium or Google Chrome; none takes the one that is installed.",
    ),
    Key("web_explorer.max_steps", "int", 10, "Most actions for one task.", minimum=1),
    Key(
        "web_explorer.page_timeout_s",
        "float",
        30.0,
        "Longest wait in seconds for a page to load.",
        minimum=1.0,
    ),
    Key(
        "web_explorer.allowed_hosts",
        "list",
        [],
        "Hosts whose pages may be opened, each with all below it; an empty list allows all.",
    ),
)
