"""Conversion of failures of an endpoint or the network to a `ModelError` a caller can act on."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from taskweaver.llm.errors import ModelError, ModelErrorKind
from taskweaver.utils.redact import redact
from taskweaver.utils.surrogates import repair
from taskweaver.utils.text import shorten

MAX_DETAIL_CHARS = 1500
"""Keeps a detail under 2 KB of UTF-8 in all but exotic scripts; the rest is cut by bytes."""

_MAX_DETAIL_BYTES = 2048

_BY_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "overloaded",
    413: "context_overflow",
    429: "rate_limit",
    501: "bad_request",
    505: "bad_request",
}
_BY_WORDS: tuple[tuple[ModelErrorKind, re.Pattern[str]], ...] = (
    (
        "quota",
        re.compile(
            r"insufficient[ _]quota|exceeded your current quota|insufficient (?:balance|credit)"
            r"|credit balance is too low|billing[ _](?:hard[ _]limit|not[ _]active)|out of credits"
            r"|payment required",
            re.IGNORECASE,
        ),
    ),
    (
        "context_overflow",
        re.compile(
            r"context[ _](?:length|window|size|limit)|maximum context|prompt is (?:too|longer)"
            r"|too many (?:input )?tokens|exceeds? the (?:model'?s )?(?:maximum|available) "
            r"(?:context|number of tokens)"
            r"|input (?:is|tokens?) (?:too long|exceed)|reduce the length"
            r"|longer than the maximum model length|maximum prompt length|range of input length"
            r"|exceeds? (?:the )?max(?:imum)? (?:input )?length|exceeded model token limit"
            r"|exceeds? the context|`?inputs`? tokens \+ `?max_new_tokens`?"
            r"|exceed_context_size|maximum number of tokens allowed",
            re.IGNORECASE,
        ),
    ),
    (
        "content_filter",
        re.compile(r"content[ _](?:filter|policy|management)|safety system|moderation", re.I),
    ),
)
_PER_MINUTE = re.compile(r"per minute|\bTPM\b|\bRPM\b|rate_limit_exceeded", re.IGNORECASE)
_REPLY_TOO_LONG = re.compile(r"max_(?:completion_)?tokens`? is too large", re.IGNORECASE)
_NOT_PULLED = re.compile(r"^model ['\"]([\w./:-]{1,200})['\"] not found")
"""Words of Ollama for a model that it does not have."""

_HINTS: dict[ModelErrorKind, str] = {
    "auth": "Check llm.api_key.",
    "quota": "The account has no credit left for this; check its billing.",
    "not_found": "Check llm.model and llm.api_base.",
    "connection": "Check that llm.api_base is right and the server runs.",
    "timeout": "The limits are llm.first_token_timeout_s, llm.gap_timeout_s, llm.call_timeout_s.",
    "context_overflow": "The conversation is too long for this model: /reset, or a larger model.",
    "malformed": "Check that llm.api_base is the address of an OpenAI-compatible API (up to /v1).",
    "content_filter": "Rephrase the request.",
}


def failure(
    kind: ModelErrorKind,
    detail: str,
    model: str,
    *,
    hint: str | None = None,
    retry_after_s: float | None = None,
) -> ModelError:
    """Build a `ModelError`: its detail redacted, bounded and on one line, with the usual hint."""
    words = " ".join(shorten(repair(redact(detail[:65536])), MAX_DETAIL_CHARS).split())
    bounded = words.encode()[:_MAX_DETAIL_BYTES].decode("utf-8", "ignore")
    usual = _HINTS.get(kind, "") if hint is None else hint
    return ModelError(kind, bounded or "no detail.", model, usual, retry_after_s)


def status_failure(status: int, body: Any, headers: Mapping[str, str], model: str) -> ModelError:
    """Return the error for a response that is not a success.

    Args:
        status: HTTP status.
        body: The decoded body, or its text when it is not JSON.
        headers: The response's headers, names in lower case.
        model: Name of the model.
    """
    words = _plain(body) if isinstance(body, str) else error_words(body)
    kind = _kind(status, words)
    hint = None
    unknown = _NOT_PULLED.search(words) if status == 404 else None
    if unknown:
        hint = f"Get it with `ollama pull {unknown[1]}`, or check llm.model."
    if 300 <= status < 400:
        where = headers.get("location", "another address")
        hint = f"The endpoint has moved to {redact(where)}: set llm.api_base."
    request_id = headers.get("x-request-id") or headers.get("request-id", "")
    named = f" [request {request_id[:100]}]" if request_id else ""
    detail = f"HTTP {status}: {words or 'no explanation'}{named}"
    return failure(kind, detail, model, hint=hint, retry_after_s=retry_after(headers))


def stream_failure(error: Any, model: str) -> ModelError:
    """Return the error for an error object inside a stream."""
    words = error_words({"error": error}) or "an error without explanation"
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    is_status = re.fullmatch("[3-5][0-9]{2}", code)
    status = int(code) if is_status else 429 if "rate_limit" in words else 500
    return failure(_kind(status, words), words, model)


def error_words(body: Any) -> str:
    """Return the message of an error body, with the code, or "" without a message."""
    if isinstance(body, list) and body:  # Gemini's endpoint puts it into a list
        return error_words(body[0])
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, str):
        return error
    if not isinstance(error, Mapping):
        return ""
    said = [str(error[key]) for key in ("message", "detail", "msg") if error.get(key)]
    codes = [str(error[key]) for key in ("code", "type") if error.get(key)]
    return ": ".join(filter(None, (" / ".join(said), ", ".join(dict.fromkeys(codes)))))


def _kind(status: int, words: str) -> ModelErrorKind:
    if status in (413, 429) and _PER_MINUTE.search(words):
        return "rate_limit"
    if status in (400, 402, 403, 413, 422, 429, 500) and not _REPLY_TOO_LONG.search(words):
        for kind, pattern in _BY_WORDS:
            if pattern.search(words) and (status != 429 or kind == "quota"):
                return kind
    return _BY_STATUS.get(status, "overloaded" if status >= 500 else "bad_request")


def _plain(text: str) -> str:
    # Of an HTML page only the words count.
    return " ".join(re.sub(r"<[^<>]{0,2000}>", " ", text[:16384]).split())[:600]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from the headers, or None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(moment - time.time(), 0.0)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def exchange_failure(error: BaseException, model: str) -> ModelError:
    """Return the error for an exception of the HTTP client.

    The client's library and the one beneath it come in several generations, so exceptions of the
    latter are recognised by name.
    """
    import openai

    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APIStatusError):
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return status_failure(error.status_code, error.body, headers, model)
    is_connection = isinstance(error, openai.APIConnectionError)
    cause = (error.__cause__ or error) if is_connection else error
    name = type(cause).__name__
    is_lost = is_connection or isinstance(error, OSError)
    kind = _BY_EXCEPTION.get(name, "connection" if is_lost else "bad_request")
    return failure(kind, f"{_IN_WORDS.get(name, name)}: {cause}", model)


_BY_EXCEPTION: dict[str, ModelErrorKind] = {
    "ConnectTimeout": "connection",
    "PoolTimeout": "connection",
    "ReadTimeout": "timeout",
    "WriteTimeout": "timeout",
    "ReadError": "connection",
    "WriteError": "connection",
    "CloseError": "connection",
    "RemoteProtocolError": "connection",
    "DecodingError": "malformed",
}
_IN_WORDS = {
    "ConnectTimeout": "no connection came about in time",
    "ConnectError": "no connection",
    "ReadTimeout": "the server went silent",
    "ReadError": "the connection broke",
    "RemoteProtocolError": "the server broke off",
    "DecodingError": "the reply's encoding is broken",
}
