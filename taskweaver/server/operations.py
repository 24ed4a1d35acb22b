"""Operations: declarations of routes, from which routing and the API document are made."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from taskweaver import __version__
from taskweaver.server.admission import User
from taskweaver.server.errors import RequestRefused, invalid_query, not_found
from taskweaver.server.problems import MEDIA_TYPE, Statuses

JSON_TYPE = "application/json"
BYTES_TYPE = "application/octet-stream"
EVENTS_TYPE = "text/event-stream"
FORM_TYPE = "multipart/form-data"
BODY_LIMIT = 4 << 20
"""Largest body in bytes, unless an operation sets another."""
PATH_OF_PROXY = "path_of_proxy"
"""Name of a request's state: the path of a proxy below which its client found the server."""

_PLACEHOLDER = re.compile(r"{(\w+)(?::\w+)?}")

_DECLARED = "declared_operations"


@dataclass(frozen=True, slots=True)
class Call:
    """One request for an operation, admitted and read.

    Attributes:
        user: The user; one without a name where the operation is public and no token came.
        request: The request.
    """

    user: User
    request: Request

    def path(self, name: str) -> str:
        """Return a part of the path by name."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the query."""
        return self.request.query_params.get(name, default)

    @property
    def base_url(self) -> str:
        """Address of the server as written by the client, without a final slash."""
        path = getattr(self.request.state, PATH_OF_PROXY, "")
        return str(self.request.base_url).rstrip("/") + path

    async def chunks(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """Yield the body of an operation that takes bytes.

        Raises:
            RequestRefused: If it is larger.
        """
        size = 0
        async for chunk in self.request.stream():
            size += len(chunk)
            if size > limit_bytes:
                raise too_large(limit_bytes)
            yield chunk


Handler = Callable[..., Awaitable[Response | BaseModel | None]]
HandlerT = TypeVar("HandlerT", bound=Handler)
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """A route: address, handler, and description.

    Attributes:
        method: HTTP method.
        path: Path, with placeholders as Starlette writes them: ``/files/{path:path}``.
        handler: Function that carries it out with the `Call`, and the `body` if there is one;
            returns a response, an `answer`, or nothing.
        summary: Purpose, in one line.
        body: Model of the JSON body; None for no body.
        raw: Type of a body that the handler reads itself: `BYTES_TYPE` for all types but those of
            forms, or `FORM_TYPE`; empty for others.
        answer: Model of the JSON answer; None for other answers.
        answer_type: Media type of an answer that is not JSON.
        status: Status of a success.
        query: Parameters of the query, each with its purpose.
        is_public: Whether it needs no token.
        is_end: Whether it ends something, for which no share of a user's is asked.
        of_admins: Beginning of the message that refuses users who are no admins, as ``Searches``;
            empty where all users may.
        body_limit: Largest JSON body in bytes.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    body: type[BaseModel] | None = None
    raw: str = ""
    answer: type[BaseModel] | None = None
    answer_type: str = JSON_TYPE
    status: int = 200
    query: dict[str, str] = field(default_factory=dict)
    is_public: bool = False
    is_end: bool = False
    of_admins: str = ""
    body_limit: int = BODY_LIMIT

    @property
    def parameters(self) -> list[str]:
        """Names of the placeholders in the path."""
        return _PLACEHOLDER.findall(self.path)

    @property
    def plain_path(self) -> str:
        """Path with placeholders in OpenAPI's form."""
        return _PLACEHOLDER.sub(r"{\1}", self.path)

    @property
    def name(self) -> str:
        """Method and path, for the audit log."""
        return f"{self.method} {self.plain_path}"


def operation(method: str, path: str, summary: str, **more: Any) -> Callable[[HandlerT], HandlerT]:
    """Declare a method as the handler of an operation.

    The model among the types of its parameters is that of the body, and the model it returns that
    of the answer; one that returns nothing has the status 204.

    Args:
        method: HTTP method.
        path: Path with placeholders.
        summary: Purpose, in one line.
        more: Further attributes of the `ApiOperation`.
    """

    def declare(handler: HandlerT) -> HandlerT:
        vars(handler).setdefault(_DECLARED, []).append((method, path, summary, more))
        return handler

    return declare


def operations_of(owner: object) -> list[ApiOperation]:
    """Return the operations whose handlers are methods of an object.

    Its attribute `of_admins`, if there is one, is that of the operations that name none.
    """
    usual = {"of_admins": getattr(owner, "of_admins", "")}
    return [
        _declared(method, path, getattr(owner, name), summary, usual | more)
        for name, function in vars(type(owner)).items()
        for method, path, summary, more in getattr(function, _DECLARED, ())
    ]


def _declared(
    method: str, path: str, handler: Handler, summary: str, more: Mapping[str, Any]
) -> ApiOperation:
    hints = get_type_hints(handler)
    returned = hints.pop("return")
    answers, bodies = get_args(returned) or (returned,), hints.values()
    status = HTTPStatus.NO_CONTENT if returned is type(None) else HTTPStatus.OK
    found = {"body": _model(bodies), "answer": _model(answers), "status": status}
    return ApiOperation(
        method, path, handler, summary, **{**found, "is_end": method == "DELETE", **more}
    )


def _model(types: Iterable[Any]) -> type[BaseModel] | None:
    models = (one for one in types if isinstance(one, type) and issubclass(one, BaseModel))
    return next(models, None)


class Door:
    """A set of operations with all resources.

    Attributes:
        statuses: Status of the response for each class of errors that handlers raise.
        groups: Objects with operations, besides those of the door itself.
    """

    statuses: Statuses = MappingProxyType({})
    groups: Sequence[object] = ()

    @property
    def operations(self) -> list[ApiOperation]:
        """The operations."""
        return [one for group in (self, *self.groups) for one in operations_of(group)]

    async def finish(self, grace_s: float) -> None:
        """Refuse new work, and end the running work: within a time by itself, else by force."""

    async def close(self) -> None:
        """Release every resource. Called once, after `finish`."""


_FORMS = {FORM_TYPE, "application/x-www-form-urlencoded"}
"""Types of bodies that are not the bytes of a file."""


def too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal of a body that is too large."""
    detail = f"The body has more than {limit_bytes} bytes, the most that this request takes."
    return RequestRefused(413, "too-large", detail)


async def read_body(request: Request, operation: ApiOperation) -> BaseModel | None:
    """Return the checked body of a request.

    Raises:
        RequestRefused: If it is of another type or too large, or no JSON.
        ValidationError: If the JSON does not fit the operation's model.
    """
    declared = request.headers.get("content-length", "")
    has_body = bool(declared.strip("0")) or "transfer-encoding" in request.headers
    expected = operation.raw or JSON_TYPE
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_fit = media_type not in _FORMS if expected == BYTES_TYPE else media_type == expected
    if (has_body or operation.body is not None) and not is_fit:
        detail = f"The body must be {expected}; its Content-Type is {media_type or 'missing'}."
        raise RequestRefused(415, "media-type", detail)
    if operation.raw:
        return None
    limit = operation.body_limit if operation.body is not None else 0
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise too_large(limit)
    if operation.body is None:
        return None
    try:
        return operation.body.model_validate_json(bytes(content))
    except ValidationError as error:
        if error.errors(include_url=False)[0]["type"] != "json_invalid":
            raise
        raise RequestRefused(400, "no-json", "The body is no JSON.") from None


def view(model: type[ModelT], source: object, **more: object) -> ModelT:
    """Return an answer with the fields of an object that have the same names, and with more."""
    names = model.model_fields.keys() - more.keys()
    named = {name: getattr(source, name) for name in names if hasattr(source, name)}
    return model.model_validate(named | more)


def plain_name(text: str, kind: str) -> str:
    """Return a name that a client gave, if fit for a path.

    Raises:
        RequestRefused: If it cannot.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", text):
        detail = f"An id of {kind} has at most 128 letters, digits, dots, hyphens and underscores."
        raise RequestRefused(422, "invalid-id", detail)
    return text


def require_admin(user: User, subject: str) -> None:
    """Require that a user is an admin. The subject begins the message of the refusal.

    Raises:
        RequestRefused: If the user is none.
    """
    if user.role != "admin":
        raise not_found(f"{subject} are for admins.")


def missing(kind: str, name: str) -> RequestRefused:
    """Return the refusal of a request for a thing that this user does not have."""
    return not_found(f"{kind} {name} not found.")


def optional_number(call: Call, name: str) -> int | None:
    """Return a number of the query, or None. Raises as `number_of`."""
    return number_of(call, name, 0, 1 << 40) if call.query(name) else None


def number_of(call: Call, name: str, default: int, most: int) -> int:
    """Return a number of the query, at most a bound.

    Raises:
        RequestRefused: If it is none.
    """
    text = call.query(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise invalid_query(f"{name} must be a number from 0 on.")
    return min(int(text), most)


_EVERYWHERE = (400, 403, 415, 421, 422, 429, 503)
_TEXT = {"schema": {"type": "string"}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FORM = {"schema": {"type": "object", "properties": {"file": _BINARY["schema"]}}}
_REFERENCE = "#/components/schemas/{model}"


class ProblemDocument(BaseModel):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str


def openapi_document(operations: Sequence[ApiOperation]) -> dict[str, Any]:
    """Return the document of all operations."""
    used: set[type[BaseModel]] = {ProblemDocument}
    used |= {model for item in operations for model in (item.body, item.answer) if model}
    models = sorted(used, key=lambda model: model.__name__)
    schemas, shared = models_json_schema(
        [(model, "validation") for model in models], ref_template=_REFERENCE
    )
    references = {model: schemas[model, "validation"] for model in models}
    paths: dict[str, dict[str, Any]] = {}
    for item in operations:
        paths.setdefault(item.plain_path, {})[item.method.lower()] = _entry(item, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "TaskWeaver", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": shared.get("$defs", {}),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _entry(item: ApiOperation, references: dict[type[BaseModel], Any]) -> dict[str, Any]:
    in_path = [{**_parameter(name), "in": "path", "required": True} for name in item.parameters]
    in_query = [
        {**_parameter(name), "in": "query", "description": use} for name, use in item.query.items()
    ]
    entry: dict[str, Any] = {
        "summary": item.summary,
        "operationId": _operation_id(item),
        "parameters": in_path + in_query,
        "responses": {
            str(item.status): _success(item, references),
            **_problems(item, references[ProblemDocument]),
        },
        "security": [] if item.is_public else [{"bearer": []}, {"key": []}],
    }
    content: dict[str, Any] = {}
    if item.body is not None:
        content = {JSON_TYPE: {"schema": references[item.body]}}
    elif item.raw:
        content = {FORM_TYPE: _FORM} if item.raw == FORM_TYPE else {"*/*": _BINARY}
    if content:
        entry["requestBody"] = {"required": True, "content": content}
    return entry


def _success(item: ApiOperation, references: dict[type[BaseModel], Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(item.status).phrase}
    if item.answer is not None:
        answer["content"] = {JSON_TYPE: {"schema": references[item.answer]}}
    elif item.status != HTTPStatus.NO_CONTENT:
        is_text = item.answer_type == EVENTS_TYPE
        answer["content"] = {item.answer_type: _TEXT if is_text else _BINARY}
    return answer


def _problems(item: ApiOperation, schema: Any) -> dict[str, Any]:
    """Map the usual statuses of problems to descriptions, and all further ones as ``default``."""
    statuses = {*_EVERYWHERE, *((404, 409) if item.parameters else ())}
    statuses |= ({404} if item.of_admins else set()) | (set() if item.is_public else {401})
    phrases = {str(status): HTTPStatus(status).phrase for status in sorted(statuses)}
    content = {MEDIA_TYPE: {"schema": schema}}
    return {
        status: {"description": phrase, "content": content}
        for status, phrase in (phrases | {"default": "Another problem"}).items()
    }


def _operation_id(item: ApiOperation) -> str:
    """Return an id that stays the same when handlers are renamed."""
    parts = [part.strip("{}") for part in item.plain_path.split("/") if part]
    return "_".join([item.method.lower(), *parts]).replace("-", "_").replace(".", "_")


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "schema": {"type": "string"}}
