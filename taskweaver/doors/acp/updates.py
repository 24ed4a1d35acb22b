"""Rounds as updates of the protocol: thoughts, plans, cells as tool calls, answers.

An answer is sent when its post ends: the protocol cannot take a text back, and a draft may be
withdrawn. A cell becomes a tool call when it is asked about or runs: the text of a reply in words
comes as the content of a cell too.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.helpers import (
    ContentBlock,
    SessionUpdate,
    image_block,
    plan_entry,
    resource_link_block,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_plan,
    update_tool_call,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    PlanEntryStatus,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    UserMessageChunk,
)

from taskweaver.face.answer import is_picture, read_figures
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import (
    EventScope,
    PostEventType,
    RoundEventType,
    TaskWeaverEvent,
)
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.redact import redact_known
from taskweaver.utils.text import fenced, shorten, shorten_words, title_line

_TITLE_CHARS = 80
_LIVE_CHARS = 4_000
"""Characters of the output that are shown while a cell runs, the newest."""
_OUTCOME_CHARS = 20_000


@dataclass(slots=True)
class CellCall:
    """The tool call of a cell.

    Attributes:
        id: Id of the call.
        code: The cell.
        is_running: Whether the cell runs; else a person is asked about it.
        output: The newest output.
        status: Status of the outcome; empty while there is none.
        report: The outcome, as Markdown.
        files: Files that the cell made.
    """

    id: str
    code: str
    is_running: bool = False
    output: str = ""
    status: str = ""
    report: str = ""
    files: list[ContentBlock] = field(default_factory=list)

    def begin(self) -> ToolCallStart:
        """Return the beginning of the call."""
        return start_tool_call(
            self.id,
            _title(self.code),
            kind="execute",
            status="in_progress" if self.is_running else "pending",
            content=[self._code_content()],
            raw_input={"code": shown(self.code)},
        )

    def run(self) -> ToolCallProgress:
        """Return the update that says that the cell runs."""
        self.is_running = True
        return update_tool_call(self.id, status="in_progress")

    def print(self, text: str) -> ToolCallProgress:
        """Add output, and return the update that shows the output."""
        self.output = (self.output + text)[-_LIVE_CHARS:]
        printed = text_block(fenced(shown(self.output)))
        content = [self._code_content(), tool_content(printed)]
        return update_tool_call(self.id, status="in_progress", content=content)

    def end(self, status: ToolCallStatus, outcome: str) -> ToolCallProgress:
        """Return the end of the call. `outcome` is the cell's report."""
        report = [text_block(shorten(shown(outcome), _OUTCOME_CHARS))] if outcome else []
        blocks = [*report, *self.files]
        content = [self._code_content(), *map(tool_content, blocks)]
        return update_tool_call(self.id, status=status, content=content)

    def _code_content(self) -> ContentToolCallContent:
        return tool_content(text_block(fenced(shown(self.code), "python")))


def made_files(names: Sequence[str], folder: Path) -> list[ContentBlock]:
    """Return the files that a cell made: pictures as images, further files as links."""
    blocks: list[ContentBlock] = []
    for name in names:
        figure = next(read_figures([name], folder), None) if is_picture(name) else None
        if figure is not None and figure.data:
            data = base64.b64encode(figure.data).decode()
            blocks.append(image_block(data, figure.mime, uri=figure.path.as_uri()))
        else:
            blocks.append(resource_link_block(name, (folder / name).absolute().as_uri()))
    return blocks


def shown(text: str) -> str:
    """Return a text for clients: without secrets and characters that steer a display."""
    return without_steering(redact_known(text))


def _title(code: str) -> str:
    return shorten_words(shown(title_line(code)), _TITLE_CHARS) or "code"


_STEP = re.compile(r"(?:(\d+)[.)]|[-*])\s+(\S.*)")


def plan_update(plan: str, current: str, *, is_done: bool) -> AgentPlanUpdate:
    """Return the entries of a plan.

    Args:
        plan: Its text, a line for each step.
        current: Text of the step that is under way, as the plan has it.
        is_done: Whether the request was answered.
    """
    steps = _steps(plan)
    done = len(steps) if is_done else _position(steps, current)
    statuses: list[PlanEntryStatus] = ["completed"] * done
    statuses.append("in_progress")
    statuses.extend(["pending"] * len(steps))
    return update_plan(
        [plan_entry(shown(step), status=status) for step, status in zip(steps, statuses)]  # noqa: B905
    )


def _steps(plan: str) -> list[str]:
    """Return the steps of a plan. A line without a mark belongs to the step before."""
    steps: list[str] = []
    for line in filter(None, map(str.strip, plan.splitlines())):
        begun = _STEP.match(line)
        if begun or not steps:
            steps.append(begun[2] if begun else line)
        else:
            steps[-1] += f"\n{line}"
    return steps


