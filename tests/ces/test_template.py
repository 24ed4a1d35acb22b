"""Whoever announces itself may be anybody: what it says is checked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.template import Rendezvous

pytestmark = pytest.mark.measured


def say(path: Path, data: bytes, *, with_handle: bool) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        if with_handle:
            handle = os.pidfd_open(os.getpid())
            socket.send_fds(connection, [data], [handle])
            os.close(handle)
        else:
            connection.sendall(data)


@pytest.mark.parametrize("with_handle", [True, False])
@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b"nonsense", b"\xff" * 100, b"[" * 50_000, b'{"pid": "1"}', b'{"error": 1}'],
)
def test_nonsense_is_no_process(tmp_path: Path, data: bytes, with_handle: bool) -> None:
    own = os.pidfd_open(os.getpid())
    try:
        with Homes(tmp_path).new() as home, Rendezvous(home) as expected:
            speaker = threading.Thread(
                target=say, args=(expected.path, data), kwargs={"with_handle": with_handle}
            )
            speaker.start()
            with pytest.raises(ForkRefused):
                expected.arrive(own, 5, started=os.getpid())
            speaker.join()
    finally:
        os.close(own)


def test_a_handle_of_another_process_is_refused(tmp_path: Path) -> None:
    own = os.pidfd_open(os.getpid())
    try:
        with (
            Homes(tmp_path).new() as home,
            Rendezvous(home) as expected,
            socket.socket(socket.AF_UNIX) as liar,
        ):
            liar.connect(str(expected.path))
            other = os.pidfd_open(os.getppid())
            socket.send_fds(liar, [b'{"pid": 2}'], [other])
            os.close(other)
            with pytest.raises(ForkRefused, match="not its own"):
                expected.arrive(own, 5, started=os.getpid())
    finally:
        os.close(own)


def test_one_who_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    own = os.pidfd_open(os.getpid())
    try:
        with (
            Homes(tmp_path).new() as home,
            Rendezvous(home) as expected,
            socket.socket(socket.AF_UNIX) as silent,
        ):
            silent.connect(str(expected.path))
            with pytest.raises(ForkRefused, match="cannot be heard"):
                expected.arrive(own, 0.2, started=os.getpid())
    finally:
        os.close(own)


def introduce(path: Path, told: dict[str, object]) -> socket.socket:
    connection, own = socket.socket(socket.AF_UNIX), os.pidfd_open(os.getpid())
    connection.connect(str(path))
    socket.send_fds(connection, [json.dumps(told).encode() + b"\n"], [own])
    os.close(own)
    return connection


@pytest.mark.parametrize("told", [{"pid": 1}, {"pid": 1, "secret": ""}, {"error": "no"}])
def test_one_who_was_not_told_the_secret_does_not_come_first(
    tmp_path: Path, told: dict[str, object]
) -> None:
    own = os.pidfd_open(os.getpid())
    with Homes(tmp_path).new() as home, Rendezvous(home) as expected:
        stranger = introduce(expected.path, told)
        right = introduce(expected.path, {"pid": 2, "secret": expected.secret})
        arrival = expected.arrive(own, 5)
        assert arrival.inner_pid == 2
        assert stranger.recv(1) == b""
        for end in (arrival.handle, arrival.connection, stranger, right):
            end.close()
    os.close(own)


def test_one_who_is_not_below_the_process_that_was_started_is_turned_away(tmp_path: Path) -> None:
    other = subprocess.Popen(["/bin/sleep", "60"])
    death_fd = os.pidfd_open(other.pid)
    with Homes(tmp_path).new() as home, Rendezvous(home) as expected:
        stranger = introduce(expected.path, {"pid": 1})
        with pytest.raises(ForkRefused, match="did not come"):
            expected.arrive(death_fd, 0.2, started=other.pid)
        with pytest.raises(ConnectionResetError):
            stranger.recv(1)
        stranger.close()
    other.kill()
    other.wait()
    os.close(death_fd)
