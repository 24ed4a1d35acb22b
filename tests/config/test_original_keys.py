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
    "api_base": "https://example.org/v1", "api_key": "k-1", "model": "m", "stop_token": ["<EOS>"],
    "temperature": 0, "max_tokens": 1024, "top_p": 0, "seed": 123456,
}  # fmt: skip
OPENAI: dict[str, Any] = SAMPLING | {"embedding_model": "e", "api_version": "2024-06-01"}
AD = {
    "aad_auth_mode": "device_login", "aad_tenant_id": "common", "aad_client_id": "c",
    "aad_api_resource": "https://cognitiveservices.azure.com/", "aad_api_scope": ".default",
    "aad_client_secret": "s",
}  # fmt: skip
CODERS = ("planner", "code_generator")
ROLES = (*CODERS, "code_interpreter", "echo", "web_search")


def under(*prefixes: str, **values: Any) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for prefix in prefixes for name, value in values.items()}


SAME: dict[str, Any] = {
    **under("llm", api_type="openai", api_base="https://example.org/v1", api_key="k-2", model="m"),
    **under("llm", embedding_model="e", response_format="json_object", use_mock=False),
    **under("llm.openai", "llm.azure", **OPENAI),
    **under("llm.azure_ad", **OPENAI, **AD),
    **under("llm.ollama", api_base="http://localhost:11434", model="llama2"),
    **under("llm.ollama", embedding_model="llama2", response_format="json"),
    **under("llm.google_genai", model="g", temperature=0.9, top_p=0, response_format="text"),
    **under("llm.qwen", "llm.groq", model="m"),
    **under("llm.zhipuai", **SAMPLING, embedding_model="embedding-2"),
    **under("llm.mock", mode="fixed", fixed_chat_responses="{}", fixed_embedding_responses="[]"),
    "ext_llms.llm_configs": {"small": {"llm.api_type": "ollama", "llm.ollama.model": "s"}},
    **under(*CODERS, "experience", llm_alias=""),
    **under(*CODERS, compaction_llm_alias="", compaction_prompt_path="p.yaml"),
    **under(*CODERS, compaction_threshold=10, compaction_retain_recent=3),
    **under(*CODERS, prompt_compression=False, prompt_file_path="p.yaml"),
    "session.roles": ["planner", "code_interpreter"],
    "session.max_internal_chat_round_num": 10,
    "session.experience_dir": "${AppBaseDir}/experience",
    "workspace.workspace_path": "${AppBaseDir}/workspace",
    **under("plugin", "role", base_path="${AppBaseDir}/parts"),
    **under(*ROLES, use_experience=False, experience_dir="${AppBaseDir}/experience"),
    **under(*ROLES, use_example=True, example_base_path="${AppBaseDir}/examples"),
    **under(*ROLES, dynamic_experience_sub_path=False, dynamic_example_sub_path=False),
    **under("code_interpreter_plugin_only", "code_interpreter_cli_only", max_retry_count=3),
    **under("code_generator", role_name="ProgramApe", load_plugin=True),
    **under("code_interpreter", max_retry_count=3, code_verification_on=False, code_prefix=""),
    **under("code_interpreter", allowed_modules=["pandas", "numpy"], require_confirmation=False),
    "code_interpreter.blocked_functions": ["eval", "__getattribute__"],
    "experience.retrieve_threshold": 0.2,
    "execution_service.env_dir": "${AppBaseDir}/env",
    **under("execution_service.server", url="http://localhost:8000", api_key="k-4"),
    **under("logging", log_folder="logs", log_file="task_weaver.log"),
    **under("tracing", enabled=False, endpoint="http://127.0.0.1:4318/v1/traces", exporter="otlp"),
    "tracing.service_name": "taskweaver.opentelemetry.tracer",
    **under("echo", "recepta", decorator=""),
    **under("document_retriever", index_folder="kb", size=5, target_length=256),
    **under("web_search", api_provider="duckduckgo", result_count=3, chunk_size=2000),
    **under("web_search", google_api_key="", google_search_engine_id="", chunk_overlap=500),
}
OPENAI_REMOVED = """frequency_penalty presence_penalty require_alternative_roles support_system_role
    support_constrained_generation json_schema_enforcer aad_skip_interactive aad_use_token_cache
    aad_token_cache_path""".split()
GONE = [
    *(f"llm.{name}.{key}" for name in ("openai", "azure", "azure_ad") for key in OPENAI_REMOVED),
    *(f"llm.{name}.{key}" for name in ("openai", "azure") for key in AD),
    *"""llm.azure_ml.api_base llm.azure_ml.api_key llm.azure_ml.chat_mode
    llm.google_genai.max_output_tokens llm.google_genai.top_k llm.mock.playback_delay
    llm.mock.cache_path llm.sentence_transformers.embedding_model
    api_key model max_tokens temperature top_p stop_token web_search.bing_api_key
    round_compressor.rounds_to_compress round_compressor.rounds_to_retain
    round_compressor.llm_alias session_manager.store_type workspace.mode
    role.code_interpreter_base_path planner.compression_prompt_path
    code_generator.compression_prompt_path code_generator.enable_auto_plugin_selection
    code_generator.auto_plugin_selection_topk use_local_uri code_interpreter.use_local_uri
    experience.default_exp_prompt_path execution_service.server.api_key
    execution_service.server.auto_start execution_service.server.container
    execution_service.server.container_image execution_service.server.timeout
    execution_service.server.startup_timeout execution_service.server.kill_existing
    execution_service.server.host execution_service.server.port execution_service.kernel_mode
    execution_service.custom_image logging.log_format_prompt logging.injector logging.remote
    logging.appinsights_connection_string tracing.tokenizer_target_model
    web_explorer.config_file_path web_explorer.gpt4v_key web_explorer.gpt4v_endpoint
    web_explorer.chrome_driver_path web_explorer.chrome_executable_path""".split(),
]


def test_a_key_that_means_the_same_is_taken_without_a_word() -> None:
    assert check(AppConfigSource(None, SAME)) == []


def test_a_key_that_has_no_effect_is_named_once_with_what_to_do() -> None:
    for name in GONE:
        value = AD.get(name.rpartition(".")[2], "x")
        (line,) = check(AppConfigSource(None, {name: value}))
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
    ("name", "value"), [("llm.api_type", "azure_ml"), ("llm.mock.mode", "playback_only")]
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
