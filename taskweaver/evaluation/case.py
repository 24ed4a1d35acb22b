"""Cases: steps of a conversation, files, and checks of the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from taskweaver.evaluation.checks import Check
from taskweaver.evaluation.forms import EvaluationError, Many, StrictForm, Words, mistake
from taskweaver.trust.keys import risk_of
from taskweaver.utils.file_system.safe_fs import open_ordinary
from taskweaver.utils.files import inside, read_yaml

Action = Literal["ask", "converse", "run", "fork", "checkout", "session"]
SHIPPED = "shipped"
"""Name of the cases that are part of this package."""

_SHIPPED_FOLDER = Path(__file__).with_name(SHIPPED)
_MOST_YAML_BYTES = 4 << 20
_PARENTS = 4
_MARKS = {"task_description", "eval_query", "user_query", "dialogues"}
_PLAIN_ROLES = frozenset(
    "planner code_interpreter code_interpreter_plugin_only code_interpreter_cli_only"
    " document_retriever echo recepta image_reader".split()
)
"""Packaged roles that stay on this machine."""


def _written(item: tuple[Any, Any]) -> tuple[str, bytes]:
    name, content = item
    path = PurePath(str(name))
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ValueError(f"has {name!r}, which is not a path inside of its folder")
    if not isinstance(content, str | bytes):
        raise ValueError(f"has {name!r} without a text")
    return str(name), content.encode() if isinstance(content, str) else content


def _read_files(given: Any, info: ValidationInfo) -> dict[str, bytes]:
    """Read files: names with their text, or paths relative to the folder of the case's file."""
    if isinstance(given, dict):
        return dict(map(_written, given.items()))
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("is not a list of texts")
    folder: Path = info.context or Path()
    found = {}
    for source in (inside(folder, path) for path in paths):
        below = sorted(item for item in source.rglob("*") if item.is_file())
        for file in below if source.is_dir() else [source]:
            try:
                with open_ordinary(file) as opened:
                    found[file.relative_to(source.parent).as_posix()] = opened.read()
            except OSError as error:
                raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    return found


Files = Annotated[dict[str, bytes], BeforeValidator(_read_files)]
"""Contents of files by their name, a path inside of the folder they are written to."""


