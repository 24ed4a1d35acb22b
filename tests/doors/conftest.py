"""A server with the kernel API, which the tests of a file share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from patience import PATIENCE_S
from psycopg_pool import ConnectionPool
from served import Served, served

from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.doors.kernel_api.door import KernelApi
from taskweaver.server.databases import sqlite

LIMITS = replace(KernelLimits.default(), cell_timeout_s=PATIENCE_S)


@pytest.fixture(autouse=True, scope="module")
def _the_event_loop_waits_for_no_database() -> Iterator[None]:
    """Refuse to use a connection to PostgreSQL, or to open or change a file, in a loop's thread."""

    def outside_of_loops(function: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*arguments: Any, **named: Any) -> Any:
            assert asyncio._get_running_loop() is None, f"{function} in the event loop"
            return function(*arguments, **named)

        return checked

    with pytest.MonkeyPatch.context() as patch:
        changing = outside_of_loops(sqlite.SqliteDatabase.changing)
        patch.setattr(sqlite.SqliteDatabase, "changing", changing)
        opened = outside_of_loops(sqlite.SqliteDatabase.__init__)
        patch.setattr(sqlite.SqliteDatabase, "__init__", opened)
        patch.setattr(ConnectionPool, "getconn", outside_of_loops(ConnectionPool.getconn))
        yield


@pytest.fixture(autouse=True, scope="module")
def _a_server_is_shared(nothing_left_by_file: None) -> None:
    """Let tests leave threads of their file's server behind."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server whose kernels run in no sandbox and can be forked."""
    folder = tmp_path_factory.mktemp("served")
    kernels = code_execution_service_factory(folder / "env", limits=LIMITS, is_warm=True)
    try:
        with served([KernelApi(kernels, folder / "users")], folder) as running:
            yield running
    finally:
        kernels.clean_up()
