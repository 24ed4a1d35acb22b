"""The check of a whole configuration, configuration classes, and the printed page."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_.configuration_page import render

from taskweaver.config import AppConfigSource, ConfigError, ModuleConfig, check

ROOT = Path(__file__).parents[2]


def warnings(extra: tuple[str, ...] = (), **values: object) -> list[str]:
    config = {name.replace("__", "."): value for name, value in values.items()}
    return check(AppConfigSource(None, config), extra)


def test_a_correct_configuration_has_no_warnings() -> None:
    assert warnings(llm__model="m", planner__llm_alias="x", code_generator__load_plugin=True) == []


def test_an_unknown_key_is_told_the_nearest_known_one() -> None:
    (line,) = warnings(llm__modle="m")
    assert line == "There is no configuration key llm.modle; did you mean 'llm.model'?"
    (line,) = warnings(plannr__llm_alias="m")
    assert line.endswith("did you mean 'planner.llm_alias'?")
    (line,) = warnings(zzz="m")
    assert line.endswith("it has no effect.")


def test_keys_of_a_further_role_are_its_own() -> None:
    assert len(warnings(parrot__mark="*")) == 1
    assert warnings(("parrot",), parrot__mark="*", parrot__use_example=False) == []
    (line,) = warnings(("echo",), echo__decoratr="*", llm__seed=-5)
    assert line.endswith("did you mean 'echo.decorator'?")


def test_a_value_of_the_wrong_type_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"planner.max_retry_count"):
        warnings(planner__max_retry_count="often")
    with pytest.raises(ConfigError, match=r"echo.use_example"):
        warnings(("echo",), echo__use_example="perhaps")


@pytest.mark.parametrize(
    ("name", "value"), [("execution.cell_timeout_s", "0"), ("llm.max_retries", -1)]
)
def test_a_number_below_its_least_value_is_an_error(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: .*must be at least .*{value}"):
        check(AppConfigSource(None, {name: value}))
    with pytest.raises(ConfigError, match="at least"):
        AppConfigSource().set_config_value(name, "float", float(str(value)))


def test_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTION_CELL_TIMEOUT_S", "long")
    with pytest.raises(ConfigError, match="the environment variable EXECUTION_CELL_TIMEOUT_S"):
        check(AppConfigSource())


def test_further_models_are_checked_like_the_main_one() -> None:
    models = {"small": {"llm.model": "s", "llm.modell": "x", "planner.llm_alias": "y"}}
    first, second = warnings(ext_llms__llm_configs=models)
    assert "ext_llms.llm_configs (small)" in first
    assert "did you mean 'llm.model'?" in first
    assert "planner.llm_alias" in second
    with pytest.raises(ConfigError, match="must be an object"):
        warnings(ext_llms__llm_configs={"small": "gpt"})
    with pytest.raises(ConfigError, match=r"llm.seed"):
        warnings(ext_llms__llm_configs={"small": {"llm.seed": "x"}})


class EchoConfig(ModuleConfig):
    def _configure(self) -> None:
        self._set_name("echo")
        self.decorator = self._get_str("decorator", "*")
        self.examples = self._get_path("example_base_path")
        self.alias = self._get_str("llm_alias")
        self.use_example = self._get_bool("use_example")
        self.times = self._get_int("times", 2)
        self.weight = self._get_float("weight", None)
        self.words = self._get_list("words", ["a"])
        self.extra = self._get_dict("extra", {})
        self.mode = self._get_enum("mode", ["loud", "soft"], "soft")


def test_a_configuration_class_reads_what_its_name_stands_for(tmp_path: Path) -> None:
    values = {"echo.decorator": "#", "echo.times": "5", "echo.mode": "loud"}
    config = EchoConfig(AppConfigSource(None, values, tmp_path))
    assert (config.decorator, config.times, config.mode) == ("#", 5, "loud")
    assert (config.weight, config.words, config.extra) == (None, ["a"], {})
    assert (config.alias, config.use_example) == ("", True)
    assert config.examples == str(tmp_path / "examples" / "echo_examples")


def test_a_key_nobody_knows_needs_a_default() -> None:
    class Config(ModuleConfig):
        def _configure(self) -> None:
            self._set_name("echo")
            self._get_int("times")

    with pytest.raises(ConfigError, match=r"echo.times: is needed and not set"):
        Config(AppConfigSource())


def test_the_page_of_all_keys_is_current() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert page == render(), "run: python tests/docs_/configuration_page.py > docs/configuration.md"