def _as_json(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class RecordedCall(StrictForm):
    """A tool call of a recorded reply."""

    name: Words
    arguments: Annotated[str, BeforeValidator(_as_json)] = "{}"


class RecordedResponse(StrictForm):
    """Fields of a recorded reply, which are played as calls of tools."""

    send_to: str = "User"
    message: str = ""
    code: str = ""
    plan: str = ""
    remember: str = ""


class RecordedReply(StrictForm):
    """A recorded reply of a model: text and calls, or the fields of a ``response``."""

    text: str = ""
    response: RecordedResponse | None = None
    calls: Many[RecordedCall] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


class CaseStep(StrictForm):
    """A step of a case, with one action.

    Attributes:
        ask: A question.
        converse: A task; a model plays the user who has it.
        run: A cell of the user's.
        fork: Name of a branch to make and go on with.
        checkout: Name of a branch to go on with.
        session: ``new``: the session ends, and another one begins.
        at_round: For a fork: number of the last round it sees; None for all.
        files: Files that go with the question.
        replies: Recorded replies of the models to this question; None for no recording.
        checks: Checks of the round.
    """

    ask: Words | None = None
    converse: Words | None = None
    run: Words | None = None
    fork: Words | None = None
    checkout: Words | None = None
    session: Words | None = None
    at_round: int | None = None
    files: Files = Field(default={})
    replies: Many[RecordedReply] | None = None
    checks: Many[Check] = ()

    @model_validator(mode="after")
    def _has_one_action(self) -> Self:
        count = len(self._actions)
        if count != 1:
            raise ValueError(f"has {count} of {', '.join(get_args(Action))}, not one")
        if any(check.holds for check in self.checks):
            raise ValueError("'holds' runs a cell: it belongs to the checks of a case")
        return self

    @property
    def _actions(self) -> list[Action]:
        return [name for name in get_args(Action) if getattr(self, name) is not None]

    @property
    def action(self) -> Action:
        """The action."""
        return self._actions[0]

    @property
    def text(self) -> str:
        """The question, the task, the code or the name of the branch."""
        return str(getattr(self, self.action))


class ScoringPoint(StrictForm):
    """A scoring point in the form of the original: words for a judge, or code that decides."""

    score_point: Words
    weight: float = Field(1.0, gt=0)
    eval_code: str = ""


class EvalCase(StrictForm):
    """A case of an evaluation.

    Attributes:
        name: Its name, unique in an evaluation.
        kind: The ability that it tries, in a word or two.
        steps: Its steps, in order.
        checks: Checks of the whole conversation.
        points: Scoring points.
        config: Configuration keys, before those of the project.
        files: Files that are put into the working directory before the first step.
        data: Files of the data folder.
        documents: Files of the DocumentRetriever's folder; None keeps the project's.
        plugins: Files of the plugin folder; None keeps the project's.
        dependencies: Packages that must be installed.
        pre_command: Programs that run first.
        held_out: Whether it is left out while prompts are written.
        offline: Whether the offline analyst can answer it.
        limit_s: Longest time it may take.
        app_dir: Project folder that the case names; None for none.
        command_folder: Folder that its programs run in.
        source: The file it was read from.
        is_shipped: Whether it is part of this package.
    """

    name: Words
    kind: str = "other"
    steps: Annotated[Many[CaseStep], Field(min_length=1, max_length=100)]
    checks: Many[Check] = ()
    points: Many[ScoringPoint] = ()
    config: dict[str, Any] = Field(default={})
    files: Files = Field(default={})
    data: Files = Field(default={})
    documents: Files | None = None
    plugins: Files | None = None
    dependencies: Many[str] = ()
    pre_command: Many[str] = ()
    held_out: bool = False
    offline: bool = False
    limit_s: float = 300.0
    app_dir: Path | None = None
    command_folder: Path | None = None
    source: Path
    is_shipped: bool = False

    @property
    def digest(self) -> str:
        """Hash of all that the result depends on."""
        of_place = {"app_dir", "command_folder", "source", "is_shipped"}
        content = self.model_dump(exclude=of_place, exclude_defaults=True)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    @property
    def is_recorded(self) -> bool:
        """Whether each question has recorded replies."""
        asked = [step for step in self.steps if step.action in ("ask", "converse")]
        return all(step.replies is not None for step in asked)

    @property
    def effects(self) -> list[str]:
        """Effects beyond questions in the project's sandbox, which need consent."""
        if self.is_shipped:
            return []
        found = []
        for name, value in self.config.items():
            risk = risk_of(name)
            is_plain = risk == "roles" and isinstance(value, list) and {*value} <= _PLAIN_ROLES
            if risk != "harmless" and not is_plain:
                found.append(f"the configuration key {name}")
        found += [f"the program {command!r} (pre_command)" for command in self.pre_command]
        if any(point.eval_code for point in self.points):
            found.append("the code of a scoring point (eval_code)")
        if self.plugins is not None:
            found.append("plugins of its own")
        return found


class _CaseFile(StrictForm):
    """Several cases in one file."""

    kind: str = "other"
    cases: list[dict[str, Any]]


class _Query(StrictForm):
    """A question in an older form of the original."""

    model_config = ConfigDict(extra="ignore")
    user_query: Words
    scoring_points: Many[ScoringPoint] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"user_query": value} if isinstance(value, str) else value


