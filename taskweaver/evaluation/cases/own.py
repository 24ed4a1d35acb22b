"""Cases in the form of this program; docs/evaluation.md describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.evaluation.cases.case import (
    LIMIT_S,
    Action,
    CaseStep,
    EvalCase,
    RecordedCall,
    RecordedReply,
)
from taskweaver.evaluation.cases.effects import risky_keys
from taskweaver.evaluation.cases.files import digest_of, read_files
from taskweaver.evaluation.checks.read import read_checks
from taskweaver.evaluation.errors import EvaluationError
from taskweaver.evaluation.fields import CaseFields

_CASE = (
    "name", "kind", "held_out", "offline", "config", "files", "data", "documents", "plugins",
    "limit_s", "steps", "checks",
)  # fmt: skip
_ACTIONS: tuple[Action, ...] = ("ask", "run", "fork", "checkout", "session")
_STEP = (*_ACTIONS, "at_round", "files", "replies", "checks")
_MOST_STEPS = 100


def own_cases(data: object, file: Path, *, is_shipped: bool = False) -> list[EvalCase]:
    """Read the cases of a file: one, or a list of them under ``cases``.

    Args:
        data: The content of the file.
        file: The file.
        is_shipped: Whether it is part of this package.

    Raises:
        EvaluationError: If a case is not in the form.
    """
    if isinstance(data, Mapping) and "cases" in data:
        top = CaseFields(data, str(file), ("cases", "kind"))
        items = top.items("cases")
        kind = top.text("kind", "")
        return [
            _case(item, f"{file}, case {number}", file, kind, is_shipped=is_shipped)
            for number, item in enumerate(items, start=1)
        ]
    return [_case(data, str(file), file, "", is_shipped=is_shipped)]


def _case(data: object, place: str, file: Path, kind: str, *, is_shipped: bool) -> EvalCase:
    fields = CaseFields(data, place, _CASE)
    name = fields.text("name", file.stem if kind == "" else None)
    fields.place = place = f"{file}, {name}"
    folder = file.parent
    config = fields.mapping("config")
    files, data_files = read_files(fields, "files", folder), read_files(fields, "data", folder)
    documents, plugins = (
        read_files(fields, key, folder) if key in fields.data else None
        for key in ("documents", "plugins")
    )
    steps = _steps(fields, folder)
    effects = [] if is_shipped else list(risky_keys(config))
    if plugins is not None and not is_shipped:
        effects.append("plugins of its own")
    asked = [each for step in steps for each in step.files]
    every = [*files, *data_files, *(documents or ()), *(plugins or ()), *asked]
    return EvalCase(
        name=name,
        kind=fields.text("kind", kind or "other"),
        source=file,
        digest=digest_of(fields.data, every),
        steps=steps,
        checks=read_checks(fields.items("checks"), place, is_at_end=True),
        config=config,
        files=files,
        data=data_files,
        documents=documents,
        plugins=plugins,
        is_held_out=fields.flag("held_out"),
        is_for_analyst=fields.flag("offline"),
        is_shipped=is_shipped,
        limit_s=fields.number("limit_s", LIMIT_S),
        effects=tuple(effects),
    )


def _steps(fields: CaseFields, folder: Path) -> tuple[CaseStep, ...]:
    items = fields.items("steps")
    if not 0 < len(items) <= _MOST_STEPS:
        raise fields.error("steps", f"are {len(items)}, not 1 to {_MOST_STEPS}.")
    return tuple(
        _step(item, f"{fields.place}, step {number}", folder)
        for number, item in enumerate(items, start=1)
    )


def _step(item: object, place: str, folder: Path) -> CaseStep:
    fields = CaseFields(item, place, _STEP)
    actions = [action for action in _ACTIONS if action in fields.data]
    if len(actions) != 1:
        raise EvaluationError(place, f"has {len(actions)} of {', '.join(_ACTIONS)}, not one.")
    (action,) = actions
    at_round = fields.number("at_round", -1)
    return CaseStep(
        action,
        fields.text(action),
        int(at_round) if at_round >= 0 else None,
        read_files(fields, "files", folder),
        _replies(fields),
        read_checks(fields.items("checks"), place, is_at_end=False),
    )


def _replies(fields: CaseFields) -> tuple[RecordedReply, ...] | None:
    if "replies" not in fields.data:
        return None
    return tuple(
        _reply(item, f"{fields.place}, reply {number}")
        for number, item in enumerate(fields.items("replies"), start=1)
    )


def _reply(item: object, place: str) -> RecordedReply:
    """Read a reply: a text, or a mapping with a text or a response, and calls."""
    if isinstance(item, str):
        return RecordedReply(item)
    fields = CaseFields(item, place, ("text", "response", "calls"))
    text = fields.text("text", "")
    response = fields.mapping("response") if "response" in fields.data else None
    calls = tuple(_call(call, place) for call in fields.items("calls"))
    if not text and not calls and response is None:
        raise EvaluationError(place, "has neither text nor calls.")
    return RecordedReply(text, calls, response)


def _call(item: object, place: str) -> RecordedCall:
    fields = CaseFields(item, f"{place}, call", ("name", "arguments"))
    given: Any = fields.data.get("arguments", {})
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return RecordedCall(fields.text("name"), arguments)
