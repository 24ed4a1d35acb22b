"""Summaries of old rounds in a session's memory file: read again, inherited, checked."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S

from taskweaver.memory import CompactedMessage, CompactorConfig, ContextCompactor, Memory, Post
from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager
from taskweaver.memory.branched.storage.schema import VERSION
from taskweaver.memory.log.branch_log import BranchLog

QUIET = MemoryConfig(memory_log_enabled=False)
RULE = CompactorConfig(threshold=4, retain_recent=1, token_threshold=0)


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, msg: str, /) -> None:
        self.lines.append(msg)

    def exception(self, msg: str, /) -> None:
        self.lines.append(msg)


class Notes:
    """A model that numbers its summaries, and keeps the texts it read."""

    def __init__(self, name: str = "notes") -> None:
        self.name = name
        self.texts: list[str] = []

    def summarize(self, *asked: str) -> str:
        self.texts.append(asked[1])
        return f"{self.name} {len(self.texts)}"


def settle() -> None:
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


class Chat:
    """A branch of a memory file, opened as a session opens it."""

    def __init__(self, store: MemoryManager, branch: str = "main", role: str = "Planner") -> None:
        log = BranchLog(store, branch)
        self.memory = Memory("s", log, log.resume())
        self.model = Notes(f"{branch} notes")
        self.log = Log()
        self.role = role
        self.compactor = ContextCompactor(
            RULE,
            self.model,
            lambda: self.memory.get_role_rounds(role),
            self.log,
            summaries=self.memory.summaries(role),
        )
        self.memory.register_compaction_provider(role, self.compactor)
        settle()

    def play(self, *queries: str, state: str = "finished") -> None:
        for query in queries:
            round_ = self.memory.create_round(query)
            self.memory.add_post(round_, Post.create(query, "User", self.role))
            self.memory.add_post(round_, Post.create(f"re {query}", self.role, "User"))
            self.memory.end_round(round_, state)  # type: ignore[arg-type]
            settle()

    def seen(self) -> tuple[list[str], str | None]:
        rounds, summary = self.memory.get_role_rounds_with_compaction(self.role)
        return [r.user_query for r in rounds], summary.summary if summary else None


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


def change(store: MemoryManager, statement: str, *values: object) -> None:
    """Change rows as another program, or damage, would."""
    with sqlite3.connect(store.path) as connection:
        connection.execute(statement, values)
    connection.close()


def test_a_conversation_goes_on_with_the_summary_it_had(open_store: Opener) -> None:
    before = Chat(open_store())
    before.play(*"abcdefg")
    after = Chat(open_store())

    assert before.seen() == (["g"], "main notes 2")
    assert after.seen() == before.seen()
    assert after.compactor.get_compaction() == before.compactor.get_compaction()
    assert after.model.texts == []

    after.play("h", "i", "j")
    assert after.seen() == (["j"], "main notes 1")
    assert "main notes 2" in after.model.texts[0]
    assert "The user asked: f" not in after.model.texts[0]
    assert Chat(open_store()).seen() == after.seen()


def test_each_role_has_its_own(open_store: Opener) -> None:
    Chat(open_store()).play(*"abcd")

    assert Chat(open_store(), role="Coder").model.texts != []
    assert Chat(open_store(), role="Coder").seen() == (["d"], "main notes 1")
    assert len(open_store().summaries.extents("main", "Coder")) == 1


def test_failed_rounds_are_counted_by_none(open_store: Opener) -> None:
    before = Chat(open_store())
    before.play("a")
    before.play("broken", state="failed")
    before.play(*"bcd")
    torn = before.memory.create_round("torn")
    before.memory.add_post(torn, Post.create("torn", "User", "Planner"))
    settle()
    after = Chat(open_store())

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
    Chat(store).play(*"abcdefg")
    ends = [stored.end_seq for stored in store.turns.load("main", with_posts=False)]
    store.fork("main", "b", at=ends[last_seen - 1])

    fork = Chat(store, "b")

    assert fork.seen() == seen
    assert fork.log.lines == []
    assert fork.model.texts == []


def test_branches_go_apart(open_store: Opener) -> None:
    store = open_store()
    main = Chat(store)
    main.play(*"abcd")
    store.fork("main", "b")
    fork = Chat(store, "b")
    fork.play(*"xyz")
    main.play(*"efg")

    assert fork.seen() == (["z"], "b notes 1")
    assert main.seen() == (["g"], "main notes 2")
    assert "main notes 1" in fork.model.texts[0]
    assert Chat(open_store(), "b").seen() == fork.seen()
    assert Chat(open_store()).seen() == main.seen()


def test_pruning_a_branch_takes_its_summaries_along(open_store: Opener) -> None:
    store = open_store()
    Chat(store).play(*"abcd")
    store.fork("main", "b")
    Chat(store, "b").play(*"xyz")

    store.prune("b")

    assert store.collect_garbage().rows["summaries"] == 1
    assert store.verify().is_sound
    assert Chat(store).seen() == (["d"], "main notes 1")


DAMAGE = {
    "empty": "UPDATE summaries SET text = ' ' WHERE seq = (SELECT max(seq) FROM summaries)",
    "no text": "UPDATE summaries SET text = CAST(x'ff00fe' AS TEXT)"
    " WHERE seq = (SELECT max(seq) FROM summaries)",
    "endless": "UPDATE summaries SET text = printf('%.*c', 20000, 'x')"
    " WHERE seq = (SELECT max(seq) FROM summaries)",
    "miscounted": "UPDATE summaries SET count = count + 1"
    " WHERE seq = (SELECT max(seq) FROM summaries)",
    "of no round": "UPDATE summaries SET up_to_seq = 1000000"
    " WHERE seq = (SELECT max(seq) FROM summaries)",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_summary_is_passed_over_with_a_line(open_store: Opener, statement: str) -> None:
    store = open_store()
    Chat(store).play(*"abcdefg")
    change(store, statement)

    after = Chat(open_store())

    assert len(after.log.lines) == 1
    assert "is not used" in after.log.lines[0]
    assert after.seen() == (["g"], "main notes 1")
    assert "main notes 1" in after.model.texts[0]
    assert "The user asked: c" not in after.model.texts[0]


def test_a_table_that_is_gone_costs_the_summary_alone(open_store: Opener) -> None:
    store = open_store()
    Chat(store).play(*"abcd")
    change(store, "DROP TABLE summaries")

    after = Chat(open_store())

    assert after.seen() == (["d"], "main notes 1")
    assert len(after.model.texts) == 1
    assert any("are not used" in line for line in after.log.lines)
    assert any("could not be stored" in line for line in after.log.lines)


def test_a_summary_of_other_rounds_is_not_stored(open_store: Opener) -> None:
    store = open_store()
    chat = Chat(store)
    chat.play("a", "b")
    second = chat.memory.conversation.rounds[1].id
    summary = CompactedMessage(2, 2, "of b alone", second, frozenset({second}))

    with pytest.raises(InvalidUpdate, match="covers other rounds"):
        chat.memory.summaries("Planner").save(summary)

    assert store.summaries.extents("main", "Planner") == []


def test_a_file_of_the_version_before_opens_and_keeps_its_rounds(open_store: Opener) -> None:
    store = open_store()
    Chat(store).play(*"abcd")
    change(store, "DROP TABLE summaries")
    change(store, "DROP TABLE IF EXISTS archival_fts")
    change(store, "ALTER TABLE archival DROP COLUMN place")
    change(store, "ALTER TABLE archival DROP COLUMN is_deleted")
    change(store, "PRAGMA user_version = 1")
    store.close()

    opened = open_store()
    after = Chat(opened)

    assert opened.verify().is_sound
    assert [r.user_query for r in after.memory.conversation.rounds] == list("abcd")
    assert len(after.model.texts) == 1
    assert Chat(open_store()).seen() == (["d"], "main notes 1")
    with sqlite3.connect(opened.path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
    connection.close()


def test_summaries_travel_with_an_export(open_store: Opener, tmp_path: Path) -> None:
    store = open_store()
    Chat(store).play(*"abcd")
    store.export(tmp_path / "out.jsonl")
    with MemoryManager(tmp_path / "other.sqlite", QUIET) as other:
        other.create("here before").core["k"] = "v"
        other.import_(tmp_path / "out.jsonl")
        assert other.verify().is_sound
        assert Chat(other).seen() == (["d"], "main notes 1")


CHILD = """
import sys, threading
from pathlib import Path
sys.path[:0] = [sys.argv[2], str(Path(sys.argv[2]).parent)]
import test_stored_summaries as tests
from taskweaver.memory.branched import MemoryManager

