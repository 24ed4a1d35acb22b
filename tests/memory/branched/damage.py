"""Damage of every kind to a memory file, by chance and repeatable, and every public call on it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial, wraps
from pathlib import Path
from typing import Any

from taskweaver.memory.branched import (
    BranchedMemoryError,
    MemoryConfig,
    MemoryManager,
    StoreCorrupt,
    StoreTooNew,
)

QUIET = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")
PAGE = 4096
_WORDS = "cache linker block thread buffer stride solver kernel".split()

Damage = Callable[[Path, random.Random], None]
Call = Callable[[MemoryManager, Path], object]


def make_memory(path: Path) -> None:
    """Make a memory that has rows in every table, on many pages, all in the one file."""
    chance = random.Random(1)
    with MemoryManager(path, QUIET) as memory:
        memory.create_branch(None, branch_id="run", live=True)
        for name, parent in (("a", "run"), ("b", "a"), ("c", "a"), ("gone", "c")):
            memory.fork(parent, name)
        for number in range(40):
            branch = chance.choice(["run", "a", "b", "c", "gone"])
            words = " ".join(chance.choice(_WORDS) for _ in range(60))
            memory.set_core(branch, f"key{number % 7}", f"{number} {words[:40]}")
            memory.write_event(branch, "run_failed", f"{number % 3} failed", ["T"])
            memory.write_archival(branch, f"{number} {words}", [f"tag{number % 3}"])
        record = memory.mem_archival_write("a record", tags=["X"], meta={"branch_id": "a"})
        memory.mem_archival_update(record, text="changed", branch_id="a")
        memory.mem_core_del("key1", branch_id="b")
        memory["b"].consolidate(keep=2)
        memory["b"].note_injection(memory["b"].render(), "draft")
        memory.apply_llm_memory_updates("b", {"core": {"k": "v"}}, "n", attempt=1)
        memory.prune("gone")
        memory.backup(path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _of_bytes(change: Callable[[bytearray, random.Random], None]) -> Damage:
    @wraps(change)
    def damage(path: Path, chance: random.Random) -> None:
        data = bytearray(path.read_bytes())
        change(data, chance)
        path.write_bytes(data)

    return damage


@_of_bytes
def flip_bits(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 3, 20])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


@_of_bytes
def cut(data: bytearray, chance: random.Random) -> None:
    size = len(data)
    del data[chance.choice([chance.randrange(size), PAGE * chance.randrange(size // PAGE)]) :]


@_of_bytes
def overwrite_header(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(100)
    data[place : place + chance.choice([1, 4, 16])] = chance.randbytes(4)


@_of_bytes
def overwrite_page_header(data: bytearray, chance: random.Random) -> None:
    start = PAGE * chance.randrange(len(data) // PAGE) + chance.randrange(20)
    data[start : start + 4] = chance.randbytes(4)


@_of_bytes
def swap_pages(data: bytearray, chance: random.Random) -> None:
    one, two = (PAGE * chance.randrange(len(data) // PAGE) for _ in range(2))
    first, second = data[one : one + PAGE], data[two : two + PAGE]
    data[one : one + PAGE], data[two : two + PAGE] = second, first


@_of_bytes
def overwrite_page(data: bytearray, chance: random.Random) -> None:
    start = PAGE * chance.randrange(len(data) // PAGE)
    data[start : start + PAGE] = chance.choice([bytes(PAGE), chance.randbytes(PAGE)])


@_of_bytes
def noise_in_texts(data: bytearray, chance: random.Random) -> None:
    """Put bytes that are no text into cells."""
    for _ in range(chance.choice([1, 40])):
        place = data.find(chance.choice(_WORDS).encode(), chance.randrange(len(data)))
        if place > 0:
            data[place : place + 3] = bytes([0xFF, 0xC0, chance.randrange(256)])


def _with_free_columns(path: Path, change: Callable[[sqlite3.Connection], None]) -> None:
    """Change values with STRICT and the checks of a table out of the way."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA writable_schema = ON")
        stored = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(replace(replace(replace(replace(replace(sql,"
            " ') STRICT', ')'), ' TEXT', ''), ' INTEGER NOT', ' NOT'), ' REAL', ''),"
            " ' NOT NULL', ''), ', WITHOUT ROWID', ' WITHOUT ROWID') WHERE type = 'table'"
            " AND name NOT LIKE '%_words%' AND name NOT LIKE 'sqlite_%'"
        )
        connection.execute("PRAGMA writable_schema = RESET")
        change(connection)
        connection.execute("PRAGMA writable_schema = ON")
        for name, sql in stored:
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
        connection.execute("PRAGMA journal_mode = DELETE")


_ODD = (None, 7, -1, 2**62, 1.5, "text", "", "[1]", "{}", "[[", b"\xff", b"", "9" * 30)


def wrong_types(path: Path, chance: random.Random) -> None:
    """Put values of other types into any column of any table."""

    def change(connection: sqlite3.Connection) -> None:
        tables = (
            "clock", "branches", "core_kv", "events", "archival", "exclusions", "digests",
            "injections", "applied_blocks",
        )  # fmt: skip
        for _ in range(chance.choice([1, 4])):
            table = chance.choice(tables)
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            changed = [name for name in columns if name not in {"id", "seq", "one"}]
            column = "seq" if table == "clock" else chance.choice(changed)
            value = chance.choice(_ODD)
            where = chance.choice(["1", "rowid % 3 = 0"]) if table != "applied_blocks" else "1"
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}", (value,))

    _with_free_columns(path, change)


_LOSSES = (
    "DELETE FROM clock", "UPDATE clock SET seq = 3", f"UPDATE clock SET seq = {2**63 - 1}",
    "DELETE FROM branches WHERE name = 'a'", "DELETE FROM events WHERE repeats IS NULL",
    "DELETE FROM archival WHERE record = seq", "DROP TABLE clock", "DROP TABLE events",
    "DROP TABLE digests", "DROP TABLE injections", "DROP INDEX branches_parent",
    "UPDATE events SET tags = '{', data = '[]'", "UPDATE archival SET meta = '[' || meta",
    "UPDATE digests SET kinds = '[1]'", "UPDATE branches SET parent_id = id + 1 WHERE id = 2",
    f"UPDATE events SET data = '{'[' * 5000}'",
)  # fmt: skip


def rows_gone(path: Path, chance: random.Random) -> None:
    """Remove rows, or a table, that others need."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(chance.choice(_LOSSES))
        connection.execute("PRAGMA journal_mode = DELETE")


_KINDS: tuple[Any, ...] = (
    flip_bits, cut, overwrite_header, overwrite_page_header, swap_pages, overwrite_page,
    noise_in_texts, wrong_types, rows_gone,
)  # fmt: skip
DAMAGES: Mapping[str, Damage] = {change.__name__: change for change in _KINDS}

CALLS: Mapping[str, Call] = {
    "branches": lambda m, _: m.branches(),
    "root": lambda m, _: m.root_branch_id,
    "history": lambda m, _: m.history("b"),
    "core": lambda m, _: m["b"].core.entries(),
    "events": lambda m, _: m["b"].events(),
    "archival": lambda m, _: m["b"].records(),
    "node": lambda m, _: m.mem_node_read("b"),
    "render": lambda m, _: m["b"].render(task="linker cache"),
    "search": lambda m, _: m.mem_archival_search("linker cache", branch_id="b"),
    "recall search": lambda m, _: m.mem_recall_search("linker", branch_id="b"),
    "injections": lambda m, _: m["b"].injections(),
    "pressure": lambda m, _: m.check_memory_pressure("b"),
    "rounds": lambda m, _: m.turns.load("b"),
    "export": lambda m, folder: m.export(folder / "out.jsonl"),
    "page": lambda m, folder: m.write_page(folder / "out.html"),
    "backup": lambda m, folder: m.backup(folder / "out.sqlite"),
    "set": lambda m, _: m.mem_core_set("new", "1", branch_id="b"),
    "append": lambda m, _: m.mem_recall_append({"content": "new"}, branch_id="b"),
    "write": lambda m, _: m.write_archival("b", "a new record"),
    "update": lambda m, _: m.mem_archival_update(9, text="new", branch_id="b"),
    "fork": lambda m, _: m.fork("b", "new"),
    "block": lambda m, _: m.apply_llm_memory_updates("b", {"core": {"x": "1"}}, "n", attempt=2),
    "promote": lambda m, _: m.promote("key3", "run", branch_id="b"),
    "merge": lambda m, _: m.merge("b", "c", "newest"),
    "consolidate": lambda m, _: m.consolidate_recall_events("c"),
    "relieve": lambda m, _: m.auto_consolidate_memory("c", "critical"),
    "occurrences": lambda m, _: [m["b"].occurrences(event.seq) for event in m["b"].events()],
    "collection": lambda m, _: m.collect_garbage(),
    "import": lambda m, folder: m.import_(folder / "good.jsonl"),
}


def untyped_errors(path: Path) -> tuple[list[str], bool]:
    """Open a damaged file, make every call, and check it.

    Args:
        path: The file; ``good.jsonl`` beside it is an export to import.

    Returns:
        The errors that are not the memory's own, and whether a call or the check found damage.
    """
    untyped: list[str] = []
    is_found = False

    def attempt(name: str, call: Callable[[], object]) -> Any:
        nonlocal is_found
        try:
            return call()
        except BranchedMemoryError as error:
            is_found |= isinstance(error, StoreCorrupt | StoreTooNew)
        except Exception as error:  # noqa: BLE001 - any other error is the finding
            untyped.append(f"{name}: {error!r:.200}")
        return None

    memory = attempt("open", lambda: MemoryManager(path, QUIET))
    if memory is None:
        return untyped, is_found
    with closing(memory):
        health = attempt("verify", memory.verify)
        is_found |= health is None or not health.is_sound
        for name, call in CALLS.items():
            attempt(name, partial(call, memory, path.parent))
    return untyped, is_found
