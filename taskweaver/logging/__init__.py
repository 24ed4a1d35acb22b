"""The log and the traces of an application."""

from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing

__all__ = ["TelemetryLogger", "Tracing"]
