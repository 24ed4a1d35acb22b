"""Servers that the tests of a file share: one with the agent API, and one with the kernel API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from agents import SteeredModel, serving_agents
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
        for owner, name in (
            (sqlite.SqliteDatabase, "changing"),
            (sqlite.SqliteDatabase, "__init__"),
            (ConnectionPool, "getconn"),
        ):
            patch.setattr(owner, name, outside_of_loops(getattr(owner, name)))
        yield


@pytest.fixture(autouse=True, scope="module")
def _a_server_is_shared(nothing_left_by_file: None) -> None:
    """Let tests leave threads of their file's server behind."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run tests that are coroutines, and fixtures of a file that are, in one loop of asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
def model() -> SteeredModel:
    return SteeredModel()


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: SteeredModel
) -> Iterator[Served]:
    """Give a server of a project that is configured by the file's `CONFIG`, if it has one."""
    config = getattr(request.module, "CONFIG", None)
    with serving_agents(tmp_path_factory.mktemp("agents"), model, config) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> httpx2.Client:
    return server.client()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server whose kernels run in no sandbox and can be forked."""
    folder = tmp_path_factory.mktemp("served")
    made = code_execution_service_factory(folder / "env", limits=LIMITS, is_warm=True)
    try:
        with served([KernelApi(made, folder / "users")], folder) as running:
            yield running
    finally:
        made.clean_up()
