"""Cases as values: the steps of a conversation, its files, and the checks of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from taskweaver.evaluation.checks.check import Check, ScoringPoint

Action = Literal["ask", "converse", "run", "fork", "checkout", "session"]
LIMIT_S = 300.0
"""Longest time of a case that sets no limit of its own."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A file of a case.

    Attributes:
        name: Its name, a path inside of the folder it is written to.
        content: Its bytes.
    """

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call of a recorded reply."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply of a model.

    Attributes:
        text: Its text.
        calls: Calls of tools.
        fields: The fields of a structured reply, which can be written in each form; None for a
            reply that is played as it stands.
    """

    text: str = ""
    calls: tuple[RecordedCall, ...] = ()
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CaseStep:
    """A step of a case.

    Attributes:
        action: ``ask`` a question, let a model ``converse`` as the user, ``run`` a cell of the
            user's, ``fork`` and go on there, ``checkout`` a branch, or begin a new ``session``.
        text: The question, the task, the code or the name of the branch.
        at_round: For a fork: number of the last round it sees; None for all.
        files: Files that go with the question.
        replies: Recorded replies of the models to this question, in order; None for no recording.
        checks: Checks of the round.
    """

    action: Action
    text: str
    at_round: int | None = None
    files: tuple[CaseFile, ...] = ()
    replies: tuple[RecordedReply, ...] | None = None
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class EvalCase:
    """A case of an evaluation.

    Attributes:
        name: Its name, unique in an evaluation.
        kind: The ability that it tries, in a word or two.
        source: The file it was read from.
        digest: Hash of all that its result depends on.
        steps: Its steps, in order.
        checks: Checks of the whole conversation.
        points: Scoring points in the form of the original.
        config: Configuration keys, before those of the project.
        files: Files that are put into the working directory before the first step.
        data: Files of the data folder.
        documents: Files of the DocumentRetriever's folder; None keeps the project's.
        plugins: Files of the plugin folder; None keeps the project's.
        app_dir: Project folder that the case names; None for none.
        dependencies: Packages that must be installed.
        commands: Programs that run first.
        command_folder: Folder that they run in.
        is_held_out: Whether it is left out while prompts are written.
        is_for_analyst: Whether the offline analyst can answer it.
        is_shipped: Whether it is part of this package.
        limit_s: Longest time it may take.
        effects: Effects beyond questions in the project's sandbox, which need consent.
    """

    name: str
    kind: str
    source: Path
    digest: str
    steps: tuple[CaseStep, ...]
    checks: tuple[Check, ...] = ()
    points: tuple[ScoringPoint, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[CaseFile, ...] = ()
    data: tuple[CaseFile, ...] = ()
    documents: tuple[CaseFile, ...] | None = None
    plugins: tuple[CaseFile, ...] | None = None
    app_dir: Path | None = None
    dependencies: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    command_folder: Path | None = None
    is_held_out: bool = False
    is_for_analyst: bool = False
    is_shipped: bool = False
    limit_s: float = LIMIT_S
    effects: tuple[str, ...] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether each question has recorded replies."""
        asked = [step for step in self.steps if step.action in ("ask", "converse")]
        return all(step.replies is not None for step in asked)
