"""Stored states on disk: complete or absent, within a limit, and hostile writers refused."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xxhash

from taskweaver.ces.inkernel.wire import CHUNK_BYTES, STATE_FORMAT, Wire, WireError
from taskweaver.ces.state_folder import StateDamaged, StateFolder, read_manifest
from taskweaver.ces.state_transfer import Stored, receive_state, send_state


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "session" / "state", 10 << 20)


def name_of(data: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(data)


def manifest(*chunks: bytes, **fields: Any) -> bytes:
    islands = [{"names": ["x"], "stream": [name_of(chunk) for chunk in chunks]}]
    known = {"format": STATE_FORMAT, "islands": islands, "variables": {}, "lost": []}
    return json.dumps(known | fields).encode()


def put(folder: StateFolder, branch: str, round_id: str, *chunks: bytes) -> None:
    for chunk in chunks:
        folder.add_chunk(name_of(chunk), chunk)
    folder.store(branch, round_id, manifest(*chunks))


def files(root: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def test_a_state_is_found_by_branch_and_round(folder: StateFolder) -> None:
    put(folder, "main", "r1", b"a" * 100)
    put(folder, "idea", "r1", b"b" * 100)
    mine = folder.find(["idea", "main"], "r1")
    assert mine is not None
    assert mine.chunks == {name_of(b"b" * 100)}
    assert folder.find(["main"], "r2") is None
    assert folder.missing([name_of(b"a" * 100), name_of(b"c")]) == [name_of(b"c")]
    for path in (folder.folder, *folder.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_equal_state_is_a_link_and_writes_no_file_anew(folder: StateFolder) -> None:
    put(folder, "main", "r1", b"a" * 100)
    before = files(folder.folder)
    put(folder, "main", "r2", b"a" * 100)
    after = files(folder.folder)
    assert {path: after[path] for path in before} == before
    assert len({inode for inode, _ in after.values()}) == len({i for i, _ in before.values()})
    assert folder.find(["main"], "r2") is not None


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "/etc/passwd", "a" * 200, "a\0b"])
def test_no_name_leads_out_of_the_folder(folder: StateFolder, name: str) -> None:
    put(folder, "main", "r1", b"a")
    before = files(folder.folder.parent)
    with pytest.raises(OSError, match="no name of a chunk"):
        folder.add_chunk(name, b"x")
    for branch, round_id in ((name, "r"), ("main", name)):
        with pytest.raises(StateDamaged):
            folder.store(branch, round_id, manifest(b"a"))
    assert files(folder.folder.parent) == before


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"islands": {}}', b'{"islands": 3}', b"\xff\xfe", b"[" * 100_000],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(StateDamaged, match="stored variables cannot be read"):
        read_manifest(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (manifest(b"a", format=99), "the format of another version"),
        (manifest(b"a")[:50], "cannot be read"),
    ],
)
def test_a_manifest_that_was_changed_on_disk_is_refused(
    folder: StateFolder, data: bytes, reason: str
) -> None:
    put(folder, "main", "r1", b"a")
    (folder.folder / "rounds" / "main" / "r1.json").write_bytes(data)
    with pytest.raises(StateDamaged, match=reason):
        folder.find(["main"], "r1")


def test_fields_of_a_manifest_are_bounded() -> None:
    lost = [{"name": "n" * 9000, "type": 3, "reason": ["x"], "cell": "\ud800"}, 7, None] * 900
    fields = {"islands": [["0" * 32]], "variables": {"v": 3}, "lost": lost}
    found = read_manifest(json.dumps(fields).encode())
    assert len(found.lost) <= 1000
    assert all(len(item.name) < 600 for item in found.lost)
    assert found.chunks == {"0" * 32}
    assert found.types == {}


def test_over_the_limit_the_oldest_states_go_and_those_in_use_stay(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state", 3 << 20)
    chunks = [bytes([number]) * CHUNK_BYTES for number in range(6)]
    for number, chunk in enumerate(chunks):
        put(folder, "main", f"r{number}", chunk, b"shared")
    first = folder.path(["main"], "r0")
    assert first is not None
    os.utime(first, ns=(1, 1))
    folder.tidy(lambda: {first})
    left = [number for number in range(6) if folder.find(["main"], f"r{number}")]
    assert left[0] == 0
    assert left[-1] == 5
    assert 2 <= len(left) < 6
    stored = {path.name for path in (folder.folder / "chunks").iterdir()}
    assert stored == {name_of(chunks[number]) for number in left} | {name_of(b"shared")}


def test_a_copied_folder_is_not_trusted_until_that_is_agreed(
    folder: StateFolder, tmp_path: Path
) -> None:
    put(folder, "main", "r1", b"a")
    assert folder.is_trusted
    copy = StateFolder(tmp_path / "elsewhere" / "state", 1 << 20)
    shutil.copytree(folder.folder, copy.folder)
    assert not copy.is_trusted
    copy.trust()
    assert copy.is_trusted
    assert copy.find(["main"], "r1") is not None


def test_writing_beside_states_of_others_puts_those_aside(
    folder: StateFolder, tmp_path: Path
) -> None:
    put(folder, "main", "r1", b"a")
    (folder.folder / "sealed").write_text("0" * 64)
    again = StateFolder(folder.folder, 1 << 20)
    put(again, "main", "r2", b"b")
    assert again.is_trusted
    assert again.find(["main"], "r1") is None
    assert (folder.folder.parent / "state-untrusted" / "rounds" / "main" / "r1.json").exists()


def test_a_chunk_is_removed_only_if_its_bytes_are_wrong(folder: StateFolder) -> None:
    put(folder, "main", "r1", b"good", b"cut")
    (folder.folder / "chunks" / name_of(b"cut")).write_bytes(b"cu")
    for chunk in (b"good", b"cut"):
        folder.remove_if_damaged(name_of(chunk))
    assert folder.missing([name_of(b"good"), name_of(b"cut")]) == [name_of(b"cut")]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    host, child = socket.socketpair()
    with host, child:
        yield host, child


def received(folder: StateFolder, ends: tuple[socket.socket, socket.socket], sent: bytes) -> Stored:
    """Return the outcome of storing what a child sends, which ends then."""
    host, child = ends

    def play() -> None:
        wire = Wire(child)
        wire.receive()
        try:
            child.sendall(sent)
            child.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the host has seen enough

    thread = threading.Thread(target=play)
    thread.start()
    stored = receive_state(host, folder, "main", "r1")
    host.shutdown(socket.SHUT_RDWR)
    thread.join()
    return stored


def framed(header: Any, body: bytes = b"") -> bytes:
    data = json.dumps(header).encode()
    return len(data).to_bytes(4, "big") + data + body


def test_a_state_is_received(
    folder: StateFolder, ends: tuple[socket.socket, socket.socket]
) -> None:
    data = manifest(b"a" * 10)
    sent = framed({"at": "x"}) + framed({"chunk": name_of(b"a" * 10), "size": 10}, b"a" * 10)
    stored = received(folder, ends, sent + framed({"manifest": True, "size": len(data)}, data))
    assert stored == Stored()
    assert folder.find(["main"], "r1") is not None


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xff" * 50,
        framed([1]),
        framed({"what": 1}),
        framed({"chunk": "../../x", "size": 3}, b"abc"),
        framed({"chunk": "0" * 32, "size": CHUNK_BYTES + 1}),
        framed({"chunk": "0" * 32, "size": -1}),
        framed({"chunk": "0" * 32, "size": 10}, b"cut"),
        framed({"manifest": True, "size": 1 << 40}),
        framed({"manifest": True, "size": 2}, b"{}"),
        framed({"manifest": True, "size": len(manifest(b"never sent"))}, manifest(b"never sent")),
        framed({"error": "MemoryError: it is full"}),
        len(b"{}").to_bytes(4, "big") + b"{" * 2,
    ],
)
def test_a_hostile_or_broken_writer_stores_nothing(
    folder: StateFolder, ends: tuple[socket.socket, socket.socket], sent: bytes
) -> None:
    stored = received(folder, ends, sent)
    assert stored.problem
    assert folder.find(["main"], "r1") is None
    assert [path for path in folder.folder.parent.rglob("*") if path.name == "x"] == []


def test_a_restoring_kernel_gets_the_chunks_of_its_state_and_no_others(
    folder: StateFolder, ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskweaver.ces.state_transfer.STALL_S", 0.05)
    put(folder, "main", "r1", b"mine")
    put(folder, "main", "r2", b"other")
    state = folder.find(["main"], "r1")
    assert state is not None
    host, kernel = ends
    thread = threading.Thread(target=send_state, args=(host, folder, state))
    thread.start()
    wire = Wire(kernel)
    assert wire.receive_bytes(wire.receive()["size"]) == state.data
    thread.join(0.2)  # it may read a large variable meanwhile: the limit of a writer does not count
    wire.send({"read": name_of(b"mine")})
    assert wire.receive_bytes(wire.receive()["size"]) == b"mine"
    (folder.folder / "chunks" / name_of(b"mine")).unlink()
    wire.send({"read": name_of(b"mine")})
    assert "No such file" in wire.receive()["error"]
    wire.send({"read": name_of(b"other")})
    thread.join()
    host.shutdown(socket.SHUT_RDWR)
    with pytest.raises(WireError):
        wire.receive()


@pytest.mark.parametrize("place", ["chunks", "chunks/link", "rounds/main", ""])
def test_a_folder_that_holds_links_is_not_trusted(folder: StateFolder, place: str) -> None:
    """Through a link the host would read, write or remove files that are no state."""
    put(folder, "main", "r1", b"a" * 100)
    target = folder.folder.parent / "precious"
    linked = folder.folder / place
    if linked.exists():
        linked.rename(target)
    linked.symlink_to(target)
    with pytest.raises(StateDamaged, match="is a link"):
        StateFolder(folder.folder, 1).trust()


def test_a_folder_in_the_making_is_not_taken_for_one_of_others(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may be killed before the seal is written."""

    def killed(_: Path) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("taskweaver.ces.state_folder.seal", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.missing([])
    assert folder.is_trusted
    put(folder, "main", "r1", b"a" * 100)
    assert folder.find(["main"], "r1") is not None


def test_chunks_of_a_state_that_was_not_completed_are_removed(folder: StateFolder) -> None:
    """On a full disk they would keep it full."""
    put(folder, "main", "r1", b"a" * 100, b"b" * 100)
    stored = files(folder.folder)
    folder.add_chunk(name_of(b"c"), b"c")
    folder.remove_incomplete()
    assert files(folder.folder) == stored


def test_a_full_disk_keeps_the_earlier_states(tmp_path: Path) -> None:
    """The limit on file sizes stands for the disk: a chunk cannot be written whole."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_state_folder import put, StateFolder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "folder = StateFolder(Path(sys.argv[1]), 10 << 20)\n"
        "put(folder, 'main', 'r1', b'small')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    put(folder, 'main', 'r2', b'x' * 5000)\n"
        "except OSError as error:\n    print('refused', error.strerror)\n"
    )
    root = tmp_path / "state"
    command = [sys.executable, "-c", code, str(root), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert "refused" in done.stdout
    folder = StateFolder(root, 10 << 20)
    assert folder.find(["main"], "r1") is not None
    assert folder.find(["main"], "r2") is None
    assert [path.name for path in (root / "chunks").iterdir()] == [name_of(b"small")]
