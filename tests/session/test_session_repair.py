"""A damaged session is found, is listed, and keeps every row that can be read."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from itertools import product
from pathlib import Path

import pytest
from stored import QUIET, make_session, queries

from taskweaver.memory.branched import MemoryManager
from taskweaver.session.errors import SessionError
from taskweaver.session.health import check_session
from taskweaver.session.repair import repair_session
from taskweaver.session.storage.folder import memory_copy
from taskweaver.session.storage.store import SessionFiles
from taskweaver.session.storage.stored_sessions import stored_sessions
from taskweaver.utils.sqlite_files import READ_ERRORS

ALL = [f"question {number}" for number in range(8)]
FILES = int(os.environ.get("MUTATIONS", "15"))
TABLES = ("branches", "rounds", "posts", "round_ends", "archival", "events")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("original"))


@pytest.fixture
def session(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "sessions" / "s"))


def readable(folder: Path) -> dict[str, set[int]]:
    """Return the keys of the rows that SQLite reads, one lookup each."""
    found: dict[str, set[int]] = {table: set() for table in TABLES}
    with (
        memory_copy(folder / "memory.sqlite") as copy,
        closing(sqlite3.connect(copy)) as connection,
    ):
        connection.text_factory = bytes
        for table, number in product(TABLES, range(1, 60)):
            query = f"SELECT * FROM {table} WHERE rowid = ?"
            with suppress(*READ_ERRORS):
                if connection.execute(query, (number,)).fetchone() is not None:
                    found[table].add(number)
    return found


def kept(folder: Path) -> dict[str, set[int]]:
    """Return the keys of the rows that a repaired session has, or keeps beside its memory."""
    found: dict[str, set[int]] = {}
    with closing(sqlite3.connect(folder / "memory.sqlite")) as connection:
        for table in TABLES:
            rows = connection.execute(f"SELECT rowid FROM {table}").fetchall()
            found[table] = {number for (number,) in rows}
    for file in folder.glob("memory.unfit-*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["table"] in found:
                found[row["table"]].add(row["row"].get("seq", row["row"].get("id")))
    return found


def test_a_sound_session_is_sound_and_stays_as_it_is(session: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in session.rglob("*")}
    health = check_session(session)
    assert (health.condition, health.findings) == ("sound", ())
    assert health.rounds == 8
    assert {path: path.stat().st_mtime_ns for path in session.rglob("*")} == before
    with pytest.raises(SessionError, match="nothing to repair"):
        repair_session(session)


def overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"\0" * 3000)


DAMAGES: dict[str, tuple[Callable[[Path], object], int]] = {
    "its first page": (overwrite, 8),
    "cut off": (lambda file: os.truncate(file, file.stat().st_size * 2 // 3), 1),
    "cut off inside a page": (lambda file: os.truncate(file, file.stat().st_size - 5000), 1),
    "overwritten with text": (lambda file: file.write_bytes(b"this is a letter\n" * 5000), 0),
    "empty": (lambda file: os.truncate(file, 0), 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_session_is_listed_and_repaired(session: Path, damage: str) -> None:
    act, least = DAMAGES[damage]
    act(session / "memory.sqlite")
    damaged = (session / "memory.sqlite").read_bytes()
    (listed,) = stored_sessions(session.parent)
    assert (listed.session_id, bool(listed.problem)) == ("s", True)
    assert listed.rounds >= least
    health = check_session(session)
    assert (health.condition, bool(health.findings)) == ("damaged", True)
    assert (session / "memory.sqlite").read_bytes() == damaged
    done = repair_session(session)
    assert done.damaged_file.read_bytes() == damaged
    assert done.saved.get("rounds", 0) >= least
    assert len(asked := queries(session)) >= least
    assert asked == sorted(asked)
    assert check_session(session).condition == "sound"
    assert (session / "cwd" / "data.csv").read_text() == "a\n1\n"


def test_a_lost_first_page_costs_nothing(session: Path) -> None:
    overwrite(session / "memory.sqlite")
    done = repair_session(session)
    assert (done.lost, done.damaged, done.unfit) == ({}, (), 0)
    assert queries(session) == ALL
    assert queries(session, "idea") == ALL[:2]
    with MemoryManager(session / "memory.sqlite", QUIET) as store:
        assert len(store["main"].records()) == 8
        assert store.mem_archival_search("record")[0]["match"] == "query"


def test_files_with_random_damage_are_repaired(original: Path, tmp_path: Path) -> None:
    """Check says damaged or sound, and repair keeps every row that SQLite reads."""
    data = (original / "memory.sqlite").read_bytes()
    damaged = 0
    for seed in range(FILES):
        chance = random.Random(seed)
        session = tmp_path / f"s{seed}"
        (session / "cwd").mkdir(parents=True)
        changed = bytearray(data)
        for _ in range(chance.choice([1, 3, 20])):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        (session / "memory.sqlite").write_bytes(changed)
        health = check_session(session)
        assert health.condition in {"sound", "damaged", "newer"}, seed
        if health.is_memory_sound or health.condition == "newer":
            continue
        damaged += 1
        before = readable(session)
        repair_session(session)
        after = kept(session)
        for table in TABLES:
            assert before[table] <= after[table], (seed, table)
        again = check_session(session)
        assert again.condition == "sound", (seed, again.findings)
        shutil.rmtree(session)
    assert damaged > FILES // 10


def wal_only(session: Path, query: str) -> bytes:
    """Add a round that is in the write-ahead log alone; return the log."""
    files = SessionFiles("s", session, QUIET)
    memory = files.memory("main")
    memory.end_round(memory.create_round(query), "failed")
    log = (session / "memory.sqlite-wal").read_bytes()
    before = (session / "memory.sqlite").read_bytes()
    files.close()
    (session / "memory.sqlite").write_bytes(before)
    (session / "memory.sqlite-wal").write_bytes(log)
    return log


def test_rounds_in_the_write_ahead_log_alone_are_saved(session: Path) -> None:
    log = wal_only(session, "late")
    overwrite(session / "memory.sqlite")
    done = repair_session(session)
    assert queries(session) == [*ALL, "late"]
    assert Path(f"{done.damaged_file}-wal").read_bytes() == log


def test_a_damaged_write_ahead_log_costs_what_is_in_it(session: Path) -> None:
    log = wal_only(session, "late")
    (session / "memory.sqlite-wal").write_bytes(log[:40] + bytes(len(log) - 40))
    assert check_session(session).condition == "sound"
    assert queries(session) == ALL


def test_a_missing_memory_file_is_listed_and_a_repair_that_was_cut_off_goes_on(
    session: Path,
) -> None:
    overwrite(session / "memory.sqlite")
    (session / "memory.sqlite").rename(session / "memory.damaged-1.sqlite")
    (listed,) = stored_sessions(session.parent)
    assert "missing" in listed.problem
    assert listed.rounds == 8
    with pytest.raises(SessionError, match="sessions repair s"):
        SessionFiles("s", session, QUIET)
    done = repair_session(session)
    assert done.damaged_file == session / "memory.damaged-1.sqlite"
    assert queries(session) == ALL


def test_a_post_that_is_none_is_kept_elsewhere(session: Path) -> None:
    with closing(sqlite3.connect(session / "memory.sqlite")) as connection:
        first = "(SELECT min(seq) FROM posts)"
        connection.execute(f"UPDATE posts SET body = '[1, 2' WHERE seq = {first}")
        connection.commit()
    assert any("cannot be read" in line for line in check_session(session).findings)
    done = repair_session(session)
    assert (done.unfit, queries(session)) == (1, ALL)
    assert done.unfit_file is not None
    assert "[1, 2" in done.unfit_file.read_text()


def test_a_planted_trigger_is_found_and_not_taken_along(session: Path) -> None:
    with closing(sqlite3.connect(session / "memory.sqlite")) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON posts BEGIN DELETE FROM rounds; END")
    (listed,) = stored_sessions(session.parent)
    assert "trigger 't'" in listed.problem
    assert listed.rounds == 8
    assert repair_session(session).saved["rounds"] == 8
    assert queries(session) == ALL


def test_a_session_that_is_open_or_of_a_newer_version_is_left_alone(session: Path) -> None:
    with closing(SessionFiles("s", session, QUIET)):
        assert check_session(session).condition == "open"
        with pytest.raises(SessionError, match="open in another process"):
            repair_session(session)
    with closing(sqlite3.connect(session / "memory.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert check_session(session).condition == "newer"
    with pytest.raises(SessionError, match="newer version"):
        repair_session(session)


AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from taskweaver.session.errors import SessionError
from taskweaver.session.health import check_session
from taskweaver.session.repair import repair_session
check_session(Path(sys.argv[1]))  # imports what it needs, which another user may not read
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(check_session(Path(sys.argv[1])).condition)
try:
    repair_session(Path(sys.argv[1]))
except SessionError as error:
    print(error)
"""


