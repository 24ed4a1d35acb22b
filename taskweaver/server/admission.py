"""Admission: the share of each user in the server, asked before anything is spent."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from taskweaver.ces.bounds.folder_size import FolderSize
from taskweaver.ces.common import Client, Forkable
from taskweaver.server.errors import RequestRefused, stopping
from taskweaver.session.errors import SessionError

MIB = 1 << 20
_MOST_WAITING = 64
_FEW_REQUESTS = 8
"""Requests of a user that never lack a descriptor: those kept for no user are for them, too."""
_FEW_DESCRIPTORS, _COUNTED_S = 1000, 0.05  # of more, the count takes a while
_MEASURE_S, _GLANCE_S = 2.0, 0.02
_KEPT_DESCRIPTORS = 48
"""Descriptors for what belongs to no user: the log, databases, health, and ends of sessions."""
_DESCRIPTORS = {"requests": 1, "sessions": 20, "kernels": 24}

Role = Literal["admin", "user"]
KernelName = tuple[str, str]
"""Ids of a session and of a branch of it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The share of a user, where None means no limit.

    Attributes:
        cost: Money for model calls, in the currency of the configured prices.
        tokens: Tokens of model calls.
        kernels: Kernels that exist at a time.
        memory_mb: Resident memory of the user's kernels together, in MiB.
        disk_mb: Size of the user's folders together, in MiB.
        sessions: Sessions that are open at a time, and sessions in which nothing was asked yet.
        requests: Requests under way at a time. An event stream is one as long as it is read.
    """

    cost: float | None = None
    tokens: int | None = None
    kernels: int | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    sessions: int = 100
    requests: int = 200


@dataclass(frozen=True, slots=True)
class User:
    """A person or program that may use the server.

    Attributes:
        name: Name of the account; also of the user's folder.
        role: Role; an admin may use what no user may.
        quota: The most that the user may use.
        created_at: Time of creation.
        token_id: Id of the token in force; limits of rate count by it.
    """

    name: str
    role: Role = "user"
    quota: Quota = Quota()
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    token_id: str = ""


def used_up(user: User, key: str, used: object, most: object, remedy: str) -> RequestRefused:
    """Return the refusal of a request beyond a share of a user, which names key and numbers."""
    detail = f"{user.name} uses {used} of {most} ({key}). {remedy}"
    return RequestRefused(429, "quota", detail)


HeldShare = ExitStack
"""Part of a user's share, given back by `close`, which is safe to call again."""


@dataclass(frozen=True, slots=True)
class UserHolding:
    """A door's kernels and files of one user.

    Attributes:
        folder: Folder of all files.
        kernels: Returns the kernels that exist.
        unused: Returns functions that each end unused kernels, for room for one that is wanted;
            they raise SessionError where one is in use or closed by then.
    """

    folder: Path
    kernels: Callable[[], Mapping[KernelName, Client]]
    unused: Callable[[KernelName], Iterable[Callable[[], Awaitable[None]]]] = lambda _: ()


