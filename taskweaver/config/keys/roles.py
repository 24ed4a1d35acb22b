"""The configuration keys of further roles (see `known_keys`)."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

INTERPRETERS = ("code_interpreter_plugin_only", "code_interpreter_cli_only")
AS_INTERPRETER = frozenset({"max_retry_count", "require_confirmation", "confirmation_timeout_s"})
"""Keys of `INTERPRETERS` that are those of ``code_interpreter`` where they are not set."""
EXT_ROLES = ("echo", "recepta", "document_retriever", "web_search", "image_reader")


MCP_KEYS: tuple[Key, ...] = (
    key(
        "mcp.servers",
        {},
        "MCP servers by name, whose tools code can call: `command`, `args`, `env`, `cwd` of a "
        "program or `url`, `headers` of an address; `confirm`, `tools`, `timeout_s`.",
    ),
)

ROLE_KEYS: tuple[Key, ...] = (
    *(
        path(
            f"{role}.prompt_file_path",
            None,
            "Prompt file whose texts go before the packaged ones; it needs `instruction`.",
        )
        for role in INTERPRETERS
    ),
    key("echo.decorator", "", "Text before and after what the Echo repeats."),
    key("recepta.decorator", "", "Text before and after Recepta's acknowledgement."),
    path(
        "document_retriever.index_folder",
        "${AppBaseDir}/knowledge_base",
        "Folder of the documents: text, Markdown, HTML, PDF, Word.",
    ),
    key("document_retriever.size", 5, "Most passages in an answer.", minimum=1),
    key(
        "document_retriever.target_length",
        256,
        "Length of a passage in tokens, of 4 characters each.",
        minimum=16,
    ),
    enum("web_search.api_provider", "duckduckgo", "duckduckgo google searxng", "Who is asked."),
    key("web_search.result_count", 3, "Pages read, and most quotes, per query.", minimum=1),
    key("web_search.google_api_key", "", "Key for Google's Custom Search JSON API."),
    key("web_search.google_search_engine_id", "", "Id of the Google search engine (`cx`)."),
    key("web_search.searxng_url", "", "Address of a SearXNG server."),
    key(
        "web_search.chunk_size",
        2000,
        "Length in characters of the parts a page is cut into; the best are quoted.",
        minimum=100,
    ),
    key("web_search.chunk_overlap", 500, "Characters a part shares with the next."),
)

EXPLORER_KEYS: tuple[Key, ...] = (
    path(
        "web_explorer.browser_path",
        None,
        "Program of a Chromium or Google Chrome; none takes the one that is installed.",
    ),
    key("web_explorer.max_steps", 10, "Most actions for one task.", minimum=1),
    key(
        "web_explorer.page_timeout_s",
        30.0,
        "Longest wait in seconds for a page to load.",
        minimum=1.0,
    ),
    key(
        "web_explorer.allowed_hosts",
        [],
        "Hosts whose pages may be opened, each with all below it; an empty list allows all.",
    ),
)
