"""The log and the traces of an application."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from taskweaver.config import AppConfigSource, ConfigError
from taskweaver.logging import TelemetryLogger, Tracing
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


def test_less_than_the_level_is_left_out(tmp_path: Path) -> None:
    with TelemetryLogger.from_config(source(tmp_path, logging__level="ERROR")) as log:
        log.warning("quiet")
        log.error("loud")
    text = (tmp_path / "logs" / "task_weaver.log").read_text()
    assert "loud" in text
    assert "quiet" not in text


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


def test_a_key_from_the_environment_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "words of the environment")
    with TelemetryLogger.from_config(source(tmp_path)) as log:
        log.info("words of the environment")
    assert MASK in (tmp_path / "logs" / "task_weaver.log").read_text()


def test_two_applications_write_two_files(tmp_path: Path) -> None:
    with TelemetryLogger(tmp_path / "a.log") as first, TelemetryLogger(tmp_path / "b.log") as other:
        first.info("of a")
        other.info("of b")
    assert "of b" not in (tmp_path / "a.log").read_text()
    assert "of a" not in (tmp_path / "b.log").read_text()
    kept = logging.Logger.manager.loggerDict.get("taskweaver")
    assert not isinstance(kept, logging.Logger)


def test_after_closing_messages_are_dropped(tmp_path: Path) -> None:
    log = TelemetryLogger(tmp_path / "a.log")
    log.close()
    log.close()
    log.info("late")
    assert (tmp_path / "a.log").read_text() == ""


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


def test_without_a_file_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with TelemetryLogger() as log:
        log.error("x")
    assert capsys.readouterr().err == ""


def test_an_unknown_level_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"logging\.level.*'CHATTY'"):
        TelemetryLogger(None, "CHATTY")


class Span:
    """A span that keeps what it is told, with the methods of OpenTelemetry's."""

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.attributes = dict(attributes)
        self.status: Any = None
        self.exceptions: list[dict[str, str]] = []

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any) -> None:
        self.status = status

    def add_event(self, name: str, attributes: dict[str, str]) -> None:
        assert name == "exception"
        self.exceptions.append(attributes)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[Span]:
    """Put the part of OpenTelemetry's interface that is used where it is imported from."""
    made: list[Span] = []

    @contextmanager
    def start(name: str, attributes: dict[str, Any], **options: bool) -> Iterator[None]:
        assert options == {"record_exception": False, "set_status_on_exception": False}
        made.append(Span(name, attributes))
        yield

    trace = ModuleType("opentelemetry.trace")
    facts = {
        "get_tracer": lambda _: SimpleNamespace(start_as_current_span=start),
        "get_current_span": lambda: made[-1],
        "Status": lambda code, text=None: (code, text),
        "StatusCode": {"OK": "OK", "ERROR": "ERROR"},
    }
    vars(trace).update(facts)
    package = ModuleType("opentelemetry")
    vars(package).update(trace=trace)
    monkeypatch.setitem(sys.modules, "opentelemetry", package)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    monkeypatch.setattr(Tracing, "_in_use", Tracing._in_use)
    return made


def test_traces_go_to_opentelemetry_when_switched_on(tmp_path: Path, spans: list[Span]) -> None:
    tracing = Tracing(source(tmp_path, tracing__enabled=True))
    problem = ValueError("x")
    with tracing.span("Planner.reply", round="r1"):
        Tracing.set_span_attribute("prompt", "api_key=abcdefgh1234")
        Tracing.set_span_attribute("tokens", 7)
        Tracing.set_span_status("ERROR", "password=hunter22")
        Tracing.set_span_exception(problem)
    (span,) = spans
    with (
        pytest.raises(ValueError, match="hush"),
        tracing.span("broken", key="api_key=abcdefgh1234"),
    ):
        raise ValueError("password=hush-hush")
    assert spans.pop().exceptions[0]["exception.message"] == f"password={MASK}"
    assert span.name == "Planner.reply"
    assert span.attributes == {"round": "r1", "prompt": f"api_key={MASK}", "tokens": 7}
    assert span.status == ("ERROR", f"password={MASK}")
    assert span.exceptions[0]["exception.type"] == type(problem).__name__
    Tracing.set_span_status("OK", "no words with this")
    assert span.status == ("OK", None)


def test_traces_cost_nothing_when_switched_off(spans: list[Span], tmp_path: Path) -> None:
    for tracing in (Tracing(), Tracing(source(tmp_path))):
        with tracing.span("x"):
            Tracing.set_span_status("OK")
            Tracing.set_span_attribute("a", 1)
            Tracing.set_span_exception(ValueError())
        assert not tracing.enabled
    assert not spans


def test_traces_without_opentelemetry_are_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"tracing\.enabled.*pip install"):
        Tracing(source(tmp_path, tracing__enabled=True))
