"""The conversation of a case: its steps in sessions of one application, and recorded replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.errors import TaskWeaverError
from taskweaver.evaluation.case import CaseStep, EvalCase, RecordedReply
from taskweaver.evaluation.checks import Check, Examiner, Observed, shown
from taskweaver.evaluation.forms import CaseFailed
from taskweaver.evaluation.judge import StatementJudge, Turns
from taskweaver.llm.errors import ModelError
from taskweaver.llm.prompts import PromptRecord
from taskweaver.llm.types import ChatMessage, ModelRequest, Usage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.reading.cells import executed_cells
from taskweaver.memory.round import Round
from taskweaver.module.events import RoundEventType, TaskWeaverEvent
from taskweaver.session.session import Session
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.file_system.safe_fs import Folder

_HINT = "A recording fits one way of working: see 'Evaluation' in the documentation."
_OPERATIONS = {"remember": "text", "forget": "text", "recall": "query"}


class Recording:
    """The recorded replies of a case; called as the model of an application.

    A reply is found by its place, not by the prompt: a recording outlives changes of prompts, and
    shows nothing about them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._turn = 0
        self._replies: Sequence[RecordedReply] = ()
        self._taken = 0

    def begin_turn(self, replies: Sequence[RecordedReply]) -> None:
        """Go on to the replies of the next question."""
        with self._lock:
            self._turn += 1
            self._replies, self._taken = replies, 0

    @property
    def left_over(self) -> int:
        """Number of replies of this turn that were not asked for."""
        with self._lock:
            return len(self._replies) - self._taken

    def __call__(
        self, _messages: Sequence[ChatMessage], request: ModelRequest
    ) -> str | dict[str, Any]:
        """Return the next reply, its fields as calls of the tools that are offered.

        Raises:
            ModelError: Of kind ``recording_miss``, if there is none; of kind ``configuration``,
                if it calls tools and none are offered.
        """
        with self._lock:
            place = f"{self._name}, turn {self._turn}"
            if self._taken >= len(self._replies):
                detail = f"the recording of {place} has {len(self._replies)} replies, and one more"
                raise ModelError("recording_miss", f"{detail} was asked for.", hint=_HINT)
            reply = self._replies[self._taken]
            self._taken += 1
        if reply.response is not None:
            return _as_calls(reply.response, [tool.name for tool in request.tools])
        if not reply.calls:
            return reply.text
        if not request.tools:
            detail = f"reply {self._taken} of {place} calls tools, which are not offered."
            raise ModelError("configuration", detail, hint=_HINT)
        return _message(reply.text, [(call.name, call.arguments) for call in reply.calls])


