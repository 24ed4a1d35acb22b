"""Every configuration key with type, default and meaning, in one table.

`ModuleConfig` takes its defaults from here, start-up checks a configuration against it, and
``docs/configuration.md`` is printed from it. ``{role}`` stands for the name of any role.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from taskweaver.config.keys.key import Key, enum, key, path
from taskweaver.config.keys.roles import (
    AS_INTERPRETER,
    EXPLORER_KEYS,
    INTERPRETERS,
    MCP_KEYS,
    ROLE_KEYS,
)
from taskweaver.config.keys.running import EXECUTION_KEYS, SERVER_KEYS, SESSION_KEYS, TRACING_KEYS
from taskweaver.config.keys.searches import MEMORY_KEYS, SEARCH_KEYS

BLOCKED_FUNCTIONS = (
    "eval exec execfile compile open input raw_input reload __import__ getattr setattr delattr vars"
    " globals locals breakpoint os.system os.popen os.fork os.kill os.execv os.execve os.spawnv"
    " os.posix_spawn os.remove os.unlink os.rmdir os.removedirs os.rename os.replace os.truncate"
    " shutil.rmtree shutil.move .unlink .rmdir .write_text .write_bytes importlib.import_module"
    " pickle.load pickle.loads .read_pickle typing.get_type_hints"
).split()

KEYS: tuple[Key, ...] = (
    # The model
    enum(
        "llm.api_type",
        "auto",
        "auto openai azure azure_ad offline function recorded ollama lmstudio llamacpp vllm jan"
        " groq qwen qwen-intl zhipuai google_genai anthropic deepseek mistral openrouter other",
        "Who answers. `auto` takes a configured key, else a local server that answers, else the"
        " built-in offline model. The names after `recorded` are presets of OpenAI-compatible"
        " endpoints; `anthropic` speaks Anthropic's own protocol, at an own address too. `other` is"
        " an address of your own, which gets no provider's key.",
    ),
    Key("llm.api_base", "str", None, "Address of an OpenAI-compatible endpoint, up to `/v1`."),
    Key("llm.api_key", "str", None, "Key for the endpoint. Better set as `LLM_API_KEY`."),
    Key("llm.model", "str", None, "Model name; none takes the preset's, or the server's only one."),
    key("llm.api_version", "2024-10-21", "API version of an Azure endpoint."),
    enum(
        "llm.dialect",
        "auto",
        "auto chat responses",
        "Protocol of an OpenAI-compatible endpoint: chat completions, or Responses. `auto` is chat"
        " completions, and Responses for models of OpenAI that reason beside tools nowhere else;"
        " Azure is asked in Responses only where this is set, and Ollama in its own protocol where"
        " it is not.",
    ),
    enum(
        "llm.form",
        "auto",
        "auto tools json fences",
        "Form of the replies: native tool calls, one JSON object, or text with fenced code. `auto`"
        " is tool calls where the endpoint takes them, else JSON; `fences` suits small models.",
    ),
    enum(
        "llm.images",
        "auto",
        "auto yes no",
        "Whether the model is shown the figures that cells draw. `auto` knows by the model's name;"
        " a model that refuses an image gets descriptions alone from then on.",
    ),
    enum(
        "llm.response_format",
        "auto",
        "auto json_schema json_object text",
        "How structured replies are asked for. `auto` starts with a JSON schema and steps down"
        " when the endpoint rejects it, remembering what worked.",
    ),
    Key("llm.temperature", "float", None, "Sampling temperature; none leaves it to the endpoint."),
    enum(
        "llm.reasoning_effort",
        "auto",
        "auto none minimal low medium high xhigh max",
        "Effort of a model that reasons. `auto` sends none and leaves it to the endpoint; one that"
        " the model refuses is replaced by the nearest that it takes, or left out.",
    ),
    Key("llm.top_p", "float", None, "Nucleus sampling; none leaves it to the endpoint."),
    Key(
        "llm.context_window",
        "int",
        None,
        "Tokens that the model takes, prompt and reply together. Longer prompts are shortened. None"
        " asks the server, or learns it from the refusal of a longer one. Ollama loads the model"
        " with it.",
        minimum=256,
    ),
    Key(
        "llm.max_tokens",
        "int",
        None,
        "Longest reply in tokens; none leaves it to the endpoint.",
        minimum=1,
    ),
    Key("llm.stop_token", "list", None, "Texts that end a reply; none sends no stop texts."),
    Key(
        "llm.seed",
        "int",
        None,
        "Seed for repeatable replies, where the endpoint knows one.",
        minimum=None,
    ),
    key("llm.auto_detect", True, "Whether `auto` may ask loopback ports for a local server."),
    key("llm.max_retries", 4, "Further tries after a rate limit, timeout or lost connection."),
    key("llm.max_retry_time_s", 120.0, "Longest time in seconds spent waiting to retry."),
    key("llm.connect_timeout_s", 5.0, "Longest wait in seconds for a connection.", minimum=0.1),
    key(
        "llm.first_token_timeout_s",
        120.0,
        "Longest wait in seconds for a reply to begin, or for a sign that the model reasons. Three"
        " times as long at `llm.reasoning_effort` `high` and above.",
        minimum=0.1,
    ),
    key(
        "llm.gap_timeout_s", 60.0, "Longest pause in seconds inside a streamed reply.", minimum=0.1
    ),
    key("llm.call_timeout_s", 600.0, "Longest time in seconds for one call.", minimum=0.1),
    key(
        "llm.log_prompts",
        False,
        "Whether each model call is written to `prompts.jsonl` in the session's folder, unmasked.",
    ),
    Key("llm.prompt_price", "float", None, "Price of a million prompt tokens, in any currency."),
    Key(
        "llm.cached_prompt_price",
        "float",
        None,
        "Price of a million prompt tokens that the provider read from its cache; not set for"
        " `llm.prompt_price`.",
    ),
    Key("llm.completion_price", "float", None, "Price of a million completion tokens."),
    enum(
        "llm.recorded.mode",
        "play_or_record",
        "record play play_or_record",
        "What `recorded` does: ask and record, play back only, or play back and record misses.",
    ),
    path("llm.recorded.path", "${AppBaseDir}/cache/recorded.yaml", "File of the recordings."),
    key("llm.recorded.api_type", "auto", "Who is asked when `recorded` records."),
    key(
        "llm.use_mock",
        False,
        "Whether a mock answers in place of every model; no endpoint is asked then.",
    ),
    enum(
        "llm.mock.mode",
        "fixed",
        "fixed",
        "What the mock answers: the fixed reply; `recorded` plays replies back.",
    ),
    key(
        "llm.mock.fixed_chat_responses",
        '{"role": "assistant", "content": "Hello!"}',
        "The fixed reply, a chat message as JSON.",
    ),
    Key(
        "llm.mock.fixed_embedding_responses",
        "str",
        None,
        "The fixed vector as JSON; none takes 64 zeros.",
    ),
    enum(
        "llm.aad_auth_mode",
        "default_azure_credential",
        "default_azure_credential device_login aad_app",
        "How `azure_ad` signs in: as the machine or user is signed in already, by a code entered in"
        " a browser, or as an application.",
    ),
    key("llm.aad_tenant_id", "common", "Directory `azure_ad` signs in to."),
    Key("llm.aad_client_id", "str", None, "Application `azure_ad` signs in as."),
    Key("llm.aad_client_secret", "str", None, "Secret of that application."),
    key(
        "llm.aad_api_resource",
        "https://cognitiveservices.azure.com/",
        "Service that tokens of `azure_ad` are for.",
    ),
    key("llm.aad_api_scope", ".default", "Scope of tokens of `azure_ad`."),
    enum(
        "llm.embedding_api_type",
        "none",
        "none openai",
        "Who embeds texts; `openai` is any compatible endpoint.",
    ),
    Key("llm.embedding_model", "str", None, "Name of the embedding model."),
    Key(
        "llm.embedding_api_base", "str", None, "Address for embeddings; none takes `llm.api_base`."
    ),
    key(
        "ext_llms.llm_configs",
        {},
        "Further models by alias, each a dictionary of `llm.*` keys that differ from the main one.",
    ),
    *SESSION_KEYS,
    path("workspace.workspace_path", "${AppBaseDir}/workspace", "Where sessions keep their files."),
    path("plugin.base_path", "${AppBaseDir}/plugins", "Folder of the plugins."),
    path("role.base_path", "${AppBaseDir}/roles", "Folder of further roles."),
    # Roles
    key("{role}.use_example", True, "Whether examples are shown to the role's model."),
    path(
        "{role}.example_base_path",
        "${AppBaseDir}/examples/{role}_examples",
        "Folder of its examples.",
    ),
    key(
        "{role}.dynamic_example_sub_path",
        False,
        "Whether a shared `example_sub_path` entry names the folder inside that one; without an "
        "entry there are no examples then.",
    ),
    key("{role}.llm_alias", "", "Alias in `ext_llms.llm_configs` of the role's model."),
    key("{role}.use_experience", False, "Whether experiences are shown to its model."),
    path("{role}.experience_dir", "${AppBaseDir}/experience", "Folder of its experiences."),
    key(
        "{role}.dynamic_experience_sub_path",
        False,
        "Whether a shared `experience_sub_path` entry names the folder inside that one.",
    ),
    key(
        "experience.retrieve_threshold",
        0.2,
        "Least similarity, from 0 to 1, of an experience that is shown.",
    ),
    key("experience.llm_alias", "", "Alias of the model that sums conversations up."),
    path("planner.prompt_file_path", None, "Prompt file instead of the packaged one."),
    key("planner.max_retry_count", 3, "Times a malformed reply is sent back."),
    key(
        "code_interpreter.max_retry_count",
        3,
        "Times failed code is sent back. This, `require_confirmation` and `confirmation_timeout_s`"
        " hold for `code_interpreter_plugin_only` and `code_interpreter_cli_only` too, unless they"
        " are set under these names.",
    ),
    key("code_interpreter.code_prefix", "", "Code run before each cell and not shown."),
    key(
        "code_interpreter.code_verification_on",
        False,
        "Whether code is checked against the policy below before it runs. Advice, not a wall.",
    ),
    Key(
        "code_interpreter.allowed_modules",
        "list",
        None,
        "Modules that may be imported; none allows all but the blocked ones.",
    ),
    key(
        "code_interpreter.blocked_modules",
        ["ctypes", "subprocess", "socket", "pty", "runpy"],
        "Modules that may not be imported.",
    ),
    Key(
        "code_interpreter.allowed_functions",
        "list",
        None,
        "Functions that may be called; none allows all but the blocked ones.",
    ),
    key(
        "code_interpreter.blocked_functions",
        BLOCKED_FUNCTIONS,
        "Functions that may not be used: builtins, `module.function`, or `.method` of anything.",
    ),
    key(
        "code_interpreter.require_confirmation",
        False,
        "Whether a person is asked before each cell runs; without a person to ask, none runs.",
    ),
    key(
        "code_interpreter.confirmation_timeout_s",
        600.0,
        "Longest wait in seconds for that answer; no answer is a no.",
        minimum=1.0,
    ),
    key(
        "code_interpreter.enable_auto_plugin_selection",
        False,
        "Whether the code model is shown only the plugins that suit the request.",
    ),
    key(
        "code_interpreter.auto_plugin_selection_topk",
        3,
        "Plugins chosen for a request; those the session has used are shown besides.",
        minimum=1,
    ),
    key("code_generator.role_name", "ProgramApe", "Name the model plays when it writes code."),
    path("code_generator.prompt_file_path", None, "Prompt file instead of the packaged one."),
    key("code_generator.load_plugin", True, "Whether plugins are loaded and shown."),
    path(
        "code_generator.example_base_path",
        "${AppBaseDir}/examples/code_generator_examples",
        "Folder of its examples.",
    ),
    key("code_generator.use_example", True, "Whether examples are shown to the code model."),
    key("code_generator.llm_alias", "", "Alias in `ext_llms.llm_configs` of the code model."),
    key(
        "{compacting}.prompt_compression",
        True,
        "Whether old rounds are summarised in the background.",
    ),
    key(
        "{compacting}.compaction_threshold",
        10,
        "Rounds not yet summarised that start a summary.",
        minimum=1,
    ),
    key(
        "{compacting}.compaction_token_threshold",
        24000,
        "Estimated tokens in them that start one earlier.",
        minimum=1,
    ),
    key("{compacting}.compaction_retain_recent", 3, "Newest rounds that are never summarised."),
    path(
        "{compacting}.compaction_prompt_path",
        None,
        "Prompt file for summaries instead of the packaged one.",
    ),
    key(
        "{compacting}.compaction_llm_alias",
        "",
        "Alias of the model that summarises; empty takes the role's.",
    ),
    *ROLE_KEYS,
    *MCP_KEYS,
    *MEMORY_KEYS,
    *EXECUTION_KEYS,
    *SERVER_KEYS,
    *EXPLORER_KEYS,
    *SEARCH_KEYS,
    # Logs
    key("logging.log_folder", "logs", "Folder of the log, in the project."),
    key("logging.log_file", "task_weaver.log", "Name of the log file."),
    key("logging.level", "INFO", "Least level that is logged."),
    *TRACING_KEYS,
)

COMPACTING_ROLES = ("planner", "code_generator")


def expand(key: Key) -> tuple[Key, ...]:
    """Return the concrete keys of a row. A ``{role}`` row is returned unchanged."""
    if not key.name.startswith("{compacting}"):
        return (key,)
    return tuple(
        replace(key, name=key.name.replace("{compacting}", role)) for role in COMPACTING_ROLES
    )


BY_NAME: dict[str, Key] = {key.name: key for row in KEYS for key in expand(row)}


@lru_cache(maxsize=1024)
def find(name: str) -> Key | None:
    """Return the key called `name`, also for a ``{role}`` key of some role."""
    if name in BY_NAME:
        return BY_NAME[name]
    prefix, _, rest = name.rpartition(".")
    is_interpreters = prefix in INTERPRETERS and rest in AS_INTERPRETER
    key = BY_NAME.get(f"code_interpreter.{rest}" if is_interpreters else "{role}." + rest)
    if key is None or not prefix:
        return None
    default = key.default.replace("{role}", prefix) if isinstance(key.default, str) else key.default
    return replace(key, name=name, default=default)
