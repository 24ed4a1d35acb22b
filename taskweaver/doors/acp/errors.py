"""Errors of requests, as the protocol words them: a code, and a sentence."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from acp.exceptions import RequestError

from taskweaver.errors import TaskWeaverError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.utils.redact import redact_known

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002

AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Awaitable[Any]])


def refused(code: int, sentence: str) -> RequestError:
    """Return the error of a request that is not carried out."""
    return RequestError(code, redact_known(sentence))


def worded(method: AnyMethod) -> AnyMethod:
    """Turn the errors of a method into errors of the protocol; its object has a `log`."""

    @functools.wraps(method)
    async def carry_out(*args: Any, **kwargs: Any) -> Any:
        log: TelemetryLogger = args[0].log
        try:
            return await method(*args, **kwargs)
        except RequestError:
            raise
        except (TaskWeaverError, OSError) as error:
            raise refused(INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            log.exception(f"{method.__name__} failed")
            name = type(error).__name__
            raise refused(INTERNAL_ERROR, f"{name}: the log has the details.") from error

    return carry_out  # type: ignore[return-value]
