"""Operations on branches and rounds."""

from __future__ import annotations

import asyncio
from functools import partial

from pydantic import BaseModel

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.routes import BRANCH, OF_BRANCH, ONE, found
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import ApiOperation, Call, number_of

_MOST_ROUNDS = 100
_PAGE = {
    "first": "Number of the first round, from 1",
    "limit": f"Most rounds, up to {_MOST_ROUNDS}",
}


class BranchOperations:
    """Operations on the branches of sessions, and on the rounds on them.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self.operations = [*self._of_branches(), *self._of_rounds()]

    def _of_branches(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "POST",
                f"{ONE}/branches",
                self._fork,
                "Fork a branch: its conversation, variables, files and memory",
                body=models.NewBranch,
                answer=models.MadeBranch,
                status=201,
            ),
            ApiOperation(
                "PATCH",
                BRANCH,
                self._rename,
                "Give a branch a title, which is shown in place of its name",
                body=models.BranchTitle,
                answer=models.BranchSummary,
            ),
        ]

    def _of_rounds(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "GET",
                f"{ONE}/rounds",
                self._index,
                "Index of all rounds of a session",
                answer=models.RoundIndex,
            ),
            ApiOperation(
                "GET",
                f"{BRANCH}/rounds",
                self._page,
                "Rounds that a branch sees, with their posts",
                query=_PAGE,
                answer=models.RoundPage,
            ),
            ApiOperation(
                "GET",
                f"{ONE}/plan",
                self._plan,
                "The newest plan of a branch",
                query=OF_BRANCH,
                answer=models.PlanView,
            ),
        ]

    async def _fork(self, call: Call) -> BaseModel:
        wanted, conversation = call.read(models.NewBranch), await found(self._sessions, call)
        await (await self._sessions.of(call.user)).check_disk(call.user)
        name = await conversation.change(
            wanted.source, lambda branch: branch.fork(wanted.name, at_round=wanted.at_round)
        )
        index, session_id = conversation.index, conversation.session.session_id
        await index.calls.change(partial(index.note_branch, session_id, name, wanted.source))
        return models.MadeBranch(name=name, why_restored=conversation.branch(name).why_restored)

    async def _rename(self, call: Call) -> BaseModel:
        title, conversation = call.read(models.BranchTitle).title, await found(self._sessions, call)
        branch = conversation.branch(call.path("branch"))
        await asyncio.to_thread(branch.rename, title)
        index, session_id = conversation.index, conversation.session.session_id
        await index.calls.change(partial(index.note_renamed_branch, session_id, branch.name, title))
        branches = await asyncio.to_thread(conversation.session.branches)
        made = next(one for one in branches if one.name == branch.name)
        return views.branch_summary(conversation, made)

    async def _index(self, call: Call) -> BaseModel:
        conversation = await found(self._sessions, call)
        last = conversation.session.events.last  # before, so that no later change is missed
        outline = await asyncio.to_thread(conversation.session.moments.outline)
        return views.round_index(outline, last)

    async def _page(self, call: Call) -> BaseModel:
        conversation = await found(self._sessions, call)
        first = max(number_of(call, "first", 1, 1 << 40), 1)
        limit = number_of(call, "limit", 30, _MOST_ROUNDS)
        branch = conversation.branch(call.path("branch"))
        rounds = await asyncio.to_thread(branch.rounds)
        return await asyncio.to_thread(views.round_page, rounds, first, limit)

    async def _plan(self, call: Call) -> BaseModel:
        conversation = await found(self._sessions, call)
        branch = conversation.branch(call.query("branch", "main"))
        return await asyncio.to_thread(lambda: views.plan_of(branch.rounds()))
