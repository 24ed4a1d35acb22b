"""Summaries of old rounds in a session's memory file: read again, inherited, checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from summarisers import Chat, Notes, settle

from taskweaver.memory import CompactedMessage, Memory, Post
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager

QUIET = MemoryConfig(memory_log_enabled=False)


def chat_of(store: MemoryManager, branch: str = "main", role: str = "Planner") -> Chat:
    """Open a branch of a memory file as a session opens it."""
    log, model = BranchLog(store, branch), Notes(lambda call: f"{branch} notes {call}")
    return Chat(model, Memory("s", log, log.resume()), role=role)


Opener = Callable[[], MemoryManager]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Opener]:
    opened: list[MemoryManager] = []

    def open_() -> MemoryManager:
        store = MemoryManager(tmp_path / "memory.sqlite", QUIET)
        if store.root_branch_id is None:
            store.create_branch(None, branch_id="main")
        opened.append(store)
        return store

    yield open_
    settle()
    for store in opened:
        store.close()


def change(store: MemoryManager, statement: str) -> None:
    """Change rows as another program, or damage, would."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement)


def test_a_conversation_goes_on_with_the_summary_it_had(open_store: Opener) -> None:
    before = chat_of(open_store())
    before.play(*"abcdefg")
    after = chat_of(open_store())
    assert before.seen() == (["g"], "main notes 2")
    assert after.seen() == before.seen()
    assert after.compactor.get_compaction() == before.compactor.get_compaction()
    assert after.model.texts == []
    after.play("h", "i", "j")
    assert after.seen() == (["j"], "main notes 1")
    assert "main notes 2" in after.model.texts[0]
    assert "The user asked: f" not in after.model.texts[0]
    assert chat_of(open_store()).seen() == after.seen()


def test_each_role_has_its_own(open_store: Opener) -> None:
    chat_of(open_store()).play(*"abcd")
    assert chat_of(open_store(), role="Coder").model.texts != []
    assert len(open_store().summaries.extents("main", "Coder")) == 1


def test_failed_rounds_are_counted_by_none(open_store: Opener) -> None:
    before = chat_of(open_store())
    before.play("a")
    before.play("broken", state="failed")
    before.play(*"bcd")
    torn = before.memory.create_round("torn")
    before.memory.add_post(torn, Post.create("torn", "User", "Planner"))
    settle()
    after = chat_of(open_store())
    assert after.seen() == (["d"], "main notes 1")
    assert after.model.texts == []
    assert after.log.lines == []


@pytest.mark.parametrize(
    ("last_seen", "seen"),
    [
        (7, (["g"], "main notes 2")),
        (6, (["d", "e", "f"], "main notes 1")),
        (4, (["d"], "main notes 1")),
        (3, (["a", "b", "c"], None)),
    ],
)
def test_a_fork_inherits_a_summary_of_rounds_it_sees(
    open_store: Opener, last_seen: int, seen: tuple[list[str], str | None]
) -> None:
    store = open_store()
    chat_of(store).play(*"abcdefg")
    ends = [stored.end_seq for stored in store.turns.load("main", with_posts=False)]
    store.fork("main", "b", at=ends[last_seen - 1])
    fork = chat_of(store, "b")
    assert fork.seen() == seen
    assert fork.log.lines == []
    assert fork.model.texts == []


DAMAGE = {
    "no text": "text = CAST(x'ff00fe' AS TEXT)",
    "endless": "text = printf('%.*c', 20000, 'x')",
    "miscounted": "count = count + 1",
    "of no round": "up_to_seq = 1000000",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_summary_is_passed_over_with_a_line(open_store: Opener, damage: str) -> None:
    store = open_store()
    chat_of(store).play(*"abcdefg")
    newest = "seq = (SELECT max(seq) FROM summaries)"
    change(store, f"UPDATE summaries SET {DAMAGE[damage]} WHERE {newest}")
    after = chat_of(open_store())
    assert len(after.log.lines) == 1
    assert "is not used" in after.log.lines[0]
    assert after.seen() == (["g"], "main notes 1")
    assert "main notes 1" in after.model.texts[0]
    assert "The user asked: c" not in after.model.texts[0]


def test_a_table_that_is_gone_costs_the_summary_alone(open_store: Opener) -> None:
    store = open_store()
    chat_of(store).play(*"abcd")
    change(store, "DROP TABLE summaries")
    after = chat_of(open_store())
    assert after.seen() == (["d"], "main notes 1")
    assert len(after.model.texts) == 1
    assert any("are not used" in line for line in after.log.lines)
    assert any("could not be stored" in line for line in after.log.lines)


def test_a_summary_of_other_rounds_is_not_stored(open_store: Opener) -> None:
    store = open_store()
    chat = chat_of(store)
    chat.play("a", "b")
    second = chat.memory.conversation.rounds[1].id
    summary = CompactedMessage(2, 2, "of b alone", second, frozenset({second}))
    with pytest.raises(InvalidUpdate, match="covers other rounds"):
        chat.memory.summaries("Planner").save(summary)
    assert store.summaries.extents("main", "Planner") == []
