"""Shares of users: places in turn, and what is held until it is given back."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.ces.process.footprint import Footprint
from taskweaver.server.admission import Admission, HeldShare, KernelName, Quota, User, UserHolding
from taskweaver.server.errors import RequestRefused
from taskweaver.session.errors import SessionClosed


async def worker(admission: Admission, user: str, order: list[str], gate: asyncio.Event) -> None:
    async with admission.place(user):
        order.append(user)
        await asyncio.sleep(0)
        await gate.wait()


def open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


@pytest.mark.anyio
async def test_users_are_served_in_turn() -> None:
    admission, order = Admission(1), list[str]()
    users = ["a"] * 4 + ["b"] * 2 + ["c"]
    await asyncio.gather(*(worker(admission, user, order, open_gate()) for user in users))
    assert order == ["a", "a", "b", "c", "a", "b", "a"]


@pytest.mark.anyio
async def test_a_queue_is_bounded_and_ends_with_the_server() -> None:
    admission, gate, order = Admission(1), asyncio.Event(), list[str]()
    tasks = [asyncio.ensure_future(worker(admission, "a", order, gate)) for _ in range(65)]
    await asyncio.sleep(0)
    with pytest.raises(RequestRefused) as full:
        await worker(admission, "a", order, gate)
    assert (full.value.status, full.value.kind) == (429, "queue-full")
    other = asyncio.ensure_future(worker(admission, "b", order, gate))
    await asyncio.sleep(0)
    admission.stop()
    gate.set()
    outcomes = await asyncio.gather(*tasks, other, return_exceptions=True)
    assert outcomes[0] is None
    assert [getattr(item, "status", None) for item in outcomes[1:]] == [503] * 65
    with pytest.raises(RequestRefused):
        await worker(admission, "a", order, gate)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_no_place_is_lost_whatever_is_cancelled(plan: list[tuple[str, bool]]) -> None:
    async def main() -> None:
        admission, order, tasks = Admission(2), list[str](), list[asyncio.Future[None]]()
        for user, is_cancelled in plan:
            tasks.append(asyncio.ensure_future(worker(admission, user, order, open_gate())))
            if is_cancelled:
                await asyncio.sleep(0)
                tasks[len(tasks) // 2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10), admission.place("x"), admission.place("y"):
            pass

    asyncio.run(main())


@pytest.mark.anyio
async def test_a_user_leaves_places_for_others() -> None:
    admission, gate, order = Admission(4), asyncio.Event(), list[str]()
    greedy = [asyncio.ensure_future(worker(admission, "a", order, gate)) for _ in range(9)]
    await asyncio.sleep(0)
    greedy += [asyncio.ensure_future(worker(admission, user, order, gate)) for user in "bc"]
    await asyncio.sleep(0)
    assert order == ["a", "a", "b", "c"]
    gate.set()
    await asyncio.gather(*greedy)


class Folders:
    """A door with the files and kernels of a user, some of them unused."""

    def __init__(self, folder: Path, *kernels: KernelName) -> None:
        self.holding = UserHolding(folder, self.kernels, self.unused)
        kernel = MagicMock()
        kernel.footprint.return_value = Footprint(resident_bytes=60 << 20)
        self.present: Any = dict.fromkeys(kernels, kernel)

    def kernels(self) -> Any:
        return self.present

    def unused(self, _wanted: KernelName) -> Iterator[Callable[[], Awaitable[None]]]:
        async def end(name: KernelName) -> None:
            if name[0] == "busy":
                raise SessionClosed("stopped meanwhile")
            del self.present[name]

        return iter([lambda name=name: end(name) for name in self.present])


@pytest.mark.parametrize("key", ["requests", "sessions"])
def test_what_a_user_holds_is_bounded_and_given_back_once(key: Any) -> None:
    admission, ann = Admission(), User("ann", quota=Quota(requests=3, sessions=3))
    shares = [admission.take(ann, key) for _ in range(3)]
    with pytest.raises(RequestRefused, match=rf"^ann uses 3 of 3 \({key}\)") as refused:
        admission.take(ann, key)
    assert refused.value.status == 429
    admission.take(User("bob"), key)
    for _ in range(3):
        shares[0].close()
    with admission.take(ann, key), pytest.raises(RequestRefused):
        admission.take(ann, key)


@contextmanager
def descriptors(count: int) -> Iterator[ExitStack]:
    """Let the process open so many files; give a stack for them."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, limits[1]))
    try:
        with ExitStack() as opened:
            yield opened
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_descriptors_are_left_for_other_users() -> None:
    admission, counts = Admission(), [0, 0, 0]
    with descriptors(512) as opened:
        for at, name in enumerate("abc"):
            user = User(name, quota=Quota(requests=5000, sessions=5000))
            with pytest.raises(RequestRefused, match=r"\(descriptors\)"):  # noqa: PT012
                while counts[at] < 5000:
                    admission.take(user, "requests")
                    counts[at] += 1
                    opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] > 10
    assert sum(counts) < 512


