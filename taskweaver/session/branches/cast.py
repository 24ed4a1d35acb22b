"""The roles of a branch, and the rounds that they play."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from taskweaver.ces.common import Client
from taskweaver.memory.cells import Ran, RecordedCell
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.files import RoleFiles
from taskweaver.role.long_memory import LongMemory
from taskweaver.role.role import Role
from taskweaver.session.answers.check import AnswerCheck
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.branches.turn import USER, RoundControl, Turn
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError


@runtime_checkable
class _TakesVariables(Protocol):
    def update_session_var(self, session_var: Mapping[str, str]) -> None: ...


@runtime_checkable
class _RunsCode(Protocol):
    def repeater(self, client: Client) -> Callable[[RecordedCell], Ran]: ...

    def run(self, memory: Memory, task: Post) -> Post: ...


class Cast:
    """The roles of a branch by alias; the first one leads. Close the cast.

    Attributes:
        roles: The roles by alias.
        turn: Plays rounds with the roles.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        memory: Memory,
        emitter: SessionEventEmitter,
        config: AppSessionConfig,
        control: RoundControl,
        facts: BranchLongMemory,
    ) -> None:
        self.roles = roles
        self._memory, self._emitter, self._facts = memory, emitter, facts
        for role in roles.values():
            role.bind_peers(roles)
        leader, most = next(iter(roles)), config.max_internal_chat_round_num
        check = AnswerCheck(memory, leader, most, roles[leader].situations)
        answers = check if config.checks_answers else None
        roles[leader].answer_review = answers
        self.turn = Turn(memory, roles, leader, emitter, most, config.stuck_after, control, answers)

    def decide_facts(self, round_: Round) -> bool:
        """Answer a yes or no to a question about facts by program; return whether it is one."""
        decide = self._facts.answer(round_.user_query)
        if decide is None:
            return False
        leader = self.turn.leader
        self._memory.add_post(round_, Post.create(round_.user_query, USER, leader))
        with self._emitter.post(leader) as proxy:
            proxy.update_send_to(USER)
            proxy.update_message(decide())
            self._memory.add_post(round_, proxy.end())
        return True

    def run(self, round_: Round, code: str) -> None:
        """Run the user's code as the round.

        Raises:
            SessionError: If no role runs code.
            TaskWeaverError: As `Turn.play`.
        """
        alias, runner = next(iter(self._runners().items()))
        task = Post.create(code, USER, alias)
        self._memory.add_post(round_, task)
        self._memory.add_post(round_, runner.run(self._memory, task))

    def repeater(self, client: Client) -> Callable[[RecordedCell], Ran]:
        """Return a function that runs recorded cells again in another kernel.

        Raises:
            SessionError: If no role runs code.
            KernelError: If the kernel cannot be started.
        """
        repeaters = {alias: role.repeater(client) for alias, role in self._runners().items()}
        first = next(iter(repeaters.values()))
        return lambda cell: repeaters.get(cell.role, first)(cell)

    def _runners(self) -> dict[str, _RunsCode]:
        found = runners(self.roles)
        if not found:
            raise SessionError("No role of this session runs code.")
        return found

    def update_session_var(self, variables: Mapping[str, str]) -> None:
        """Set variables that plugins read."""
        for role in self.roles.values():
            if isinstance(role, _TakesVariables):
                role.update_session_var(variables)

    def interrupt(self) -> None:
        """Interrupt the roles; may be called from any thread."""
        for role in self.roles.values():
            role.interrupt()

    def close(self) -> None:
        """Close the roles."""
        for role in self.roles.values():
            role.close()


def runners(roles: Mapping[str, Role]) -> dict[str, _RunsCode]:
    """Return the roles that run code, by alias."""
    return {alias: role for alias, role in roles.items() if isinstance(role, _RunsCode)}


def equip(roles: Mapping[str, Role], facts: LongMemory, files: RoleFiles) -> None:
    """Give roles the facts of their branch; give the files too where a role runs code."""
    runs_code = bool(runners(roles))
    for role in roles.values():
        role.long_memory = facts
        if runs_code:
            role.files, role.may_branch = files, True
