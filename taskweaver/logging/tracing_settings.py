"""Destination of spans: keys under ``tracing.``, else OpenTelemetry's own environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError

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
