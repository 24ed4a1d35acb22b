"""A full disk is no damage: nothing is lost by a check or a repair that has no room."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from full_disks import largest_file
from stored import make_session

from taskweaver.memory.branched.repair.salvage import readable_rows, salvage
from taskweaver.session.errors import SessionError
from taskweaver.session.health import check_session
from taskweaver.session.repair import repair_session
from taskweaver.session.storage.folder import memory_copy


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return make_session(tmp_path / "sessions")


def damage(session: Path) -> None:
    """Overwrite the header, which a repair restores."""
    with (session / "memory.sqlite").open("r+b") as file:
        file.write(bytes(100))


def test_a_session_is_unchecked_where_its_copy_has_no_room(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (session / "memory.sqlite").stat().st_size
    full = shutil.disk_usage(session)._replace(free=size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: full)
    health = check_session(session)
    assert health.condition == "unchecked"
    assert "TMPDIR" in health.findings[0]
    damage(session)
    before = {path.name for path in session.iterdir()}
    with pytest.raises(SessionError, match=r"is not repaired: .*no room"):
        repair_session(session)
    assert {path.name for path in session.iterdir()} == before


def test_a_repair_without_room_for_the_new_file_changes_nothing(session: Path) -> None:
    damage(session)
    names = {path.name for path in session.iterdir()}
    content = (session / "memory.sqlite").read_bytes()
    with (
        largest_file(len(content)),  # the new file's log is larger than the file
        pytest.raises(SessionError, match="cannot be repaired"),
    ):
        repair_session(session)
    assert {path.name for path in session.iterdir()} == names
    assert (session / "memory.sqlite").read_bytes() == content
    assert repair_session(session).saved["rounds"] == 8


def test_a_salvaged_file_is_complete_without_its_log(session: Path, tmp_path: Path) -> None:
    with memory_copy(session / "memory.sqlite") as copy:
        tables, clock = readable_rows(copy)
    target, moved = tmp_path / "new.sqlite", tmp_path / "moved.sqlite"
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as other:

        def fits(_table: str, _row: object) -> str:
            # A connection that stays open keeps SQLite from emptying the log when the file closes,
            # and so does a full disk.
            other.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return ""

        salvage(tables, clock, target, fits=fits)
        target.rename(moved)
    with closing(sqlite3.connect(moved)) as connection:
        assert connection.execute("SELECT count(*) FROM rounds").fetchone() == (8,)


def test_a_finding_names_the_session_and_not_the_copy(session: Path) -> None:
    (session / "memory.sqlite").write_bytes(b"no database " * 1000)
    (finding,) = check_session(session).findings
    assert str(session / "memory.sqlite") in finding
