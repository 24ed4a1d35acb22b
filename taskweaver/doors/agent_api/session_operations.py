"""Operations on sessions: make, list, rename, delete, find, and their consumption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskweaver.doors.agent_api import models, views
from taskweaver.doors.agent_api.routes import ONE, PREFIX, SESSIONS, AgentOperations
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import AgentIndex, ListedSession
from taskweaver.server.errors import invalid_query
from taskweaver.server.operations import Call, number_of, operation

_PAGE = {"first": "Number of those to leave out", "limit": "Most sessions, up to 500"}


class SessionOperations(AgentOperations):
    """Operations on sessions."""

    @operation("GET", SESSIONS, "The caller's sessions, the newest first", query=_PAGE)
    async def _list(self, call: Call) -> models.SessionSummaries:
        own = await self._own(call)
        first, limit = number_of(call, "first", 0, 1 << 40), number_of(call, "limit", 100, 500)
        last = await own.index.calls.in_thread(lambda: own.index.last_change)
        listed = await own.listed()
        page = listed[first : first + limit]
        shown = await own.index.calls.in_thread(_with_stops, own.index, page)
        return models.SessionSummaries(sessions=shown, total=len(listed), last_change=last)

    @operation("POST", SESSIONS, "Make a session", status=201)
    async def _create(self, call: Call, wanted: models.NewConversation) -> models.SessionView:
        own = await self._own(call)
        return await self._shown(await own.create(wanted.title))

    @operation("GET", ONE, "A session with its branches")
    async def _show(self, call: Call) -> models.SessionView:
        return await self._shown(await self._found(call))

    @operation("PATCH", ONE, "Give a session a title")
    async def _rename(self, call: Call, wanted: models.SessionTitle) -> models.SessionView:
        await (await self._own(call)).rename(call.path("session_id"), wanted.title)
        return await self._shown(await self._found(call))

    @operation(
        "POST",
        f"{ONE}/release",
        "End the processes of a session; variables come back when it is used",
        is_end=True,
    )
    async def _release(self, call: Call) -> None:
        await (await self._own(call)).release(call.path("session_id"))

    @operation("DELETE", ONE, "Stop a session and delete it with its files")
    async def _delete(self, call: Call) -> None:
        await (await self._own(call)).remove(call.path("session_id"))

    @operation(
        "GET",
        f"{PREFIX}/find",
        "Passages of all conversations that have a word of a query",
        query={"q": "Words", "session": "Id of a session; all if it is left out"},
    )
    async def _find(self, call: Call) -> models.FoundPassages:
        own = await self._own(call)
        query, session = call.query("q"), call.query("session")
        if not query.strip():
            raise invalid_query("q must have words to look for.")
        rows = await own.find(query, session)
        titles = {item.session_id: item.title for item in await own.listed()} if rows else {}
        passages = [
            models.FoundPassage(session_id=id_, title=titles.get(id_, ""), **row)
            for id_, row in ((row.pop("session"), row) for row in rows)
        ]
        return models.FoundPassages(passages=passages)

    @operation("GET", f"{PREFIX}/usage", "Money and tokens of the caller, with the quotas")
    async def _usage(self, call: Call) -> models.UsageView:
        return await self._spent(call)

    @operation(
        "GET", f"{ONE}/usage", "Money and tokens of a session and of the caller, with the quotas"
    )
    async def _session_usage(self, call: Call) -> models.UsageView:
        usage = (await self._found(call)).session.usage
        shown = await self._spent(call)
        shown.session_tokens, shown.session_cost = usage.total_tokens, usage.cost
        return shown

    async def _spent(self, call: Call) -> models.UsageView:
        accounts, quota = self._sessions.accounts, call.user.quota
        spent = await accounts.calls.in_thread(accounts.spent, call.user.name)
        return models.UsageView(
            spent_tokens=spent.tokens,
            spent_cost=spent.cost,
            quota_tokens=quota.tokens,
            quota_cost=quota.cost,
        )

    async def _shown(self, conversation: UserConversation) -> models.SessionView:
        return await conversation.index.calls.in_thread(_view, conversation)


def _view(conversation: UserConversation) -> models.SessionView:
    session, index = conversation.session, conversation.index
    last_change = index.last_change  # first, so that no later change is missed
    titles = {item.session: item.title for item in index.sessions()}
    running = index.messages(session.session_id, states=("running",))
    return models.SessionView(
        session_id=session.session_id,
        title=titles.get(session.session_id, ""),
        branches=[views.branch_summary(conversation, item) for item in session.branches()],
        last_event=session.events.last,
        open_event=session.events.before([one.round_id for one in running]),
        last_change=last_change,
        waiting=len(conversation.confirmations.waiting()),
    )


def _with_stops(index: AgentIndex, listed: Sequence[ListedSession]) -> list[ListedSession]:
    """Return sessions, with the activity of those whose newest message a person stopped."""
    return [
        replace(item, activity="stopped")
        if item.activity == "failed"
        and [one.state for one in index.messages(item.session_id)[-1:]] == ["stopped"]
        else item
        for item in listed
    ]
