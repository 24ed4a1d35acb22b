"""Parts that tests of several packages use: scripted replies and a small project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.sandbox import sandbox
from taskweaver.llm.types import ChatMessage
from taskweaver.module.event_emitter import PostEventType, TaskWeaverEvent
from taskweaver.trust.answers import Answer, remember
from taskweaver.trust.opening import inspect_folder

NO_STATES = {"session.snapshot_memory_mb": 0, "session.state_limit_mb": 0}
"""Settings of sessions that nobody resumes: no copies of the kernel wait for a free process."""
NO_SNAPSHOTS = {"session.snapshot_memory_mb": 0}
"""Settings of sessions whose state comes back from disk: only the present can be forked."""


def planner_reply(send_to: str, message: str, **fields: str) -> str:
    """Return a Planner's reply; `fields` add to or replace the usual ones."""
    stop = "Completed" if send_to == "User" else "InProcess"
    usual = {
        "plan_reasoning": "it is simple",
        "plan": "1. do it",
        "current_plan_step": "1. do it",
        "stop": stop,
        "send_to": send_to,
        "message": message,
    }
    return json.dumps({"response": usual | fields}, ensure_ascii=False)


def code_reply(content: str, reply_type: str = "python", thought: str = "let me see") -> str:
    """Return a code model's reply."""
    fields = {"thought": thought, "reply_type": reply_type, "reply_content": content}
    return json.dumps({"response": fields}, ensure_ascii=False)


class Script:
    """A model that says what it is told to, in order, and keeps what it was asked.

    Attributes:
        prompts: The messages of each call.
    """

    def __init__(self, replies: Iterable[str]) -> None:
        self._replies = iter(replies)
        self.prompts: list[list[ChatMessage]] = []

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return the next reply."""
        self.prompts.append(list(messages))
        try:
            return next(self._replies)
        except StopIteration:
            raise AssertionError(f"no reply left for:\n{messages[-1]['content']}") from None

    def last(self, call: int = -1) -> str:
        """Return the newest message of a call."""
        return str(self.prompts[call][-1]["content"])


class Listener:
    """A handler that keeps every event."""

    def __init__(self) -> None:
        self.events: list[TaskWeaverEvent] = []

    def handle(self, event: TaskWeaverEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    def messages(self, kind: object) -> list[str]:
        """Return the texts of the events of one type."""
        return [event.msg for event in self.events if event.t is kind]


class OnStatus:
    """A handler that acts when a post has a status."""

    def __init__(self, status: str, act: Callable[[], None]) -> None:
        self._status = status
        self._act = act

    def handle(self, event: TaskWeaverEvent) -> None:
        """Take an event."""
        if event.t is PostEventType.post_status_update and event.msg == self._status:
            self._act()


def make_project(
    folder: Path, config: dict[str, Any] | None = None, *, has_table: bool = True
) -> Path:
    """Make a project folder; its kernels start cold, and in no sandbox.

    It is the user's own: the user has trusted it.

    Args:
        folder: The folder, which is made.
        config: Keys of its configuration.
        has_table: Whether its data folder has a small table. The first prompt for code has a kernel
            look at it, which costs half as much as a cell, and starts the kernel.
    """
    (folder / "data").mkdir(parents=True)
    keys = {"execution.zygote": False, "execution.sandbox": "none"} | (config or {})
    (folder / "taskweaver_config.json").write_text(json.dumps(keys))
    if has_table:
        add_table(folder)
    trust_project(folder)
    return folder


def add_table(project: Path) -> None:
    """Put a small table into the data folder of a project."""
    (project / "data" / "tiny.csv").write_text("Region,Count\nNorth,3\nSouth,5\n")


def trust_project(folder: Path) -> None:
    """Keep the user's consent to everything that opening a folder does now."""
    assert remember(folder, Answer(_digests(folder), is_granted=True))


def _digests(folder: Path) -> frozenset[str]:
    """Return what opening a folder does, as the user consents to it."""
    return inspect_folder(folder, lambda tier: tier != "none").digests


def has_bwrap() -> bool:
    """Return whether bubblewrap works here."""
    try:
        sandbox.require("bwrap")
    except SandboxUnavailable:
        return False
    return True
