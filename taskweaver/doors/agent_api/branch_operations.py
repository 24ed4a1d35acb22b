"""Operations on branches and rounds."""

from __future__ import annotations

import asyncio

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.routes import BRANCH, ONE, AgentOperations
from taskweaver.server.operations import Call, number_of, operation

_MOST_ROUNDS = 100
_PAGE = {
    "first": "Number of the first round, from 1",
    "limit": f"Most rounds, up to {_MOST_ROUNDS}",
}


class BranchOperations(AgentOperations):
    """Operations on the branches of sessions, and on the rounds on them."""

    @operation(
        "POST",
        f"{ONE}/branches",
        "Fork a branch: its conversation, variables, files and memory",
        status=201,
    )
    async def _fork(self, call: Call, wanted: models.NewBranch) -> models.MadeBranch:
        conversation = await self._found(call)
        own = await self._own(call)
        name = await own.fork(
            conversation, wanted.source, wanted.name, wanted.at_round, title=wanted.title
        )
        await conversation.note("branch_created", branch=name, parent=wanted.source)
        return models.MadeBranch(
            name=name, why_restored=conversation.branch(name).kernel.why_restored
        )

    @operation("PATCH", BRANCH, "Give a branch a title, which is shown in place of its name")
    async def _rename(self, call: Call, wanted: models.BranchTitle) -> models.BranchSummary:
        conversation = await self._found(call)
        branch = conversation.branch(call.path("branch"))
        await asyncio.to_thread(branch.rename, wanted.title)
        await conversation.note("branch_renamed", branch=branch.name, title=wanted.title)
        branches = await asyncio.to_thread(conversation.session.branches)
        made = next(one for one in branches if one.name == branch.name)
        return views.branch_summary(conversation, made)

    @operation("GET", f"{ONE}/rounds", "Index of all rounds of a session")
    async def _index(self, call: Call) -> models.RoundIndex:
        conversation = await self._found(call)
        last = conversation.session.events.last  # before, so that no later change is missed
        outline = await asyncio.to_thread(conversation.session.moments.outline)
        return views.round_index(outline, last)

    @operation(
        "GET", f"{BRANCH}/rounds", "Rounds that a branch sees, with their posts", query=_PAGE
    )
    async def _page(self, call: Call) -> models.RoundPage:
        conversation = await self._found(call)
        first = max(number_of(call, "first", 1, 1 << 40), 1)
        limit = number_of(call, "limit", 30, _MOST_ROUNDS)
        branch = conversation.branch(call.path("branch"))
        rounds = await asyncio.to_thread(branch.rounds)
        return await asyncio.to_thread(views.round_page, rounds, first, limit)
