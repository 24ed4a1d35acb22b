"""Owner of the sessions of the kernel API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from taskweaver.ces.common import Client, Manager, forkable
from taskweaver.ces.manager import KernelManager
from taskweaver.doors.kernel_api.sessions import KernelSession, Place
from taskweaver.server.admission import Admission, HeldShare, KernelName, User, UserHolding
from taskweaver.server.errors import conflict, stopping
from taskweaver.server.operations import missing, plain_name
from taskweaver.server.transfer import folder_bytes
from taskweaver.session.storage.workdir import STAGING_FOLDER, clone_into
from taskweaver.utils.file_system.safe_fs import Folder

_FORK_LIMIT_BYTES = 1 << 30
_INTERRUPTED_S = 3.0


class KernelSessions:
    """The sessions of all users. Needs `finish` and `close`.

    Attributes:
        folder: Folder of the users' folders.
        admission: The shares of the users.
    """

    def __init__(self, kernels: Manager, folder: Path, admission: Admission) -> None:
        """Prepare for sessions whose folders are below `folder`, one for each user.

        The caller closes `kernels`.
        """
        self.folder = folder
        self.admission = admission
        self._kernels = kernels
        if isinstance(kernels, KernelManager):  # in each cell, through whichever door it came
            kernels.room_of, kernels.owner_of = admission.room_of, admission.user_of
        self._known = set[str]()
        self._sessions: dict[tuple[str, str], KernelSession] = {}
        self._changing: dict[tuple[str, str], Path] = {}  # roots of those made or removed

    def of(self, user: str) -> list[KernelSession]:
        """Return the sessions of a user."""
        return [session for (name, _), session in list(self._sessions.items()) if name == user]

    def _kernels_of(self, user: str) -> dict[KernelName, Client]:
        return {(f"/{session.id}", ""): session.kernel for session in self.of(user)}

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
        """Make a session. The kernel starts with the first work.

        Raises:
            RequestRefused: If the user has a session of this id, or the share is used up.
            KernelStartFailed: If there can be no working directory.
        """
        root = self.folder / user.name / session_id
        async with self._reserved(user, session_id, root, 0) as share:
            place = Place(root, root / "cwd")
            kernel = await asyncio.to_thread(self._client, user, session_id, place)
            return await self._add(user, session_id, place, kernel, share)

    async def fork(self, user: User, source: KernelSession, session_id: str) -> KernelSession:
        """Make a session with the variables and a copy of the files of another.

        Raises:
            RequestRefused: If the user has a session of this id, or the share is used up.
            ForkRefused: If something in the kernel does not survive a fork.
            SessionError: If there are more files than may be copied.
        """
        size = await asyncio.to_thread(folder_bytes, source.place.cwd)
        async with self._reserved(user, session_id, source.place.root, size) as share:
            branch = PurePosixPath("branches", session_id)
            place = Place(source.place.root, source.place.root / branch / "cwd")

            def work(kernel: Client) -> Client:
                snapshot = forkable(kernel).snapshot()
                try:
                    with Folder.at(place.root.resolve()) as root:
                        for name in (STAGING_FOLDER, branch.parent):
                            root.make_folders(name)
                        clone_into(root, source.files, branch, "cwd", limit_bytes=_FORK_LIMIT_BYTES)
                    return snapshot.fork(_client_id(user, session_id), place.root, place.cwd)
                finally:
                    snapshot.close()

            kernel = await source.run(work)
            fork = await self._add(user, session_id, place, kernel, share)
            fork.plugins, fork.variables = dict(source.plugins), dict(source.variables)
            return fork

    def _client(self, user: User, session_id: str, place: Place) -> Client:
        name = _client_id(user, session_id)
        return self._kernels.get_session_client(name, session_dir=place.root, cwd=place.cwd)

    async def _add(
        self, user: User, session_id: str, place: Place, kernel: Client, share: HeldShare
    ) -> KernelSession:
        try:
            session = KernelSession(session_id, user.name, place, kernel, self.admission, share)
        except BaseException:
            await asyncio.to_thread(kernel.stop)
            raise
        self._sessions[user.name, session_id] = session
        return session

    @asynccontextmanager
    async def _reserved(
        self, user: User, session_id: str, root: Path, size: int
    ) -> AsyncIterator[HeldShare]:
        """Keep id, place and share for a session that is being made; give its share of sessions."""
        key = (user.name, plain_name(session_id, "a session"))
        if self.admission.is_stopping:
            raise stopping()
        if key in self._sessions or key in self._changing:
            raise conflict(f"Session {session_id} already exists.")
        if user.name not in self._known:
            self._known.add(user.name)
            kernels = partial(self._kernels_of, user.name)  # what ends would not come back
            self.admission.add(user.name, UserHolding(self.folder / user.name, kernels))
        self._changing[key] = root
        try:
            with (
                self.admission.take(user, "sessions") as share,
                await self.admission.reserve(user, (f"/{session_id}", ""), size),
            ):
                yield share
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

    async def finish(self, grace_s: float) -> None:
        """Refuse new work. Let running code end within a time, then interrupt the kernels."""
        self.admission.stop()
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
        await asyncio.to_thread(self.admission.threads.shutdown)


def _client_id(user: User, session_id: str) -> str:
    return f"{user.name}/{session_id}"


def _delete(folder: Path) -> None:
    with Folder.at(folder.parent.resolve()) as parent:
        parent.remove(folder.name)
