"""Whoever announces itself may be anybody: what it says is checked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.template import Rendezvous

pytestmark = pytest.mark.measured


@pytest.fixture
def expected(tmp_path: Path) -> Iterator[Rendezvous]:
    with Homes(tmp_path).new() as home, Rendezvous(home) as expected:
        yield expected


@pytest.fixture
def own() -> Iterator[int]:
    handle = os.pidfd_open(os.getpid())
    yield handle
    os.close(handle)


def say(expected: Rendezvous, told: object, handle: int | None) -> socket.socket:
    """Return a connection on which something was said, with a handle of a process or without."""
    data = told if isinstance(told, bytes) else json.dumps(told).encode() + b"\n"
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(expected.path))
    socket.send_fds(connection, [data], [] if handle is None else [handle])
    return connection


@pytest.mark.parametrize("with_handle", [True, False])
@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b"nonsense", b"\xff" * 100, b"[" * 50_000, b'{"pid": "1"}', b'{"error": 1}'],
)
def test_nonsense_is_no_process(
    expected: Rendezvous, own: int, data: bytes, with_handle: bool
) -> None:
    with say(expected, data, own if with_handle else None) as speaker:
        speaker.shutdown(socket.SHUT_WR)
        with pytest.raises(ForkRefused):
            expected.arrive(own, 5, started=os.getpid())


def test_a_handle_of_another_process_is_refused(expected: Rendezvous, own: int) -> None:
    other = os.pidfd_open(os.getppid())
    with say(expected, b'{"pid": 2}', other), pytest.raises(ForkRefused, match="not its own"):
        expected.arrive(own, 5, started=os.getpid())
    os.close(other)


def test_one_who_says_nothing_is_not_waited_for(expected: Rendezvous, own: int) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(expected.path))
        with pytest.raises(ForkRefused, match="cannot be heard"):
            expected.arrive(own, 0.2, started=os.getpid())


@pytest.mark.parametrize("told", [{"pid": 1}, {"pid": 1, "secret": ""}, {"error": "no"}])
def test_one_who_was_not_told_the_secret_does_not_come_first(
    expected: Rendezvous, own: int, told: dict[str, object]
) -> None:
    stranger = say(expected, told, own)
    right = say(expected, {"pid": 2, "secret": expected.secret}, own)
    arrival = expected.arrive(own, 5)
    assert arrival.inner_pid == 2
    assert stranger.recv(1) == b""
    for end in (arrival.handle, arrival.connection, stranger, right):
        end.close()


def test_one_who_is_not_below_the_process_that_was_started_is_turned_away(
    expected: Rendezvous, own: int
) -> None:
    other = subprocess.Popen(["/bin/sleep", "60"])
    death_fd = os.pidfd_open(other.pid)
    with say(expected, {"pid": 1}, own) as stranger:
        with pytest.raises(ForkRefused, match="did not come"):
            expected.arrive(death_fd, 0.2, started=other.pid)
        with pytest.raises(ConnectionResetError):
            stranger.recv(1)
    other.kill()
    other.wait()
    os.close(death_fd)
