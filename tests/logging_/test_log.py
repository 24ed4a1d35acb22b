"""The log and the traces of an application."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from taskweaver.config import AppConfigSource, ConfigError
from taskweaver.logging import TelemetryLogger
from taskweaver.utils.redact import MASK


def source(folder: Path, **values: Any) -> AppConfigSource:
    return AppConfigSource(None, {n.replace("__", "."): v for n, v in values.items()}, folder)


def test_messages_of_all_levels_are_written(tmp_path: Path) -> None:
    with TelemetryLogger(tmp_path / "logs" / "x.log", "debug") as log:
        log.debug("one %s")
        log.info("two {}")
        log.warning("three")
        log.error("four \ud83d")
    lines = (tmp_path / "logs" / "x.log").read_text().splitlines()
    assert [line.split(" - ", 1)[1] for line in lines] == [
        "DEBUG - one %s",
        "INFO - two {}",
        "WARNING - three",
        "ERROR - four \\ud83d",
    ]


def test_an_exception_is_written_with_its_traceback_and_without_secrets(tmp_path: Path) -> None:
    with TelemetryLogger(tmp_path / "x.log") as log:
        try:
            raise RuntimeError("api_key=abcdefgh1234")
        except RuntimeError:
            log.exception("it failed")
    text = (tmp_path / "x.log").read_text()
    assert "it failed\nTraceback" in text
    assert f"RuntimeError: api_key={MASK}" in text


def test_configured_secrets_are_masked_in_any_form(tmp_path: Path) -> None:
    models = {"other": {"llm.api_key": "second-plain-words", "llm.model": "the-model"}}
    src = source(tmp_path, llm__api_key="first-plain-words", ext_llms__llm_configs=models)
    with TelemetryLogger.from_config(src) as log:
        log.info("sent first-plain-words and second-plain-words to the-model")
    text = (tmp_path / "logs" / "task_weaver.log").read_text()
    assert f"sent {MASK} and {MASK} to the-model" in text


def test_a_key_from_the_environment_is_masked_and_a_closed_log_drops_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "words of the environment")
    with TelemetryLogger.from_config(source(tmp_path)) as log:
        log.info("words of the environment")
    log.close()
    log.info("late")
    (line,) = (tmp_path / "logs" / "task_weaver.log").read_text().splitlines()
    assert line.endswith(MASK)


def test_two_applications_write_two_files(tmp_path: Path) -> None:
    with TelemetryLogger(tmp_path / "a.log") as first, TelemetryLogger(tmp_path / "b.log") as other:
        first.info("of a")
        other.info("of b")
    assert "of b" not in (tmp_path / "a.log").read_text()
    assert "of a" not in (tmp_path / "b.log").read_text()
    kept = logging.Logger.manager.loggerDict.get("taskweaver")
    assert not isinstance(kept, logging.Logger)


def test_a_log_that_cannot_be_written_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    with TelemetryLogger.from_config(source(tmp_path)) as log:
        log.info("nowhere")
        assert log.path is None
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "nothing is logged" in told


def test_a_full_disk_costs_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with TelemetryLogger("/dev/full") as log:
        log.info("x")
    assert capsys.readouterr().err == ""


def test_an_unknown_level_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"logging\.level.*'CHATTY'"):
        TelemetryLogger(None, "CHATTY")
