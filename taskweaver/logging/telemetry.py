"""OpenTelemetry as an application uses it: providers, exporters, and their end.

The packages are optional and slow to import: they are imported by `Telemetry` alone, when tracing
is switched on. A tracer provider that the embedding program has made global is used as it is, and
left open; otherwise the application has its own, which no other code sees.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from taskweaver.logging.collector import CollectorSession, WarningsToLog
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.spans import ERROR, HISTOGRAMS, Operation, Span, Value
from taskweaver.logging.tracing_settings import TracingSettings
from taskweaver.utils.redact import redact
from taskweaver.utils.system.requirements import install_command


def missing_packages() -> str:
    """Return the problem of a configuration that switches tracing on without its packages."""
    return (
        "Tracing is switched on, and OpenTelemetry is not installed: nothing is recorded. Install"
        f" it with `{install_command('otel')}`, or set tracing.enabled to false."
    )


_SCOPE = "taskweaver"
_EXPORT_S = 3.0
_NS = 1_000_000_000


def is_installed(exporter: str) -> bool:
    """Return whether the packages that an exporter needs are installed.

    A global provider of the embedding program needs none of them.
    """
    if _has_global_provider():
        return True
    needed = ["opentelemetry.sdk"]
    needed += ["opentelemetry.exporter.otlp.proto.http"] if exporter == "otlp" else []
    try:
        return all(find_spec(name) is not None for name in needed)
    except (ImportError, ValueError):  # the package above it is missing
        return False


def _has_global_provider() -> bool:
    """Return whether the embedding program has set a tracer provider."""
    try:
        from opentelemetry import trace
    except ImportError:
        return False
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


class Telemetry:
    """Spans and metrics of one application. Close it.

    Attributes:
        has_contents: Whether prompts, replies and code are recorded.
    """

    def __init__(self, settings: TracingSettings, logger: TelemetryLogger | None) -> None:
        """Connect to the provider of the embedding program, or make one.

        Raises:
            Exception: If OpenTelemetry cannot use a variable of the environment.
        """
        from opentelemetry import trace

        self.has_contents = settings.has_contents
        self._trace = trace
        self._delivery = _Delivery(settings)
        self._warnings = WarningsToLog(logger)
        self._warnings.begin()
        self._provider: Any = None
        self._meters: Any = None
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        from opentelemetry import metrics

        if not _has_global_provider():
            self._provider = self._delivery.tracer_provider()
            self._meters = self._delivery.meter_provider()
        self.tracer = self._trace.get_tracer(_SCOPE, tracer_provider=self._provider)
        meter = metrics.get_meter(_SCOPE, meter_provider=self._meters)
        self._histograms = {
            name: meter.create_histogram(
                name,
                unit=item.unit,
                description=item.about,
                explicit_bucket_boundaries_advisory=list(item.bounds),
            )
            for name, item in HISTOGRAMS.items()
        }

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

    def past(self, parent: Any, operation: Operation, began_ns: int, ended_ns: int) -> Any:
        """Return a span that began in the past; the caller ends it."""
        return self.tracer.start_span(
            operation.name,
            context=self._trace.set_span_in_context(parent),
            attributes=_masked(operation.attributes),
            start_time=min(began_ns, ended_ns),
        )

    def record(self, histogram: str, value: float, attributes: Mapping[str, Value]) -> None:
        """Add a point to a histogram."""
        keys = HISTOGRAMS[histogram].keys
        known = {key: item for key, item in attributes.items() if key in keys}
        self._histograms[histogram].record(value, known)

    def inject(self, carrier: Any) -> None:
        """Write the current context into headers."""
        from opentelemetry.propagate import inject

        inject(carrier)

    def status(self, message: str) -> Any:
        """Return the status of an operation that failed."""
        return self._trace.Status(self._trace.StatusCode.ERROR, redact(message) or None)

    def close(self) -> None:
        """Deliver the records and end the providers that were made here."""
        for provider in (self._provider, self._meters):
            if self._delivery.hurry():
                self._warnings.mute()
            if provider is not None:
                provider.shutdown()
        self._warnings.end()


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
        span = self._telemetry.past(self.span, operation, began_ns, ended_ns)
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


class _Delivery:
    """Makes providers whose exporters end quickly, whether or not a collector answers."""

    def __init__(self, settings: TracingSettings) -> None:
        from opentelemetry.sdk.resources import Resource

        self._settings = settings
        self._resource = Resource.create({"service.name": settings.service_name})
        self._sent: list[tuple[CollectorSession, Callable[[], None]]] = []

    def hurry(self) -> bool:
        """Make deliveries brief from now on; return whether a collector was given up.

        A collector that did not answer the newest request is not asked again, for spans or metrics:
        an exporter may be waiting for its next try.
        """
        for session, _ in self._sent:
            session.hurry()
        is_failing = any(session.is_failing for session, _ in self._sent)
        if is_failing:
            for _, shut_down in self._sent:
                shut_down()
        return is_failing

    def tracer_provider(self) -> Any:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            ConsoleSpanExporter,
            SimpleSpanProcessor,
        )

        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        match self._settings.exporter:
            case "console":
                exporter = ConsoleSpanExporter(out=sys.stderr)
                provider.add_span_processor(SimpleSpanProcessor(exporter))
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                session = CollectorSession()
                sent = OTLPSpanExporter(**self._options("traces", session))
                self._sent.append((session, sent.shutdown))
                provider.add_span_processor(BatchSpanProcessor(sent))
        return provider

    def meter_provider(self) -> Any:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import (
            ConsoleMetricExporter,
            PeriodicExportingMetricReader,
        )

        readers = []
        match self._settings.metrics_exporter:
            case "console":
                out = ConsoleMetricExporter(out=sys.stderr)
                readers.append(PeriodicExportingMetricReader(out))
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
                    OTLPMetricExporter,
                )

                session = CollectorSession()
                sent = OTLPMetricExporter(**self._options("metrics", session))
                self._sent.append((session, sent.shutdown))
                readers.append(PeriodicExportingMetricReader(sent))
        try:
            return MeterProvider(readers, resource=self._resource, shutdown_on_exit=False)
        except BaseException:
            for reader in readers:  # each has a thread
                reader.shutdown()
            raise

    def _options(self, signal: str, session: CollectorSession) -> dict[str, Any]:
        """Return where a signal goes; the exporter reads all else from the environment."""
        base = self._settings.endpoint
        options: dict[str, Any] = {"session": session}
        if base:
            options["endpoint"] = f"{base}/v1/{signal}"
        limits = ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_TIMEOUT")
        if not any(os.environ.get(name) for name in limits):
            options["timeout"] = _EXPORT_S
        return options


def _masked(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {
        key: redact(value) if isinstance(value, str) else value for key, value in attributes.items()
    }
