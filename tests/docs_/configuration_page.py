"""``docs/configuration.md``, from the table of keys; ``make docs`` writes it."""

from __future__ import annotations

import sys
from itertools import groupby

from taskweaver.config.config_mgt import env_name
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import KEYS, expand

_HEAD = """\
# Configuration

A project is configured by `taskweaver_config.json` in its folder: one JSON object of dotted keys.

```json
{"llm.api_base": "http://localhost:8080/v1", "planner.max_retry_count": 2}
```

Where several places set a key, the first of these counts: values set by the program
(`TaskWeaverApp(config=...)`), the environment, the project's file, your own for all projects
(`~/.config/taskweaver/config.json`, of the same form), the default. A key's environment variable
is its name in capitals with `_` for `.`, e.g. `LLM_API_KEY` for `llm.api_key`; lists are written
with commas there, and `null` unsets a key.

In a path `${AppBaseDir}` is the project folder, `${ModuleBaseDir}` the installed package and `~`
the home directory; relative paths start at the project folder. `{role}` stands for the name of any
role.

In a folder without a configuration file the defaults of `workspace.workspace_path`,
`execution_service.env_dir` and `logging.log_folder` lead to the user's state folder; see
[sessions.md](sessions.md#where-sessions-are).

A key of the endpoint can be set for one provider: `llm.azure.model` goes before an `llm.model` that
is set in the same place, while `llm.api_type` is `azure`. So one file can hold several, and
`llm.api_type` chooses. Those are `api_base`, `api_key`, `api_version`, `model`, `embedding_model`,
`response_format`, `temperature`, `top_p`, `max_tokens`, `stop_token`,
`reasoning_effort`, `dialect` and `seed`.

At start, keys that do not exist are reported with the known key most like them, and a value of the
wrong type is an error. So is a number below 0, or below the least value the table names.

This page is written by `python tests/docs_/configuration_page.py` from
`taskweaver/config/keys/known_keys.py`.
"""

_TITLES = {
    "llm": "The model",
    "ext_llms": "Further models",
    "session": "Sessions",
    "answers": "The check of answers",
    "limits": "What a session may consume",
    "{role}": "Every role",
    "planner": "The Planner",
    "code_interpreter": "The CodeInterpreter",
    "code_generator": "The CodeInterpreter's code model",
    "code_interpreter_plugin_only": "The PluginOrchestrator",
    "code_interpreter_cli_only": "The CLIAgent",
    "echo": "The Echo",
    "recepta": "Recepta",
    "document_retriever": "The DocumentRetriever",
    "web_search": "The WebSearch",
    "mcp": "Tools of MCP servers",
    "experience": "Experiences",
    "search": "Tree search",
    "memory": "Branched memory",
    "plugin": "Plugins",
    "role": "Further roles",
    "workspace": "Workspace",
    "execution_service": "Kernels",
    "execution": "Cells",
    "server": "The server",
    "web_explorer": "The WebExplorer",
    "logging": "Logs",
    "tracing": "Traces",
}


def _section(key: Key) -> str:
    return key.name.partition(".")[0]


def _default(key: Key) -> str:
    match key.default:
        case None:
            return "not set"
        case bool():
            return f"`{str(key.default).lower()}`"
        case list():
            return f"`{', '.join(key.default)}`"
        case "":
            return "empty"
        case _:
            return f"`{key.default}`"


def _row(key: Key) -> str:
    choices = (
        f" One of {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    )
    kind = "text" if key.type == "str" else key.type
    least = f" At least {key.minimum:g}." if key.minimum and key.type in {"int", "float"} else ""
    return f"| `{key.name}` | {kind} | {_default(key)} | {key.doc}{choices}{least} |"


def render() -> str:
    """Return the page as Markdown."""
    order = list(_TITLES)
    keys = sorted(
        (key for row in KEYS for key in expand(row)), key=lambda key: order.index(_section(key))
    )
    parts = [_HEAD]
    for section, rows in groupby(keys, _section):
        lines = [
            f"## {_TITLES[section]}",
            "",
            "| key | type | default | meaning |",
            "| --- | --- | --- | --- |",
        ]
        parts.append("\n".join([*lines, *map(_row, rows)]) + "\n")
    example = env_name("session.max_internal_chat_round_num")
    parts.append(f"A value for one run: `{example}=30 python -m taskweaver`.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render())
