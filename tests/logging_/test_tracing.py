"""Tracing by itself: switched on and off, delivered, closed, and the names of the original."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from traces import Recorded, collecting

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.logging import TelemetryLogger, Tracing
from taskweaver.logging.spans import AGENT, HISTOGRAMS, agent, tool
from taskweaver.logging.telemetry import TracingSettings
from taskweaver.logging.tracing import get_tracer
from taskweaver.module.tracing import tracing_decorator, tracing_decorator_non_class
from taskweaver.utils.redact import MASK

ON = {"tracing.enabled": True}
DEAD = "http://127.0.0.1:9"


def settings(environment: dict[str, str] | None = None, **keys: Any) -> TracingSettings:
    values = {f"tracing.{name}": value for name, value in keys.items()}
    return TracingSettings(AppConfigSource(None, values), environment or {})


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


@pytest.mark.parametrize(
    ("environment", "keys", "is_on"),
    [
        ({}, {}, False),
        ({}, {"enabled": True}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": DEAD}, {}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": DEAD, "OTEL_TRACES_EXPORTER": "none"}, {}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, {"enabled": False}, False),
        ({"OTEL_SDK_DISABLED": "true"}, {"enabled": True}, False),
    ],
)
def test_a_key_or_a_variable_switches_tracing_on(
    environment: dict[str, str], keys: dict[str, Any], is_on: bool
) -> None:
    assert settings(environment, **keys).enabled is is_on


def test_a_key_goes_before_the_variable() -> None:
    environment = {"OTEL_TRACES_EXPORTER": "console", "OTEL_SERVICE_NAME": "mine"}
    assert settings(environment).exporter == "console"
    assert settings(environment).metrics_exporter == "console"
    assert settings(environment | {"OTEL_METRICS_EXPORTER": "none"}).metrics_exporter == "none"
    assert settings(environment, exporter="none").exporter == "none"
    assert settings(environment).service_name == "mine"
    assert settings(environment, service_name="yours").service_name == "yours"
    assert settings().service_name == "taskweaver"
    variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert settings({variable: "true"}).has_contents
    assert settings(contents=True).has_contents
    assert not settings().has_contents


def test_the_endpoint_is_a_base_address() -> None:
    assert settings(enabled=True, endpoint=f"{DEAD}/v1/traces").endpoint == DEAD
    with pytest.raises(ConfigError, match=r"tracing\.endpoint.*'nowhere'"):
        settings(enabled=True, endpoint="nowhere")
    assert settings(endpoint="nowhere").endpoint == ""  # it is not used


def test_spans_and_metrics_reach_a_collector_with_the_end_of_the_application() -> None:
    before = set(threading.enumerate())
    with collecting() as collector:
        keys = ON | {"tracing.endpoint": collector.url, "tracing.service_name": "mine"}
        tracing = Tracing(AppConfigSource(None, keys))
        with tracing.agent("Planner"), tracing.running(tool("python", "extension")):
            pass
        tracing.close()
        tracing.close()
        names = {span.name for span in collector.spans}
        assert names == {"invoke_agent Planner", "execute_tool python"}
        assert collector.services == {"mine"}
        assert collector.metrics == {
            "gen_ai.invoke_agent.duration": 1, "gen_ai.execute_tool.duration": 1,
        }  # fmt: skip
        assert sorted(collector.requests) == ["/v1/metrics", "/v1/traces"]
    assert not [t for t in threading.enumerate() if t not in before and "Otel" in t.name]
    assert not tracing.enabled
    units = {name: item.unit for name, item in HISTOGRAMS.items() if item.unit != "s"}
    assert units == {"gen_ai.client.token.usage": "{token}"}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_collector_that_fails_holds_up_the_end_by_some_seconds(
    tmp_path: Path, is_there: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with collecting() as collector, TelemetryLogger(tmp_path / "a.log") as log:
        collector.status = 503
        keys = ON | {"tracing.endpoint": collector.url if is_there else DEAD}
        tracing = Tracing(AppConfigSource(None, keys), log)
        with tracing.agent("Planner"):
            pass
        since = time.monotonic()
        tracing.close()
        assert time.monotonic() - since < 20
        assert ("/v1/traces" in collector.requests) is is_there
    assert "Failed to export" in (tmp_path / "a.log").read_text()
    assert capfd.readouterr().err == ""


def test_without_the_packages_one_line_says_so_and_work_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    tracing = Tracing(AppConfigSource(None, ON))
    assert 'pip install "opentelemetry-sdk>=' in tracing.problem
    assert not tracing.enabled
    with tracing.agent("Planner") as span:
        span.set("a", 1)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "interval value 0.0 is invalid"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "zz", "Unknown exemplar filter 'zz'"),
    ],
)
def test_a_variable_that_cannot_be_used_switches_tracing_off(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    threads = set(threading.enumerate())
    monkeypatch.setenv(name, value)
    tracing = Tracing(AppConfigSource(None, ON | {"tracing.endpoint": DEAD}))
    assert reason in tracing.problem
    assert "\n" not in tracing.problem
    assert not tracing.enabled
    assert set(threading.enumerate()) == threads


def test_while_off_nothing_of_opentelemetry_is_imported() -> None:
    code = (
        "import sys\n"
        "from taskweaver.logging import Tracing\n"
        "from taskweaver.logging.spans import agent\n"
        "tracing = Tracing()\n"
        "with tracing.running(agent('a')) as span: span.fail('x')\n"
        "Tracing.set_span_attribute('a', 1)\n"
        "tracing.inject({})\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_provider_of_the_embedding_program_is_used_and_left_open(recorded: Recorded) -> None:
    for name in ("first", "second"):
        tracing = Tracing(AppConfigSource(None, ON))
        with tracing.span(name, key="api_key=abcdefgh1234"):
            pass
        tracing.close()
    assert [span.name for span in recorded.spans] == ["first", "second"]
    assert recorded.spans[0].attributes == {"key": f"api_key={MASK}"}


@pytest.mark.parametrize("is_asked", [True, False])
def test_an_exception_marks_its_span_without_secrets(recorded: Recorded, is_asked: bool) -> None:
    tracing = Tracing(AppConfigSource(None, ON | {"tracing.contents": is_asked}))
    with pytest.raises(ValueError, match="hush"), tracing.running(agent("Planner")):
        raise ValueError("password=hush-hush")
    tracing.close()
    (span,) = recorded.spans
    assert dict(span.attributes or {})["error.type"] == "ValueError"
    assert span.status.description == (f"ValueError: password={MASK}" if is_asked else None)
    ((attributes, count, _),) = recorded.metrics()["gen_ai.invoke_agent.duration"]
    assert (attributes, count) == ({AGENT: "Planner", "error.type": "ValueError"}, 1)


class Greeter:
    """A role's method of a project of the original."""

    def __init__(self, tracing: Tracing) -> None:
        self.tracing = tracing

    @tracing_decorator
    def greet(self) -> str:
        Tracing.set_span_attribute("prompt", "api_key=abcdefgh1234")
        Tracing.set_span_status("ERROR", "password=hunter22")
        Tracing.set_span_exception(ValueError("x"))
        Tracing.add_prompt_size(7, {"direction": "input"})
        return "hello"


@tracing_decorator_non_class
def helper() -> int:
    return 1


def test_the_names_of_the_original_make_spans_while_tracing_is_on(recorded: Recorded) -> None:
    with get_tracer().start_as_current_span("x") as span:
        span.set_attribute("prompt_size", 1)
        assert not span.get_span_context().is_valid
    tracing = Tracing(AppConfigSource(None, ON))
    assert Greeter(tracing).greet() == "hello"
    assert helper() == 1
    with get_tracer().start_as_current_span("mine"):
        pass
    tracing.close()
    greet, *others = recorded.spans
    assert [span.name for span in others] == ["helper", "mine"]
    assert greet.name == "Greeter.greet"
    assert greet.attributes == {
        "prompt": f"api_key={MASK}", "prompt_size": 7, "prompt_size.direction": "input",
    }  # fmt: skip
    assert greet.status.description == f"password={MASK}"
    assert greet.events[0].name == "exception"
    assert helper() == 1  # nobody traces any more
    assert len(recorded.spans) == 3
