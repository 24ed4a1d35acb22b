"""Where traces go in tests: memory, or a collector that keeps what OTLP exporters send."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.metrics import _internal as metrics_api
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Recorded:
    """Spans and metrics of a program that has made its own providers global."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        monkeypatch.setattr(metrics_api, "_METER_PROVIDER", meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that are over, in the order in which they began."""
        found = self._exporter.get_finished_spans()
        return sorted(found, key=lambda span: span.start_time or 0)

    def tree(self) -> list[tuple[str, str]]:
        """Return the name of each span with that of its parent; empty for a root."""
        names = {span.context.span_id: span.name for span in self.spans}
        return [
            (span.name, names[span.parent.span_id] if span.parent else "") for span in self.spans
        ]

    def named(self, name: str) -> ReadableSpan:
        """Return the one span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], int, float]]]:
        """Return attributes, count and sum of each point, by the name of its metric."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], int, float]]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = [
                        (dict(p.attributes or {}), p.count, p.sum) for p in metric.data.data_points
                    ]
        return found

    def all_text(self) -> str:
        """Return everything that the spans carry, as text."""
        return "\n".join(span.to_json() for span in self.spans)


class Collector:
    """What was received: spans as OTLP has them, and names of metrics with the number of points."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.metrics: dict[str, int] = {}
        self.requests: list[str] = []
        self.status = 200

    def take(self, path: str, body: bytes) -> None:
        """Keep a request."""
        self.requests.append(path)
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                names = {a.key: a.value.string_value for a in group.resource.attributes}
                self.services.add(names["service.name"])
                self.spans += [span for scope in group.scope_spans for span in scope.spans]
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = sum(point.count for point in metric.histogram.data_points)
                        self.metrics[metric.name] = points


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
