"""Owner of the sessions of the kernel API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from taskweaver.ces.common import Client, Manager
from taskweaver.doors.kernel_api.sessions import KernelSession, Place
from taskweaver.server.accounts import User
from taskweaver.server.admission import Admission
from taskweaver.server.errors import RequestRefused, conflict, quota_used_up, stopping
from taskweaver.server.operations import missing, plain_name
from taskweaver.server.transfer import MIB, disk_room
from taskweaver.session.storage.workdir import STAGING_FOLDER, clone_into
from taskweaver.utils.file_system.safe_fs import Folder

_MOST_SESSIONS = 256
_FORK_LIMIT_BYTES = 1 << 30
_INTERRUPTED_S = 3.0


class KernelSessions:
    """The sessions of all users. Needs `finish` and `close`."""

    def __init__(self, kernels: Manager, folder: Path) -> None:
        """Prepare for sessions whose folders are below `folder`, one for each user.

        The caller closes `kernels`.
        """
        places = max(8, 4 * (os.cpu_count() or 1))
        self.folder = folder
        self._kernels = kernels
        self._admission = Admission(places)
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="kernel-api")
        self._sessions: dict[tuple[str, str], KernelSession] = {}
        self._changing: dict[tuple[str, str], Path] = {}  # roots of those made or removed

    def of(self, user: User) -> list[KernelSession]:
        """Return the sessions of a user."""
        return [session for (name, _), session in self._sessions.items() if name == user.name]

    def get(self, user: User, session_id: str) -> KernelSession:
        """Return a session of a user.

        Raises:
            RequestRefused: If the user has no such session.
        """
        session = self._sessions.get((user.name, session_id))
        if session is None:
            raise missing("Session", session_id[:128])
        return session

    async def create(self, user: User, session_id: str) -> KernelSession:
        """Make a session. The kernel starts in the background.

        Raises:
            RequestRefused: If the user has a session of this id, or as many as allowed.
            KernelStartFailed: If there can be no working directory.
        """
        root = self.folder / user.name / session_id
        with self._reserved(user, session_id, root):
            place = Place(root, root / "cwd")
            kernel = await asyncio.to_thread(self._client, user, session_id, place)
            return await self._add(user, session_id, place, kernel)

    async def fork(self, user: User, source: KernelSession, session_id: str) -> KernelSession:
        """Make a session with the variables and a copy of the files of another.

        Raises:
            RequestRefused: If the user has a session of this id, or as many as allowed.
            ForkRefused: If something in the kernel does not survive a fork.
            SessionError: If there are more files than may be copied.
        """
        with self._reserved(user, session_id, source.place.root):
            branch = PurePosixPath("branches", session_id)
            place = Place(source.place.root, source.place.root / branch / "cwd")

            def work(kernel: Client) -> Client:
                snapshot = kernel.snapshot()
                try:
                    with Folder.at(place.root.resolve()) as root:
                        for name in (STAGING_FOLDER, branch.parent):
                            root.make_folders(name)
                        clone_into(root, source.files, branch, "cwd", limit_bytes=_FORK_LIMIT_BYTES)
                    return self._kernels.fork_session_client(
                        snapshot,
                        _client_id(user, session_id),
                        session_dir=place.root,
                        cwd=place.cwd,
                    )
                finally:
                    snapshot.close()

            kernel = await source.run(work)
            fork = await self._add(user, session_id, place, kernel)
            fork.plugins, fork.variables = dict(source.plugins), dict(source.variables)
            return fork

    def _client(self, user: User, session_id: str, place: Place) -> Client:
        name = _client_id(user, session_id)
        return self._kernels.get_session_client(name, session_dir=place.root, cwd=place.cwd)

    async def _add(
        self, user: User, session_id: str, place: Place, kernel: Client
    ) -> KernelSession:
        try:
            session = KernelSession(
                session_id, user.name, place, kernel, self._admission, self._threads
            )
        except BaseException:
            await asyncio.to_thread(kernel.stop)
            raise
        self._sessions[user.name, session_id] = session
        kernel.start()
        return session

    @contextmanager
    def _reserved(self, user: User, session_id: str, root: Path) -> Iterator[None]:
        """Keep an id and a place for a session that is being made."""
        key = (user.name, plain_name(session_id, "a session"))
        if self._admission.is_stopping:
            raise stopping()
        if key in self._sessions or key in self._changing:
            raise conflict(f"Session {session_id} already exists.")
        if len(self._sessions) + len(self._changing) >= _MOST_SESSIONS:
            detail = f"The server has {_MOST_SESSIONS} sessions, the most that it takes."
            raise RequestRefused(503, "sessions", detail, retry_after_s=60)
        own = len(self.of(user)) + sum(name == user.name for name, _ in self._changing)
        if user.quota.kernels is not None and own >= user.quota.kernels:
            raise quota_used_up(f"{user.name} has {own} kernels, and may have no more.")
        self._changing[key] = root
        try:
            yield
        finally:
            del self._changing[key]

    async def restart(self, user: User, session: KernelSession) -> None:
        """Give a session a fresh kernel, with the same plugins and session variables.

        The cells that run or wait end without a result.

        Raises:
            KernelError: If the fresh kernel does not start.
        """
        await session.replace_kernel(lambda: self._client(user, session.id, session.place))

        def prepare(kernel: Client) -> None:
            kernel.update_session_var(session.variables)
            kernel.load_plugins(session.plugins.values())

        await session.run(prepare)

    async def remove(self, session: KernelSession) -> None:
        """Stop a session and delete the files."""
        key, root = (session.user, session.id), session.place.root
        del self._sessions[key]
        self._changing[key] = root  # a new session of this id waits for the end of this one
        try:
            await session.stop()
            others = [other.place.root for other in self._sessions.values()]
            others += [place for changing, place in self._changing.items() if changing != key]
            doomed = session.place.cwd if root in others else root
            await asyncio.to_thread(_delete, doomed)
        finally:
            del self._changing[key]

    async def check_quotas(self, user: User) -> int | None:
        """Check the memory and the disk of a user before work that may need more.

        Returns:
            Room on the disk in bytes; None for no limit.

        Raises:
            RequestRefused: If a quota is used up.
        """
        memory_mb = user.quota.memory_mb
        if memory_mb is not None:
            used = await asyncio.to_thread(_memory_bytes, self.of(user))
            if used >= memory_mb * MIB:
                detail = f"The kernels of {user.name} use {used // MIB} MiB of {memory_mb} MiB."
                raise quota_used_up(f"{detail} Stop or restart one.")
        return await asyncio.to_thread(disk_room, user, self.folder / user.name)

    async def finish(self, grace_s: float) -> None:
        """Refuse new work. Let running code end within a time, then interrupt the kernels."""
        self._admission.stop()
        settled = asyncio.gather(*(session.settle() for session in self._sessions.values()))
        try:
            async with asyncio.timeout(grace_s):
                await asyncio.shield(settled)
        except TimeoutError:
            for session in list(self._sessions.values()):
                await asyncio.to_thread(session.kernel.interrupt)
            # Cells that do not end for an interrupt end with their kernels.
            await asyncio.wait([settled], timeout=_INTERRUPTED_S)

    async def close(self) -> None:
        """Stop every session. The files stay."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.stop() for session in sessions))
        self._threads.shutdown()


def _client_id(user: User, session_id: str) -> str:
    return f"{user.name}/{session_id}"


def _memory_bytes(sessions: list[KernelSession]) -> int:
    footprints = [session.kernel.footprint for session in sessions]
    return sum(item.resident_bytes - item.shared_bytes for item in footprints)


def _delete(folder: Path) -> None:
    with Folder.at(folder.parent.resolve()) as parent:
        parent.remove(folder.name)
