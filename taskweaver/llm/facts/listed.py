"""Windows that servers state in their list of models, or beside it.

The list is part of the protocol, so that it may be asked for anywhere; other paths are asked for
where the list shows whose server it is. Providers whose lists have no windows are not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from taskweaver.llm.facts.model_facts import ModelFacts, group, tokens_of
from taskweaver.llm.facts.ollama import ollama_facts
from taskweaver.llm.facts.question import answer_of
from taskweaver.llm.transport.endpoint import ConnectionPool, Endpoint, at_root

_SILENT = (
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "api.deepseek.com",
    "aliyuncs.com",
    "open.bigmodel.cn",
    "azure.com",
)
_NAMES = (
    "loaded_context_length",
    "max_model_len",
    "context_window",
    "context_length",
    "max_context_length",
    "max_input_tokens",
)


def listed_facts(
    pool: ConnectionPool, endpoint: Endpoint, dialect: str, headers: Mapping[str, str]
) -> ModelFacts:
    """Return the facts about a model that its server lists.

    Args:
        pool: Connections to the server.
        endpoint: The model.
        dialect: Name of its protocol.
        headers: Headers of its protocol beyond the client's own.
    """
    host = urlsplit(endpoint.api_base).hostname or ""
    if endpoint.api_version or any(_is_at(host, silent) for silent in _SILENT):
        return ModelFacts()
    if dialect == "anthropic":  # its list is long and has no names that stand for the newest
        path = f"/models/{quote(endpoint.model, safe='')}"
        return _facts(answer_of(pool, path, headers=headers))
    entry = _entry(answer_of(pool, "/models", headers=headers), endpoint.model)
    root = at_root(endpoint).api_base
    match group(entry, "owned_by"):
        case "llamacpp":
            props = answer_of(pool, f"{root}/props")
            settings = group(props, "default_generation_settings")
            takes_tools = group(group(props, "chat_template_caps"), "supports_tools")
            is_stated = isinstance(takes_tools, bool)
            window = tokens_of(group(settings, "n_ctx"))
            return ModelFacts(window=window, takes_tools=takes_tools if is_stated else None)
        case "organization_owner":  # LM Studio; what it lists elsewhere is not what it loaded
            entry = _entry(answer_of(pool, f"{root}/api/v0/models"), endpoint.model)
            return ModelFacts(window=tokens_of(group(entry, "loaded_context_length")))
        case "library":
            return ollama_facts(pool, endpoint.model, root)
    return _facts(entry)


def _is_at(host: str, name: str) -> bool:
    return host == name or host.endswith(f".{name}")


def _entry(listing: Any, model: str) -> Any:
    """Return the entry of a model; of a server with one model, that one."""
    data = group(listing, "data")
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    named = [entry for entry in entries if entry.get("id") == model]
    return next(iter(named or entries), None) if named or len(entries) == 1 else None


def _facts(entry: Any) -> ModelFacts:
    stated = [tokens_of(group(entry, name)) for name in _NAMES]
    provided = tokens_of(group(group(entry, "top_provider"), "context_length"))
    windows = [window for window in stated if window][:1] + ([provided] if provided else [])
    return ModelFacts(window=min(windows, default=0))
