"""Operations on moments of branches: what is kept of them is read, nothing that runs is asked."""

from __future__ import annotations

import asyncio
from functools import partial

from pydantic import BaseModel

from taskweaver.doors.agent_api.moments import models, views
from taskweaver.doors.agent_api.routes import BRANCH, ONE, found
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import ApiOperation, Call, missing, number_of, optional_number
from taskweaver.session.moments.moment import Moment

_MOST_FILES = 1_000
_PAIR = {
    "first": "Name of a branch",
    "first_round": "Number of one of its rounds; the present if it is left out",
    "second": "Name of another branch, or the same",
    "second_round": "Number of one of its rounds; the present if it is left out",
}


class MomentOperations:
    """Operations on moments of branches.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        one = f"{BRANCH}/rounds/{{number:int}}"
        pages = {
            "first": "Number of files to leave out",
            "limit": f"Most files, up to {_MOST_FILES}",
        }
        self.operations = [
            *self._of_pairs(),
            ApiOperation(
                "GET",
                one,
                self._show,
                "A branch at the end of one of its rounds",
                answer=models.MomentView,
            ),
            ApiOperation(
                "GET",
                f"{one}/files",
                self._files,
                "Files of a branch at the end of one of its rounds: names and sizes",
                query=pages,
                answer=models.MomentFiles,
            ),
        ]

    def _of_pairs(self) -> list[ApiOperation]:
        merge = f"{BRANCH}/merge"
        return [
            ApiOperation(
                "GET",
                f"{BRANCH}/fork",
                self._fork,
                "Things that a fork would carry, and those that it would not",
                query={"at_round": "The last round that it sees; all if it is left out"},
                answer=models.ForkPreview,
            ),
            ApiOperation(
                "GET",
                f"{ONE}/differences",
                self._compare,
                "Differences of two branches, or of two moments",
                query=_PAIR,
                answer=models.Differences,
            ),
            ApiOperation(
                "GET",
                merge,
                self._preview,
                "Things that a merge would bring to this branch, and its conflicts",
                query={"source": "Name of the branch to merge"},
                answer=models.MergeView,
            ),
            ApiOperation(
                "POST",
                merge,
                self._merge,
                "Merge the core and archival memory of another branch into this one",
                body=models.NewMerge,
                answer=models.Merged,
            ),
        ]

    async def _fork(self, call: Call) -> BaseModel:
        moments = (await found(self._sessions, call)).session.moments
        at = optional_number(call, "at_round")
        return await asyncio.to_thread(views.fork_preview, moments, call.path("branch"), at)

    async def _compare(self, call: Call) -> BaseModel:
        conversation = await found(self._sessions, call)
        if not call.query("first") or not call.query("second"):
            raise RequestRefused(422, "invalid-query", "first and second must name branches.")
        sides = [
            (call.query(side), optional_number(call, f"{side}_round"))
            for side in ("first", "second")
        ]
        difference = await asyncio.to_thread(conversation.session.moments.diff, *sides)
        return await asyncio.to_thread(views.differences_view, difference)

    async def _preview(self, call: Call) -> BaseModel:
        branch = (await found(self._sessions, call)).branch(call.path("branch"))
        preview = await asyncio.to_thread(branch.merge_preview, call.query("source"))
        return views.merge_view(preview)

    async def _merge(self, call: Call) -> BaseModel:
        wanted, conversation = call.read(models.NewMerge), await found(self._sessions, call)
        report = await conversation.change(
            call.path("branch"),
            lambda branch: branch.merge(wanted.source, wanted.policy, wanted.choices),
        )
        if report.applied:
            index, session_id = conversation.index, conversation.session.session_id
            note = partial(index.note_merge, session_id, call.path("branch"), wanted.source)
            await index.calls.change(note)
        return models.Merged(
            taken=report.taken, conflicts=report.conflicts, is_applied=report.applied
        )

    async def _show(self, call: Call) -> BaseModel:
        return await asyncio.to_thread(views.moment_view, await self._moment(call))

    async def _files(self, call: Call) -> BaseModel:
        first = number_of(call, "first", 0, 1 << 40)
        limit = number_of(call, "limit", views.FILES_OF_PAGE, _MOST_FILES)
        return await asyncio.to_thread(views.files_view, await self._moment(call), first, limit)

    async def _moment(self, call: Call) -> Moment:
        conversation, number = await found(self._sessions, call), int(call.path("number"))
        if number == 0:
            raise missing("Round", "0")
        branch = call.path("branch")
        return await asyncio.to_thread(conversation.session.moments.at, branch, number)