def test_a_server_without_free_descriptors_answers_a_few_requests_of_each_user() -> None:
    admission = Admission()
    with descriptors(len([*Path("/dev/fd").iterdir()]) + 20):
        for user in (User("ann"), User("bob")):
            shares = [admission.take(user, "requests") for _ in range(8)]
            for key in ("requests", "sessions"):
                with pytest.raises(RequestRefused, match=r"of 0 \(descriptors\)"):
                    admission.take(user, key)  # type: ignore[arg-type]
            for share in shares:
                share.close()


def _sparse(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 30)


def _linked(file: Path) -> None:
    file.write_bytes(b"x" * (4 << 20))
    for number in range(20):
        (file.parent / str(number)).hardlink_to(file)


def _growing(file: Path) -> None:
    for _ in range(12):
        with file.open("ab") as opened:
            opened.write(os.urandom(1 << 20))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("write", "has_room"), [(_sparse, True), (_linked, True), (_growing, False)]
)
async def test_bytes_are_held_before_they_are_written(
    tmp_path: Path, write: Callable[[Path], None], has_room: bool
) -> None:
    admission, ann = Admission(), User("ann", quota=Quota(disk_mb=10))
    admission.add("ann", Folders(tmp_path).holding)
    forks = [admission.reserve(ann, size=3 << 20) for _ in range(5)]
    held = await asyncio.gather(*forks, return_exceptions=True)
    refused = [one for one in held if isinstance(one, RequestRefused)]
    assert [(one.status, "(disk_mb)" in str(one)) for one in refused] == [(429, True)] * 2
    for one in held:
        if not isinstance(one, BaseException):
            one.close()
    (tmp_path / "session").mkdir()
    write(tmp_path / "session" / "file")
    if has_room:
        (await admission.reserve(ann, size=5 << 20)).close()
    else:
        with pytest.raises(RequestRefused):
            await admission.reserve(ann)
    room = admission.room_of(tmp_path / "session")
    assert room is not None
    assert (room > 0) == has_room
    assert admission.room_of(tmp_path.parent) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("quota", "is_admitted", "left"),
    [
        (Quota(kernels=4), True, 2),
        (Quota(kernels=3), True, 1),
        (Quota(kernels=2), True, 1),
        (Quota(kernels=1), False, 1),
        (Quota(memory_mb=100), True, 1),
        (Quota(memory_mb=50), False, 1),
    ],
)
async def test_unused_kernels_end_for_room(
    tmp_path: Path, quota: Quota, is_admitted: bool, left: int
) -> None:
    admission, ann = Admission(), User("ann", quota=quota)
    folders = Folders(tmp_path, ("busy", "main"), ("idle", "main"))
    admission.add("ann", folders.holding)
    wanted = [admission.reserve(ann, ("new", str(number))) for number in range(2)]
    shares = await asyncio.gather(*wanted, return_exceptions=True)
    admitted = [one for one in shares if isinstance(one, HeldShare)]
    assert (bool(admitted), len(folders.present)) == (is_admitted, left)
    assert ("busy", "main") in folders.present
    if quota.kernels is not None:  # those that are reserved count beside those that exist
        assert len(folders.present) + len(admitted) <= max(quota.kernels, 1)
