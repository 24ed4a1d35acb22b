"""Fair queueing: users in turn, bounded queues, and nothing lost by a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.server.admission import Admission
from taskweaver.server.errors import RequestRefused


async def worker(
    admission: Admission, user: str, order: list[str], release: Callable[[], Awaitable[None]]
) -> None:
    async with admission.place(user):
        order.append(user)
        await release()


def test_users_are_served_in_turn() -> None:
    async def main() -> list[str]:
        admission, order = Admission(1), list[str]()

        async def at_once() -> None:
            await asyncio.sleep(0)

        users = ["a"] * 4 + ["b"] * 2 + ["c"]
        await asyncio.gather(*(worker(admission, user, order, at_once) for user in users))
        return order

    assert asyncio.run(main()) == ["a", "a", "b", "c", "a", "b", "a"]


def test_a_queue_is_bounded_and_ends_with_the_server() -> None:
    async def main() -> None:
        admission, gate, order = Admission(1, queue_per_user=2), asyncio.Event(), list[str]()

        async def wait() -> None:
            await gate.wait()

        tasks = [asyncio.ensure_future(worker(admission, "a", order, wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused) as full:
            await worker(admission, "a", order, wait)
        assert (full.value.status, full.value.kind) == (429, "queue-full")
        other = asyncio.ensure_future(worker(admission, "b", order, wait))
        await asyncio.sleep(0)
        admission.stop()
        gate.set()
        outcomes = await asyncio.gather(*tasks, other, return_exceptions=True)
        assert outcomes[0] is None
        assert [getattr(item, "status", None) for item in outcomes[1:]] == [503, 503, 503]
        with pytest.raises(RequestRefused):
            await worker(admission, "a", order, wait)

    asyncio.run(main())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_no_place_is_lost_whatever_is_cancelled(plan: list[tuple[str, bool]]) -> None:
    async def main() -> None:
        admission, order = Admission(2), list[str]()

        async def shortly() -> None:
            await asyncio.sleep(0)

        tasks = []
        for user, is_cancelled in plan:
            task = asyncio.ensure_future(worker(admission, user, order, shortly))
            tasks.append(task)
            if is_cancelled:
                await asyncio.sleep(0)
                tasks[len(tasks) // 2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10), admission.place("x"), admission.place("y"):
            pass

    asyncio.run(main())
