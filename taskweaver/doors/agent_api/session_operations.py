"""Operations on sessions: make, list, rename, delete, find, and their consumption."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from pydantic import BaseModel
from starlette.responses import Response

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.routes import ONE, PREFIX, SESSIONS, found
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import ApiOperation, Call, number_of


class SessionOperations:
    """Operations on sessions.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self.operations = [*self._of_all(), *self._of_one()]

    def _of_all(self) -> list[ApiOperation]:
        pages = {"first": "Number of those to leave out", "limit": "Most sessions, up to 500"}
        return [
            ApiOperation(
                "GET",
                SESSIONS,
                self._list,
                "The caller's sessions, the newest first",
                query=pages,
                answer=models.SessionSummaries,
            ),
            ApiOperation(
                "POST",
                SESSIONS,
                self._create,
                "Make a session",
                body=models.NewConversation,
                answer=models.SessionView,
                status=201,
            ),
            ApiOperation(
                "GET",
                f"{PREFIX}/find",
                self._find,
                "Passages of all conversations that have a word of a query",
                query={"q": "Words", "session": "Id of a session; all if it is left out"},
                answer=models.FoundPassages,
                problems=(404,),
            ),
            ApiOperation(
                "GET",
                f"{PREFIX}/usage",
                self._usage,
                "Money and tokens of the caller, with the quotas",
                answer=models.UsageView,
            ),
        ]

    def _of_one(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "GET",
                ONE,
                self._show,
                "A session with its branches",
                answer=models.SessionView,
            ),
            ApiOperation(
                "PATCH",
                ONE,
                self._rename,
                "Give a session a title",
                body=models.SessionTitle,
                answer=models.SessionView,
            ),
            ApiOperation(
                "POST",
                f"{ONE}/release",
                self._release,
                "End the processes of a session; variables come back when it is used",
                status=204,
            ),
            ApiOperation(
                "DELETE",
                ONE,
                self._delete,
                "Stop a session and delete it with its files",
                status=204,
            ),
            ApiOperation(
                "GET",
                f"{ONE}/usage",
                self._session_usage,
                "Money and tokens of a session and of the caller, with the quotas",
                answer=models.UsageView,
            ),
        ]

    async def _list(self, call: Call) -> BaseModel:
        own = await self._sessions.of(call.user)
        first, limit = number_of(call, "first", 0, 1 << 40), number_of(call, "limit", 100, 500)
        last = await own.index.calls.statements(lambda: own.index.last_change)
        listed = await own.listed()
        shown = [
            models.SessionSummary.model_validate(
                {"session_id": item.id, **{k: v for k, v in asdict(item).items() if k != "id"}}
            )
            for item in listed[first : first + limit]
        ]
        return models.SessionSummaries(sessions=shown, total=len(listed), last_change=last)

    async def _create(self, call: Call) -> BaseModel:
        own = await self._sessions.of(call.user)
        await own.check_disk(call.user)
        return await self._shown(await own.create(call.read(models.NewConversation).title))

    async def _show(self, call: Call) -> BaseModel:
        return await self._shown(await found(self._sessions, call))

    async def _rename(self, call: Call) -> BaseModel:
        title = call.read(models.SessionTitle).title
        await (await self._sessions.of(call.user)).rename(call.path("session_id"), title)
        return await self._shown(await found(self._sessions, call))

    async def _release(self, call: Call) -> Response:
        await (await self._sessions.of(call.user)).release(call.path("session_id"))
        return Response(status_code=204)

    async def _delete(self, call: Call) -> Response:
        await (await self._sessions.of(call.user)).remove(call.path("session_id"))
        return Response(status_code=204)

    async def _find(self, call: Call) -> BaseModel:
        own = await self._sessions.of(call.user)
        query, session = call.query("q"), call.query("session")
        if not query.strip():
            raise RequestRefused(422, "invalid-query", "q must have words to look for.")
        rows = await own.find(query, session)
        passages = [
            models.FoundPassage(session_id=row["session"], branch=row["branch"], text=row["text"])
            for row in rows
        ]
        return models.FoundPassages(passages=passages)

    async def _usage(self, call: Call) -> BaseModel:
        return await self._spent(call)

    async def _session_usage(self, call: Call) -> BaseModel:
        usage = (await found(self._sessions, call)).session.usage
        view = await self._spent(call)
        view.session_tokens, view.session_cost = usage.total_tokens, usage.cost
        return view

    async def _spent(self, call: Call) -> models.UsageView:
        accounts, quota = self._sessions.accounts, call.user.quota
        spent = await accounts.calls.statements(partial(accounts.spent, call.user.name))
        return models.UsageView(
            spent_tokens=spent.tokens,
            spent_cost=spent.cost,
            quota_tokens=quota.tokens,
            quota_cost=quota.cost,
        )

    async def _shown(self, conversation: UserConversation) -> models.SessionView:
        return await conversation.index.calls.in_thread(partial(self._view, conversation))

    @staticmethod
    def _view(conversation: UserConversation) -> models.SessionView:
        session, last_change = conversation.session, conversation.index.last_change
        titles = {item.session: item.title for item in conversation.index.sessions()}
        branches = [views.branch_summary(conversation, item) for item in session.branches()]
        running = conversation.index.messages(session.session_id, states=("running",))
        return models.SessionView(
            session_id=session.session_id,
            title=titles.get(session.session_id, ""),
            branches=branches,
            last_event=session.events.last,
            open_event=session.events.before([one.round_id for one in running]),
            last_change=last_change,
            waiting=len(conversation.confirmations.waiting()),
        )
