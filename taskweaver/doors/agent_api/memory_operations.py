"""Operations on the memory of a branch: read, search, keep, change, forget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from taskweaver.doors.agent_api import models
from taskweaver.doors.agent_api.routes import OF_BRANCH, ONE, AgentOperations
from taskweaver.server.operations import Call, missing, operation, view
from taskweaver.session.branches.long_memory import BranchLongMemory
from taskweaver.session.storage.facts import KeptFact

_MOST_FOUND = 100
_FACT = f"{ONE}/memory/{{fact_id}}"


class MemoryOperations(AgentOperations):
    """Operations on memory."""

    async def _memory(self, call: Call) -> BranchLongMemory:
        branch = await self._branch(call)
        return await asyncio.to_thread(lambda: branch.long_memory)

    @operation(
        "GET",
        f"{ONE}/memory",
        "Facts and core memory of a branch; with a query the best facts for it",
        query=OF_BRANCH | {"q": "Words to look for"},
    )
    async def _show(self, call: Call) -> models.MemoryView:
        memory, session = await self._memory(call), (await self._found(call)).session
        branch, query = call.query("branch", "main"), call.query("q")

        def read() -> models.MemoryView:
            facts = memory.find(query, _MOST_FOUND) if query.strip() else memory.all()
            core = session.core_memory(branch)
            shown = [fact_view(fact) for fact in facts if fact.is_match or not query.strip()]
            return models.MemoryView(facts=shown, core=core)

        return await asyncio.to_thread(read)

    @operation(
        "POST",
        f"{ONE}/memory",
        "Keep a fact for all sessions of the caller",
        query=OF_BRANCH,
        status=201,
    )
    async def _remember(self, call: Call, wanted: models.NewFact) -> models.MemoryOutcome:
        memory = await self._memory(call)
        return models.MemoryOutcome(outcome=await asyncio.to_thread(memory.add, wanted.text))

    @operation("PUT", _FACT, "Replace the text of a fact", query=OF_BRANCH)
    async def _replace(self, call: Call, wanted: models.NewFact) -> models.MemoryOutcome:
        return await self._change(call, lambda memory, fact: memory.replace(fact, wanted.text))

    @operation("POST", _FACT, "Accept a proposed fact for all sessions", query=OF_BRANCH)
    async def _accept(self, call: Call) -> models.MemoryOutcome:
        return await self._change(call, BranchLongMemory.keep)

    @operation("DELETE", _FACT, "Forget a fact", query=OF_BRANCH)
    async def _forget(self, call: Call) -> models.MemoryOutcome:
        return await self._change(call, BranchLongMemory.remove)

    async def _change(
        self, call: Call, work: Callable[[BranchLongMemory, KeptFact], str]
    ) -> models.MemoryOutcome:
        memory, fact_id = await self._memory(call), call.path("fact_id")

        def change() -> str:
            for fact in memory.named(fact_id):
                if fact.id == fact_id:
                    return work(memory, fact)
            raise missing("Fact", fact_id[:64])

        return models.MemoryOutcome(outcome=await asyncio.to_thread(change))


def fact_view(fact: KeptFact) -> models.FactView:
    """Return a fact as clients see it."""
    return view(models.FactView, fact, fact_id=fact.id, session_id=fact.session)
