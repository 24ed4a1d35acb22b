"""The conversation of a case: its steps, in sessions of one application."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from taskweaver.app.app import TaskWeaverApp
from taskweaver.evaluation.cases.case import CaseFile, CaseStep, EvalCase
from taskweaver.evaluation.checks.answers import AnsweredCheck
from taskweaver.evaluation.checks.check import Check, Examiner, JudgeVerdict, Observed
from taskweaver.evaluation.errors import CaseFailed
from taskweaver.evaluation.running.judge import StatementJudge
from taskweaver.evaluation.running.observing import ErrorListener, observe
from taskweaver.evaluation.running.project import place_files
from taskweaver.evaluation.running.recording import Recording
from taskweaver.evaluation.running.scoring import holds
from taskweaver.llm.prompts import PromptRecord
from taskweaver.llm.types import Usage
from taskweaver.memory.round import Round
from taskweaver.session.session import Session
from taskweaver.session.storage.workdir import AddedFile


class CaseConversation:
    """Plays the steps of a case, and checks each round.

    Attributes:
        turns: Questions and answers so far.
        problems: A problem for each check so far, empty for a check that is met.
        notes: Remarks that do not change the outcome.
    """

    def __init__(
        self,
        case: EvalCase,
        app: TaskWeaverApp,
        recording: Recording | None,
        judge: StatementJudge | None,
    ) -> None:
        """Prepare it; nothing is asked yet.

        Args:
            case: The case.
            app: Its application.
            recording: The recorded replies, if these answer.
            judge: The judge; None where no model can judge.
        """
        self.turns: list[tuple[str, str]] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self._case = case
        self._app = app
        self._recording = recording
        self._judge = judge
        self._rounds: list[Round] = []
        self._calls: list[PromptRecord] = []
        self._spent = Usage()
        self._session: Session | None = None
        self._files: tuple[CaseFile, ...] = case.files
        self._is_over = threading.Event()

    @property
    def usage(self) -> Usage:
        """Consumption of the model that is tried."""
        return self._spent + (self._session.usage if self._session else Usage())

    @property
    def session(self) -> Session:
        """The current session; made when it is first needed."""
        if self._session is None:
            self._session = self._app.get_session()
            if self._is_over.is_set():
                self._session.stop()
        return self._session

    def interrupt(self) -> None:
        """End the step under way, from any thread; no other one begins."""
        self._is_over.set()
        session = self._session
        if session is not None:
            session.interrupt()

    def play(self) -> None:
        """Play the steps, and make the checks of each round.

        The steps end early at a question that is not answered.

        Raises:
            TaskWeaverError: If a step cannot be played, or a model cannot be asked.
        """
        for number, step in enumerate(self._case.steps, start=1):
            if self._is_over.is_set() or not self._play(step, f"step {number}"):
                return

    def check_all(self, checks: Sequence[Check]) -> None:
        """Make checks of the whole conversation."""
        cwd = self.session.execution_cwd
        self._check(checks, observe(self._rounds, self._calls, cwd), "")

    def judge(self, statement: str) -> JudgeVerdict:
        """Ask the judge about a statement.

        Raises:
            CaseFailed: If no model can judge, or its replies cannot be read.
            ModelError: If it cannot be asked.
        """
        if self._judge is None:
            raise CaseFailed(self._case.name, "a judge is needed: run it with a live model.")
        return self._judge.decide(self._case.steps[0].text, self.turns, statement)

    def _play(self, step: CaseStep, place: str) -> bool:
        """Play a step; return whether the next one follows."""
        match step.action:
            case "ask":
                return self._ask(step, step.text, place)
            case "converse":
                return self._converse(step, place)
            case "run":
                self._place_files()
                self._add(self.session.run_code(step.text))
                self._check(step.checks, self._observe(), place)
            case "fork":
                self.session.fork(step.text, at_round=step.at_round)
                self.session.checkout(step.text)
            case "checkout":
                self.session.checkout(step.text)
            case "session":
                self._end_session()
        return True

    def _end_session(self) -> None:
        if self._session is not None:
            self._spent += self._session.usage
            self._session.stop()
            self._session = None

    def _converse(self, step: CaseStep, place: str) -> bool:
        """Let a model play the user; without one the task is the question."""
        if self._judge is None:
            self.notes.append("the task was sent as it is: there is no model to play the user")
            return self._ask(step, step.text, place)
        user = self._judge.play_user(step.text)
        message = next(user, None)
        while message is not None:
            if not self._ask(step, message, place):
                return False
            try:
                message = user.send(self.turns[-1][1])
            except StopIteration:
                return True
        return True

    def _ask(self, step: CaseStep, question: str, place: str) -> bool:
        """Ask a question; return whether it was answered, or was not to be."""
        if self._recording is not None:
            self._recording.begin_turn(step.replies or ())
        listener = ErrorListener()
        files = self._take_files(step.files)
        round_ = self.session.send_message(question, listener, files)
        self._add(round_)
        seen = self._observe()
        self.turns.append((question, seen.answer))
        self._note_left_over(place)
        if self._is_over.is_set():
            return False
        is_expected = any(isinstance(check, AnsweredCheck) for check in step.checks)
        if not seen.is_answered and not is_expected:
            self._require_model(listener.error)
            reason = listener.error or seen.answer
            self.problems.append(f"{place}: there is no answer: {' '.join(reason.split())}")
            return False
        self._check(step.checks, seen, place)
        return True

    def _require_model(self, error: str) -> None:
        """Raise the error of a model that cannot be asked: that is no answer to be scored."""
        failed = self._calls[-1:] and self._calls[-1].error
        if error and failed:
            raise CaseFailed(self._case.name, error)

    def _note_left_over(self, place: str) -> None:
        left = self._recording.left_over if self._recording is not None else 0
        if left:
            self.notes.append(f"{place}: {left} recorded replies were not asked for")

    def _add(self, round_: Round) -> None:
        self._rounds.append(round_)
        self._calls += self.session.prompts.records(round_.id)

    def _observe(self) -> Observed:
        """Return the facts about the last round."""
        newest = self._rounds[-1]
        session = self.session
        return observe([newest], session.prompts.records(newest.id), session.execution_cwd)

    def _check(self, checks: Sequence[Check], seen: Observed, place: str) -> None:
        examiner = Examiner(lambda text: holds(self.session, text), self.judge)
        for check in checks:
            problem = check.problem(seen, examiner)
            if check.needs_answer and not seen.answer and problem:
                problem = f"there is no answer to check: {problem}"
            self.problems.append(f"{place}: {problem}" if place and problem else problem)

    def _take_files(self, files: Sequence[CaseFile]) -> list[AddedFile]:
        """Return the files that go with a question; write those in folders of their own."""
        files = [*self._files, *files]
        self._files = ()
        nested = [file for file in files if "/" in file.name]
        if nested:
            place_files(self.session.execution_cwd, nested)
        return [
            {"name": file.name, "content": file.content} for file in files if file not in nested
        ]

    def _place_files(self) -> None:
        """Write the files of the case before a cell of the user's runs."""
        place_files(self.session.execution_cwd, self._files)
        self._files = ()