class _Account:
    """Holdings of a user."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.held: Counter[str] = Counter()
        self.kernels: Counter[KernelName] = Counter()
        self.holdings: list[UserHolding] = []
        self.disk_bytes: int | None = None
        self.size = FolderSize()
        self.measuring = threading.Lock()

    def room(self, *, is_glance: bool) -> int | None:
        """Return the bytes that the files may still take, None for no limit; measure for that."""
        if self.disk_bytes is None:
            return None
        with self.measuring:
            if is_glance:
                self.size.advance(_GLANCE_S)
            else:
                self.size.settle(_MEASURE_S, self.disk_bytes)
            return self.disk_bytes - self.size.bytes - self.held["disk"]

    def names(self) -> set[KernelName]:
        """Return the kernels that exist, and those that are reserved."""
        return {*self.kernels, *(name for one in self.holdings for name in one.kernels())}

    def memory_bytes(self) -> int:
        """Return the memory of the kernels without pages that they share."""
        clients = [one for held in self.holdings for one in held.kernels().values()]
        footprints = [client.footprint() for client in clients if isinstance(client, Forkable)]
        return sum(one.resident_bytes - one.shared_bytes for one in footprints)


class Admission:
    """Places for running work, and the shares of users. Shut the threads down.

    Users who wait get a free place in turn. One user has at most as many places as are left for
    others. Used in the event loop's thread, except for `room` and the ends of shares.

    Attributes:
        threads: Threads in which work runs, as many as there are places.
    """

    def __init__(self, places: int = 0) -> None:
        """Begin with free places, 0 for as many as fit the machine."""
        self._free = places or max(32, 16 * (os.cpu_count() or 1))
        self.threads = ThreadPoolExecutor(self._free, thread_name_prefix="work")
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._accounts: defaultdict[str, _Account] = defaultdict(_Account)
        self._lock = threading.Lock()  # for the counts, since shares end in any thread
        self._counted_at, self._open_descriptors = -math.inf, 0
        self.is_stopping = False

    @asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """Hold a place inside the block, after a wait if needed.

        Raises:
            RequestRefused: If too many requests of the user wait, or the server stops.
        """
        await self._enter(user)
        try:
            yield
        finally:
            self._leave(user)

    async def _enter(self, user: str) -> None:
        if self.is_stopping:
            raise stopping()
        queue = self._queues.setdefault(user, deque())
        if len(queue) >= _MOST_WAITING:
            detail = f"{len(queue)} requests of {user} wait already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=1)
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave(user)  # the place was given in the moment of the cancellation
            elif turn in queue:
                queue.remove(turn)
                self._hand_out()  # drops an empty queue
            raise

    def _leave(self, user: str) -> None:
        self._free += 1
        self._accounts[user].held["places"] -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free places to those who wait, in turn."""
        for user in list(self._queues):
            queue, held = self._queues[user], self._accounts[user].held
            while queue and queue[0].done():
                queue.popleft()
            if queue and held["places"] < self._free:
                queue.popleft().set_result(None)
                held["places"] += 1
                self._free -= 1
                self._queues.move_to_end(user)  # the others come first
            if not queue:
                del self._queues[user]

    def stop(self) -> None:
        """Refuse the requests that wait, and all that come."""
        self.is_stopping = True
        queues, self._queues = self._queues, OrderedDict()
        for turn in (turn for queue in queues.values() for turn in queue):
            if not turn.done():
                turn.set_exception(stopping())

    def take(self, user: User, key: str) -> HeldShare:
        """Hold one of the ``requests``, or of the open ``sessions``.

        Raises:
            RequestRefused: If the user has as many as allowed.
        """
        held, most = self._accounts[user.name].held, getattr(user.quota, key)
        if held[key] >= most:
            raise used_up(user, key, held[key], most, "End some, or wait.")
        if key == "sessions" or held[key] >= _FEW_REQUESTS:
            self._require_descriptors(user, _DESCRIPTORS[key])
        return self._held(user, Counter([key]))

    def _held(
        self, user: User, counts: Counter[str], kernel: KernelName | None = None
    ) -> HeldShare:
        account, kernels = self._accounts[user.name], Counter([kernel] if kernel else [])

        def end() -> None:
            with self._lock:
                account.held.subtract(counts)
                account.kernels -= kernels

        with self._lock:
            account.held.update(counts)
            account.kernels += kernels
        share = HeldShare()
        share.callback(end)
        return share

    def _require_descriptors(self, user: User, more: int) -> None:
        """Require that as many descriptors are left for others as the user has then."""
        import resource  # not everywhere: an import of the package names the missing system

        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        now = time.monotonic()
        if self._open_descriptors < _FEW_DESCRIPTORS or now >= self._counted_at + _COUNTED_S:
            self._counted_at, self._open_descriptors = now, len(os.listdir("/dev/fd"))  # noqa: PTH208
        free = most - _KEPT_DESCRIPTORS - self._open_descriptors
        held = self._accounts[user.name].held
        own = sum(cost * held[key] for key, cost in _DESCRIPTORS.items()) + more
        if own > free - more and most != resource.RLIM_INFINITY:
            remedy = "Close streams and sessions, or raise the limit of open files (ulimit -n)."
            raise used_up(user, "descriptors", own - more, max(free, 0), remedy)

    def add(self, user: str, holding: UserHolding) -> None:
        """Count the kernels and files of a door to a user's share."""
        account = self._accounts[user]
        account.holdings.append(holding)
        account.size.add(holding.folder.resolve())

    def room(self, user: User) -> int | None:
        """Return the bytes that a user's files may still take, None for no limit; in any thread."""
        account, most = self._accounts[user.name], user.quota.disk_mb
        account.disk_bytes = most and most * MIB
        return account.room(is_glance=False)

    def room_of(self, folder: Path) -> int | None:
        """Return the bytes that the user of a session's folder may still write, about."""
        user = self.user_of(folder)
        return self._accounts[user].room(is_glance=True) if user else None

    def user_of(self, folder: Path) -> str:
        """Return the user that a session's folder belongs to, or ""."""
        for user, account in tuple(self._accounts.items()):
            if any(one.folder in folder.parents for one in account.holdings):
                return user
        return ""

    async def reserve(
        self, user: User, kernel: KernelName | None = None, size: int = 0
    ) -> HeldShare:
        """Hold room for work: bytes on the disk, and a kernel unless that exists.

        Unused kernels end for room.

        Raises:
            RequestRefused: If there is none.
        """
        account = self._accounts[user.name]
        async with account.lock:
            room, most = await asyncio.to_thread(self.room, user), user.quota.disk_mb or 0
            if room is not None and room < max(size, 1):
                used = f"{most - (room >> 20)} MiB, and {size >> 20} MiB more are needed,"
                raise used_up(user, "disk_mb", used, f"{most} MiB", "Delete some files.")
            ends = [one.unused(kernel) for one in account.holdings] if kernel else []
            unused = chain.from_iterable(ends)
            while True:
                try:
                    await asyncio.to_thread(self._require_kernel, user, account, kernel)
                    return self._held(user, Counter(disk=size), kernel)
                except RequestRefused:
                    end = next(unused, None)
                    if end is None:
                        raise
                with suppress(SessionError):  # in use since just now, or closed
                    await end()

    def _require_kernel(self, user: User, account: _Account, kernel: KernelName | None) -> None:
        """Require room for a kernel, unless it exists, and memory for work."""
        quota, names = user.quota, account.names()
        remedy = "End or restart a kernel that is not needed."
        if quota.memory_mb is not None:
            used = account.memory_bytes()
            if used >= quota.memory_mb * MIB:
                most = f"{quota.memory_mb} MiB"
                raise used_up(user, "memory_mb", f"{used // MIB} MiB", most, remedy)
        account.held["kernels"] = len(names)
        if kernel is None or kernel in names:
            return
        if quota.kernels is not None and len(names) >= quota.kernels:
            raise used_up(user, "kernels", len(names), quota.kernels, remedy)
        self._require_descriptors(user, _DESCRIPTORS["kernels"])
