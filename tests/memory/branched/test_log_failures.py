"""A log that cannot be written fails no write, no read and no close, and names what it lost."""

from __future__ import annotations

import json
import logging
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.logs.log_files import LogFolder
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog

_LIMIT = 64 << 20


def open_logged(folder: Path, logs: Path) -> MemoryManager:
    config = MemoryConfig(log_dir=logs, synchronous="NORMAL")
    return MemoryManager(folder / "m.sqlite", config)


def readable(path: Path, *, since: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of a log, and how many of them are torn."""
    with path.open("rb") as file:
        file.seek(since)
        texts = [text for text in file.read().split(b"\n") if text]
    found, torn = [], 0
    for text in texts:
        try:
            found.append(json.loads(text))
        except ValueError:
            torn += 1
    return found, torn


@contextmanager
def full_disk(logs: Path, room: int) -> Iterator[int]:
    """Let the files in a folder grow by a few bytes only, and the database by as much as it needs.

    Yields the size of the files.
    """
    logs.mkdir()
    for layer in ("calls", "primitive", "public_api"):
        with (logs / f"memory_{layer}.jsonl").open("wb") as file:
            file.seek(_LIMIT - room - 1)
            file.write(b"\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, hard))
    try:
        yield _LIMIT - room
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_of_the_logs_fails_no_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = tmp_path / "logs"
    with open_logged(tmp_path, logs) as memory:
        with caplog.at_level(logging.WARNING), full_disk(logs, 5000) as size:
            memory.bind(memory.create_branch(None, branch_id="root"))
            for n in range(500):
                memory.mem_archival_write(f"record {n}")
                if n % 100 == 0:
                    memory.mem_archival_search("record")
                    memory.render_for_prompt("root")
        assert len(memory["root"].records()) == 500
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert str(logs) in caplog.text
        memory.mem_core_set("k", "v")
    calls, torn = readable(logs / "memory_calls.jsonl", since=size)
    assert torn == 1  # the line that the full disk cut off, and no other
    (lost,) = [line for line in calls if line["op"] == "log_lines_lost"]
    assert lost["details"]["reason"] == "File too large"
    written = [line for line in calls if line["op"] != "log_lines_lost"]
    expected = 1 + 500 + 5 + 5 + 1
    assert len(written) + lost["details"]["count"] == expected
    assert written[-1]["op"] == "mem_core_set"
    rows, torn = readable(logs / "memory_primitive.jsonl", since=size)
    assert torn == 1
    (lost,) = [line for line in rows if line["op"] == "log_lines_lost"]
    assert len(rows) - 1 + lost["details"]["count"] == 501
    assert rows[-1]["op"] == "set_core"


def in_a_file(logs: Path) -> None:
    logs.write_text("no folder")


def in_a_loop(logs: Path) -> None:
    logs.symlink_to(logs)


def in_a_read_only_folder(logs: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    logs.mkdir(mode=0o500)


def with_folders_for_files(logs: Path) -> None:
    for layer in ("calls", "primitive", "public_api", "internal", "system"):
        (logs / f"memory_{layer}.jsonl").mkdir(parents=True)


def with_pipes_for_files(logs: Path) -> None:
    logs.mkdir()
    for layer in ("calls", "primitive", "public_api", "internal", "system"):
        os.mkfifo(logs / f"memory_{layer}.jsonl")


@pytest.mark.parametrize(
    "breaks",
    [
        in_a_file,
        in_a_loop,
        in_a_read_only_folder,
        with_folders_for_files,
        with_pipes_for_files,
    ],
)
def test_logs_that_cannot_be_made_fail_nothing(
    breaks: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = tmp_path / "logs"
    breaks(logs)
    memory = open_logged(tmp_path, logs)
    memory.bind(memory.create_branch(None, branch_id="root"))
    for n in range(450):
        memory.mem_core_set(f"k{n % 7}", str(n))
        assert memory.mem_core_get([f"k{n % 7}"]) == {f"k{n % 7}": str(n)}
    memory.close()
    assert not (tmp_path / "m.sqlite-wal").exists()  # the last connection is closed
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_logs_go_on_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with open_logged(tmp_path, logs) as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory.mem_core_set("a", "1")
        memory._parts.log.flush()
        for file in logs.iterdir():
            file.unlink()
        logs.rmdir()
        memory.mem_core_set("b", "2")
    calls, _ = readable(logs / "memory_calls.jsonl")
    assert calls[-1]["details"]["key"] == "b"
    rows, _ = readable(logs / "memory_primitive.jsonl")
    assert rows[-1]["row"]["key"] == "b"


def test_a_line_that_another_process_left_torn_spoils_no_other(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 1}\n{"n": ')
    assert folder.append("a.jsonl", ['{"n": 3}', '{"n": 4}']) == 2
    found, torn = readable(tmp_path / "a.jsonl")
    assert ([line["n"] for line in found], torn) == ([1, 3, 4], 1)


def test_a_new_log_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    LogFolder(tmp_path / "logs").append("a.jsonl", ["{}"])
    assert (tmp_path / "logs" / "a.jsonl").stat().st_mode & 0o777 == 0o600


def test_details_that_are_no_data_are_counted_and_fail_nothing(tmp_path: Path) -> None:
    circle: list[Any] = []
    circle.append(circle)
    with open_logged(tmp_path, tmp_path / "logs") as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory._parts.log.add("odd", details={"circle": circle})
        memory.mem_core_set("k", "v")
    calls, _ = readable(tmp_path / "logs" / "memory_calls.jsonl")
    (lost,) = [line for line in calls if line["op"] == "log_lines_lost"]
    assert lost["details"]["count"] == 1


def test_a_prompt_log_that_cannot_be_written_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "prompt").write_text("no folder")
    log = MemoryPromptLog(tmp_path / "prompt")
    for _ in range(3):
        log.operations({"core": {"k": "v"}}, {"core": ["k"]})
    assert len(caplog.records) == 1
    (tmp_path / "prompt").unlink()
    log.operations({"core": {"k": "v"}}, {"core": ["k"]})
    found, _ = readable(tmp_path / "prompt" / "memory_operations.jsonl")
    assert found[0]["details"]["count"] == 3
    assert found[1]["counter"] == 4


def test_a_phase_that_is_no_text_costs_no_other_line_and_no_close(tmp_path: Path) -> None:
    with open_logged(tmp_path, tmp_path / "logs") as memory:
        memory.create_branch(None, branch_id="root")
        memory.mem_core_set("goal", "x", branch_id="root")
        root = memory["root"]
        root.append({"kind": "note", "content": "y", "phase": 3, "node_id": [1]})
        root.fork("child", phase=True)  # type: ignore[arg-type]
    lines, torn = readable(tmp_path / "logs" / "memory_calls.jsonl")
    assert torn == 0
    phases = {line["op"]: line["phase"] for line in lines}
    assert phases["mem_core_set"] is None
    assert phases["mem_recall_append"] == "3"
    assert phases["mem_node_fork"] == "True"
