"""Where values come from, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskweaver.config import AppConfigSource, ConfigError
from taskweaver.config.check import check
from taskweaver.config.keys.known_keys import BY_NAME

DEFAULT = BY_NAME["session.stuck_after"].default


def write(folder: Path, **values: Any) -> Path:
    file = folder / "taskweaver_config.json"
    file.write_text(json.dumps({name.replace("__", "."): v for name, v in values.items()}))
    return file


def test_an_override_goes_before_the_application_the_environment_and_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, llm__model="from file")
    name = "llm.model"
    assert AppConfigSource(file, {name: None}).get_str(name) == "from file"
    monkeypatch.setenv("LLM_MODEL", "from environment")
    assert AppConfigSource(file).get_str(name) == "from environment"
    src = AppConfigSource(file, {name: "from application"})
    assert src.get_str(name) == "from application"
    src.set_config_value(name, "str", "override", source="override")
    assert src.get_str(name) == "override"


def test_none_in_the_environment_unsets_what_the_file_says_unless_it_is_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = AppConfigSource(write(tmp_path, llm__model="m", execution__sandbox="bwrap"))
    for word in ("null", "none", "NIL"):
        monkeypatch.setenv("LLM_MODEL", word)
        assert src.get_str("llm.model", None) is None
    monkeypatch.setenv("LLM_MODEL", "")
    assert src.get_str("llm.model") == "m"
    monkeypatch.setenv("EXECUTION_SANDBOX", "NONE")
    assert src.get_enum("execution.sandbox") == "none"
    assert not check(AppConfigSource())


def test_narrow_interpreters_have_the_keys_of_the_code_interpreter_unless_their_own_are_set() -> (
    None
):
    keys = {"code_interpreter.max_retry_count": 1, "code_interpreter_cli_only.max_retry_count": 2}
    src = AppConfigSource(None, keys)
    assert src.get_int("code_interpreter_plugin_only.max_retry_count") == 1
    assert src.get_int("code_interpreter_cli_only.max_retry_count") == 2
    assert check(src) == []


def test_null_in_the_file_is_none_and_never_a_text(tmp_path: Path) -> None:
    src = AppConfigSource(write(tmp_path, llm__model=None, session__stuck_after=None))
    assert src.get_str("llm.model", None) is None
    with pytest.raises(ConfigError, match=r"session.stuck_after: is set in .* to null"):
        src.get_int("session.stuck_after")


def test_defaults_come_from_the_table_unless_the_caller_gives_one() -> None:
    src = AppConfigSource()
    assert src.get_list("session.roles") == ["planner", "code_interpreter"]
    assert src.get_int("session.stuck_after") == DEFAULT
    assert src.get_int("session.stuck_after", 7) == 7
    assert src.get_str("my_role.flavour", "mild") == "mild"


def test_a_needed_key_that_nobody_set_is_an_error_with_a_remedy() -> None:
    with pytest.raises(
        ConfigError, match=r"llm.model: is needed and not set.* LLM_MODEL"
    ) as caught:
        AppConfigSource().get_str("llm.model")
    assert caught.value.key == "llm.model"


def test_values_are_read_from_text_and_from_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, value in (("true", True), ("Yes", True), ("0", False)):
        monkeypatch.setenv("TRACING_ENABLED", text)
        assert AppConfigSource().get_bool("tracing.enabled") is value
    monkeypatch.setenv("LLM_SEED", " 12 ")
    monkeypatch.setenv("LLM_TEMPERATURE", "0.5")
    monkeypatch.setenv("SESSION_ROLES", "planner, echo,")
    src = AppConfigSource(None, {"a": 3.0, "b": 3, "c": 7})
    assert (src.get_int("llm.seed"), src.get_float("llm.temperature")) == (12, 0.5)
    assert src.get_list("session.roles") == ["planner", "echo"]
    assert (src.get_int("a"), src.get_float("b"), src.get_str("c")) == (3, 3.0, "7")


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        ("get_bool", "maybe"), ("get_bool", 2),
        ("get_int", "3.5"), ("get_int", 3.5), ("get_int", True),
        ("get_float", "much"), ("get_float", "nan"), ("get_float", 10**400),
        ("get_str", True), ("get_str", ["a"]), ("get_list", ["a", 3]),
        ("get_dict", "{}"), ("get_dict", {1: 2}),
        ("get_path", 3), ("get_path", "a\0b"), ("get_path", "~nobody-by-this-name/x"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_an_error_that_names_the_key(getter: str, value: Any) -> None:
    src = AppConfigSource(None, {"some.key": value})
    with pytest.raises(ConfigError, match=r"some.key: \(set by the application\) must be"):
        getattr(src, getter)("some.key")


def test_a_choice_that_does_not_exist_is_told_the_nearest() -> None:
    src = AppConfigSource(None, {"llm.api_type": "olama"})
    with pytest.raises(ConfigError, match=r"did you mean 'ollama'\?"):
        src.get_enum("llm.api_type")
    assert AppConfigSource().get_enum("llm.api_type") == "auto"
    assert AppConfigSource().get_enum("my.mode", ["a", "b"], "b") == "b"


def test_paths_have_placeholders_and_start_at_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    places = {"a": "${AppBaseDir}/../plugins", "b": "~/c", "d": "x/y", "e": Path("z")}
    src = AppConfigSource(None, places, tmp_path / "project")
    assert src.get_path("a") == str(tmp_path / "plugins")
    assert src.get_path("b") == str(tmp_path / "home" / "c")
    assert src.get_path("d") == str(tmp_path / "project" / "x" / "y")
    assert src.get_path("e") == str(tmp_path / "project" / "z")
    assert src.get_path("plugin.base_path") == str(tmp_path / "project" / "plugins")
    inside = src.get_path("f", "${ModuleBaseDir}/config")
    assert Path(inside, "config_mgt.py").exists()


def test_a_clone_is_changed_alone() -> None:
    src = AppConfigSource(None, {"llm.model": "a"})
    copy = src.clone()
    copy.set_config_value("llm.model", "str", "b", source="override")
    assert (src.get_str("llm.model"), copy.get_str("llm.model")) == ("a", "b")


def test_setting_a_value_checks_it() -> None:
    src = AppConfigSource()
    with pytest.raises(ConfigError, match="must be a whole number"):
        src.set_config_value("llm.seed", "int", "many")
    with pytest.raises(ValueError, match="not in 'env'"):
        src.set_config_value("llm.seed", "int", 1, source="env")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7"),
        (b"[1]", "one JSON object"),
        (b'{"a": 1, "a": 2}', "sets 'a' twice"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"", "line 1"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_malformed_file_is_named_with_the_place(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "taskweaver_config.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        AppConfigSource(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_or_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        AppConfigSource(tmp_path / "nothing.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        AppConfigSource(tmp_path)
