"""Every key of the original: it means the same here, or start-up says what replaces it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs_.configuration_page import render

from taskweaver.config import AppConfigSource, ConfigError, check
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.config.replaced import REMOVED, VALUES

SAMPLING: dict[str, Any] = {
    "api_base": "https://example.org/v1",
    "api_key": "k-1",
    "model": "m",
    "stop_token": ["<EOS>"],
    "temperature": 0,
    "max_tokens": 1024,
    "top_p": 0,
    "seed": 123456,
}
OPENAI: dict[str, Any] = SAMPLING | {"embedding_model": "e", "api_version": "2024-06-01"}
OPENAI_REMOVED: dict[str, Any] = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "require_alternative_roles": False,
    "support_system_role": True,
    "support_constrained_generation": False,
    "json_schema_enforcer": "outlines",
}
AD = {
    "aad_auth_mode": "device_login",
    "aad_tenant_id": "common",
    "aad_api_resource": "https://cognitiveservices.azure.com/",
    "aad_api_scope": ".default",
    "aad_client_id": "c",
    "aad_client_secret": "s",
}
AD_REMOVED = {
    "aad_skip_interactive": True,
    "aad_use_token_cache": True,
    "aad_token_cache_path": "cache/token_cache.bin",
}
ROLES = ("planner", "code_generator", "code_interpreter", "echo", "web_search")


def under(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


SAME: dict[str, Any] = {
    "llm.api_type": "openai",
    "llm.api_base": "https://example.org/v1",
    "llm.api_key": "k-2",
    "llm.model": "m",
    "llm.embedding_model": "e",
    "llm.response_format": "json_object",
    **under("llm.openai", OPENAI),
    **under("llm.azure", OPENAI),
    **under("llm.azure_ad", OPENAI | AD),
    **under("llm.ollama", {"api_base": "http://localhost:11434", "model": "llama2"}),
    **under("llm.ollama", {"embedding_model": "llama2", "response_format": "json"}),
    **under("llm.google_genai", {"model": "g", "temperature": 0.9, "top_p": 0}),
    "llm.google_genai.response_format": "text",
    "llm.qwen.model": "qwen-max-1201",
    **under("llm.zhipuai", SAMPLING | {"embedding_model": "embedding-2"}),
    "llm.groq.model": "groq",
    "llm.use_mock": False,
    **under("llm.mock", {"mode": "playback_or_record", "fixed_chat_responses": "{}"}),
    **under("llm.mock", {"fixed_embedding_responses": "[]", "cache_path": "c.yaml"}),
    "ext_llms.llm_configs": {"small": {"llm.api_type": "ollama", "llm.ollama.model": "s"}},
    **{f"{name}.llm_alias": "" for name in ("planner", "code_generator", "experience")},
    **{f"{name}.compaction_llm_alias": "" for name in ("planner", "code_generator")},
    **{f"{name}.compaction_prompt_path": "p.yaml" for name in ("planner", "code_generator")},
    **{f"{name}.compaction_threshold": 10 for name in ("planner", "code_generator")},
    **{f"{name}.compaction_retain_recent": 3 for name in ("planner", "code_generator")},
    **{f"{name}.prompt_compression": False for name in ("planner", "code_generator")},
    **{f"{name}.prompt_file_path": "p.yaml" for name in ("planner", "code_generator")},
    "session.roles": ["planner", "code_interpreter"],
    "session.max_internal_chat_round_num": 10,
    "session.experience_dir": "${AppBaseDir}/experience",
    "workspace.workspace_path": "${AppBaseDir}/workspace",
    "plugin.base_path": "${AppBaseDir}/plugins",
    "role.base_path": "${AppBaseDir}/roles",
    **{f"{role}.use_experience": False for role in ROLES},
    **{f"{role}.experience_dir": "${AppBaseDir}/experience" for role in ROLES},
    **{f"{role}.dynamic_experience_sub_path": False for role in ROLES},
    **{f"{role}.use_example": True for role in ROLES},
    **{f"{role}.example_base_path": "${AppBaseDir}/examples" for role in ROLES},
    **{f"{role}.dynamic_example_sub_path": False for role in ROLES},
    "code_interpreter_plugin_only.max_retry_count": 3,
    "code_interpreter_cli_only.max_retry_count": 3,
    "code_generator.role_name": "ProgramApe",
    "code_generator.load_plugin": True,
    "code_interpreter.max_retry_count": 3,
    "code_interpreter.code_verification_on": False,
    "code_interpreter.allowed_modules": ["pandas", "numpy"],
    "code_interpreter.blocked_functions": ["eval", "__getattribute__"],
    "code_interpreter.code_prefix": "",
    "code_interpreter.require_confirmation": False,
    "experience.retrieve_threshold": 0.2,
    "execution_service.env_dir": "${AppBaseDir}/env",
    **under("execution_service.server", {"url": "http://localhost:8000", "api_key": "k-4"}),
    "logging.log_folder": "logs",
    "logging.log_file": "task_weaver.log",
    "tracing.enabled": False,
    **under("tracing", {"endpoint": "http://127.0.0.1:4318/v1/traces", "exporter": "otlp"}),
    "tracing.service_name": "taskweaver.opentelemetry.tracer",
    "echo.decorator": "",
    "recepta.decorator": "",
    **under("document_retriever", {"index_folder": "kb", "size": 5, "target_length": 256}),
    **under("web_search", {"api_provider": "duckduckgo", "result_count": 3}),
    **under("web_search", {"google_api_key": "", "google_search_engine_id": ""}),
    **under("web_search", {"bing_api_key": "", "chunk_size": 2000, "chunk_overlap": 500}),
}
GONE: dict[str, Any] = {
    **under("llm.openai", OPENAI_REMOVED | AD | AD_REMOVED),
    **under("llm.azure", OPENAI_REMOVED | AD | AD_REMOVED),
    **under("llm.azure_ad", OPENAI_REMOVED | AD_REMOVED),
    **under("llm.azure_ml", {"api_base": "a", "api_key": "k-3", "chat_mode": True}),
    **under("llm.google_genai", {"max_output_tokens": 2048, "top_k": 1}),
    "llm.sentence_transformers.embedding_model": "all-mpnet-base-v2",
    "llm.mock.playback_delay": -1,
    **dict.fromkeys(("api_key", "model", "max_tokens", "temperature", "top_p"), "x"),
    "stop_token": ["x"],
    **under("round_compressor", {"rounds_to_compress": 2, "rounds_to_retain": 3, "llm_alias": ""}),
    "session_manager.store_type": "in_memory",
    "workspace.mode": "local",
    "role.code_interpreter_base_path": "x",
    "planner.compression_prompt_path": "x",
    "code_generator.compression_prompt_path": "x",
    "code_generator.enable_auto_plugin_selection": False,
    "code_generator.auto_plugin_selection_topk": 3,
    "use_local_uri": True,
    "code_interpreter.use_local_uri": True,
    "experience.default_exp_prompt_path": "x",
    "execution_service.server.api_key": "k-4",
    **under("execution_service.server", {"auto_start": False, "container": False}),
    **under("execution_service.server", {"container_image": "i", "timeout": 300}),
    **under("execution_service.server", {"startup_timeout": 60, "kill_existing": True}),
    **under("execution_service.server", {"host": "localhost", "port": 8000}),
    "execution_service.kernel_mode": "local",
    "execution_service.custom_image": "i",
    **under("logging", {"log_format_prompt": False, "injector": False, "remote": False}),
    "logging.appinsights_connection_string": "",
    "tracing.tokenizer_target_model": "gpt-4",
    **under("web_explorer", {"config_file_path": "x", "gpt4v_key": "k-5", "gpt4v_endpoint": ""}),
    **under("web_explorer", {"chrome_driver_path": "", "chrome_executable_path": ""}),
}


def test_a_key_that_means_the_same_is_taken_without_a_word() -> None:
    assert check(AppConfigSource(None, SAME)) == []


@pytest.mark.parametrize("name", GONE)
def test_a_key_that_has_no_effect_is_named_once_with_what_to_do(name: str) -> None:
    (line,) = check(AppConfigSource(None, {name: GONE[name]}))
    assert line.startswith(f"{name} has no effect: ")
    assert line.endswith(".")
    assert "\n" not in line


def test_keys_that_were_removed_are_not_keys_of_ours() -> None:
    assert not [name for name in REMOVED if name in BY_NAME]
    page = render()
    advised = {word.rstrip(".,;") for hint in REMOVED.values() for word in hint.split()}
    keys = {word for word in advised if word.partition(".")[0] in {"llm", "planner", "execution"}}
    assert len(keys) > 5
    assert not [key for key in keys if f"`{key}`" not in page]


def test_an_environment_variable_of_such_a_key_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKSPACE_MODE", "local")
    monkeypatch.setenv("MODEL", "somebody else's")
    (line,) = check(AppConfigSource())
    assert line.startswith("workspace.mode has no effect")


@pytest.mark.parametrize("kind", [name for key, name in VALUES if key == "llm.embedding_api_type"])
def test_ways_to_embed_that_need_more_are_read_as_none_and_that_is_said(kind: str) -> None:
    src = AppConfigSource(None, {"llm.embedding_api_type": kind})
    assert src.get_enum("llm.embedding_api_type") == "none"
    (line,) = check(src)
    assert f"{kind} is read as none" in line


def test_no_format_of_replies_is_text(tmp_path: Path) -> None:
    file = tmp_path / "taskweaver_config.json"
    file.write_text('{"llm.response_format": null}')
    src = AppConfigSource(file)
    assert check(src) == []
    assert src.get_enum("llm.response_format") == "text"


@pytest.mark.parametrize(
    ("name", "value"), [("llm.api_type", "azure_ml"), ("llm.mock.mode", "record_only")]
)
def test_a_value_that_nothing_stands_in_for_is_named_and_an_error_where_it_is_read(
    name: str, value: str
) -> None:
    src = AppConfigSource(None, {name: value})
    (line,) = check(src)
    assert line.startswith(f"{name} cannot be {value}: ")
    assert line.endswith(".")
    with pytest.raises(ConfigError, match=f"cannot be '{value}' "):
        src.get_enum(name)


def test_what_is_set_for_the_chosen_provider_goes_first() -> None:
    secret = AppConfigSource(
        None, {"llm.api_type": "azure_ad", "llm.azure_ad.aad_client_secret": "s"}
    )
    assert secret.get_str("llm.aad_client_secret") == "s"
    keys = {"llm.model": "shared", "llm.azure.model": "a", "llm.openai.model": "o"}
    for chosen, model in {"azure": "a", "openai": "o", "auto": "o", "ollama": "shared"}.items():
        src = AppConfigSource(None, keys | {"llm.api_type": chosen})
        assert src.get_str("llm.model") == model
    assert AppConfigSource(None, keys).get_str("llm.model") == "o"


def test_a_place_that_goes_first_does_so_for_a_provider_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "taskweaver_config.json"
    file.write_text('{"llm.openai.model": "file", "llm.model": "shared"}')
    assert AppConfigSource(file).get_str("llm.model") == "file"
    monkeypatch.setenv("LLM_MODEL", "environment")
    assert AppConfigSource(file).get_str("llm.model") == "environment"
    monkeypatch.setenv("LLM_OPENAI_MODEL", "openai's")
    assert AppConfigSource(file).get_str("llm.model") == "openai's"
    assert AppConfigSource(file, {"llm.model": "program"}).get_str("llm.model") == "program"


def test_what_is_set_for_a_provider_is_checked_and_unknown_providers_are_told() -> None:
    with pytest.raises(ConfigError, match=r"llm\.azure\.seed"):
        check(AppConfigSource(None, {"llm.azure.seed": "many"}))
    (line,) = check(AppConfigSource(None, {"llm.azur.model": "m"}))
    assert "There is no configuration key llm.azur.model" in line
