"""Every text that a project sets for a model is in some request, in each form of replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from originals import make_original
from support import make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.utils.files import read_yaml, write_yaml

pytestmark = pytest.mark.usefixtures("no_states")

PACKAGE = Path(__file__).parents[2] / "taskweaver"
Config = dict[str, Any]
Setter = Callable[[Path, str], Config]


def packaged(key: str, file: str) -> Setter:
    """Return a setter of a prompt file: the packaged one, with the word."""

    def put(project: Path, word: str) -> Config:
        texts = read_yaml(PACKAGE / file)
        texts["instruction"] += f"\n{word}"
        write_yaml(project / f"{key}.yaml", texts)
        return {key: f"{key}.yaml"}

    return put


def original(key: str, name: str) -> Setter:
    """Return a setter of a prompt file of the original, with the word in one text."""

    def put(project: Path, word: str) -> Config:
        text = f"Reply in JSON. {word} {{worker_intro}}"
        texts = {"version": 0.3, "response_json_schema": "{}", name: text}
        write_yaml(project / f"{key}.yaml", texts)
        return {key: f"{key}.yaml"}

    return put


def example(section: str, sender: str, folder: str = "") -> Setter:
    """Return a setter of an example of a role; of one in its usual folder without another."""

    def put(project: Path, word: str) -> Config:
        post = {"message": word, "send_from": sender, "send_to": "CodeInterpreter"}
        back = {"message": "done", "send_from": "CodeInterpreter", "send_to": "Planner"}
        posts = [{**post, "attachment_list": None}, {**back, "attachment_list": []}]
        rounds = [{"user_query": "q", "state": "finished", "post_list": posts}]
        path = project / (folder or f"examples/{section}_examples") / "e.yaml"
        write_yaml(path, {"enabled": True, "rounds": rounds})
        return {f"{section}.example_base_path": folder} if folder else {}

    return put


def experience(section: str) -> Setter:
    """Return a setter of an experience of a role."""

    def put(project: Path, word: str) -> Config:
        facts = {"exp_id": "a", "experience_text": f"go {word}"}
        write_yaml(project / section / "handcrafted_exp_a.yaml", facts)
        return {f"{section}.use_experience": True, f"{section}.experience_dir": section}

    return put


def with_roles(put: Setter, role: str) -> Setter:
    """Return a setter for a session of the Planner and another role."""
    return lambda project, word: {**put(project, word), "session.roles": ["planner", role]}


def policy(_: Path, word: str) -> Config:
    section = "code_interpreter"
    return {f"{section}.code_verification_on": True, f"{section}.allowed_modules": [word]}


def plugin(project: Path, word: str) -> Config:
    facts = {"name": "area", "enabled": True, "description": word, "parameters": [], "returns": []}
    write_yaml(project / "tools" / "area.yaml", facts)
    source = "from taskweaver.plugin import Plugin, register_plugin\n\n\n@register_plugin\n"
    source += "class Area(Plugin):\n    def __call__(self):\n        return 1\n"
    (project / "tools" / "area.py").write_text(source)
    return {"plugin.base_path": "tools"}


def role(project: Path, word: str) -> Config:
    folder = project / "people" / "guide"
    facts = {"alias": "Guide", "module": "guide.guide.Guide", "intro": word}
    write_yaml(folder / "guide.role.yaml", facts)
    source = "from taskweaver.role import Role\n\n\nclass Guide(Role):\n    pass\n"
    (folder / "guide.py").write_text(source)
    return {"role.base_path": "people", "session.roles": ["planner", "code_interpreter", "guide"]}


TEXTS: dict[str, Setter] = {
    "planner.prompt_file_path": packaged("planner.prompt_file_path", "planner/planner_prompt.yaml"),
    "planner.prompt_file_path of the original": original(
        "planner.prompt_file_path", "instruction_template"
    ),
    "planner examples": example("planner", "Planner"),
    "planner.example_base_path": example("planner", "Planner", "mine"),
    "planner.use_experience": experience("planner"),
    "code_generator.prompt_file_path": packaged(
        "code_generator.prompt_file_path", "code_interpreter/code_generator_prompt.yaml"
    ),
    "code_generator.prompt_file_path of the original": original(
        "code_generator.prompt_file_path", "content"
    ),
    "its requirements": original("code_generator.prompt_file_path", "requirements"),
    "code_generator.role_name": lambda _, word: {"code_generator.role_name": word},
    "code_generator examples": example("code_generator", "Planner"),
    "code_generator.example_base_path": example("code_generator", "Planner", "mine"),
    "code_generator.use_experience": experience("code_generator"),
    "code_interpreter_plugin_only.prompt_file_path": with_roles(
        packaged(
            "code_interpreter_plugin_only.prompt_file_path",
            "code_interpreter/plugin_only_prompt.yaml",
        ),
        "code_interpreter_plugin_only",
    ),
    "code_interpreter_cli_only.prompt_file_path": with_roles(
        packaged(
            "code_interpreter_cli_only.prompt_file_path", "code_interpreter/cli_only_prompt.yaml"
        ),
        "code_interpreter_cli_only",
    ),
    "code_interpreter.allowed_modules": policy,
    "plugin.base_path": plugin,
    "role.base_path": role,
}
"""Setters of each text that a project can set, by its key."""


def reply(number: int, form: str, receiver: str) -> list[bytes]:
    """Return an order in words as the first reply, and words after it."""
    text = f"go {number}"
    if form == "tools" and not number:
        return called(("ask", {"role": receiver, "order": text}))
    fields = {"thought": "", "reply_type": "text", "reply_content": text, "message": text}
    fields["send_to"] = "User" if number else receiver
    in_fences = text if number else f"```ask {receiver}\n{text}\n```"
    return good(in_fences if form == "fences" else json.dumps({"response": fields}))


def requests(
    project: Path, config: Config, form: str, receiver: str, rounds: int = 1
) -> Iterator[str]:
    """Play rounds; yield the requests that an endpoint gets."""

    def answer(call: Call) -> None:
        is_json = form != "json" and "tools" not in call.body and "Reply in JSON" in str(call.body)
        call.stream(reply(call.number, "json" if is_json else form, receiver))

    with serving(answer) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0, "llm.form": form, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            for _ in range(rounds):
                session.send_message("go")
    yield from (json.dumps(call.body, ensure_ascii=False) for call in endpoint.calls)


@pytest.mark.parametrize("form", ["tools", "json", "fences"])
@pytest.mark.parametrize("leads", [True, False], ids=["cells", "orders"])
@pytest.mark.parametrize("key", TEXTS)
def test_a_text_for_a_model_is_in_a_request(
    tmp_path: Path, key: str, form: str, *, leads: bool
) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    config = TEXTS[key](project, "Zwetschge")
    config["session.leader_writes_code"] = leads
    only = [name for name in config.get("session.roles", []) if name.endswith("_only")]
    receiver = {
        "code_interpreter_plugin_only": "PluginOrchestrator",
        "code_interpreter_cli_only": "CLIAgent",
    }.get("".join(only), "CodeInterpreter")
    assert any("Zwetschge" in text for text in requests(project, config, form, receiver))


def test_examples_of_cells_stand_once_without_those_of_the_planner(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    config = {"planner.use_example": False, **example("code_generator", "Planner")(project, "Word")}
    *_, last = requests(project, config, "fences", "CodeInterpreter", rounds=3)
    assert last.count("Word") == 1


def test_a_project_of_the_original_has_all_its_texts_in_requests(tmp_path: Path) -> None:
    project = make_original(tmp_path / "project")
    setters: dict[str, Setter] = {
        "Leaderprompt": original("planner.prompt_file_path", "instruction_template"),
        "Leaderexample": example("planner", "Planner"),
        "Leaderlearnt": experience("planner"),
        "Codeprompt": original("code_generator.prompt_file_path", "content"),
        "Codename": lambda _, word: {"code_generator.role_name": word},
        "Codeexample": example("code_generator", "Planner"),
        "Codelearnt": experience("code_generator"),
        "Policy": policy,
    }
    config: Config = {"llm.openai.temperature": None, "session.leader_writes_code": True}
    for word, put in setters.items():
        config |= put(project, word)
    sent = "\n".join(requests(project, config, "auto", "CodeInterpreter"))
    assert [
        word for word in [*setters, "Shouter says it loud", "add_tax"] if word not in sent
    ] == []
