"""The conversation of a case: steps in sessions of one application, and recorded replies."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.errors import TaskWeaverError
from taskweaver.evaluation.case import CaseStep, EvalCase, RecordedReply, RecordedResponse
from taskweaver.evaluation.checks import Check, Observed, shown
from taskweaver.evaluation.forms import CaseFailed
from taskweaver.evaluation.judge import StatementJudge, Turns
from taskweaver.llm.errors import ModelError
from taskweaver.llm.prompts import PromptRecord
from taskweaver.llm.types import ChatMessage, ModelRequest, Usage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import executed_cells
from taskweaver.memory.round import Round
from taskweaver.session.session import Session
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.file_system.safe_fs import Folder

_HINT = "A recording fits one way of working: see 'Evaluation' in the documentation."


class Recording:
    """The recorded replies of a case, called as the model of an application.

    A reply is found by its place, not by the prompt: a recording outlives changes of prompts, and
    shows nothing about them.

    Attributes:
        left: Replies to the question that were not asked for yet.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = 0
        self.left: deque[RecordedReply] = deque()

    def begin_turn(self, replies: Sequence[RecordedReply]) -> None:
        """Go on to the replies of the next question."""
        self._turn += 1
        self.left = deque(replies)

    def __call__(
        self, _messages: Sequence[ChatMessage], request: ModelRequest
    ) -> str | dict[str, Any]:
        """Return the next reply, with its fields as calls of offered tools.

        Raises:
            ModelError: Of kind ``recording_miss``, if there is none; of kind ``configuration``,
                if it calls tools and none are offered.
        """
        place = f"{self._name}, turn {self._turn}"
        if not self.left:
            raise ModelError("recording_miss", f"{place} has no recorded reply left.", hint=_HINT)
        reply = self.left.popleft()
        if reply.response is not None:
            return _as_calls(reply.response, [tool.name for tool in request.tools])
        if reply.calls and not request.tools:
            detail = f"{place} has a reply that calls tools, which are not offered."
            raise ModelError("configuration", detail, hint=_HINT)
        return _message(reply.text, [(call.name, call.arguments) for call in reply.calls])