asked = threading.Event()

def hang(*_):
    asked.set()
    sys.stdin.read()

store = MemoryManager(Path(sys.argv[1]), tests.QUIET)
store.create_branch(None, branch_id="main")
chat = tests.Chat(store)
chat.play(*"abcd")
if sys.argv[3]:
    chat.model.summarize = hang
    tests.settle = lambda: None
    chat.play(*sys.argv[3])
    asked.wait()
print(chat.seen()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.measured
@pytest.mark.parametrize(
    ("played_on", "seen", "calls"),
    [("", (["d"], "main notes 1"), 0), ("efg", (["g"], "main notes 1"), 1)],
    ids=["after a summary", "while the next one is made"],
)
def test_a_killed_process_loses_at_most_the_summary_in_the_making(
    tmp_path: Path, played_on: str, seen: tuple[list[str], str], calls: int
) -> None:
    path = tmp_path / "memory.sqlite"
    command = [sys.executable, "-c", CHILD, str(path), str(Path(__file__).parent), played_on]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "main notes 1\n"
        process.send_signal(signal.SIGKILL)
    with MemoryManager(path, QUIET) as store:
        after = Chat(store)
        assert after.seen() == seen
        assert len(after.model.texts) == calls
        assert all("main notes 1" in text for text in after.model.texts)
        assert store.verify().is_sound
