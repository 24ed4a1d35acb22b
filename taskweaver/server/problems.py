"""ProblemDocument documents (RFC 9457): the form of every error that a client sees."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from taskweaver.errors import TaskWeaverError
from taskweaver.server.errors import RequestRefused
from taskweaver.utils.redact import redact

MEDIA_TYPE = "application/problem+json"
_OPENAI = "/v1/"
Statuses = Mapping[type[Exception], int]
"""Status of the response for each class of errors that a door's handlers raise."""


def problem_response(
    error: Exception, request_id: str, statuses: Statuses, path: str = ""
) -> Response:
    """Return the response for an error of a request for a path.

    On the OpenAI-compatible routes it has the field ``error`` of that API too. An error that is no
    refusal and in none of `statuses` becomes 500, without its text.
    """
    status, kind, detail = _facts(error, statuses)
    content: dict[str, Any] = {
        "type": f"urn:taskweaver:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": redact(detail),
        "request_id": request_id,
    }
    if isinstance(error, ValidationError):
        content["errors"] = [
            {"pointer": "/" + "/".join(map(str, item["loc"])), "detail": item["msg"]}
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ]
    if path.startswith(_OPENAI):
        content["error"] = {"message": redact(detail), "type": kind, "code": kind}
    headers = dict(getattr(error, "headers", None) or {})
    if isinstance(error, RequestRefused) and error.retry_after_s:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        headers["Connection"] = "close"  # a connection is a descriptor
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(json.dumps(content), status, headers, MEDIA_TYPE)


def _facts(error: Exception, statuses: Statuses) -> tuple[int, str, str]:
    """Return the status of the response, the kind of the problem, and its description."""
    match error:
        case RequestRefused():
            return error.status, error.kind, error.detail
        case HTTPException():
            phrase = HTTPStatus(error.status_code).phrase.lower()
            return error.status_code, phrase.replace(" ", "-"), f"{error.detail}."
        case ValidationError():
            return 422, "invalid-body", "The body does not fit this request."
        case TaskWeaverError():
            for base in type(error).__mro__:
                if base in statuses:
                    kind = re.sub(r"\B([A-Z])", r"-\1", type(error).__name__).lower()
                    return statuses[base], kind, str(error)
    detail = "The server failed; its log has the details under the id of this request."
    return 500, "internal", detail
