"""Every configuration key: its type, default and meaning, in one table.

`ModuleConfig` takes its defaults from here, start-up checks a configuration against it, and
``docs/configuration.md`` is printed from it. ``{role}`` stands for the name of any role.
"""

from __future__ import annotations

from dataclasses import replace

from taskweaver.config.keys.execution import EXECUTION_KEYS
from taskweaver.config.keys.key import Key, KeyType, enum
from taskweaver.config.keys.memory import MEMORY_KEYS
from taskweaver.config.keys.models import AZURE_AD_KEYS, MOCK_KEYS
from taskweaver.config.keys.roles import EXPLORER_KEYS, MCP_KEYS, ROLE_KEYS
from taskweaver.config.keys.search import SEARCH_KEYS
from taskweaver.config.keys.session import SESSION_KEYS
from taskweaver.config.keys.tracing import TRACING_KEYS

__all__ = ["BY_NAME", "KEYS", "Key", "KeyType", "expand", "find"]

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
        "auto openai azure azure_ad offline function recorded ollama lmstudio llamacpp vllm groq"
        " qwen qwen-intl zhipuai google_genai anthropic deepseek mistral openrouter",
        "Who answers. `auto` takes a configured key, else a local server that answers, else the"
        " built-in offline model. The names after `recorded` are presets of OpenAI-compatible"
        " endpoints.",
    ),
    Key("llm.api_base", "str", None, "Address of an OpenAI-compatible endpoint, up to `/v1`."),
    Key("llm.api_key", "str", None, "Key for the endpoint. Better set as `LLM_API_KEY`."),
    Key("llm.model", "str", None, "Model name; none takes the preset's, or the server's only one."),
    Key("llm.api_version", "str", "2024-10-21", "API version of an Azure endpoint."),
    enum(
        "llm.response_format",
        "auto",
        "auto json_schema json_object text",
        "How structured replies are asked for. `auto` starts with a JSON schema and steps down"
        " when the endpoint rejects it, remembering what worked.",
    ),
    enum(
        "llm.form",
        "auto",
        "auto tools json fences",
        "Form of the leader's replies: native tool calls, a JSON object, or text with fenced code."
        " `auto` starts with the best that the model is known to keep and steps down when the"
        " endpoint refuses it; a name fixes it.",
    ),
    Key("llm.temperature", "float", None, "Sampling temperature; none leaves it to the endpoint."),
    Key("llm.top_p", "float", None, "Nucleus sampling; none leaves it to the endpoint."),
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
    Key(
        "llm.auto_detect", "bool", True, "Whether `auto` may ask loopback ports for a local server."
    ),
    Key(
        "llm.max_retries", "int", 4, "Further tries after a rate limit, timeout or lost connection."
    ),
    Key("llm.max_retry_time_s", "float", 120.0, "Longest time in seconds spent waiting to retry."),
    Key(
        "llm.connect_timeout_s",
        "float",
        5.0,
        "Longest wait in seconds for a connection.",
        minimum=0.1,
    ),
    Key(
        "llm.first_token_timeout_s",
        "float",
        120.0,
        "Longest wait in seconds for a reply to begin.",
        minimum=0.1,
    ),
    Key(
        "llm.gap_timeout_s",
        "float",
        60.0,
        "Longest pause in seconds inside a streamed reply.",
        minimum=0.1,
    ),
    Key("llm.call_timeout_s", "float", 600.0, "Longest time in seconds for one call.", minimum=0.1),
    Key(
        "llm.log_prompts",
        "bool",
        False,
        "Whether each model call is written to `prompts.jsonl` in the session's folder, unmasked.",
    ),
    Key("llm.prompt_price", "float", None, "Price of a million prompt tokens, in any currency."),
    Key("llm.completion_price", "float", None, "Price of a million completion tokens."),
    enum(
        "llm.recorded.mode",
        "play_or_record",
        "record play play_or_record",
        "What `recorded` does: ask and record, play back only, or play back and record misses.",
    ),
    Key(
        "llm.recorded.path", "path", "${AppBaseDir}/cache/recorded.yaml", "File of the recordings."
    ),
    Key("llm.recorded.api_type", "str", "auto", "Who is asked when `recorded` records."),
    *MOCK_KEYS,
    *AZURE_AD_KEYS,
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
    Key(
        "ext_llms.llm_configs",
        "dict",
        {},
        "Further models by alias, each a dictionary of `llm.*` keys that differ from the main one.",
    ),
    *SESSION_KEYS,
    Key(
        "workspace.workspace_path",
        "path",
        "${AppBaseDir}/workspace",
        "Where sessions keep their files.",
    ),
    Key("plugin.base_path", "path", "${AppBaseDir}/plugins", "Folder of the plugins."),
    Key("role.base_path", "path", "${AppBaseDir}/roles", "Folder of further roles."),
    # Roles
    Key("{role}.use_example", "bool", True, "Whether examples are shown to the role's model."),
    Key(
        "{role}.example_base_path",
        "path",
        "${AppBaseDir}/examples/{role}_examples",
        "Folder of its examples.",
    ),
    Key(
        "{role}.dynamic_example_sub_path",
        "bool",
        False,
        "Whether a shared `example_sub_path` entry names the folder inside that one; without an "
        "entry there are no examples then.",
    ),
    Key("{role}.llm_alias", "str", "", "Alias in `ext_llms.llm_configs` of the role's model."),
    Key("{role}.use_experience", "bool", False, "Whether experiences are shown to its model."),
    Key("{role}.experience_dir", "path", "${AppBaseDir}/experience", "Folder of its experiences."),
    Key(
        "{role}.dynamic_experience_sub_path",
        "bool",
        False,
        "Whether a shared `experience_sub_path` entry names the folder inside that one.",
    ),
    Key(
        "experience.retrieve_threshold",
        "float",
        0.2,
        "Least similarity, from 0 to 1, of an experience that is shown.",
    ),
    Key("experience.llm_alias", "str", "", "Alias of the model that sums conversations up."),
    Key("planner.prompt_file_path", "path", None, "Prompt file instead of the packaged one."),
    Key("planner.max_retry_count", "int", 3, "Times a malformed reply is sent back."),
    Key("code_interpreter.max_retry_count", "int", 3, "Times failed code is sent back."),
    Key("code_interpreter.code_prefix", "str", "", "Code run before each cell and not shown."),
    Key(
        "code_interpreter.code_verification_on",
        "bool",
        False,
        "Whether code is checked against the policy below before it runs. Advice, not a wall.",
    ),
    Key(
        "code_interpreter.allowed_modules",
        "list",
        None,
        "Modules that may be imported; none allows all but the blocked ones.",
    ),
    Key(
        "code_interpreter.blocked_modules",
        "list",
        ["ctypes", "subprocess", "socket", "pty", "runpy"],
        "Modules that may not be imported.",
    ),
    Key(
        "code_interpreter.allowed_functions",
        "list",
        None,
        "Functions that may be called; none allows all but the blocked ones.",
    ),
    Key(
        "code_interpreter.blocked_functions",
        "list",
        BLOCKED_FUNCTIONS,
        "Functions that may not be used: builtins, `module.function`, or `.method` of anything.",
    ),
    Key(
        "code_interpreter.require_confirmation",
        "bool",
        False,
        "Whether a person is asked before each cell runs; without a person to ask, none runs.",
    ),
    Key(
        "code_interpreter.confirmation_timeout_s",
        "float",
        600.0,
        "Longest wait in seconds for that answer; no answer is a no.",
        minimum=1.0,
    ),
    Key(
        "code_interpreter.enable_auto_plugin_selection",
        "bool",
        False,
        "Whether the code model is shown only the plugins that suit the request.",
    ),
    Key(
        "code_interpreter.auto_plugin_selection_topk",
        "int",
        3,
        "Plugins chosen for a request; those the session has used are shown besides.",
        minimum=1,
    ),
    Key(
        "code_generator.role_name", "str", "ProgramApe", "Name the model plays when it writes code."
    ),
    Key(
        "code_generator.prompt_file_path", "path", None, "Prompt file instead of the packaged one."
    ),
    Key("code_generator.load_plugin", "bool", True, "Whether plugins are loaded and shown."),
    Key(
        "code_generator.example_base_path",
        "path",
        "${AppBaseDir}/examples/code_generator_examples",
        "Folder of its examples.",
    ),
    Key(
        "code_generator.use_example", "bool", True, "Whether examples are shown to the code model."
    ),
    Key(
        "code_generator.llm_alias", "str", "", "Alias in `ext_llms.llm_configs` of the code model."
    ),
    Key(
        "{compacting}.prompt_compression",
        "bool",
        True,
        "Whether old rounds are summarised in the background.",
    ),
    Key(
        "{compacting}.compaction_threshold",
        "int",
        10,
        "Rounds not yet summarised that start a summary.",
        minimum=1,
    ),
    Key(
        "{compacting}.compaction_token_threshold",
        "int",
        24000,
        "Estimated tokens in them that start one earlier.",
        minimum=1,
    ),
    Key(
        "{compacting}.compaction_retain_recent",
        "int",
        3,
        "Newest rounds that are never summarised.",
    ),
    Key(
        "{compacting}.compaction_prompt_path",
        "path",
        None,
        "Prompt file for summaries instead of the packaged one.",
    ),
    Key(
        "{compacting}.compaction_llm_alias",
        "str",
        "",
        "Alias of the model that summarises; empty takes the role's.",
    ),
    *ROLE_KEYS,
    *MCP_KEYS,
    *MEMORY_KEYS,
    *EXECUTION_KEYS,
    *EXPLORER_KEYS,
    *SEARCH_KEYS,
    # Logs
    Key("logging.log_folder", "str", "logs", "Folder of the log, in the project."),
    Key("logging.log_file", "str", "task_weaver.log", "Name of the log file."),
    Key("logging.level", "str", "INFO", "Least level that is logged."),
    *TRACING_KEYS,
)

COMPACTING_ROLES = ("planner", "code_generator")


def expand(key: Key) -> tuple[Key, ...]:
    """Return the concrete keys a row stands for; a ``{role}`` row stays as it is."""
    if not key.name.startswith("{compacting}"):
        return (key,)
    return tuple(
        replace(key, name=key.name.replace("{compacting}", role)) for role in COMPACTING_ROLES
    )


BY_NAME: dict[str, Key] = {key.name: key for row in KEYS for key in expand(row)}


def find(name: str) -> Key | None:
    """Return the key called `name`, also when it is a ``{role}`` key of some role."""
    if name in BY_NAME:
        return BY_NAME[name]
    prefix, _, rest = name.rpartition(".")
    key = BY_NAME.get("{role}." + rest)
    if key is None or not prefix:
        return None
    default = key.default.replace("{role}", prefix) if isinstance(key.default, str) else key.default
    return replace(key, name=name, default=default)
