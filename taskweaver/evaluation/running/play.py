"""The play of a case: its place, its application, its conversation, its row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taskweaver import __version__
from taskweaver.app.app import TaskWeaverApp
from taskweaver.errors import TaskWeaverError
from taskweaver.evaluation.cases.case import EvalCase
from taskweaver.evaluation.checks.check import ScoringPoint
from taskweaver.evaluation.errors import CaseFailed
from taskweaver.evaluation.results.row import AnsweredBy, Outcome, ResultRow
from taskweaver.evaluation.running.commands import run_commands
from taskweaver.evaluation.running.conversation import CaseConversation
from taskweaver.evaluation.running.judge import StatementJudge
from taskweaver.evaluation.running.project import prepare_case
from taskweaver.evaluation.running.recording import Recording
from taskweaver.evaluation.running.scoring import point_cell, run_check, score_of
from taskweaver.llm.services import ModelFunction, ModelServices
from taskweaver.llm.types import Usage
from taskweaver.trust.opening import Trust


@dataclass(frozen=True, slots=True)
class PlaySetup:
    """Settings that all cases of an evaluation share.

    Attributes:
        project: The project folder.
        has_project: Whether the user has one; a case may name its own in its place.
        config: Configuration keys, before those of a case.
        trust: Consent to the effects of opening the project.
        is_trusted: Whether cases may run programs and set keys that need consent.
        by: Who answers.
        model: Name of the model.
        function: Function that plays the model; None for the configured one.
    """

    project: Path
    has_project: bool
    config: dict[str, Any]
    trust: Trust
    is_trusted: bool
    by: AnsweredBy
    model: str
    function: ModelFunction | None = None

    def refusal(self, case: EvalCase) -> str:
        """Return the reason why a case is not played; empty if it is."""
        if self.by == "recording" and not case.is_recorded:
            return "it has no recorded replies"
        if self.by == "offline" and not case.is_for_analyst:
            return "it is not for the offline analyst"
        if case.effects and not (self.is_trusted or case.is_shipped):
            return f"it needs your consent (--trust) for {', '.join(case.effects)}"
        return ""


@dataclass
class CasePlay:
    """One case being played; `run` once, `interrupt` and `stop` from any thread."""

    case: EvalCase
    setup: PlaySetup
    _conversation: CaseConversation | None = None
    _app: TaskWeaverApp | None = None
    _judge: StatementJudge | None = None
    _is_stopped: bool = False
    _began: float = field(default_factory=time.perf_counter)

    def run(self) -> ResultRow:
        """Play the case; return its row."""
        refusal = self.setup.refusal(self.case)
        if refusal:
            return self.row("skipped", problems=(refusal,))
        try:
            with TemporaryDirectory(prefix="taskweaver-eval-", ignore_cleanup_errors=True) as name:
                return self._play(Path(name).resolve())
        except TaskWeaverError as error:
            return self.row("error", problems=(str(error),))

    def interrupt(self) -> None:
        """End the case: its question, its judge, its further steps."""
        self._is_stopped = True
        if self._conversation is not None:
            self._conversation.interrupt()
        if self._judge is not None:
            self._judge.close()

    def stop(self) -> None:
        """End the application of the case, its kernels included."""
        self._is_stopped = True
        if self._app is not None:
            self._app.stop()

    def row(
        self,
        outcome: Outcome,
        *,
        score: float = 0.0,
        problems: tuple[str, ...] = (),
    ) -> ResultRow:
        """Return the row of the case as it stands."""
        talk = self._conversation
        used = talk.usage if talk else Usage()
        return ResultRow(
            case=self.case.name,
            kind=self.case.kind,
            by=self.setup.by,
            model=self.setup.model,
            digest=self.case.digest,
            outcome=outcome,
            score=round(score, 4),
            questions=len(talk.turns) if talk else 0,
            calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cached_tokens=used.cached_tokens,
            is_estimated=used.is_estimated,
            judge_calls=self._judge.usage.calls if self._judge else 0,
            time_s=round(time.perf_counter() - self._began, 3),
            is_held_out=self.case.is_held_out,
            problems=problems,
            notes=tuple(talk.notes) if talk else (),
            answers=tuple(answer for _, answer in talk.turns) if talk else (),
            version=__version__,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _play(self, folder: Path) -> ResultRow:
        place = prepare_case(self.case, folder)
        start = self.case.command_folder or folder
        run_commands(self.case.name, self.case.commands, start, self.case.limit_s)
        recording = Recording(self.case.name) if self.setup.by == "recording" else None
        config = {**self.setup.config, **place.config}
        with self._opened(config, recording) as app:
            services = app.app_injector.get(ModelServices)
            if self.setup.by == "live" and self.setup.function is None:
                self._judge = StatementJudge(services)
            self._began = time.perf_counter()
            self._conversation = CaseConversation(self.case, app, recording, self._judge)
            return self._converse(self._conversation)

    def _converse(self, talk: CaseConversation) -> ResultRow:
        """Play the conversation, and score it; the time of the row is that of the conversation."""
        if not self._is_stopped:
            talk.play()
        played = self.row("failed")
        if not self._is_stopped:
            talk.check_all(self.case.checks)
        is_cut = self._is_stopped
        score = score_of(
            () if is_cut else self.case.points,
            lambda point: self._decide(talk, point),
            talk.problems,
        )
        if self._is_stopped:
            return replace(played, outcome="timeout", problems=score.problems)
        outcome: Outcome = "failed" if score.problems else "passed"
        return replace(
            played,
            outcome=outcome,
            score=round(score.score, 4),
            problems=score.problems,
            judge_calls=self._judge.usage.calls if self._judge else 0,
        )

    def _decide(self, talk: CaseConversation, point: ScoringPoint) -> str:
        """Return the problem of a scoring point; empty if it is met."""
        if point.code:
            return run_check(talk.session, point_cell(point, talk.turns), point.statement)
        verdict = talk.judge(point.statement)
        return "" if verdict.is_hit else f"the judge denies {point.statement!r}: {verdict.reason}"

    @contextmanager
    def _opened(
        self, config: dict[str, Any], recording: Recording | None
    ) -> Iterator[TaskWeaverApp]:
        """Open the application of the case; close it at the end."""
        setup, case = self.setup, self.case
        is_own = case.app_dir is not None and not setup.has_project
        project = case.app_dir if is_own and case.app_dir else setup.project
        if is_own and not setup.is_trusted:
            raise CaseFailed(case.name, f"it opens the project {project}: allow it with --trust.")
        model = setup.function
        if recording is not None:
            model = recording
            config = {**config, "llm.api_type": "function", "ext_llms.llm_configs": {}}
        trust = True if is_own else setup.trust
        self._app = TaskWeaverApp(project, config, model=model, trust=trust)
        with self._app as app:
            yield app