def _as_calls(reply: RecordedResponse, offered: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a reply as a message with calls of tools."""
    is_order = not reply.code and reply.send_to != "User"
    calls: list[tuple[str, dict[str, Any]]] = []
    if reply.remember:
        calls.append(("remember", {"text": reply.remember}))
    if reply.plan:
        calls.append(("set_plan", {"steps": reply.plan.splitlines()}))
    if reply.code:
        run = next((name for name in offered if name.startswith("run_")), "run_python")
        calls.append((run, {"intent": reply.message, "code": reply.code}))
    if is_order:
        calls.append(("ask", {"role": reply.send_to, "order": reply.message}))
    text = "" if reply.code or is_order else reply.message
    return _message(text, [(name, json.dumps(given)) for name, given in calls])


def _message(text: str, calls: Sequence[tuple[str, str]]) -> dict[str, Any]:
    functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"content": text, "tool_calls": [{"function": function} for function in functions]}


@dataclass(slots=True)
class CaseConversation:
    """The steps of a case, played and checked round by round in sessions of `app`.

    Attributes:
        recording: The recorded replies, if these answer.
        judge: The judge; None where no model can judge.
        turns: Questions and answers so far.
        problems: A problem for each check so far, empty for a check that is met.
        notes: Remarks that do not change the outcome.
    """

    case: EvalCase
    app: TaskWeaverApp | None = None
    recording: Recording | None = None
    judge: StatementJudge | None = None
    turns: Turns = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _rounds: list[Round] = field(default_factory=list)
    _calls: list[PromptRecord] = field(default_factory=list)
    _spent: Usage = field(default_factory=Usage)
    _session: Session | None = None
    _has_files: bool = False
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def usage(self) -> Usage:
        """Consumption of the model that is tried."""
        return self._spent + (self._session.usage if self._session else Usage())

    @property
    def judge_calls(self) -> int:
        """Calls of the judge."""
        return self.judge.usage.calls if self.judge else 0

    @property
    def is_over(self) -> bool:
        """Whether the conversation was interrupted."""
        return self._over.is_set()

    @property
    def session(self) -> Session:
        """The current session, made when first needed."""
        if self._session is None:
            assert self.app is not None
            self._session = self.app.get_session()
            if self.is_over:
                self._session.stop()
        return self._session

    def interrupt(self) -> None:
        """End the step under way, from any thread. No further step begins, and no judge decides."""
        self._over.set()
        if self._session is not None:
            self._session.interrupt()
        if self.judge is not None:
            self.judge.close()

    def play(self) -> None:
        """Play the steps, and make the checks of each round.

        The steps end early at a question that is not answered.

        Raises:
            TaskWeaverError: If a step cannot be played, or a model cannot be asked.
        """
        for number, step in enumerate(self.case.steps, start=1):
            if self.is_over or not self._play(step, f"step {number}: "):
                return

    def check_all(self) -> None:
        """Make the checks of the whole conversation."""
        self._check(self.case.checks, self._observe(self._rounds, self._calls), "")

    def ask_judge(self, statement: str) -> str:
        """Ask the judge about a statement, and return the reason of a no, else an empty text.

        Raises:
            CaseFailed: If no model can judge, or its replies cannot be read.
            ModelError: If it cannot be asked.
        """
        if self.judge is None:
            raise CaseFailed(self.case.name, "a judge is needed: run it with a live model.")
        return self.judge.decide(self.case.steps[0].text, self.turns, statement)

    def run_check(self, code: str) -> str:
        """Run a cell of a check, and return the error, or an empty text."""
        try:
            post = self.session.run_code(code).post_list[-1]
        except TaskWeaverError as error:
            return f"the check cannot run: {error}"
        if post.last(AttachmentType.execution_status) == "SUCCESS":
            return ""
        lines = [line.strip() for line in post.message.splitlines() if "Error" in line]
        return shown(lines[-1] if lines else post.message)

    def _play(self, step: CaseStep, place: str) -> bool:
        """Play a step, and return whether the next one follows."""
        match step.action:
            case "ask":
                return self._ask(step, step.text, place)
            case "converse":
                messages: Iterable[str] = [step.text]
                if self.judge is not None:
                    messages = self.judge.play_user(step.text, self.turns)
                else:
                    self.notes.append("the task was sent as it is: no model can play the user")
                return all(self._ask(step, message, place) for message in messages)
            case "run":
                self._place(self._first_files())
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
        """Ask a question, and return whether the conversation goes on."""
        if self.recording is not None:
            self.recording.begin_turn(step.replies or ())
        round_ = self.session.send_message(question, None, self._take_files(step))
        calls = self._add(round_)
        seen = self._observe([round_], calls)
        self.turns.append((question, seen.answer))
        if self.recording is not None and self.recording.left:
            left = len(self.recording.left)
            self.notes.append(f"{place}{left} recorded replies were not asked for")
        if self.is_over:
            return False
        if not seen.is_answered and not any(check.answered for check in step.checks):
            if round_.reason and calls and calls[-1].error:
                # A model that cannot be asked gives no answer that could be scored.
                raise CaseFailed(self.case.name, round_.reason)
            reason = " ".join((round_.reason or seen.answer).split())
            self.problems.append(f"{place}there is no answer: {reason}")
            return False
        self._check(step.checks, seen, place)
        return True

    def _add(self, round_: Round) -> Sequence[PromptRecord]:
        """Add a round, and return its model calls."""
        calls = self.session.prompts.records(round_.id)
        self._rounds.append(round_)
        self._calls += calls
        return calls

    def _observe(self, rounds: Sequence[Round], calls: Sequence[PromptRecord]) -> Observed:
        """Return the facts about rounds and their model calls."""
        posts = [post for round_ in rounds for post in round_.post_list]
        return Observed(
            answer=rounds[-1].answer.text if rounds else "",
            unsupported=tuple(n for round_ in rounds for n in round_.answer.unsupported_numbers),
            is_answered=all(round_.is_answered for round_ in rounds),
            cells=tuple(executed_cells(rounds)),
            refusals=sum(post.last(AttachmentType.verification) == "INCORRECT" for post in posts),
            roles=tuple(
                sorted({role for post in posts for role in (post.send_from, post.send_to)})
            ),
            artifacts=tuple(name for round_ in rounds for name in round_.artifacts),
            cwd=Path(self.session.execution_cwd),
            prompts=tuple(map(_text, calls)),
            holds=lambda text: self.run_check(f"assert ({text}), 'it is false'"),
            judge=self.ask_judge,
        )

    def _check(self, checks: Sequence[Check], seen: Observed, place: str) -> None:
        for check in checks:
            self.problems += [problem and f"{place}{problem}" for problem in check.problems(seen)]

    def _first_files(self) -> Mapping[str, bytes]:
        """Return the files of the case, once."""
        files = {} if self._has_files else self.case.files
        self._has_files = True
        return files

    def _take_files(self, step: CaseStep) -> list[AddedFile]:
        """Return the files that go with a question, and write files in folders."""
        files = {**self._first_files(), **step.files}
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


def _text(call: PromptRecord) -> str:
    """Return a prompt as text, without images."""
    texts = []
    for message in call.messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content or []
        texts += [str(part["text"]) for part in parts if "text" in part]
    return "\n".join(texts)
