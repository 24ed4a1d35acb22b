"""Operations on moments of branches: what is kept of them is read, nothing that runs is asked."""

from __future__ import annotations

import asyncio

from taskweaver.doors.agent_api import moment_views as views
from taskweaver.doors.agent_api.routes import BRANCH, ONE, AgentOperations
from taskweaver.server.errors import invalid_query
from taskweaver.server.operations import Call, missing, number_of, operation, optional_number, view
from taskweaver.session.moments import Moment

_MOST_FILES = 1_000
_MOMENT, _MERGE = f"{BRANCH}/rounds/{{number:int}}", f"{BRANCH}/merge"
_FILES = {"first": "Number of files to leave out", "limit": f"Most files, up to {_MOST_FILES}"}
_PAIR = {
    "first": "Name of a branch",
    "first_round": "Number of one of its rounds; the present if it is left out",
    "second": "Name of another branch, or the same",
    "second_round": "Number of one of its rounds; the present if it is left out",
}


class MomentOperations(AgentOperations):
    """Operations on moments of branches."""

    @operation(
        "GET",
        f"{BRANCH}/fork",
        "Things that a fork would carry, and those that it would not",
        query={"at_round": "The last round that it sees; all if it is left out"},
    )
    async def _fork(self, call: Call) -> views.ForkPreview:
        moments = (await self._found(call)).session.moments
        at = optional_number(call, "at_round")
        return await asyncio.to_thread(views.fork_preview, moments, call.path("branch"), at)

    @operation(
        "GET", f"{ONE}/differences", "Differences of two branches, or of two moments", query=_PAIR
    )
    async def _compare(self, call: Call) -> views.Differences:
        conversation = await self._found(call)
        if not call.query("first") or not call.query("second"):
            raise invalid_query("first and second must name branches.")
        sides = [
            (call.query(side), optional_number(call, f"{side}_round"))
            for side in ("first", "second")
        ]
        difference = await asyncio.to_thread(conversation.session.moments.diff, *sides)
        return await asyncio.to_thread(views.differences_view, difference)

    @operation(
        "GET",
        _MERGE,
        "Things that a merge would bring to this branch, and its conflicts",
        query={"source": "Name of the branch to merge"},
    )
    async def _preview(self, call: Call) -> views.MergeView:
        branch = (await self._found(call)).branch(call.path("branch"))
        preview = await asyncio.to_thread(branch.merge_preview, call.query("source"))
        return views.merge_view(preview)

    @operation("POST", _MERGE, "Merge the core and archival memory of another branch into this one")
    async def _merge(self, call: Call, wanted: views.NewMerge) -> views.Merged:
        conversation = await self._found(call)
        report = await conversation.change(
            call.path("branch"),
            lambda branch: branch.merge(wanted.source, wanted.policy, wanted.choices),
        )
        if report.applied:
            facts = {"branch": call.path("branch"), "source": wanted.source}
            await conversation.note("branch_merged", **facts)
        return view(views.Merged, report, is_applied=report.applied)

    @operation("GET", _MOMENT, "A branch at the end of one of its rounds")
    async def _show(self, call: Call) -> views.MomentView:
        return await asyncio.to_thread(views.moment_view, await self._moment(call))

    @operation(
        "GET",
        f"{_MOMENT}/files",
        "Files of a branch at the end of one of its rounds: names and sizes",
        query=_FILES,
    )
    async def _files(self, call: Call) -> views.MomentFiles:
        first = number_of(call, "first", 0, 1 << 40)
        limit = number_of(call, "limit", views.FILES_OF_PAGE, _MOST_FILES)
        return await asyncio.to_thread(views.files_view, await self._moment(call), first, limit)

    async def _moment(self, call: Call) -> Moment:
        conversation, number = await self._found(call), int(call.path("number"))
        if number == 0:
            raise missing("Round", "0")
        branch = call.path("branch")
        return await asyncio.to_thread(conversation.session.moments.at, branch, number)
