"""The OpenAPI document, made from the operations."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from taskweaver import __version__
from taskweaver.server.operations import BYTES_TYPE, JSON_TYPE, ApiOperation
from taskweaver.server.problems import MEDIA_TYPE

_EVERYWHERE = (400, 403, 415, 421, 422, 429, 503)
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
    usual = (404, 409) if item.parameters else ()
    own = usual if item.problems is None else item.problems
    problems = {*_EVERYWHERE, *own, *(() if item.is_public else (401,))}
    failures = {str(status): _problem(status, references[ProblemDocument]) for status in problems}
    answer: dict[str, Any] = {"description": HTTPStatus(item.status).phrase}
    if item.answer is not None:
        answer["content"] = {JSON_TYPE: {"schema": references[item.answer]}}
    elif item.status != HTTPStatus.NO_CONTENT:
        answer["content"] = {item.answer_type: {}}
    entry: dict[str, Any] = {
        "summary": item.summary,
        "operationId": _operation_id(item),
        "parameters": [
            *({**_parameter(name), "in": "path", "required": True} for name in item.parameters),
            *(
                {**_parameter(name), "in": "query", "description": use}
                for name, use in item.query.items()
            ),
        ],
        "responses": {str(item.status): answer} | dict(sorted(failures.items())),
        "security": [] if item.is_public else [{"bearer": []}, {"key": []}],
    }
    if item.body is not None:
        content: dict[str, Any] = {JSON_TYPE: {"schema": references[item.body]}}
        entry["requestBody"] = {"required": True, "content": content}
    elif item.takes_bytes:
        entry["requestBody"] = {"required": True, "content": {BYTES_TYPE: {}}}
    return entry


def _operation_id(item: ApiOperation) -> str:
    """Return an id that stays the same when handlers are renamed."""
    parts = [part.strip("{}") for part in item.plain_path.split("/") if part]
    return "_".join([item.method.lower(), *parts]).replace("-", "_").replace(".", "_")


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "schema": {"type": "string"}}


def _problem(status: int, schema: dict[str, Any]) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    return {"description": phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
