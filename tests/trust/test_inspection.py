"""Inspection of project folders: which keys, folders and links need consent, and the reset."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.trust.answers import Answer, answer_for, forget, remember
from taskweaver.trust.errors import ForeignProject, ProjectNotTrusted
from taskweaver.trust.keys import RISKS, risk_of
from taskweaver.trust.opening import Inspection, inspect_folder, read_project
from taskweaver.utils.app_utils import CONFIG_FILE

SHIPPED = Path(__file__).parents[2] / "project"
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def project(folder: Path, **keys: Any) -> Path:
    folder.mkdir(exist_ok=True)
    values = {name.replace("__", "."): value for name, value in keys.items()}
    (folder / CONFIG_FILE).write_text(json.dumps(values))
    return folder


def inspect(folder: Path, *, is_confined: bool = True) -> Inspection:
    return inspect_folder(folder, lambda _: is_confined)


def read(folder: Path, granted: Any = ()) -> AppConfigSource:
    return read_project(folder, {}, granted, lambda _: True).src


def only(folder: Path, **choices: Any) -> str:
    """Return the single effect of a folder, as it is shown."""
    (line,) = inspect(folder, **choices).lines
    return line


def test_every_key_is_classified_once() -> None:
    assert set(RISKS) == set(BY_NAME)


def test_a_key_without_a_class_needs_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(RISKS, "search.steps")
    assert only(project(tmp_path / "p", search__steps=3)) == "search.steps: 3"


OPENAI = "https://api.openai.com/v1"
HARMLESS = {
    "llm.model": "x", "llm.api_type": "ollama", "llm.api_base": "https://api.openai.com/v1/",
    "llm.openai.api_base": OPENAI, "llm.aad_tenant_id": "common", "planner.max_retry_count": 9,
    "execution.sandbox": "bwrap", "execution.process_limit": 100,
    "execution.memory_limit_mb": 512, "session.data_dir": "tables",
    "session.roles": ["planner", "code_interpreter", "echo"],
    "web_search.api_provider": "duckduckgo", "code_interpreter.require_confirmation": True,
    "no.such_key": "http://example.org",
}  # fmt: skip
NEEDING = {
    "llm.api_base": "http://127.0.0.1:1/v1", "llm.azure.api_base": "https://x.example",
    "llm.embedding_api_base": "https://x.example", "llm.api_type": "mistral",
    "llm.api_key": "sk-of-another", "llm.aad_api_resource": "https://x.example",
    "ext_llms.llm_configs": {"other": {"llm.api_base": "https://x.example"}},
    "execution_service.server.url": "https://x.example", "tracing.endpoint": "http://x.example",
    "tracing.enabled": True, "web_search.searxng_url": "https://x.example",
    "search.scheduler": "tcp://x.example:8786",
    "mcp.servers": {"a": {"command": "sh", "args": ["-c", "true"]}},
    "web_explorer.browser_path": "evil", "session.roles": ["planner", "web_search"],
    "code_interpreter.code_prefix": "import os", "execution.sandbox": "none",
    "execution.network": "yes", "execution.allowed_hosts": "example.org",
    "execution.read_only_paths": ["/home"], "execution.writable_paths": ["/home"],
    "execution.process_limit": 0, "execution.memory_limit_mb": 0,
    "execution.folder_limit_mb": 10**9, "execution.cell_timeout_s": 86400,
    "session.data_dir": "/etc", "workspace.workspace_path": "../elsewhere",
    "planner.prompt_file_path": "/etc/passwd", "echo.example_base_path": "/etc",
    "logging.log_folder": "../logs", "logging.log_file": "../../x.log",
    "search.resources": "resources.yaml", "plugin.base_path": "/usr/lib",
    "llm.recorded.path": "${ModuleBaseDir}/errors.py",
    "memory.final_memory_filename_md": "below/x.md", "code_interpreter.blocked_functions": [],
}  # fmt: skip


@pytest.mark.parametrize("key", HARMLESS)
def test_a_value_that_loosens_nothing_needs_no_consent(tmp_path: Path, key: str) -> None:
    assert inspect(project(tmp_path / "p", **{key: HARMLESS[key]})).lines == []


@pytest.mark.parametrize("key", NEEDING)
def test_a_value_that_loosens_needs_consent_and_has_no_effect_without(
    tmp_path: Path, key: str
) -> None:
    folder = project(tmp_path / "p", **{key: NEEDING[key]})
    found = inspect(folder)
    assert any(line.startswith(key) for line in found.lines)
    setting = read(folder).lookup(key)
    assert setting is None or setting.source == "override" or setting.value == {}
    assert read(folder, found.digests).lookup(key).value == NEEDING[key]  # type: ignore[union-attr]


def test_a_value_that_the_environment_overrides_needs_no_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_BASE", "https://mine.example/v1")
    keys = {"llm.api_base": "https://x.example", "llm.azure.api_base": "https://y.example"}
    assert only(project(tmp_path / "p", **keys)).startswith("llm.azure")  # for a further model
    monkeypatch.delenv("LLM_API_BASE")
    assert len(inspect(project(tmp_path / "p", **keys)).lines) == 2


@pytest.mark.parametrize(
    ("keys", "environment"),
    [
        ({"llm.api_base": OPENAI}, {"LLM_API_TYPE": "ollama"}),
        ({"llm.api_base": OPENAI}, {"OPENAI_BASE_URL": "https://mine.example/v1"}),
        ({"ext_llms.llm_configs": {"x": {"llm.api_type": "openai"}}}, {}),
        ({"ext_llms.llm_configs": {"x": {"llm.api_base": OPENAI}}}, {}),
        ({"llm.api_base": "https://api.openai.com.x.example/v1"}, {}),
        ({"llm.embedding_api_type": "openai"}, {}),
    ],
)
def test_the_usual_endpoint_needs_consent_where_it_is_not_the_users(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    environment: dict[str, str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert only(project(tmp_path / "p", **keys))


def test_each_risk_that_is_not_harmless_is_in_the_examples() -> None:
    assert {risk_of(key) for key in NEEDING} | {"harmless"} == set(RISKS.values())


def test_the_shipped_project_and_a_new_one_need_no_consent(tmp_path: Path) -> None:
    from taskweaver.cli.projects import create_project

    create_project(tmp_path / "sales")
    for folder in (SHIPPED, tmp_path / "sales"):
        assert inspect(folder, is_confined=False).lines == []


def test_plugins_need_consent_where_no_sandbox_holds_them(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "own.py").write_text("x = 1\n")
    assert inspect(folder).lines == []
    assert "own" in only(folder, is_confined=False)


@pytest.mark.parametrize("place", [".", "workspace", "workspace/sessions/a/cwd", "logs"])
def test_plugins_are_not_where_conversations_and_keys_are(tmp_path: Path, place: str) -> None:
    folder = project(tmp_path / "p", plugin__base_path=place)
    assert "conversations or keys" in only(folder)
    assert read(folder).get_path("plugin.base_path") == str(folder / "plugins")
    assert inspect(project(folder, workspace__workspace_path=".", logs=".")).lines == []


def test_a_file_of_a_further_model_stays_in_the_folder_or_goes_with_all_aliases(
    tmp_path: Path,
) -> None:
    key = "llm.recorded.path"
    models = {"x": {"llm.api_type": "recorded", key: "../x.yaml"}, "y": {key: "cache/y.yaml"}}
    aliases = {"planner.llm_alias": "x", "code_generator.llm_alias": "y"}
    folder = project(tmp_path / "p", ext_llms__llm_configs=models, **aliases)
    assert key in only(folder)
    src = read(folder)
    assert src.get_dict("ext_llms.llm_configs") == {}
    assert [src.get_str(alias) for alias in aliases] == ["", ""]
    models = {"x": {"mcp.servers": {"a": {"command": "id"}}, "session.data_dir": "/etc"}}
    assert inspect(project(folder, ext_llms__llm_configs=models)).lines == []  # without effect


def test_a_run_of_a_search_has_no_links(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    (folder / "experiments" / "run" / "memory").mkdir(parents=True)
    (folder / "experiments" / "run" / "memory" / "memory.sqlite").symlink_to("/elsewhere")
    assert inspect(folder).lines == []  # the run's memory may be kept elsewhere
    (folder / "experiments" / "run" / "workspaces").symlink_to(tmp_path)
    assert only(folder) == f"link experiments/run/workspaces -> {tmp_path}"
    assert not Path(read(folder).get_path("search.folder")).is_relative_to(folder)


def role(folder: Path, text: str = "x = 1\n") -> None:
    (folder / "roles" / "own").mkdir(parents=True, exist_ok=True)
    (folder / "roles" / "own" / "own.py").write_text(text)
    (folder / "roles" / "own" / "own.role.yaml").write_text(
        "alias: Own\nmodule: own.own.Own\nintro: x\n"
    )


def test_only_a_change_of_listed_content_is_new(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", session__roles=["planner", "own"])
    role(folder)
    line, digests = only(folder), [inspect(folder).digests]
    project(folder, session__roles=["planner", "own"], planner__max_retry_count=7)
    (folder / "roles" / "own" / "__pycache__").mkdir()
    assert inspect(folder).digests == digests[0]
    role(folder, "x = 2\n")
    digests.append(inspect(folder).digests)
    (folder / "helper.py").write_text("y = 1\n")  # importable by roles
    digests.append(inspect(folder).digests)
    (folder / "library").mkdir()
    (folder / "library" / "__init__.py").write_text("y = 1\n")
    assert len({*digests, inspect(folder).digests}) == 4
    assert only(folder) == line
    assert read(folder).get_list("session.roles") == ["planner"]


def test_a_program_in_the_folder_is_a_part_of_its_content(tmp_path: Path) -> None:
    servers = {"a": {"command": "sh", "args": ["run.sh"]}}
    folder = project(tmp_path / "p", mcp__servers=servers)
    (folder / "run.sh").write_text("true\n")
    before = inspect(folder).digests
    (folder / "run.sh").write_text("false\n")
    assert inspect(folder).digests != before


@pytest.mark.parametrize("word", ["x" * 300, "a/" * 3000, "\0", "~x"])
def test_an_argument_need_not_be_a_name_of_a_file(tmp_path: Path, word: str) -> None:
    servers = {"a": {"command": "sh", "args": ["-c", word], "cwd": word}}
    assert only(project(tmp_path / "p", mcp__servers=servers)).startswith("mcp.servers.a: {")
    inspect(project(tmp_path / "p", search__folder=word))


def test_links_that_leave_the_folder_are_listed_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    folder = project(tmp_path / "p")
    (folder / "data").mkdir()
    (folder / "data" / "own.csv").write_text("a\n1\n")
    (folder / "data" / "again.csv").symlink_to("own.csv")
    assert inspect(folder).lines == []
    (folder / "data" / "leak.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "logs").mkdir()
    (folder / "logs" / "task_weaver.log").symlink_to(tmp_path / "secret.csv")
    found = inspect(folder)
    target = tmp_path / "secret.csv"
    assert found.lines == [
        f"link data/leak.csv -> {target}", f"link logs/task_weaver.log -> {target}",
    ]  # fmt: skip
    withheld = read(folder)
    assert withheld.link_root == folder
    assert not Path(withheld.get_path("logging.log_folder")).is_relative_to(tmp_path)
    assert read(folder, found.digests).link_root is None


def test_folders_that_are_links_are_replaced_by_empty_ones(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = project(tmp_path / "p")
    for name in ("data", "workspace", "examples", "experience"):
        (folder / name).symlink_to(elsewhere)
    src = read(folder)
    for key in (
        "session.data_dir", "workspace.workspace_path", "execution_service.env_dir",
        "planner.example_base_path", "session.experience_dir", "planner.experience_dir",
    ):  # fmt: skip
        assert not Path(src.get_path(key)).is_relative_to(elsewhere), key
    project(folder, session__data_dir="/etc")  # in place of a value that was withheld, too
    assert not Path(read(folder).get_path("session.data_dir")).exists()


@pytest.mark.parametrize("path", ["loop", "loop/x", "loop/../evil", "gone/../loop/../evil", "link"])
@pytest.mark.parametrize("key", ["workspace.workspace_path", "planner.prompt_file_path"])
def test_a_path_with_a_loop_of_links_is_refused(tmp_path: Path, key: str, path: str) -> None:
    """Without ``loop/..`` the path would be a link that was not inspected."""
    folder = project(tmp_path / "p", **{key: path})
    (folder / "loop").symlink_to("loop")
    (folder / "evil").symlink_to(tmp_path)
    (folder / "link").symlink_to("loop/../evil")
    with pytest.raises(ConfigError, match="loop of links"):
        read(folder).get_path(key)


def test_a_default_folder_that_is_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    (folder / "data").symlink_to("data")
    with pytest.raises(ConfigError, match=r"session\.data_dir.*loop of links"):
        read(folder).get_path("session.data_dir")


def test_code_behind_a_value_that_was_withheld_is_withheld_too(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = project(
        tmp_path / "p", role__base_path="../elsewhere", session__roles=["planner", "own"]
    )
    role(folder)
    src = read(folder)
    assert not (Path(src.get_path("role.base_path")) / "own").exists()
    assert src.get_list("session.roles") == ["planner"]


def test_with_an_address_goes_its_model(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", llm__api_base="https://x.example", llm__model="m")
    src = read(folder)
    assert src.lookup("llm.model") is None
    assert not src.trusts_addresses


# Answers


def test_answers_are_kept_outside_of_the_folder_for_the_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    folder = project(tmp_path / "p")
    assert remember(folder, Answer(frozenset({"a", "b"}), is_granted=True))
    assert answer_for(folder) == Answer(frozenset({"a", "b"}), is_granted=True)
    (file,) = (state / "taskweaver" / "trust").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [CONFIG_FILE]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", ".")  # the folder itself
    assert answer_for(folder) is None
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    moved = folder.rename(tmp_path / "q")
    assert answer_for(moved) is None
    file.write_text("[")
    assert answer_for(folder) is None
    assert forget(folder)
    assert not forget(folder)


def test_a_library_trusts_a_folder_it_names_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = project(tmp_path / "p", execution__network=True)

    def has_network(place: Path | None, trust: Any) -> bool:
        return read_project(place, {}, trust, lambda _: True).src.get_bool("execution.network")

    assert has_network(folder, None)
    assert not has_network(folder, trust=False)
    monkeypatch.chdir(folder)
    with pytest.raises(ProjectNotTrusted, match=r"network.*--trust"):
        has_network(None, None)
    assert has_network(None, trust=True)
    remember(folder, Answer(inspect(folder).digests, is_granted=True))
    assert has_network(None, None)
    remember(folder, Answer(inspect(folder).digests, is_granted=False))
    assert not has_network(None, None)


@as_root
def test_a_configuration_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    os.chown(folder / CONFIG_FILE, NOBODY, NOBODY)
    with pytest.raises(ForeignProject, match="belongs to another user"):
        read(folder)
    assert read(folder, inspect(folder).digests).names


@as_root
@pytest.mark.parametrize("name", ["workspace", "workspace/sessions", "logs", "plugins"])
def test_a_folder_of_another_user_in_one_that_many_can_write_is_not_used(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "taskweaver_config.json").write_text("{}")
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data").mkdir()
    for place in (name, "data"):
        os.chown(tmp_path / place, NOBODY, NOBODY)
    found = inspect(tmp_path)
    assert "another user" in only(tmp_path)
    (key,) = found.keys
    assert not Path(read(tmp_path).get_path(key)).is_relative_to(tmp_path)
    assert Path(read(tmp_path, found.digests).get_path(key)).is_relative_to(tmp_path)


@as_root
def test_a_folder_without_a_configuration_uses_no_workspace_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sessions").mkdir(parents=True)
    os.chown(tmp_path / "workspace" / "sessions", NOBODY, NOBODY)
    assert not inspect(tmp_path).lines
    assert not Path(read(tmp_path).get_path("workspace.workspace_path")).is_relative_to(tmp_path)