def _position(steps: Sequence[str], current: str) -> int:
    """Return the position of a step in a plan. The first where that is not said."""
    begun = _STEP.match(current.strip())
    if begun and begun[1]:
        return max(0, min(int(begun[1]) - 1, len(steps) - 1))
    text = begun[2] if begun else current.strip()
    return steps.index(text) if text in steps else 0


USER = "User"
_RUNS = "running code"
_SILENT = frozenset({"thinking", "writing code", _RUNS, "waiting for you"})
"""Statuses that say no more than the client's own signs of work."""
_THOUGHTS = (AttachmentType.plan_reasoning, AttachmentType.thought)
_REMARKS = (AttachmentType.text, AttachmentType.web_exploring_plan, AttachmentType.function)


@dataclass(slots=True)
class _Draft:
    """State of the post that is being written."""

    id: str = ""
    sender: str = ""
    receiver: str = ""
    message: str = ""
    stop: str = ""
    texts: dict[str, str] = field(default_factory=dict)


class RoundUpdates:
    """Turns the events of one round into updates.

    Attributes:
        error: Reason for which the round failed; empty while it did not.
    """

    def __init__(self, files: Callable[[str, Sequence[str]], list[ContentBlock]]) -> None:
        """Begin a round. `files` returns files of a branch by their names, as blocks."""
        self._files = files
        self.error = ""
        self._draft = _Draft()
        self._code = self._plan = self._step = self._status = ""
        self._sent_plan: AgentPlanUpdate | None = None
        self._calls = 0
        self._cell: CellCall | None = None
        self._asked: dict[str, str] = {}  # calls by the requests about them

    def take(self, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        """Yield the updates of an event."""
        if event.t is RoundEventType.round_error:
            self.error = event.msg
            yield from self._end_cell("failed")
        elif event.t is RoundEventType.round_warning:
            yield self._thought(f"{event.msg}\n")
        elif isinstance(event.t, PostEventType):
            yield from self._post(event.t, event)

    def _post(self, kind: PostEventType, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        draft = self._draft
        match kind:
            case PostEventType.post_start:
                self._draft = _Draft(event.post_id or "", event.extra["role"])
            case PostEventType.post_send_to_update:
                draft.receiver = event.extra["role"]
            case PostEventType.post_message_update:
                draft.message += event.msg
            case PostEventType.post_message_restart | PostEventType.post_error:
                draft.message = ""
            case PostEventType.post_status_update:
                yield from self._progress(event.msg)
            case PostEventType.post_attachment_update:
                yield from self._attachment(event)
            case PostEventType.post_end:
                yield from self._end_post()
            case _:
                yield from self._run(kind, event)

    def _run(self, kind: PostEventType, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        """Yield the updates of an event of a cell that runs or is asked about."""
        match kind:
            case PostEventType.post_execution_output:
                cell = yield from self._begin_cell()
                yield cell.print(event.extra["text"])
            case PostEventType.post_confirmation_request:
                yield from self._ask(event)
            case PostEventType.post_confirmation_response:
                yield from self._answered(event)

    def _progress(self, status: str) -> Iterator[SessionUpdate]:
        if status == _RUNS:
            yield from self._begin_cell()
        elif status and status not in _SILENT and status != self._status:
            yield self._thought(f"{status}\n")
        self._status = status

    def _thought(self, text: str) -> SessionUpdate:
        return AgentThoughtChunk(
            session_update="agent_thought_chunk",
            content=text_block(shown(text)),
            message_id=self._draft.id or None,
        )

    def _attachment(self, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        kind, id_, is_end = event.extra["type"], event.extra["id"], event.extra["is_end"]
        texts = self._draft.texts
        texts[id_] = texts.get(id_, "") + event.msg
        if kind in _THOUGHTS:
            end = "\n" if is_end and texts[id_].strip() else ""
            if event.msg or end:
                yield self._thought(event.msg + end)
        if is_end:
            yield from self._finish(kind, texts.pop(id_), event)

    def _finish(
        self, kind: AttachmentType, text: str, event: TaskWeaverEvent
    ) -> Iterator[SessionUpdate]:
        match kind:
            case AttachmentType.plan if text.strip():
                self._plan, self._step = text, ""
            case AttachmentType.current_plan_step:
                self._step = text
                yield from self._show_plan(is_done=False)
            case AttachmentType.stop:
                self._draft.stop = text.strip()
            case AttachmentType.reply_content if text.strip():
                self._code = text.strip("\n")
            case AttachmentType.execution_status if text in {"SUCCESS", "FAILURE"}:
                cell = yield from self._begin_cell()
                cell.status = text
            case AttachmentType.execution_result if self._cell is not None:
                self._cell.report = text
            case AttachmentType.artifact_paths if self._cell is not None:
                names = [line for line in text.splitlines() if line.strip()]
                self._cell.files = self._files(event.branch, names)
            case _ if kind in _REMARKS and text.strip():
                yield self._thought(f"{text.strip()}\n")

    def _show_plan(self, *, is_done: bool) -> Iterator[SessionUpdate]:
        if not self._plan:
            return
        update = plan_update(self._plan, self._step, is_done=is_done)
        if update != self._sent_plan:
            self._sent_plan = update
            yield update

    def _begin_cell(self, *, is_running: bool = True) -> Generator[SessionUpdate, None, CellCall]:
        cell = self._cell
        if cell is None:
            yield from self._show_plan(is_done=False)
            self._calls += 1
            call_id = f"{self._draft.id}-{self._calls}"
            cell = self._cell = CellCall(call_id, self._code, is_running=is_running)
            yield cell.begin()
        elif is_running and not cell.is_running:
            yield cell.run()
        return cell

    def _end_cell(self, status: ToolCallStatus, outcome: str = "") -> Iterator[SessionUpdate]:
        if self._cell is not None:
            yield self._cell.end(status, outcome)
        self._cell = None

    def _ask(self, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        """Begin the call that a person is asked about: the cell, or a tool of a server."""
        if _is_of_tools(event):
            call_id = self._asked[event.extra["id"]] = event.extra["id"]
            content = [tool_content(text_block(fenced(shown(event.msg))))]
            title = ", ".join(event.extra["kinds"])
            yield start_tool_call(call_id, title, kind="other", status="pending", content=content)
            return
        self._code = event.msg
        cell = yield from self._begin_cell(is_running=False)
        self._asked[event.extra["id"]] = cell.id

    def asked_call(self, request_id: str) -> ToolCallUpdate:
        """Return the call that a request for confirmation is about."""
        return ToolCallUpdate(tool_call_id=self._asked[request_id])

    def _answered(self, event: TaskWeaverEvent) -> Iterator[SessionUpdate]:
        call_id = self._asked.pop(event.extra["id"], "")
        if call_id and _is_of_tools(event):
            status: ToolCallStatus = "completed" if event.extra["approved"] else "failed"
            yield update_tool_call(call_id, status=status)

    def _end_post(self) -> Iterator[SessionUpdate]:
        draft, cell = self._draft, self._cell
        if cell is not None and draft.sender != USER:
            is_ok = cell.status == "SUCCESS"
            report = cell.report if cell.status else draft.message
            yield from self._end_cell("completed" if is_ok else "failed", report)
        if draft.receiver != USER:
            return
        yield from self._show_plan(is_done=draft.stop == "Completed")
        if draft.message.strip():
            text: TextContentBlock = text_block(shown(draft.message.strip()))
            yield AgentMessageChunk(
                session_update="agent_message_chunk", content=text, message_id=draft.id or None
            )


def _is_of_tools(event: TaskWeaverEvent) -> bool:
    return any(kind.startswith("tool ") for kind in event.extra["kinds"])


def round_history(
    round_: Round, branch: str, files: Callable[[str, Sequence[str]], list[ContentBlock]]
) -> Iterator[SessionUpdate]:
    """Yield the updates of a round. `files` is as for `RoundUpdates`."""
    yield UserMessageChunk(
        session_update="user_message_chunk",
        content=text_block(shown(round_.question)),
        message_id=round_.id,
    )
    view = RoundUpdates(files)
    for post in round_.post_list:
        if post.send_from != USER:
            for event in _events(post, branch):
                yield from view.take(event)
    if round_.state != "finished":
        yield update_agent_message_text("This request was not answered.")


def _events(post: Post, branch: str) -> Iterator[TaskWeaverEvent]:
    """Yield the events with which a post could have been written."""

    def event(kind: PostEventType, msg: str = "", **extra: Any) -> TaskWeaverEvent:
        return TaskWeaverEvent(EventScope.post, kind, None, post.id, msg, extra, branch)

    yield event(PostEventType.post_start, role=post.send_from)
    for item in post.attachment_list:
        content = item.content
        text = content if isinstance(content, str) else "\n".join(map(str, content))
        facts = {"type": item.type, "id": item.id, "is_end": True}
        yield event(PostEventType.post_attachment_update, text, **facts)
    yield event(PostEventType.post_message_update, post.message)
    yield event(PostEventType.post_send_to_update, role=post.send_to)
    yield event(PostEventType.post_end)
