"""A session folder that another person wrote reads, writes and removes nothing outside of it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from stored import QUIET, make_session

from taskweaver.memory.branched.errors import StoreCorrupt
from taskweaver.session.errors import SessionError
from taskweaver.session.health import check_session
from taskweaver.session.repair import repair_session
from taskweaver.session.storage.store import SessionFiles
from taskweaver.session.storage.stored_sessions import remove_session, stored_sessions

FILES = (
    "memory.sqlite", "memory.sqlite-wal", "memory.sqlite-shm", "memory.sqlite-journal",
    "session.lock", "current_branch", "kernel.log", "prompts.jsonl", "memory.repaired.sqlite",
    "state/sealed", "logs/memory.jsonl",
)  # fmt: skip
FOLDERS = ("cwd", "branches", "branches/idea", "branches/idea/cwd", "state", "logs")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("original"), rounds=3)


@pytest.fixture
def session(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "sessions" / "s"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a folder of the user's with a file, which nothing may change."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    return folder


def put_in_place(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    return path


def use_everything(session: Path) -> None:
    """Do what the program does with a session's folder; errors of the known kinds are accepted."""
    stored_sessions(session.parent)
    check_session(session)
    with pytest.raises((SessionError, StoreCorrupt)):
        SessionFiles("s", session, QUIET)
    with pytest.raises(SessionError):
        repair_session(session)


DISGUISES = [
    *product(("link", "pipe"), FILES),
    # The others are replaced, and never written into.
    *product(("second name",), (name for name in FILES if "/" not in name)),
]


@pytest.mark.parametrize(("kind", "name"), DISGUISES)
def test_a_file_in_disguise_is_refused(session: Path, mine: Path, kind: str, name: str) -> None:
    path = put_in_place(session / name)
    if kind == "link":
        path.symlink_to(mine / "notes.txt")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.hardlink_to(mine / "notes.txt")
    use_everything(session)
    assert (mine / "notes.txt").read_text() == "mine"
    assert [item.name for item in mine.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_in_disguise_is_refused(session: Path, mine: Path, name: str) -> None:
    put_in_place(session / name).symlink_to(mine)
    if name.startswith("branches/"):  # the other branches stay usable
        with closing(SessionFiles("s", session, QUIET)) as files:
            assert files.current == "main"
            with pytest.raises(SessionError, match="cannot be opened"):
                files.copy_files("idea", "other", limit_bytes=1 << 20)
    else:
        with pytest.raises(SessionError, match="is a link"):
            SessionFiles("s", session, QUIET)
    stored_sessions(session.parent)
    check_session(session)
    assert [item.name for item in mine.iterdir()] == ["notes.txt"]
    remove_session(session.parent, "s")
    assert (mine / "notes.txt").read_text() == "mine"


def test_a_session_folder_that_is_a_link_is_refused(session: Path, mine: Path) -> None:
    (session.parent / "other").symlink_to(session)
    with pytest.raises(SessionError, match="is a link"):
        SessionFiles("other", session.parent / "other", QUIET)


def test_a_lock_that_is_a_pipe_neither_blocks_nor_lets_anything_be_removed(session: Path) -> None:
    put_in_place(session / "session.lock")
    os.mkfifo(session / "session.lock")
    with pytest.raises(SessionError, match="no ordinary file"):
        remove_session(session.parent, "s")
    assert (session / "memory.sqlite").exists()


def test_a_strange_current_branch_is_the_first_one(session: Path) -> None:
    for name in ("x" * 5_000_000, "../../mine", "idea\nmain", "\0"):
        (session / "current_branch").write_text(name)
        with closing(SessionFiles("s", session, QUIET)) as files:
            assert files.current == "main"


BODIES = {
    "deep": "[" * 200_000,
    "no JSON": "{",
    "a number": "5",
    "no texts": '{"send_from": 1, "send_to": "User", "message": "x"}',
    "a list as text": '{"send_from": "a", "send_to": "User", "message": ["x"]}',
    "an odd attachment": (
        '{"send_from": "a", "send_to": "b", "message": "", "attachment_list": [5]}'
    ),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_post_of_another_form_is_an_error_of_its_kind(session: Path, kind: str) -> None:
    with closing(sqlite3.connect(session / "memory.sqlite")) as connection:
        connection.execute("UPDATE posts SET body = ?", (BODIES[kind],))
        connection.commit()
    with (
        closing(SessionFiles("s", session, QUIET)) as files,
        pytest.raises(StoreCorrupt, match="cannot be read"),
    ):
        files.memory("main")
    assert check_session(session).condition == "damaged"
    assert repair_session(session).unfit > 0
