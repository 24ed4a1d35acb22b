"""The seam between the server and its databases.

Statements are those that SQLite and PostgreSQL both understand: ``?`` stands for a value, the
column ``"user"`` is quoted, and `rowid` is a column of PostgreSQL's tables too.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from taskweaver.server.errors import RequestRefused, ServerError

Row = tuple[Any, ...]
P = ParamSpec("P")
T = TypeVar("T")

_AGAIN_S = 0.5


class AlreadyThere(ServerError):
    """A row that must be new is there already."""


class DatabaseLost(RequestRefused):
    """The database does not answer now. The next request connects again.

    Attributes:
        is_undone: Whether it is certain that nothing was changed.
    """

    def __init__(self, detail: str, *, is_undone: bool) -> None:
        super().__init__(503, "database-unavailable", detail, retry_after_s=2)
        self.is_undone = is_undone


class StatementOutcome(NamedTuple):
    """Outcome of a statement: rows, and number of changed rows."""

    rows: list[Row]
    changed: int


RunStatement = Callable[Concatenate[str, ...], StatementOutcome]
"""Runs a statement of a transaction, with values for its marks. Raises as `ServerDatabase`."""


def retry_while_lost(
    work: Callable[[], T], end: threading.Event, *, is_repeatable: bool = True
) -> T:
    """Read or write. While the database does not answer, try again.

    Args:
        work: The reading or writing.
        end: Event after which it is not tried again.
        is_repeatable: Whether it may be done twice; else it is tried again only where it is
            certain that nothing was changed.

    Raises:
        DatabaseLost: If it is not tried again.
    """
    while True:
        try:
            return work()
        except DatabaseLost as error:
            if not (is_repeatable or error.is_undone) or end.wait(_AGAIN_S):
                raise


def insert_row(run: RunStatement, table: str, row: Mapping[str, object]) -> None:
    """Add a row, given by column names. Raises as `ServerDatabase`."""
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    run(f"INSERT INTO {table} ({names}) VALUES ({marks})", *row.values())


class ServerDatabase(Protocol):
    """A thread-safe database. Needs `close`.

    The methods raise ServerError if it cannot be read or written, and of these DatabaseLost if it
    does not answer, and RequestRefused (507) if its disk is full.

    Attributes:
        threads: Threads in which the event loop calls it.
    """

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for calls from the event loop."""

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a query."""

    def changing(self, user: str = "") -> AbstractContextManager[RunStatement]:
        """Begin a transaction, on disk at the block's end, and undone by an error.

        Args:
            user: User whose data are changed: such transactions follow one another, and where it is
                an index, the servers that share it are woken. Empty for other changes.

        Raises:
            AlreadyThere: In the block, if a row that must be new is there.
        """

    def close(self) -> None:
        """Close the database. Safe to call again."""


class LoopCalls:
    """Calls of a database, which run to the end, also after a cancellation of the wait.

    Used in the event loop's thread alone.
    """

    def __init__(self, database: ServerDatabase) -> None:
        self._threads = database.threads
        self._turn = asyncio.Lock()

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read or change the database in a thread."""
        loop, call = asyncio.get_running_loop(), partial(work, *args, **kwargs)
        return await asyncio.shield(loop.run_in_executor(self._threads, call))

    async def in_turn(
        self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Work in turn: no two threads wait for the database's lock of a user."""

        async def work_in_turn() -> T:
            async with self._turn:
                return await work(*args, **kwargs)

        return await asyncio.shield(asyncio.ensure_future(work_in_turn()))

    async def change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Change the database in a thread, in turn."""
        return await self.in_turn(lambda: self.in_thread(work, *args, **kwargs))

    async def settle(self) -> None:
        """Wait for the work in turn that has begun or waits now."""
        async with self._turn:
            pass
