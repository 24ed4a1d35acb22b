"""Operations on the memory of a branch: read, search, keep, change, forget."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from taskweaver.doors.agent_api import models
from taskweaver.doors.agent_api.routes import OF_BRANCH, ONE, found
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import ApiOperation, Call, missing
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.storage.facts import KeptFact

_MOST_FOUND = 100


class MemoryOperations:
    """Operations on memory.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        one = f"{ONE}/memory/{{fact_id}}"
        self.operations = [
            ApiOperation(
                "GET",
                f"{ONE}/memory",
                self._show,
                "Facts and core memory of a branch; with a query the best facts for it",
                query=OF_BRANCH | {"q": "Words to look for"},
                answer=models.MemoryView,
            ),
            ApiOperation(
                "POST",
                f"{ONE}/memory",
                self._remember,
                "Keep a fact for all sessions of the caller",
                body=models.NewFact,
                query=OF_BRANCH,
                answer=models.MemoryOutcome,
                status=201,
            ),
            ApiOperation(
                "PUT",
                one,
                self._replace,
                "Replace the text of a fact",
                body=models.NewFact,
                query=OF_BRANCH,
                answer=models.MemoryOutcome,
            ),
            ApiOperation(
                "DELETE",
                one,
                self._forget,
                "Forget a fact",
                query=OF_BRANCH,
                answer=models.MemoryOutcome,
            ),
        ]

    async def _memory(self, call: Call) -> tuple[UserConversation, BranchLongMemory]:
        conversation = await found(self._sessions, call)
        branch = conversation.branch(call.query("branch", "main"))
        return conversation, await asyncio.to_thread(lambda: branch.long_memory)

    async def _show(self, call: Call) -> BaseModel:
        conversation, memory = await self._memory(call)
        branch, query = call.query("branch", "main"), call.query("q")

        def read() -> models.MemoryView:
            facts = memory.find(query, _MOST_FOUND) if query.strip() else memory.all()
            core = conversation.session.core_memory(branch)
            shown = [fact_view(fact) for fact in facts if fact.is_match or not query.strip()]
            return models.MemoryView(facts=shown, core=core)

        return await asyncio.to_thread(read)

    async def _remember(self, call: Call) -> BaseModel:
        text, (_, memory) = call.read(models.NewFact).text, await self._memory(call)
        return models.MemoryOutcome(outcome=await asyncio.to_thread(memory.add, text))

    async def _replace(self, call: Call) -> BaseModel:
        text, (_, memory) = call.read(models.NewFact).text, await self._memory(call)
        wanted = call.path("fact_id")

        def replace() -> str:
            return memory.replace(_one(memory, wanted), text)

        return models.MemoryOutcome(outcome=await asyncio.to_thread(replace))

    async def _forget(self, call: Call) -> BaseModel:
        (_, memory), wanted = await self._memory(call), call.path("fact_id")

        def forget() -> str:
            return memory.remove(_one(memory, wanted))

        return models.MemoryOutcome(outcome=await asyncio.to_thread(forget))


def _one(memory: BranchLongMemory, fact_id: str) -> KeptFact:
    found_ = [fact for fact in memory.named(fact_id) if fact.id == fact_id]
    if not found_:
        raise missing("Fact", fact_id[:64])
    return found_[0]


def fact_view(fact: KeptFact) -> models.FactView:
    """Return a fact as clients see it."""
    return models.FactView(
        fact_id=fact.id,
        text=fact.text,
        author=fact.author,
        day=fact.day,
        session_id=fact.session,
    )
