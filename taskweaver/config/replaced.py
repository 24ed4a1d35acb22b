"""Keys and values that projects of the original TaskWeaver set and this one reads otherwise.

A project written for the original runs as it is: what has no meaning here is named at start, once,
with what does the same.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from taskweaver.config.keys.known_keys import BY_NAME

PROVIDERS = BY_NAME["llm.api_type"].choices
PROVIDER_KEYS = frozenset(
    "api_base api_key model api_version response_format temperature top_p max_tokens stop_token"
    " reasoning_effort dialect seed embedding_model".split()
)
"""Keys of ``llm.`` that can be set for one provider: ``llm.azure.model``."""

AZURE_AD_KEYS = frozenset(
    "aad_auth_mode aad_tenant_id aad_client_id aad_client_secret aad_api_resource"
    " aad_api_scope".split()
)
"""Keys of ``llm.`` that can be set for the provider ``azure_ad``."""

ALIASES = {
    "execution_service.server.url": "execution.server",
    "execution_service.server.api_key": "execution.server_token",
}
"""Keys of the original that are read, with their names here."""

_SENT = "it is not sent; set it at the endpoint."
_AD = "it is used with llm.api_type azure_ad."
_SANDBOX = "set execution.sandbox, see 'What is promised, and what is not' in the documentation."
_TOKENS = "tokens are kept in memory."
_RECORDED = "the mock gives a fixed reply; llm.api_type recorded records and plays back."
_KERNELS = (
    "no server is started; execution.server names one, see 'The server' in the documentation."
)

_BING = "its API has ended; set web_search.api_provider to duckduckgo, google or searxng."
_SELECTION = "set the key of this name under code_interpreter."

REMOVED: dict[str, str] = {
    "api_key": "set llm.api_key.",
    "model": "set llm.model.",
    "max_tokens": "set llm.max_tokens.",
    "temperature": "set llm.temperature.",
    "top_p": "set llm.top_p.",
    "stop_token": "set llm.stop_token.",
    "use_local_uri": "artifacts are always named by their path.",
    "llm.mock.playback_delay": "the mock's reply comes at once.",
    "llm.mock.cache_path": _RECORDED,
    "llm.*.aad_skip_interactive": "set llm.aad_auth_mode.",
    "llm.*.aad_use_token_cache": _TOKENS,
    "llm.*.aad_token_cache_path": _TOKENS,
    "llm.*.aad_*": _AD,
    "llm.azure_ml.*": "use llm.api_base with an endpoint that speaks the OpenAI protocol.",
    "llm.sentence_transformers.*": "serve the model and set llm.embedding_api_base.",
    "llm.google_genai.max_output_tokens": "set llm.max_tokens.",
    "llm.*.top_k": _SENT,
    "llm.*.frequency_penalty": _SENT,
    "llm.*.presence_penalty": _SENT,
    "llm.*.require_alternative_roles": "messages are sent as the chat has them.",
    "llm.*.support_system_role": "instructions are always a system message.",
    "llm.*.support_constrained_generation": "set llm.response_format; auto finds what works.",
    "llm.*.json_schema_enforcer": "set llm.response_format; auto finds what works.",
    "round_compressor.rounds_to_compress": "set planner.compaction_threshold.",
    "round_compressor.rounds_to_retain": "set planner.compaction_retain_recent.",
    "round_compressor.llm_alias": "set planner.compaction_llm_alias.",
    "planner.compression_prompt_path": "set planner.compaction_prompt_path.",
    "code_generator.compression_prompt_path": "set code_generator.compaction_prompt_path.",
    "memory.redact_secrets": "a memory keeps texts as they are; secrets are masked on the way out.",
    "session_manager.store_type": "sessions are kept on disk, see 'Sessions' in the documentation.",
    "workspace.mode": "the workspace is a folder.",
    "role.code_interpreter_base_path": "put roles of your own into role.base_path.",
    "code_generator.enable_auto_plugin_selection": _SELECTION,
    "code_generator.auto_plugin_selection_topk": _SELECTION,
    "code_interpreter*.use_local_uri": "artifacts are always named by their path.",
    "experience.default_exp_prompt_path": "experiences are summed up with the packaged prompt.",
    "execution_service.server.*": _KERNELS,
    "execution_service.kernel_mode": _SANDBOX,
    "execution_service.custom_image": _SANDBOX,
    "logging.log_format_prompt": "/prompts shows prompts and replies; llm.log_prompts keeps them.",
    "logging.injector": "set logging.level to DEBUG to see more.",
    "logging.remote": "the log is a file; collect it from there.",
    "logging.appinsights_connection_string": "the log is a file; collect it from there.",
    "tracing.tokenizer_target_model": "tokens are counted from what the model reports.",
    "web_search.bing_api_key": _BING,
    "web_explorer.config_file_path": "the role uses the session's model and prompt files.",
    "web_explorer.gpt4v_*": "the role uses the session's model.",
    "web_explorer.chrome_*": "set web_explorer.browser_path.",
}
"""Keys that are not read, ``*`` for any text, with what to do instead."""

_WORDS = "the package has vectors of its own; for a model set llm.embedding_api_type openai."
_EMBEDDERS = (
    "sentence_transformers azure azure_ad azure_ml ollama google_genai qwen zhipuai groq".split()
)

VALUES: dict[tuple[str, Any], tuple[Any, str]] = {
    ("llm.response_format", None): ("text", ""),
    ("llm.response_format", "json"): ("json_object", ""),
    **{("llm.embedding_api_type", name): ("none", _WORDS) for name in _EMBEDDERS},
}
"""Values that mean another one here, with what to know about it; empty when they mean the same."""

REFUSED: dict[tuple[str, Any], str] = {
    ("web_search.api_provider", "bing"): _BING,
    ("llm.api_type", "azure_ml"): REMOVED["llm.azure_ml.*"],
    **{
        ("llm.mock.mode", mode): _RECORDED
        for mode in ("record_only", "playback_only", "playback_or_record")
    },
}
"""Values nothing can stand in for, with what to do instead."""


def removed(name: str) -> str | None:
    """Return the alternative to setting a removed key, or None."""
    hint = REMOVED.get(name)
    if hint is None:
        hint = next((text for key, text in REMOVED.items() if fnmatchcase(name, key)), None)
    return f"{name} has no effect: {hint}" if hint else None


def refusal(name: str, value: object) -> str | None:
    """Return the alternative to a value without an equivalent, or None."""
    return REFUSED.get((name, value)) if isinstance(value, str) else None


def replaced(name: str, value: object) -> Any:
    """Return the equivalent of a value here. Most values stay unchanged.

    Raises:
        ValueError: If nothing can stand in for it; the text has the remedy.
    """
    if value is not None and not isinstance(value, str):
        return value
    section, _, rest = name.rpartition(".")
    if section.startswith("llm.") and rest in PROVIDER_KEYS:
        name = f"llm.{rest}"
    refused = refusal(name, value)
    if refused is not None:
        raise ValueError(refused)
    return VALUES.get((name, value), (value, ""))[0]


def provider_key(name: str) -> str | None:
    """Return the key that an alias or a provider's key stands for, such as ``llm.model``."""
    if name in ALIASES:
        return ALIASES[name]
    section, _, rest = name.rpartition(".")
    provider = section.removeprefix("llm.")
    known = AZURE_AD_KEYS | PROVIDER_KEYS if provider == "azure_ad" else PROVIDER_KEYS
    is_one = section.startswith("llm.") and provider in PROVIDERS and rest in known
    return f"llm.{rest}" if is_one else None
