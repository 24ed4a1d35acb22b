"""Conversion of a round's events to blocks: selection, order, and the time each is complete.

Nothing is shown twice: a run's report repeats its code, output and files, so of the report
only the value is shown, and an answer leaves out the value above it; a plan of one step, or one
that did not change, is left out; a post's error is held back until it is clear whether the round
fails with it, since the failure then shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from taskweaver.console.terminal.blocks import (
    AnswerBlock,
    Block,
    CodeBlock,
    FailureBlock,
    FilesBlock,
    NoteBlock,
    OrderBlock,
    OutputBlock,
    PlanBlock,
    RunBlock,
    SummaryBlock,
    ThoughtBlock,
    TracebackBlock,
    ValueBlock,
)
from taskweaver.console.terminal.plain import VALUE_LINES
from taskweaver.console.terminal.surface import PREVIEW_CHARS, Surface
from taskweaver.console.terminal.text import (
    openable_path,
    overwritten,
    safe,
    section,
    without_code,
    without_fence,
)
from taskweaver.llm.types import Usage
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import (
    PostEventType,
    RoundEventType,
    TaskWeaverEvent,
)

USER = "User"
MOST_LINES = 200
LINE_CHARS = 2_000
TRACEBACK_LINES = 12

_PREVIEWS: dict[AttachmentType, Callable[[str], Block]] = {
    AttachmentType.plan_reasoning: ThoughtBlock,
    AttachmentType.plan: PlanBlock,
    AttachmentType.thought: ThoughtBlock,
    AttachmentType.reply_content: CodeBlock,
}
_PROFILE = re.compile(r"Profile of \d+ tables, .*End of profile: (\d+) lines", re.DOTALL)
"""What `profile_tables` returns: text for the model, which nobody reads in a chat."""

_REMARKS = {
    AttachmentType.text,
    AttachmentType.function,
    AttachmentType.web_exploring_plan,
    AttachmentType.web_exploring_link,
}


@dataclass(slots=True)
class _Draft:
    """State of the post that is being written."""

    sender: str
    receiver: str = ""
    message: str = ""
    is_in_words: bool = False
    is_report: bool = False
    gave_up: bool = False
    is_remarked: bool = False
    unsupported: str = ""
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """Output of a running cell."""

    since: float = field(default_factory=monotonic)
    pending: dict[str, str] = field(default_factory=dict)
    shown: int = 0
    left_out: int = 0


class RoundView:
    """Shows one round on a surface; pass it to `Session.send_message` inside `watching`."""

    def __init__(
        self,
        surface: Surface,
        files_in: Callable[[str], Path],
        usage: Callable[[], Usage] = Usage,
    ) -> None:
        """Show a round.

        `files_in` returns the folder where artifact paths of a branch start, `usage` the
        consumption of the session's models so far.
        """
        self._surface = surface
        self._files_in = files_in
        self._usage = usage
        self._usage_before = usage()
        self._since = monotonic()
        self._own_branch = self._branch = ""
        self._draft = _Draft("")
        self._run = _Run()
        self._plan = self._code = self._value = ""
        self._pending_error = ""
        self._has_failed = False
        self._has_given_up = False

    def spent(self) -> Usage:
        """Return the consumption of the models since this view was made."""
        return self._usage() - self._usage_before

    def status(self) -> str:
        """Return the tokens so far, and how to stop; for the surface's status line."""
        tokens = self.spent().total_tokens
        return f"{tokens:,} tokens, Ctrl-C stops" if tokens else "Ctrl-C stops"

    def handle(self, event: TaskWeaverEvent) -> None:
        """Show an event."""
        if isinstance(event.t, RoundEventType):
            self._round_changed(event.t, event.msg)
        elif isinstance(event.t, PostEventType):
            self._enter(event.branch)
            self._post_changed(event.t, event.msg, event.extra)

    def _enter(self, branch: str) -> None:
        """Name the branch of the next events where it is another than the round's own."""
        self._own_branch = self._own_branch or branch
        if branch != self._branch:
            self._branch = branch
            if branch != self._own_branch:
                self._surface.show(NoteBlock(f"on branch {safe(branch)}:"))

    def _round_changed(self, kind: RoundEventType, text: str) -> None:
        if kind is RoundEventType.round_error:
            self._has_failed = True
            self._pending_error = ""
            self._flush_lines()
            self._surface.show(FailureBlock(safe(text)))
        elif kind is RoundEventType.round_warning:
            self._surface.show(NoteBlock(safe(text), is_warning=True))
        elif kind is RoundEventType.round_end:
            self._release_error()
            spent, seconds = self.spent(), monotonic() - self._since
            done = SummaryBlock(
                not (self._has_failed or self._has_given_up),
                seconds,
                spent.total_tokens,
                spent.is_estimated,
                spent.cost,
            )
            self._surface.preview(None)
            self._surface.show(done)

    def _post_changed(self, kind: PostEventType, text: str, facts: dict[str, Any]) -> None:
        match kind:
            case PostEventType.post_start:
                self._release_error()
                self._draft = _Draft(facts["role"])
            case PostEventType.post_status_update:
                self._surface.ask_status(f"{self._draft.sender}: {safe(text)}")
            case PostEventType.post_send_to_update:
                self._draft.receiver = facts["role"]
            case PostEventType.post_message_update:
                self._grow_message(text)
            case PostEventType.post_attachment_update:
                self._grow_attachment(text, facts)
            case PostEventType.post_execution_output:
                self._print(facts["stream"], facts["text"])
            case PostEventType.post_error | PostEventType.post_message_restart:
                self._draft.message = ""
                self._pending_error = safe(text)
                self._surface.preview(None)
            case PostEventType.post_confirmation_response:
                self._run.since = monotonic()  # the person's time is not the cell's
            case PostEventType.post_end:
                self._finish_post()

    def _grow_message(self, text: str) -> None:
        draft = self._draft
        draft.message += text
        if not draft.is_report:
            self._surface.preview(self._message_block(draft.message[-PREVIEW_CHARS:]))

    def _message_block(self, text: str) -> Block:
        draft = self._draft
        if draft.receiver == USER:
            answer = safe(text).strip()
            return AnswerBlock(without_fence(answer, self._value) or answer, draft.gave_up)
        order = without_code(safe(text).strip(), self._code)
        return OrderBlock(draft.sender, draft.receiver, order)

    def _finish_post(self) -> None:
        draft = self._draft
        self._surface.preview(None)
        self._flush_lines()
        if draft.receiver == draft.sender:
            self._pending_error = ""
            what = "answers again: the reply was unusable"
            if draft.unsupported:
                what = f"withdraws its answer: not found in any result: {draft.unsupported}"
            elif draft.is_report:
                what = "repairs the code"
            if not draft.is_remarked:  # its remark says what it does
                self._surface.show(NoteBlock(f"{draft.sender} {what}"))
        elif draft.message.strip() and not draft.is_report:
            self._has_given_up = draft.gave_up and draft.receiver == USER
            self._surface.show(self._message_block(draft.message))

    def _release_error(self) -> None:
        """Show a post's error that did not make the round fail."""
        if self._pending_error:
            self._surface.show(NoteBlock(self._pending_error, is_warning=True))
        self._pending_error = ""

    def _grow_attachment(self, text: str, facts: dict[str, Any]) -> None:
        kind, id_ = facts["type"], facts["id"]
        texts = self._draft.texts
        texts[id_] = texts.get(id_, "") + text
        if facts["is_end"]:
            self._surface.preview(None)
            self._finish_attachment(kind, safe(texts.pop(id_)).rstrip())
        elif kind in _PREVIEWS and not self._draft.is_in_words:
            self._surface.preview(_PREVIEWS[kind](safe(texts[id_])[-PREVIEW_CHARS:]))

    def _finish_attachment(self, kind: AttachmentType, text: str) -> None:
        draft = self._draft
        match kind:
            case AttachmentType.plan if "\n" in text.strip() and text != self._plan:
                self._plan = text
                self._surface.show(PlanBlock(text.strip()))
            case AttachmentType.thought if text.strip():
                self._surface.show(ThoughtBlock(text.strip()))
            case AttachmentType.stop:
                draft.gave_up = text.strip() == "TaskFailure"
            case AttachmentType.answer_check:
                draft.unsupported = text.strip()
            case AttachmentType.reply_type:
                draft.is_in_words = text.strip().lower() == "text"
            case AttachmentType.reply_content if text.strip() and not draft.is_in_words:
                is_repeated = text == self._code  # a report has the cell of its order
                if not is_repeated:
                    self._surface.show(CodeBlock(text.strip("\n")))
                self._code = "" if is_repeated else text
                self._run = _Run()
            case AttachmentType.verification if text.strip() == "INCORRECT":
                self._surface.show(NoteBlock("the code was refused by its check", is_warning=True))
            case _ if kind in _REMARKS and text.strip():
                draft.is_remarked = True
                self._surface.show(NoteBlock(text.strip()))
            case _:
                self._finish_run(kind, text)

    def _finish_run(self, kind: AttachmentType, text: str) -> None:
        match kind:
            case AttachmentType.execution_status if text in {"SUCCESS", "FAILURE"}:
                self._draft.is_report = True
                self._flush_lines()
                self._surface.show(RunBlock(text == "SUCCESS", monotonic() - self._run.since))
            case AttachmentType.execution_result:
                is_of_cells = self._draft.is_report  # else of branches, whose cells were shown
                self._draft.is_report = True
                value = section(text, "Result")
                if profiled := _PROFILE.fullmatch(value.strip()):
                    self._surface.show(NoteBlock(f"read a profile of {profiled[1]} lines"))
                elif is_of_cells and value.strip():
                    self._surface.show(ValueBlock(value))
                    is_whole = len(value.splitlines()) <= VALUE_LINES
                    self._value = value if is_whole else ""
            case AttachmentType.code_error:
                lines = text.strip().splitlines()
                cut = ["..."] if len(lines) > TRACEBACK_LINES else []
                self._surface.show(TracebackBlock("\n".join([*cut, *lines[-TRACEBACK_LINES:]])))
            case AttachmentType.artifact_paths:
                folder = self._files_in(self._branch)
                paths = [folder / line for line in text.splitlines() if line.strip()]
                self._surface.show(FilesBlock(tuple(openable_path(path) for path in paths)))

    def _print(self, stream: str, text: str) -> None:
        whole, _, rest = (self._run.pending.get(stream, "") + text).rpartition("\n")
        self._run.pending[stream] = rest[-LINE_CHARS:]
        if whole:
            self._show_lines(stream, whole.split("\n"))
        if rest:
            self._surface.preview(OutputBlock((safe(overwritten(rest))[:LINE_CHARS],)))

    def _show_lines(self, stream: str, lines: list[str]) -> None:
        run = self._run
        kept = lines[: max(MOST_LINES - run.shown, 0)]
        run.shown += len(kept)
        run.left_out += len(lines) - len(kept)
        if kept:
            shown = tuple(safe(overwritten(line))[:LINE_CHARS] for line in kept)
            self._surface.show(OutputBlock(shown, is_error=stream == "stderr"))
        elif run.left_out:
            self._surface.ask_status(f"{run.left_out:,} more lines of output")

    def _flush_lines(self) -> None:
        run = self._run
        for stream, rest in run.pending.items():
            if rest:
                self._show_lines(stream, [rest])
        run.pending.clear()
        if run.left_out:
            self._surface.show(NoteBlock(f"{run.left_out:,} more lines of output are not shown"))
        run.left_out = 0
        self._surface.preview(None)