def test_a_folder_that_may_not_be_written_is_checked_and_not_repaired(original: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        session = Path(shutil.copytree(original, Path(place) / "s"))
        overwrite(session / "memory.sqlite")
        for path in (session, *session.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(place).chmod(0o755)
        command = [sys.executable, "-c", AS_ANOTHER_USER, str(session)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for path in (session, *session.rglob("*")):
            path.chmod(0o755)
    condition, error = done.stdout.splitlines()
    assert condition == "damaged", done.stderr
    assert "cannot be" in error


def test_a_file_that_goes_while_a_session_is_listed_is_no_problem(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def scan_late(place: Path) -> object:
        if place != session:
            return scan(place)
        draft = session / ".memory.partial"
        draft.touch()
        found = scan(place)
        entries = list(found)
        draft.unlink()  # as a process does that has the session open
        found.close()
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", scan_late)
    (found,) = stored_sessions(session.parent)
    assert found.problem == ""


def test_a_folder_that_may_not_be_listed_is_named(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session / "logs").mkdir(exist_ok=True)
    scan = os.scandir

    def refused(place: Path) -> object:  # root may list all
        if place == session / "logs":
            raise PermissionError(errno.EACCES, "Permission denied", str(place))
        return scan(place)

    monkeypatch.setattr(os, "scandir", refused)
    problem = f"{session / 'logs'} cannot be read: Permission denied"
    assert problem in check_session(session).findings