class _OriginalCase(StrictForm):
    """A case of the original's ``auto_eval``.

    Read are the form with a ``task_description``, which a model plays the user of, and the older
    ones with ``user_query`` or a list ``eval_query``, whose queries are sent as they are.
    """

    version: Any = None
    verbose: Any = None
    post_index: Any = None
    app_dir: str = ""
    config_var: dict[str, Any] = Field(default={})
    dependencies: Many[str] = ()
    data_files: Files = Field(default={})
    pre_command: Many[str] = ()
    scoring_points: Many[ScoringPoint] = ()
    task_description: Words | None = None
    queries: Many[_Query] = Field(
        (), validation_alias=AliasChoices("user_query", "eval_query", "dialogues")
    )

    def case(self, file: Path) -> EvalCase:
        """Return the case, named like the file, or like the folder where the file is alone."""
        asked = [point for query in self.queries for point in query.scoring_points]
        points = [*self.scoring_points, *asked]
        if not points:
            raise EvaluationError(str(file), "scoring_points are missing.")
        steps = [CaseStep(ask=query.user_query) for query in self.queries]
        if self.task_description is not None:
            steps = [CaseStep(converse=self.task_description)]
        siblings = [item for end in ("*.yaml", "*.yml") for item in file.parent.glob(end)]
        app_dir, start = self._project(file.parent.resolve())
        return EvalCase(
            name=file.parent.resolve().name if len(siblings) == 1 else file.stem,
            kind="auto_eval",
            steps=tuple(steps),
            points=tuple(points),
            config=self.config_var,
            files=self.data_files,
            dependencies=self.dependencies,
            pre_command=self.pre_command,
            app_dir=app_dir,
            command_folder=start,
            source=file,
        )

    def _project(self, start: Path) -> tuple[Path | None, Path]:
        """Return the project folder, and the folder where paths start: the case's, or one above."""
        for folder in (start, *start.parents[:_PARENTS]) if self.app_dir else ():
            if (folder / self.app_dir).is_dir():
                return (folder / self.app_dir).resolve(), folder
        return None, start


def read_cases(place: str | Path) -> tuple[list[EvalCase], list[EvaluationError]]:
    """Read cases: of this program (see docs/evaluation.md), or of the original.

    Args:
        place: A file, a folder of files, or ``shipped``.

    Returns:
        The cases, in the order of their files, and an error for each file that is left out.

    Raises:
        EvaluationError: If there is no file at that place, two cases have one name, or the only
            file cannot be read.
    """
    is_shipped = str(place) == SHIPPED
    path = _SHIPPED_FOLDER if is_shipped else Path(place)
    files = [path]
    if not path.is_file():
        if not path.is_dir():
            raise EvaluationError(str(path), "there is no file or folder of cases.")
        files = sorted(file for end in ("*.yaml", "*.yml") for file in path.rglob(end))
    cases: dict[str, EvalCase] = {}
    broken: list[EvaluationError] = []
    for file in files:
        try:
            found = list(_read(file, is_shipped=is_shipped))
        except EvaluationError as error:
            if len(files) == 1:
                raise
            broken.append(error)
            continue
        for case in found:
            other = cases.setdefault(case.name, case)
            if other is not case:
                problem = f"the name {case.name!r} is taken by a case of {other.source}."
                raise EvaluationError(str(file), problem)
    if not cases and not broken:
        raise EvaluationError(str(place), "holds no cases.")
    return list(cases.values()), broken


def _read(file: Path, *, is_shipped: bool) -> Iterator[EvalCase]:
    """Read the cases of a file."""
    try:
        data = read_yaml(file, _MOST_YAML_BYTES)
    except (OSError, ValueError) as error:
        raise EvaluationError(str(file), f"cannot be read: {error}") from error
    place = str(file)
    try:
        if isinstance(data, Mapping) and not _MARKS.isdisjoint(data):
            yield _OriginalCase.model_validate(data, context=file.parent).case(file)
            return
        several = isinstance(data, Mapping) and "cases" in data
        top = _CaseFile.model_validate(data if several else {"cases": [data]})
        for number, item in enumerate(top.cases, start=1):
            place = f"{file}, {item.get('name') or f'case {number}'}"
            named = item if several else {"name": file.stem, **item}
            of_reader = {"source": file, "is_shipped": is_shipped}
            yield EvalCase.model_validate(
                {"kind": top.kind, **named, **of_reader}, context=file.parent
            )
    except ValidationError as error:
        problem = mistake(error)
        end = "" if problem.endswith("?") else "."
        raise EvaluationError(place, f"{problem}{end}") from error
