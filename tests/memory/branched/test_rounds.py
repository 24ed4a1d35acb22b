"""The memory's side of a question: shown, read and written by replies, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskweaver.memory.branched import (
    BranchedMemoryError,
    InvalidUpdate,
    MalformedMemoryUpdateError,
    MemoryManager,
    MissingMemoryUpdateError,
)
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.rounds import MemoryTurn


def block(**updates: object) -> str:
    return f"<memory_update>{json.dumps(updates)}</memory_update>"


def test_a_turn_shows_reads_writes_and_logs(memory: MemoryManager, tmp_path: Path) -> None:
    memory.write_archival("a", "use -lblas when openblas is missing", ["ERROR"])
    log = MemoryPromptLog(tmp_path / "log")
    turn = MemoryTurn(memory["a"], "debug", node_id="n", log=log)
    assert "a faster solver" in turn.shown.text
    reads = block(archival_search={"query": "openblas"}, core={"seen": "1"})
    reply, is_reading = turn.look(f"{reads}\n{{}}", "required")
    assert (reply.body, is_reading) == ("{}", True)
    assert memory.get_core("a", "seen") is None
    (found,) = turn.adopt(reply)["archival_search"]
    assert found["text"] == "use -lblas when openblas is missing"
    assert memory.get_core("a", "seen") == "1"
    writes = block(recall={"kind": "note", "content": "linked with -lblas"})
    reply, is_reading = turn.look(f'{writes}\n{{"plan": "link"}}', "required")
    assert (reply.body, is_reading) == ('{"plan": "link"}', False)
    turn.adopt(reply)
    assert memory["a"].events()[0].text == "linked with -lblas"
    assert [item.task_hint for item in memory["a"].injections()] == ["debug"]
    lines = (tmp_path / "log" / "memory_operations.jsonl").read_text().splitlines()
    assert [json.loads(line)["has_read_results"] for line in lines] == [True, False]


def test_a_reply_without_a_block_writes_nothing(memory: MemoryManager) -> None:
    turn = MemoryTurn(memory["a"], None)
    reply, is_reading = turn.look("plain", "forbidden")
    assert (reply.body, is_reading, turn.adopt(reply)) == ("plain", False, {})


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        ("no block", MissingMemoryUpdateError, "has no <memory_update> block"),
        ("<memory_update>{", MalformedMemoryUpdateError, "memory_update"),
        (block(core={"x": None}), InvalidUpdate, "core.x: must not be null"),
        (block(bogus=1), InvalidUpdate, "bogus"),
        (None, BranchedMemoryError, "must be a text, not NoneType"),
    ],
)
def test_an_unusable_reply_is_refused_with_the_reason(
    memory: MemoryManager, reply: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        MemoryTurn(memory["a"], None).look(reply, "required")
