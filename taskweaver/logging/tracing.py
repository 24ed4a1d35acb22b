"""Spans and metrics for OpenTelemetry: recorded where configured, free where not.

`Tracing` is the whole interface. While tracing is off nothing of OpenTelemetry is imported, and
every operation gets the same empty span. See docs/tracing.md and decision 0015.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.spans import AGENT, CONVERSATION, Operation, Span, Value, agent
from taskweaver.logging.telemetry import Telemetry, TracingSettings, attached
from taskweaver.utils.redact import redact
from taskweaver.utils.system.installation import install_command
from taskweaver.utils.text import estimate_tokens

SpanStatus = Literal["OK", "ERROR"]
Attribute = str | float | bool

_AGENT: ContextVar[str] = ContextVar("taskweaver_agent", default="")
_CONVERSATION: ContextVar[str] = ContextVar("taskweaver_conversation", default="")


def current_agent() -> str:
    """Return the alias of the role that is replying, or an empty text outside a reply."""
    return _AGENT.get()


_NO_SPAN = Span()


class Tracing:
    """The traces of an application, closed by the maker.

    Attributes:
        enabled: Whether spans are recorded.
        problem: Why nothing is recorded although tracing is switched on; empty if there is none.
    """

    _open: list[Tracing] = []  # noqa: RUF012 - one list for a process: its setters are static

    def __init__(
        self, src: AppConfigSource | None = None, logger: TelemetryLogger | None = None
    ) -> None:
        """Read the configuration, and connect to OpenTelemetry if tracing is switched on.

        Without a configuration it is off. The log receives warnings of OpenTelemetry, for example
        of a collector that is down.

        Raises:
            ConfigError: If a key of ``tracing.`` cannot be read.
        """
        self.enabled = False
        self.problem = ""
        self._telemetry: Telemetry | None = None
        settings = TracingSettings(src) if src is not None else None
        if settings is None or not settings.enabled:
            return
        try:
            self._telemetry = Telemetry(settings, logger)
        except ImportError:
            self.problem = (
                "Tracing is switched on, and OpenTelemetry's SDK is not installed: nothing is"
                f" recorded. Install it with `{install_command('otel')}`, or set tracing.enabled to"
                " false."
            )
            return
        except Exception as error:  # noqa: BLE001 - of any kind, for a variable it cannot use
            reason = " ".join(str(error).split()) or type(error).__name__
            self.problem = f"OpenTelemetry cannot be set up, and nothing is recorded: {reason}"
            return
        self.enabled = True
        Tracing._open.append(self)

    def begin(self, operation: Operation) -> Span:
        """Begin an operation below the current operation, which stays current."""
        if self._telemetry is None:
            return _NO_SPAN
        return self._telemetry.begin(_with_ids(operation))

    @contextmanager
    def running(self, operation: Operation) -> Iterator[Span]:
        """Record the block as an operation. An exception marks a failure."""
        span = self.begin(operation)
        if span is _NO_SPAN:
            yield span
            return
        try:
            with attached(span):
                yield span
        except BaseException as error:
            span.fail(error_type(error), f"{type(error).__name__}: {error}")
            raise
        finally:
            span.end()

    @contextmanager
    def agent(self, alias: str) -> Iterator[Span]:
        """Record the block as a role's reply. `current_agent` names the role meanwhile."""
        token = _AGENT.set(alias)
        try:
            with self.running(agent(alias)) as span:
                yield span
        finally:
            _AGENT.reset(token)

    @contextmanager
    def conversation(self, session_id: str) -> Iterator[None]:
        """Have the spans of the block carry the id of a session."""
        token = _CONVERSATION.set(session_id)
        try:
            yield
        finally:
            _CONVERSATION.reset(token)

    @contextmanager
    def span(self, name: str, **attributes: Attribute) -> Iterator[None]:
        """Record the block under a free name. An exception marks a failure."""
        with self.running(Operation(name, attributes)):
            yield

    def inject(self, carrier: Any) -> None:
        """Write the context of the current span into headers (W3C ``traceparent``)."""
        if self._telemetry is not None:
            from opentelemetry.propagate import inject

            inject(carrier)

    def tracer(self) -> Any:
        """Return the OpenTelemetry tracer, which records nothing while tracing is off."""
        return self._telemetry.tracer if self._telemetry is not None else _api().NoOpTracer()

    def close(self) -> None:
        """Deliver the records and end. Bounded, and safe to call again."""
        if self._telemetry is not None:
            self._telemetry.close()
            self._telemetry = None
            self.enabled = False
            Tracing._open.remove(self)

    @staticmethod
    def newest() -> Tracing:
        """Return the traces of the recording application opened last, or empty traces."""
        return Tracing._open[-1] if Tracing._open else Tracing()

    @staticmethod
    def set_span_status(status_code: SpanStatus, status_message: str | None = None) -> None:
        """Set the status of the current span. Only an error has a message."""
        if Tracing._open:
            trace = _api()
            message = status_message if status_code == "ERROR" else None
            status = trace.Status(trace.StatusCode[status_code], message and redact(message))
            trace.get_current_span().set_status(status)

    @staticmethod
    def set_span_attribute(key: str, value: Attribute) -> None:
        """Set an attribute of the current span, without secrets."""
        if Tracing._open:
            shown = redact(value) if isinstance(value, str) else value
            _api().get_current_span().set_attribute(key, shown)

    @staticmethod
    def add_prompt_size(size: int = 0, labels: Mapping[str, str] | None = None) -> None:
        """Set the size of a prompt or a reply in tokens on the current span, with labels."""
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
        if Tracing._open:
            facts = {
                "exception.type": type(exception).__name__,
                "exception.message": redact(str(exception)),
                "exception.stacktrace": redact("".join(traceback.format_exception(exception))),
            }
            _api().get_current_span().add_event("exception", facts)


def get_tracer() -> Any:
    """Return the tracer of the application opened last, or an empty tracer."""
    return Tracing.newest().tracer()


def error_type(error: BaseException) -> str:
    """Return the type of an error for spans: the ``kind``, else the name of the class."""
    kind = getattr(error, "kind", None)
    return kind if isinstance(kind, str) and kind else type(error).__name__


def _with_ids(operation: Operation) -> Operation:
    """Return an operation with the session and the role."""
    known = {CONVERSATION: _CONVERSATION.get(), AGENT: _AGENT.get()}
    ids: dict[str, Value] = {key: value for key, value in known.items() if value}
    return replace(operation, attributes=ids | dict(operation.attributes))


def _api() -> Any:
    import opentelemetry.trace as trace  # slow to import

    return trace
