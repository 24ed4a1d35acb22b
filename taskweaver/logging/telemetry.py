"""OpenTelemetry for an application: providers, exporters, and the end of both.

The SDK is optional, and all of it is slow to import: `Telemetry` alone does so, when tracing is
switched on. A tracer provider that the embedding program has made global is used as it is, and left
open. Otherwise the application has its own, which no other code sees.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.spans import ERROR, HISTOGRAMS, Operation, Span, Value
from taskweaver.utils.redact import redact

_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTERS = ("otlp", "console", "none")


class TracingSettings:
    """Settings for recording spans and metrics.

    A key that is set goes before the environment. While `tracing.enabled` is not set, a variable
    that names an exporter or a collector switches tracing on, as it does for other programs.

    Attributes:
        enabled: Whether spans are recorded.
        exporter: ``otlp``, ``console`` or ``none``.
        metrics_exporter: The same for metrics.
        endpoint: Base address of the collector; empty leaves it to the environment.
        has_contents: Whether prompts, replies and code are recorded.
    """

    def __init__(self, src: AppConfigSource, environment: Mapping[str, str] = os.environ) -> None:
        """Read the settings.

        Raises:
            ConfigError: If a key cannot be read, or the endpoint of spans is no http(s) address.
        """
        wanted = src.get_bool("tracing.enabled", None)
        variable = _first(environment, "OTEL_TRACES_EXPORTER").lower()
        is_named = variable in {"otlp", "console"} or (
            variable != "none" and any(environment.get(name) for name in _ENDPOINTS)
        )
        is_disabled = _first(environment, "OTEL_SDK_DISABLED").lower() == "true"
        self.enabled = (is_named if wanted is None else wanted) and not is_disabled
        given = src.get_enum("tracing.exporter", default=None)
        self.exporter = given or (variable if variable in _EXPORTERS else "otlp")
        metrics = _first(environment, "OTEL_METRICS_EXPORTER").lower()
        self.metrics_exporter = metrics if metrics in _EXPORTERS else self.exporter
        address = src.get_str("tracing.endpoint", None) or ""
        self.endpoint = _base(address) if self.enabled else ""
        name = src.get_str("tracing.service_name", None)
        self.service_name = name or _first(environment, "OTEL_SERVICE_NAME") or "taskweaver"
        self.has_contents = src.get_bool("tracing.contents") or _first(
            environment, _CONTENTS
        ).lower() in {"true", "span_only", "span_and_event"}


def _first(environment: Mapping[str, str], name: str) -> str:
    """Return the first of the values that a variable lists."""
    return environment.get(name, "").partition(",")[0].strip()


def _base(address: str) -> str:
    """Return the address of a collector without the path of a signal."""
    if not address:
        return ""
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        problem = f"must be an address such as http://127.0.0.1:4318, not {address!r}."
        raise ConfigError("tracing.endpoint", problem)
    return address.rstrip("/").removesuffix("/v1/traces")


_SCOPE = "taskweaver"
_EXPORT_S = 3.0
"""Time that a dead collector may hold up an export, and with it the end of the program."""
_NS = 1_000_000_000


class Telemetry:
    """Spans and metrics of one application. Needs `close`.

    Attributes:
        has_contents: Whether prompts, replies and code are recorded.
        tracer: OpenTelemetry's tracer.
    """

    def __init__(self, settings: TracingSettings, logger: TelemetryLogger | None) -> None:
        """Connect to the provider of the embedding program, or make one.

        Raises:
            ImportError: If the SDK or the exporter is not installed.
            Exception: If OpenTelemetry cannot use a variable of the environment.
        """
        from opentelemetry import metrics, trace

        self.has_contents = settings.has_contents
        self._trace = trace
        tracers = meters = None
        with ExitStack() as ends:
            ends.enter_context(_warnings_to(logger))
            if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
                tracers = _tracer_provider(settings, ends)
                meters = _meter_provider(settings, ends)
            self.tracer = trace.get_tracer(_SCOPE, tracer_provider=tracers)
            meter = metrics.get_meter(_SCOPE, meter_provider=meters)
            self._histograms = {
                name: meter.create_histogram(
                    name,
                    unit=item.unit,
                    description=item.about,
                    explicit_bucket_boundaries_advisory=list(item.bounds),
                )
                for name, item in HISTOGRAMS.items()
            }
            self._ends = ends.pop_all()

    def begin(self, operation: Operation) -> Span:
        """Begin an operation as a part of the current one."""
        trace = self._trace
        kind = trace.SpanKind.CLIENT if operation.kind == "client" else trace.SpanKind.INTERNAL
        parent = trace.set_span_in_context(trace.INVALID_SPAN) if operation.is_root else None
        span = self.tracer.start_span(
            operation.name,
            context=parent,
            kind=kind,
            attributes=_masked(operation.attributes),
            links=[trace.Link(context) for context in operation.links],
            record_exception=False,
            set_status_on_exception=False,
        )
        return _RecordedSpan(self, span, operation)

    def record(self, histogram: str, value: float, attributes: Mapping[str, Value]) -> None:
        """Add a point to a histogram."""
        keys = HISTOGRAMS[histogram].keys
        known = {key: item for key, item in attributes.items() if key in keys}
        self._histograms[histogram].record(value, known)

    def status(self, message: str) -> Any:
        """Return the status of an operation that failed."""
        return self._trace.Status(self._trace.StatusCode.ERROR, redact(message) or None)

    def close(self) -> None:
        """Deliver the records and end the providers that were made here."""
        self._ends.close()


class _RecordedSpan(Span):
    """An operation under way that OpenTelemetry records."""

    def __init__(self, telemetry: Telemetry, span: Any, operation: Operation) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._attributes = dict(operation.attributes)
        self._began = time.perf_counter()
        self._began_ns = time.time_ns()
        self.span = span
        self.context = span.get_span_context()

    def set(self, key: str, value: Value) -> None:
        self._attributes[key] = value
        self.span.set_attribute(key, redact(value) if isinstance(value, str) else value)

    def content(self, key: str, make: Callable[[], str]) -> None:
        if self._telemetry.has_contents and self.span.is_recording():
            self.span.set_attribute(key, redact(make()))

    def measure(self, histogram: str, value: float, extra: Mapping[str, Value]) -> None:
        self._telemetry.record(histogram, value, self._attributes | dict(extra))

    def child(self, operation: Operation, began_s: float, duration_s: float, error: str) -> None:
        now = time.time_ns()
        began_ns = min(self._began_ns + int(max(began_s, 0.0) * _NS), now)
        ended_ns = min(began_ns + int(max(duration_s, 0.0) * _NS), now)
        from opentelemetry.trace import set_span_in_context

        span = self._telemetry.tracer.start_span(
            operation.name,
            context=set_span_in_context(self.span),
            attributes=_masked(operation.attributes),
            start_time=began_ns,
        )
        attributes = dict(operation.attributes)
        if error:
            attributes[ERROR] = error
            span.set_attribute(ERROR, error)
            span.set_status(self._telemetry.status(""))
        span.end(ended_ns)
        if operation.metric:
            self._telemetry.record(operation.metric, (ended_ns - began_ns) / _NS, attributes)

    def fail(self, error: str, message: str = "") -> None:
        self.set(ERROR, error)
        # A message may quote a prompt, a reply or data.
        shown = message if self._telemetry.has_contents else ""
        self.span.set_status(self._telemetry.status(shown))

    def end(self) -> None:
        self.span.end()
        if self._operation.metric:
            seconds = time.perf_counter() - self._began
            self._telemetry.record(self._operation.metric, seconds, self._attributes)


@contextmanager
def attached(span: Span) -> Iterator[None]:
    """Make a span the current one of this context inside the block."""
    if not isinstance(span, _RecordedSpan):
        yield
        return
    from opentelemetry import context, trace

    token = context.attach(trace.set_span_in_context(span.span))
    try:
        yield
    finally:
        context.detach(token)


def _tracer_provider(settings: TracingSettings, ends: ExitStack) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    provider = TracerProvider(resource=_resource(settings), shutdown_on_exit=False)
    ends.callback(provider.shutdown)
    if settings.exporter == "console":
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
    elif settings.exporter == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(**_options(settings, "traces"))
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _meter_provider(settings: TracingSettings, ends: ExitStack) -> Any:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import (
        ConsoleMetricExporter,
        PeriodicExportingMetricReader,
    )

    exporter: Any = None
    if settings.metrics_exporter == "console":
        exporter = ConsoleMetricExporter(out=sys.stderr)
    elif settings.metrics_exporter == "otlp":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        exporter = OTLPMetricExporter(**_options(settings, "metrics"))
    readers = [PeriodicExportingMetricReader(exporter)] if exporter is not None else []
    try:
        provider = MeterProvider(readers, resource=_resource(settings), shutdown_on_exit=False)
    except BaseException:
        for reader in readers:  # each has a thread
            reader.shutdown()
        raise
    ends.callback(provider.shutdown)
    return provider


def _resource(settings: TracingSettings) -> Any:
    from opentelemetry.sdk.resources import Resource

    return Resource.create({"service.name": settings.service_name})


def _options(settings: TracingSettings, signal: str) -> dict[str, Any]:
    """Return where a signal goes. The exporter reads all else from the environment."""
    options: dict[str, Any] = {}
    if settings.endpoint:
        options["endpoint"] = f"{settings.endpoint}/v1/{signal}"
    limits = ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_TIMEOUT")
    if not any(os.environ.get(name) for name in limits):
        options["timeout"] = _EXPORT_S
    return options


@contextmanager
def _warnings_to(logger: TelemetryLogger | None) -> Iterator[None]:
    """Take the warnings of OpenTelemetry to the application's log, each kind once.

    Without a handler they would be printed into the conversation.
    """
    seen = set[str]()

    def emit(record: logging.LogRecord) -> None:
        if logger is not None and str(record.msg) not in seen:
            seen.add(str(record.msg))
            logger.warning(f"OpenTelemetry: {record.getMessage()}")

    handler = logging.Handler(logging.WARNING)
    handler.emit = emit  # type: ignore[method-assign]
    source = logging.getLogger("opentelemetry")
    source.addHandler(handler)
    try:
        yield
    finally:
        source.removeHandler(handler)


def _masked(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {
        key: redact(value) if isinstance(value, str) else value for key, value in attributes.items()
    }
