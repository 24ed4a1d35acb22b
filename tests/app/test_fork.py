"""Sessions that branch: conversation, variables and files go apart, and can be told apart."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from support import NO_SNAPSHOTS, NO_STATES, code_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.branched import InvalidUpdate
from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.session.session import Session
from taskweaver.session.storage.clone import clone_into
from taskweaver.utils.file_system.safe_fs import DEEPEST, Folder

ALONE = {"session.roles": ["code_interpreter"], **NO_STATES}
KEPT = ALONE | {"session.state_limit_mb": 512, **NO_SNAPSHOTS}
"""Settings of a session that goes back to states on disk."""


class Cells:
    """A code writer that writes what it was asked: the message is the cell."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, messages: object) -> str:
        text = str(messages[-1]["content"])  # type: ignore[index]
        self.prompts.append(str(messages))
        return code_reply(text.rpartition("run: ")[2].split("\n")[0])


@pytest.fixture
def session(project: Path) -> Iterator[Session]:
    with TaskWeaverApp(project, model=Cells(), config=ALONE) as app:
        yield app.get_session()


@pytest.fixture
def kept(project: Path) -> Iterator[Session]:
    with TaskWeaverApp(project, model=Cells(), config=KEPT) as app:
        yield app.get_session()


def run(session: Session, code: str) -> str:
    round_ = session.send_message(f"run: {code}")
    assert round_.state == "finished"
    return round_.post_list[-1].message


def queries(session: Session) -> list[str]:
    return [
        round_.user_query.removeprefix("run: ") for round_ in session.memory.conversation.rounds
    ]


def test_both_sides_of_a_fork_live_on_apart(session: Session) -> None:
    run(session, "x = 1; open('f.txt', 'w').write('one')")
    name = session.fork("idea")
    assert (name, session.branch) == ("idea", "main")
    run(session, "x += 10")
    session.checkout("idea")
    assert session.restoring() is None
    assert "101" in run(session, "x += 100; open('f.txt', 'w').write('two'); x")
    assert queries(session) == [
        "x = 1; open('f.txt', 'w').write('one')",
        "x += 100; open('f.txt', 'w').write('two'); x",
    ]
    session.checkout("main")
    assert "11" in run(session, "x")
    assert (session.execution_cwd / "f.txt").read_text() == "one"
    assert [(b.name, b.parent, b.rounds, b.is_current) for b in session.branches()] == [
        ("main", None, 3, True), ("idea", "main", 2, False)
    ]  # fmt: skip


def test_a_fork_at_an_earlier_round_and_undo(kept: Session) -> None:
    session = kept
    for n in range(1, 4):
        run(session, f"x = {n}")
    session.fork("early", at_round=1)
    session.checkout("early")
    assert "1" in run(session, "x")
    assert len(queries(session)) == 2
    session.checkout("main")
    assert session.undo() == "branch-1"
    assert queries(session) == ["x = 1", "x = 2"]
    assert "2" in run(session, "x")
    session.checkout("main")
    assert len(queries(session)) == 3
    session.fork("start", at_round=0)
    session.checkout("start")
    assert queries(session) == []
    with pytest.raises(SessionError, match="no round to undo"):
        session.undo()


def test_two_branches_are_compared(session: Session) -> None:
    run(session, "x = 1; open('same.txt', 'w').write('s')")
    session.fork("b")
    run(session, "y = 5; open('new.txt', 'w').write('12345')")
    session.checkout("b")
    run(session, "x = 2")
    found = session.diff("main", "b")
    assert [len(side) for side in found.rounds] == [1, 1]
    assert found.variables["x"] == ("1", "2")
    assert found.variables["y"] == ("5", None)
    assert found.files == {"new.txt": ("5 bytes", None)}
    said = str(found).splitlines()
    assert "variable x: 1  |  2" in said
    assert "file new.txt: 5 bytes  |  -" in said
    assert [line.partition(":")[0] for line in said[:2]] == ["only the first", "only the second"]
    assert "Difference(" not in str(found)
    assert "[round]" not in str(found)
    assert str(session.diff("b", "b")) == "They are the same."