def _as_calls(fields: Mapping[str, Any], offered: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a reply as a message with calls of tools."""
    kind = fields.get("reply_type")
    text = str(fields.get("reply_content" if kind == "text" else "message", ""))
    content = fields.get("reply_content", "") if kind in ("python", "bash") else ""
    code = str(fields.get("code") or content)
    is_order = not code and fields.get("send_to", "User") != "User"
    calls = [
        (name, {argument: fields[name]})
        for name, argument in _OPERATIONS.items()
        if fields.get(name)
    ]
    if fields.get("plan"):
        calls.append(("set_plan", {"steps": str(fields["plan"]).splitlines()}))
    if code:
        run = next((name for name in offered if name.startswith("run_")), "run_python")
        calls.append((run, {"intent": text, "code": code}))
    if is_order:
        calls.append(("ask", {"role": fields["send_to"], "order": text}))
    shown = str(fields.get("thought", "")) if code or is_order else text
    return _message(shown, [(name, json.dumps(given)) for name, given in calls])


def _message(text: str, calls: Sequence[tuple[str, str]]) -> dict[str, Any]:
    functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"content": text, "tool_calls": [{"function": function} for function in functions]}


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
        self.turns: Turns = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self._case = case
        self._app = app
        self._recording = recording
        self._judge = judge
        self._rounds: list[Round] = []
        self._calls: list[PromptRecord] = []
        self._error = ""
        self._spent = Usage()
        self._session: Session | None = None
        self._files: Mapping[str, bytes] = case.files
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
            if self._is_over.is_set() or not self._play(step, f"step {number}: "):
                return

    def check_all(self) -> None:
        """Make the checks of the whole conversation."""
        self._check(self._case.checks, self._observe(self._rounds, self._calls), "")

    def judge(self, statement: str) -> str:
        """Ask the judge about a statement; return the problem, empty if it agrees.

        Raises:
            CaseFailed: If no model can judge, or its replies cannot be read.
            ModelError: If it cannot be asked.
        """
        if self._judge is None:
            raise CaseFailed(self._case.name, "a judge is needed: run it with a live model.")
        return self._judge.decide(self._case.steps[0].text, self.turns, statement)

    def run_check(self, code: str, name: str) -> str:
        """Run a cell of a check; return the problem, empty if it runs to its end."""
        try:
            post = self.session.run_code(code).post_list[-1]
        except TaskWeaverError as error:
            return f"{shown(name)!r} cannot be checked: {error}"
        states = post.get_attachment(AttachmentType.execution_status)
        if states and str(states[-1].content) == "SUCCESS":
            return ""
        lines = [line.strip() for line in post.message.splitlines() if "Error" in line]
        return f"{shown(name)!r} does not hold: {shown(lines[-1] if lines else post.message)}"

    def handle(self, event: TaskWeaverEvent) -> None:
        """Keep the error of a round."""
        if event.t is RoundEventType.round_error:
            self._error = event.msg

    def _play(self, step: CaseStep, place: str) -> bool:
        """Play a step; return whether the next one follows."""
        match step.action:
            case "ask":
                return self._ask(step, step.text, place)
            case "converse":
                messages: Iterable[str] = [step.text]
                if self._judge is not None:
                    messages = self._judge.play_user(step.text, self.turns)
                else:
                    self.notes.append("the task was sent as it is: no model can play the user")
                return all(self._ask(step, message, place) for message in messages)
            case "run":
                self._place(self._files)
                self._files = {}
                calls = self._add(self.session.run_code(step.text))
                self._check(step.checks, self._observe(self._rounds[-1:], calls), place)
            case "fork":
                self.session.fork(step.text, at_round=step.at_round)
                self.session.checkout(step.text)
            case "checkout":
                self.session.checkout(step.text)
            case "session":
                self._spent = self.usage
                if self._session is not None:
                    self._session.stop()
                    self._session = None
        return True

    def _ask(self, step: CaseStep, question: str, place: str) -> bool:
        """Ask a question; return whether it was answered, or was not to be."""
        if self._recording is not None:
            self._recording.begin_turn(step.replies or ())
        self._error = ""
        calls = self._add(self.session.send_message(question, self, self._take_files(step)))
        seen = self._observe(self._rounds[-1:], calls)
        self.turns.append((question, seen.answer))
        left = self._recording.left_over if self._recording is not None else 0
        if left:
            self.notes.append(f"{place}{left} recorded replies were not asked for")
        if self._is_over.is_set():
            return False
        if not seen.is_answered and not any(check.answered for check in step.checks):
            if self._error and calls and calls[-1].error:
                # A model that cannot be asked gives no answer that could be scored.
                raise CaseFailed(self._case.name, self._error)
            reason = " ".join((self._error or seen.answer).split())
            self.problems.append(f"{place}there is no answer: {reason}")
            return False
        self._check(step.checks, seen, place)
        return True

    def _add(self, round_: Round) -> Sequence[PromptRecord]:
        """Add a round; return its model calls."""
        calls = self.session.prompts.records(round_.id)
        self._rounds.append(round_)
        self._calls += calls
        return calls

    def _observe(self, rounds: Sequence[Round], calls: Sequence[PromptRecord]) -> Observed:
        """Return the facts about rounds and their model calls."""
        posts = [post for round_ in rounds for post in round_.post_list]
        verdicts = [
            any(str(item.content) == "INCORRECT" for item in found)
            for found in (post.get_attachment(AttachmentType.verification) for post in posts)
        ]
        return Observed(
            answer=rounds[-1].answer.text if rounds else "",
            unsupported=tuple(n for round_ in rounds for n in round_.answer.unsupported_numbers),
            is_answered=all(map(_is_answered, rounds)),
            cells=tuple(executed_cells(rounds)),
            refusals=sum(verdicts),
            roles=frozenset(alias for post in posts for alias in (post.send_from, post.send_to)),
            artifacts=tuple(name for round_ in rounds for name in round_.artifacts),
            cwd=Path(self.session.execution_cwd),
            prompts=tuple(map(_text, calls)),
        )

    def _check(self, checks: Sequence[Check], seen: Observed, place: str) -> None:
        def holds(expression: str) -> str:
            return self.run_check(f"assert ({expression}), 'it is false'", expression)

        examiner = Examiner(holds, self.judge)
        for check in checks:
            for problem in check.problems(seen, examiner):
                self.problems.append(problem and f"{place}{problem}")

    def _take_files(self, step: CaseStep) -> list[AddedFile]:
        """Return the files that go with a question; write those in folders of their own."""
        files = {**self._files, **step.files}
        self._files = {}
        self._place({name: content for name, content in files.items() if "/" in name})
        return [
            {"name": name, "content": content} for name, content in files.items() if "/" not in name
        ]

    def _place(self, files: Mapping[str, bytes]) -> None:
        """Write files into the working directory, in which code may have put links."""
        if not files:
            return
        cwd = self.session.execution_cwd
        try:
            with Folder.at(cwd.resolve()) as folder:
                for name, content in files.items():
                    folder.make_folders(PurePath(name).parent)
                    with folder.replacing(name) as target:
                        target.write(content)
        except (OSError, ValueError) as error:
            raise CaseFailed(str(cwd), f"files cannot be written: {error}") from error


def _is_answered(round_: Round) -> bool:
    """Return whether a round gave the user an answer, not an apology."""
    if round_.state != "finished" or not round_.post_list:
        return False
    stops = round_.post_list[-1].get_attachment(AttachmentType.stop)
    return not any(str(stop.content).strip() == "TaskFailure" for stop in stops)


def _text(call: PromptRecord) -> str:
    """Return a prompt as text, without images."""
    texts = []
    for message in call.messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content or []
        texts += [str(part["text"]) for part in parts if "text" in part]
    return "\n".join(texts)
