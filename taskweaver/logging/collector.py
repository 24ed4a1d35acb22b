"""The HTTP session to a collector: patient while the application runs, brief when it ends."""

from __future__ import annotations

import logging
from typing import Any

from taskweaver.logging.log import TelemetryLogger

_LAST_REQUEST_S = 1.0
_MOST_KINDS = 50


class CollectorGone(Exception):
    """A request that is not made again: the application is ending."""


class CollectorSession:
    """Replacement for the `requests.Session` of an OTLP exporter.

    Attributes:
        is_failing: Whether the newest request failed.
    """

    verify: Any = True
    cert: Any = None

    def __init__(self) -> None:
        import requests

        self._session = requests.Session()
        self._is_last = False
        self.is_failing = False

    def hurry(self) -> None:
        """Make each further request once, and briefly."""
        self._is_last = True

    def request(self, *, timeout: float | None = None, **options: Any) -> Any:
        """Send a request.

        Raises:
            CollectorGone: If it fails while the application ends.
            OSError: If it fails before; the exporter sends it again.
        """
        self._session.verify, self._session.cert = self.verify, self.cert
        limit_s = min(timeout or _LAST_REQUEST_S, _LAST_REQUEST_S) if self._is_last else timeout
        self.is_failing = True
        try:
            response = self._session.request(timeout=limit_s, **options)
        except OSError as error:  # those of requests are
            if self._is_last:
                raise CollectorGone(str(error)) from error
            raise
        if response.ok:
            self.is_failing = False
        elif self._is_last:
            raise CollectorGone(f"{response.status_code} {response.reason}")
        return response

    def close(self) -> None:
        """Close its connections."""
        self._session.close()


class WarningsToLog(logging.Handler):
    """Takes the warnings of OpenTelemetry to the application's log, each kind once.

    Without a handler they would be printed into the conversation.
    """

    def __init__(self, logger: TelemetryLogger | None) -> None:
        super().__init__(logging.WARNING)
        self._to = logger
        self._seen: set[str] = set()
        self._source = logging.getLogger("opentelemetry")

    def begin(self) -> None:
        """Receive warnings."""
        self._source.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Log a warning, unless its kind was logged before."""
        kind = str(record.msg)
        if self._to is None or kind in self._seen or len(self._seen) >= _MOST_KINDS:
            return
        self._seen.add(kind)
        self._to.warning(f"OpenTelemetry: {record.getMessage()}")

    def mute(self) -> None:
        """Log no further warning."""
        self._to = None

    def end(self) -> None:
        """Receive no further warning."""
        self._source.removeHandler(self)
