"""The Agent Client Protocol on standard input and output: methods and connection."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from acp.agent.connection import AgentSideConnection
from acp.helpers import ContentBlock, update_agent_message_text, update_available_commands
from acp.interfaces import Client
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    AvailableCommand,
    AvailableCommandInput,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfoUpdate,
    SessionListCapabilities,
    SessionResumeCapabilities,
    ToolCallUpdate,
    UnstructuredCommandInput,
    Usage,
)

from taskweaver import __version__
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.acp.requests import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    client_servers,
    read_prompt,
    refused,
    worded,
)
from taskweaver.doors.acp.sessions import AcpSessions, OpenSession, RunningPrompt
from taskweaver.doors.acp.updates import RoundUpdates, round_history, shown
from taskweaver.face.stream import RoundEvents
from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.confirmation import Confirmation
from taskweaver.module.event_emitter import PostEventType, RoundEventType
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.utils.text import title_line

_OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Allow for this session", kind="allow_always"),
    PermissionOption(option_id="no", name="Deny", kind="reject_once"),
]


_COMMANDS = {
    "remember": ("Keep a fact for later questions", "the fact", BranchLongMemory.add),
    "recall": ("Find facts and earlier messages", "words", BranchLongMemory.recall),
}
"""Slash commands, which ask no model."""
_OFFERED = update_available_commands(
    AvailableCommand(
        name=name,
        description=text,
        input=AvailableCommandInput(UnstructuredCommandInput(hint=hint)),
    )
    for name, (text, hint, _) in _COMMANDS.items()
)


class AcpAgent:
    """Answers one client. The package `acp` calls the methods by their names.

    Attributes:
        log: The log of failures.
        client: The client, from its connection on.
    """

    client: Client

    def __init__(self, app: TaskWeaverApp) -> None:
        self.log = app.log
        self._sessions = AcpSessions(app)
        self._tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Take the connection to the client."""
        self.client = conn

    @worded
    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Return what this agent can do."""
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION) or PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="taskweaver", title="TaskWeaver", version=__version__),
        )

    @worded
    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Make a session."""
        opened = await self._sessions.new(cwd, client_servers(mcp_servers, cwd))
        self._offer_commands(opened)
        return NewSessionResponse(session_id=opened.id)

    @worded
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a session, and send the conversation."""
        opened = await self._sessions.open(session_id, cwd, client_servers(mcp_servers, cwd))
        self._offer_commands(opened)
        branch = opened.branch
        for round_ in await asyncio.to_thread(branch.rounds):
            history = round_history(round_, branch.name, opened.files)
            for update in await asyncio.to_thread(list, history):
                await self.client.session_update(session_id, update)
        return LoadSessionResponse()

    @worded
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open a session without sending the conversation."""
        opened = await self._sessions.open(session_id, cwd, client_servers(mcp_servers, cwd))
        self._offer_commands(opened)
        return ResumeSessionResponse()

    @worded
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the sessions of a folder, or all."""
        return ListSessionsResponse(sessions=await self._sessions.listed(cwd))

    @worded
    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ForkSessionResponse:
        """Fork a session with variables and files."""
        made = await self._sessions.fork(session_id, cwd, client_servers(mcp_servers, cwd))
        self._offer_commands(made)
        return ForkSessionResponse(session_id=made.id)

    @worded
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Close a session, which stays on disk."""
        await self._sessions.close(session_id)
        return CloseSessionResponse()

    @worded
    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the round that a session has under way."""
        self._sessions.find(session_id).cancel()

    @worded
    async def prompt(
        self, session_id: str, prompt: Sequence[ContentBlock], **_: Any
    ) -> PromptResponse:
        """Answer a prompt, with updates for the client meanwhile."""
        opened = self._sessions.find(session_id)
        if opened.running is not None:
            detail = "A prompt is being answered in this session: cancel it, or wait for its end."
            raise refused(INVALID_REQUEST, detail)
        opened.running = running = RunningPrompt()
        try:
            return await self._answer(opened, running, prompt)
        finally:
            opened.running = None

    async def _answer(
        self, opened: OpenSession, running: RunningPrompt, blocks: Sequence[ContentBlock]
    ) -> PromptResponse:
        branch, view = opened.branch, RoundUpdates(opened.files)
        asked = await asyncio.to_thread(read_prompt, blocks, opened.folder)
        name, _, words = asked.text.partition(" ")
        if name[:1] == "/" and (command := _COMMANDS.get(name[1:])):
            told = await asyncio.to_thread(lambda: command[2](branch.long_memory, words))
            await self.client.session_update(opened.id, update_agent_message_text(shown(told)))
            return PromptResponse(stop_reason="end_turn")
        files = list(asked.files.values())
        events = RoundEvents(
            lambda handler: branch.send_message(asked.text, handler, files), branch.interrupt
        )
        async with events:
            async for event in events:
                if running.is_cancelled and event.t is RoundEventType.round_start:
                    branch.interrupt()  # one before the round began had no effect
                for update in view.take(event):
                    await self.client.session_update(opened.id, update)
                if event.t is PostEventType.post_confirmation_request:
                    request_id = event.extra["id"]
                    self._ask(opened, running, request_id, view.asked_call(request_id))
        if len(rounds := branch.rounds(with_posts=False)) == 1:
            title = shown(title_line(rounds[0].question))
            update = SessionInfoUpdate(session_update="session_info_update", title=title)
            await self.client.session_update(opened.id, update)
        if running.is_cancelled:
            return PromptResponse(stop_reason="cancelled")
        if view.error:
            raise refused(INTERNAL_ERROR, view.error)
        used = branch.round_usage
        usage = Usage(
            total_tokens=used.total_tokens,
            input_tokens=used.prompt_tokens,
            output_tokens=used.completion_tokens,
        )
        return PromptResponse(stop_reason="end_turn", usage=usage)

    def _ask(
        self,
        opened: OpenSession,
        running: RunningPrompt,
        request_id: str,
        call: ToolCallUpdate,
    ) -> None:
        """Ask the person at the client, while the events go on."""
        running.waiting.add(request_id)
        if running.is_cancelled:
            opened.confirmations.provide_confirmation(request_id, Confirmation.no)
            return

        async def ask() -> None:
            answer = Confirmation.no
            try:
                found = await self.client.request_permission(opened.id, call, _OPTIONS)
                if isinstance(found.outcome, AllowedOutcome):
                    answer = Confirmation(found.outcome.option_id)
            except Exception:
                self.log.exception("the client gave no answer to a request for permission")
            finally:
                running.waiting.discard(request_id)
                opened.confirmations.provide_confirmation(request_id, answer)

        self._begin(ask())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _offer_commands(self, opened: OpenSession) -> None:
        """Send the commands after the response by which the client knows the session."""
        self._begin(self.client.session_update(opened.id, _OFFERED))


class _ToLog(logging.Handler):
    """Writes the package's own messages to the log of the application."""

    def __init__(self, log: TelemetryLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with the traceback."""
        trace = traceback.format_exception(record.exc_info[1]) if record.exc_info else []
        self._log.warning("\n".join([f"acp: {record.getMessage()}", *trace]))


def serve_acp(app: TaskWeaverApp) -> None:
    """Answer the client until the end of input, or a signal. Running rounds are ended then."""
    handler, root = _ToLog(app.log), logging.getLogger()
    root.addHandler(handler)
    try:
        with _protocol_output() as outgoing:
            asyncio.run(_serve(app, outgoing))
    finally:
        root.removeHandler(handler)


@contextmanager
def _protocol_output() -> Iterator[IO[bytes]]:
    """Keep standard output for the protocol: all else that is printed goes to standard error."""
    sys.stdout.flush()
    protocol = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with os.fdopen(protocol, "wb", buffering=0, closefd=False) as outgoing:
            yield outgoing
    finally:
        sys.stdout.flush()
        os.dup2(protocol, sys.stdout.fileno())
        os.close(protocol)


async def _serve(app: TaskWeaverApp, outgoing: IO[bytes]) -> None:
    agent: Any = AcpAgent(app)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, outgoing)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, incoming.close)  # what came before is answered
    connection = AgentSideConnection(
        agent, writer, reader, listening=False, use_unstable_protocol=True
    )
    try:
        await connection.listen()
    finally:
        await connection.close()
