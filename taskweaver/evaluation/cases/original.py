"""Cases in the form of the original's ``auto_eval``.

Read are the form with a ``task_description``, which a model plays the user of, and the older ones
with ``user_query`` or a list ``eval_query``, whose queries are sent as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from taskweaver.evaluation.cases.case import CaseStep, EvalCase
from taskweaver.evaluation.cases.effects import risky_keys
from taskweaver.evaluation.cases.files import digest_of, read_files
from taskweaver.evaluation.checks.check import ScoringPoint
from taskweaver.evaluation.errors import EvaluationError
from taskweaver.evaluation.fields import CaseFields

_MARKS = ("task_description", "eval_query", "user_query", "dialogues")
_FIELDS = (
    "version", "app_dir", "config_var", "dependencies", "data_files", "pre_command", "verbose",
    "post_index", "scoring_points", *_MARKS,
)  # fmt: skip
_KIND = "auto_eval"
_PARENTS = 4


def is_original(data: object) -> bool:
    """Return whether the content of a file is a case of the original."""
    return isinstance(data, Mapping) and any(name in data for name in _MARKS)


def original_case(data: object, file: Path) -> EvalCase:
    """Read a case of the original.

    Args:
        data: The content of the file.
        file: The file. It names the case, or its folder does: there each case has one.

    Raises:
        EvaluationError: If it is not in the form.
    """
    fields = CaseFields(data, str(file), _FIELDS)
    steps = tuple(_steps(fields))
    points = tuple(_points(fields))
    files = read_files(fields, "data_files", file.parent)
    commands = tuple(fields.texts("pre_command"))
    config = fields.mapping("config_var")
    app_dir, folder = _project(fields, file)
    effects = list(risky_keys(config))
    effects += [f"the program {command!r} (pre_command)" for command in commands]
    effects += ["the code of a scoring point (eval_code)"] if any(p.code for p in points) else []
    return EvalCase(
        name=_name(file),
        kind=_KIND,
        source=file,
        digest=digest_of(fields.data, files),
        steps=steps,
        points=points,
        config=config,
        files=files,
        app_dir=app_dir,
        dependencies=tuple(fields.texts("dependencies")),
        commands=commands,
        command_folder=folder,
        effects=tuple(effects),
    )


def _name(file: Path) -> str:
    siblings = [item for end in ("*.yaml", "*.yml") for item in file.parent.glob(end)]
    return file.parent.resolve().name if len(siblings) == 1 else file.stem


def _steps(fields: CaseFields) -> Iterator[CaseStep]:
    if "task_description" in fields.data:
        yield CaseStep("converse", fields.text("task_description"))
        return
    if "user_query" in fields.data:
        for query in fields.texts("user_query"):
            yield CaseStep("ask", query)
        return
    name = "eval_query" if "eval_query" in fields.data else "dialogues"
    queries = fields.items(name)
    if not queries:
        raise fields.error(name, "is empty.")
    for number, item in enumerate(queries, start=1):
        if isinstance(item, str):
            yield CaseStep("ask", item)
        else:
            yield CaseStep("ask", CaseFields(item, f"{fields.place}, {number}").text("user_query"))


def _points(fields: CaseFields) -> Iterator[ScoringPoint]:
    items: list[Any] = fields.items("scoring_points")
    for query in fields.items("eval_query") + fields.items("dialogues"):
        if isinstance(query, Mapping):
            items += CaseFields(query, fields.place).items("scoring_points")
    if not items:
        raise fields.error("scoring_points", "are missing.")
    for number, item in enumerate(items, start=1):
        place = f"{fields.place}, scoring point {number}"
        point = CaseFields(item, place, ("score_point", "weight", "eval_code"))
        weight = point.number("weight", 1.0)
        if weight <= 0:
            raise EvaluationError(place, f"weight is {weight:g}, not above 0.")
        yield ScoringPoint(point.text("score_point"), weight, point.text("eval_code", ""))


def _project(fields: CaseFields, file: Path) -> tuple[Path | None, Path]:
    """Return the project folder of a case, and the folder its paths start at.

    The original starts them at its ``auto_eval`` folder: at the case's folder or one above.
    """
    given = fields.text("app_dir", "")
    if not given:
        return None, file.parent
    start = file.parent.resolve()
    for folder in (start, *start.parents[:_PARENTS]):
        if (folder / given).is_dir():
            return (folder / given).resolve(), folder
    return None, start
