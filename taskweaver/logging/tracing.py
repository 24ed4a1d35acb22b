"""Spans for OpenTelemetry: real when switched on, free when not.

The package only makes spans; where they go is set up outside, by an OpenTelemetry SDK and its
own environment variables (``OTEL_...``), or by the program that embeds this one.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.utils.redact import redact
from taskweaver.utils.text import estimate_tokens

SpanStatus = Literal["OK", "ERROR"]
Attribute = str | float | bool


def _api() -> Any:
    try:
        import opentelemetry.trace as trace  # optional, and slow to import
    except ImportError as error:
        raise ConfigError(
            "tracing.enabled",
            "is on, but OpenTelemetry is not installed.",
            "Install it with `pip install taskweaver[otel]`, or switch tracing off.",
        ) from error
    return trace


class Tracing:
    """The traces of an application.

    Attributes:
        enabled: Whether spans are recorded.
    """

    # The setters below are static, as callers know them, so they need to know whether anybody
    # traces. It is raised by the first who does and never lowered.
    _in_use = False

    def __init__(self, src: AppConfigSource | None = None) -> None:
        """Read whether spans are wanted; None means they are not.

        Raises:
            ConfigError: If they are and OpenTelemetry is not installed.
        """
        self.enabled = src is not None and src.get_bool("tracing.enabled")
        self._tracer: Any = None
        if self.enabled:
            self._tracer = _api().get_tracer("taskweaver")
            Tracing._in_use = True

    @contextmanager
    def span(self, name: str, **attributes: Attribute) -> Iterator[None]:
        """Record the time the block takes as a span; an exception marks it as failed.

        Args:
            name: What is done, e.g. ``Planner.reply``.
            **attributes: Facts about it.
        """
        if self._tracer is None:
            yield
            return
        shown = {key: redact(v) if isinstance(v, str) else v for key, v in attributes.items()}
        # Left to itself, a span records exceptions as they are, with what they say of keys.
        with self._tracer.start_as_current_span(
            name, attributes=shown, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except Exception as error:
                self.set_span_exception(error)
                self.set_span_status("ERROR", f"{type(error).__name__}: {error}")
                raise

    @staticmethod
    def set_span_status(status_code: SpanStatus, status_message: str | None = None) -> None:
        """Say how the current span ended."""
        if Tracing._in_use:
            trace = _api()
            # A description is only allowed with an error.
            message = status_message if status_code == "ERROR" else None
            status = trace.Status(trace.StatusCode[status_code], message and redact(message))
            trace.get_current_span().set_status(status)

    @staticmethod
    def set_span_attribute(key: str, value: Attribute) -> None:
        """Note a fact on the current span, without secrets."""
        if Tracing._in_use:
            shown = redact(value) if isinstance(value, str) else value
            _api().get_current_span().set_attribute(key, shown)

    @staticmethod
    def add_prompt_size(size: int = 0, labels: Mapping[str, str] | None = None) -> None:
        """Note the size of a prompt or a reply in tokens, and facts about it, on the span."""
        Tracing.set_span_attribute("prompt_size", size)
        for name, value in (labels or {}).items():
            Tracing.set_span_attribute(f"prompt_size.{name}", value)

    @staticmethod
    def count_tokens(data: str) -> int:
        """Estimate the tokens of a text."""
        return estimate_tokens(data)

    @staticmethod
    def set_span_exception(exception: BaseException) -> None:
        """Record an exception on the current span, without secrets."""
        if Tracing._in_use:
            facts = {
                "exception.type": type(exception).__name__,
                "exception.message": redact(str(exception)),
                "exception.stacktrace": redact("".join(traceback.format_exception(exception))),
            }
            _api().get_current_span().add_event("exception", facts)