def test_a_branch_that_is_renamed_keeps_its_name_and_its_work(session: Session) -> None:
    run(session, "x = 1")
    session.fork("idea")
    session.at("main").rename("base")
    session.at("idea").rename("without-outliers")
    assert [(b.name, b.title) for b in session.branches()] == [
        ("main", "base"), ("idea", "without-outliers")
    ]  # fmt: skip
    session.checkout("idea")
    assert "1" in run(session, "x")
    for taken in ("base", "main", "no name"):
        with pytest.raises(SessionError, match=r"is taken|is no name"):
            session.at("idea").rename(taken)
    with pytest.raises(SessionError, match="'base' is taken"):
        session.fork("base")
    assert session._stored.similar_name("base") == "base-1"


def test_findings_are_merged_and_conversations_are_not(session: Session) -> None:
    run(session, "1")
    session.fork("b")
    store = session._stored.store
    store["b"].core["best"] = "42"
    report = session.merge("b")
    assert "core best" in report.taken
    assert store["main"].core["best"] == "42"
    assert len(queries(session)) == 1
    with pytest.raises(InvalidUpdate):
        session.merge("main")


def test_branches_survive_the_process(project: Path) -> None:
    with TaskWeaverApp(project, model=Cells(), config=KEPT) as app:
        session = app.get_session()
        run(session, "x = 7")
        session.fork("kept")
        session.checkout("kept")
        run(session, "x += 1")
    with TaskWeaverApp(project, model=Cells(), config=KEPT) as app:
        session = app.resume_session()
        assert session.branch == "kept"
        assert "8" in run(session, "x")
        session.checkout("main")
        assert "7" in run(session, "x")


@pytest.mark.parametrize("name", ["main", "a b", "../x", "x" * 65, "ä", ".", "a/b"])
def test_a_name_that_cannot_be_is_refused(session: Session, name: str) -> None:
    with pytest.raises(SessionError):
        session.fork(name)
    assert len(session.branches()) == 1


def test_what_is_not_there_is_said(session: Session) -> None:
    run(session, "1")
    for call in (
        lambda: session.checkout("nobody"),
        lambda: session.diff("main", "nobody"),
        lambda: session.merge("nobody"),
        lambda: session.fork("x", at_round=2),
        lambda: session.fork("x", at_round=-1),
    ):
        with pytest.raises(SessionError):
            call()
    session.stop()
    with pytest.raises(SessionClosed):
        session.fork("late")


def test_a_fork_that_was_cut_off_can_be_made_again(session: Session) -> None:
    """A crash between the copy and the row leaves a folder, and no branch."""
    run(session, "1")
    left = session.workspace / "branches" / "idea" / "cwd"
    left.mkdir(parents=True)
    (left / "rest.txt").write_text("x")
    session.fork("idea")
    session.checkout("idea")
    assert not (session.execution_cwd / "rest.txt").exists()


def test_a_folder_is_copied_whole_within_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "big.bin").write_bytes(b"x" * 3000)
    (source / "link").symlink_to("/etc/hostname")
    (tmp_path / "staging").mkdir()
    with Folder.at(tmp_path) as session, Folder.at(source) as folder:
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
        with contextlib.suppress(SessionError):  # not where the file system shares storage
            clone_into(session, folder, PurePosixPath("small"), "cwd", limit_bytes=100)
    assert (tmp_path / "copy" / "cwd" / "sub" / "big.bin").read_bytes() == b"x" * 3000
    assert (tmp_path / "copy" / "cwd" / "link").is_symlink()
    kept = tmp_path / "small" / "cwd" / "sub" / "big.bin"
    assert kept.exists() == (tmp_path / "small").exists()
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_folder_nested_too_deeply_is_refused_with_a_reason_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "source").joinpath(*["d"] * (DEEPEST + 1)).mkdir(parents=True)
    (tmp_path / "staging").mkdir()
    with (
        Folder.at(tmp_path) as session,
        Folder.at(tmp_path / "source") as folder,
        pytest.raises(SessionError, match="64 levels of folders") as refusal,
    ):
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
    assert "fork_limit_mb" not in str(refusal.value)


def test_a_file_that_may_not_be_read_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source" / "a" / "b").mkdir(parents=True)
    (tmp_path / "source" / "a" / "b" / "secret.bin").touch()
    (tmp_path / "staging").mkdir()

    def refused(_folder: Folder, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)  # root may read all

    monkeypatch.setattr(Folder, "open_file", refused)
    with (
        Folder.at(tmp_path) as session,
        Folder.at(tmp_path / "source") as folder,
        pytest.raises(SessionError, match=r"'a/b/secret\.bin'"),
    ):
        clone_into(session, folder, PurePosixPath("copy"), "cwd", limit_bytes=10_000)
