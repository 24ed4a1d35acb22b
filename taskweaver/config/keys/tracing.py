"""Keys under ``tracing.``."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key

TRACING_KEYS: tuple[Key, ...] = (
    Key(
        "tracing.enabled",
        "bool",
        None,
        "Whether OpenTelemetry spans and metrics are recorded (extra `otel`). While it is not set,"
        " `OTEL_TRACES_EXPORTER` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment switches it"
        " on.",
    ),
    enum(
        "tracing.exporter",
        None,
        "otlp console none",
        "Where they go: to a collector by OTLP over HTTP, to standard error, or nowhere. Not set"
        " takes `OTEL_TRACES_EXPORTER`, else `otlp`.",
    ),
    Key(
        "tracing.endpoint",
        "str",
        None,
        "Address of the collector, such as `http://127.0.0.1:4318`. Not set takes"
        " `OTEL_EXPORTER_OTLP_ENDPOINT`, else that address.",
    ),
    Key(
        "tracing.service_name",
        "str",
        None,
        "Name of the service. Not set takes `OTEL_SERVICE_NAME`, else `taskweaver`.",
    ),
    key(
        "tracing.contents",
        False,
        "Whether spans carry prompts, replies, code and results, with secrets masked.",
    ),
)
