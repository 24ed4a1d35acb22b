"""One line of a session: a conversation, a kernel, a working directory, and the roles on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from taskweaver.ces.common import Client
from taskweaver.ces.state_transfer import Origin
from taskweaver.llm.api import LLMApi
from taskweaver.memory.cells import Ran, RecordedCell
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter, on_branch
from taskweaver.role.role import Role
from taskweaver.session.answers.check import AnswerCheck
from taskweaver.session.branches.file_list import BranchFiles
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.branches.turn import USER, RoundControl, Turn
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError
from taskweaver.session.restoring import Restoring
from taskweaver.session.storage.workdir import WorkingFiles


@dataclass(frozen=True, slots=True)
class BranchParts:
    """Parts a branch owns and closes.

    The first of the roles leads.
    """

    memory: Memory
    llm_api: LLMApi
    client: Client
    roles: Mapping[str, Role]
    execution_cwd: Path
    long_memory: BranchLongMemory


@runtime_checkable
class _TakesVariables(Protocol):
    def update_session_var(self, session_var: Mapping[str, str]) -> None: ...


@runtime_checkable
class _RunsCode(Protocol):
    def repeater(self, client: Client) -> Callable[[RecordedCell], Ran]: ...

    def run(self, memory: Memory, task: Post) -> Post: ...


class SessionBranch:
    """A branch that is open."""

    def __init__(
        self,
        name: str,
        parts: BranchParts,
        emitter: SessionEventEmitter,
        config: AppSessionConfig,
        control: RoundControl,
        origin: Origin,
    ) -> None:
        """Open a branch; `origin` returns the stored state that its kernel starts from."""
        self.name = name
        self.memory = parts.memory
        self.client = parts.client
        self.roles = parts.roles
        self.execution_cwd = parts.execution_cwd
        self.files = WorkingFiles(parts.execution_cwd)
        if any(isinstance(role, _RunsCode) for role in parts.roles.values()):
            is_new = not parts.memory.conversation.rounds
            files = BranchFiles(
                parts.execution_cwd, config, parts.client, self.files, may_start=is_new
            )
            for role in parts.roles.values():
                role.files, role.may_branch = files, True
        self.long_memory = parts.long_memory
        for role in parts.roles.values():
            role.long_memory = parts.long_memory
        self._lost_cells: set[str] = set()
        self._is_noticed = self._is_noted = False
        parts.client.restore_from(origin)
        for role in parts.roles.values():
            role.bind_peers(parts.roles)
        leader, most = next(iter(parts.roles)), config.max_internal_chat_round_num
        situations = parts.roles[leader].situations
        check = AnswerCheck(parts.memory, leader, most, situations)
        answers = check if config.checks_answers else None
        parts.roles[leader].answer_review = answers
        self._turn = Turn(
            parts.memory, parts.roles, leader, emitter, most, config.stuck_after, control, answers
        )

    def play(self, round_: Round) -> None:
        """Carry posts between the roles until the user is answered; raises as `Turn.play`."""
        with on_branch(self.name):
            self._turn.play(round_)

    def carry_out(self, order: Post) -> Post:
        """Have an order of the leader carried out in the open round; see `Turn.carry_out`."""
        with on_branch(self.name):
            return self._turn.carry_out(order)

    def run(self, code: str) -> Callable[[Round], None]:
        """Return a function that plays a round that runs the user's code; raises as `play`."""

        def play(round_: Round) -> None:
            for alias, role in self.roles.items():
                if isinstance(role, _RunsCode):
                    task = Post.create(code, USER, alias)
                    self.memory.add_post(round_, task)
                    with on_branch(self.name):
                        self.memory.add_post(round_, role.run(self.memory, task))
                    return
            raise SessionError("No role of this session runs code.")

        return play

    def lost_cells(self, restoring: Restoring | None) -> set[str]:
        """Return the ids of the posts whose cells make the variables that were not restored."""
        if restoring is not None:
            self._lost_cells = restoring.cells
        return self._lost_cells

    def take_notice(self, restoring: Restoring | None) -> list[str]:
        """Return, once, which variables are not restored, in lines for the user."""
        self.lost_cells(restoring)
        if restoring is None or self._is_noticed:
            return []
        self._is_noticed = True
        return restoring.lines()

    def take_note(self, restoring: Restoring | None) -> list[str]:
        """Return, once, which variables are not restored, in words for the roles."""
        if restoring is None or self._is_noted:
            return []
        self._is_noted = True
        return list(filter(None, [restoring.note()]))

    def repeater(self, client: Client) -> Callable[[RecordedCell], Ran]:
        """Return a function that runs recorded cells of this branch again in another kernel.

        Raises:
            SessionError: If no role of the session runs code.
            KernelError: If the kernel cannot be started.
        """
        runners = {
            alias: role.repeater(client)
            for alias, role in self.roles.items()
            if isinstance(role, _RunsCode)
        }
        if not runners:
            raise SessionError("No role of this session runs code.")
        first = next(iter(runners.values()))
        return lambda cell: runners.get(cell.role, first)(cell)

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read."""
        for role in self.roles.values():
            if isinstance(role, _TakesVariables):
                role.update_session_var(variables)

    def interrupt(self) -> None:
        """Interrupt the roles and the kernel; may be called from any thread."""
        for role in self.roles.values():
            role.interrupt()
        self.client.interrupt()

    def close(self) -> None:
        """Close the roles and stop the kernel."""
        try:
            for role in self.roles.values():
                role.close()
        finally:
            self.client.stop()
