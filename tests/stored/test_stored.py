"""Sessions, runs and memories that earlier releases have stored can be opened and continued.

make_stored.py made the archives; nothing in them is ever changed.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from search_lab import Climber, search
from support import Script, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.main import commands
from taskweaver.memory.branched import BranchedMemory, BranchSealed
from taskweaver.session.health import check_session
from taskweaver.session.session import Session
from taskweaver.session.storage.stored_sessions import session_folders, stored_sessions
from taskweaver.treesearch.service import session_on_node

ARCHIVES = sorted((Path(__file__).parents[1] / "fixtures" / "stored").glob("*.tar.xz"))
ANALYST, MODEL = "sum of visits per city in visits.csv", "draw 1, 3, 2"
"""The first questions of the two sessions."""


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("stored")
    with tarfile.open(request.param) as archive:
        if hasattr(tarfile, "data_filter"):  # not in Python 3.11.2
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    return folder


def command(stored: Path, *words: str) -> str:
    ran = CliRunner().invoke(commands, ["-p", str(stored / "project"), *words])
    assert ran.exit_code == 0, ran.output
    return ran.output


def opened(stored: Path) -> TaskWeaverApp:
    replies = Script([planner_reply("User", "welcome back")] * 3)
    return TaskWeaverApp(stored / "project", model=replies)


def session_of(app: TaskWeaverApp, question: str) -> Session:
    listing = stored_sessions(app.workspace / "sessions")
    return app.resume_session(
        next(one.session_id for one in listing if one.first_query == question)
    )


def value_of(session: Session, code: str) -> str:
    return session.run_code(code).post_list[-1].message


def test_sessions_are_listed_and_sound(stored: Path) -> None:
    shown = command(stored, "sessions")
    assert ANALYST in shown
    assert MODEL in shown
    folders = session_folders(stored / "project" / "workspace" / "sessions")
    assert folders
    assert {check_session(folder).condition for folder in folders} == {"sound"}


def test_a_conversation_goes_on_with_its_branches_and_facts(stored: Path) -> None:
    with opened(stored) as app:
        session = session_of(app, ANALYST)
        assert session.branch == "branch-1"
        assert {one.name for one in session.branches()} == {"main", "variables", "branch-1"}
        assert [fact.text for fact in session.long_memory.find("visits")] == [
            "Visits are counted by hand."
        ]
        session.checkout("main")
        first, second = session.memory.conversation.rounds
        assert first.user_query.endswith(ANALYST)
        assert second.user_query == "and the mean"
        assert "Rome" in first.post_list[-1].message
        answer = session.send_message("thank you")
        assert answer.post_list[-1].message == "welcome back"


def test_variables_of_each_round_come_back(stored: Path) -> None:
    with opened(stored) as app:
        session = session_of(app, ANALYST)
        session.checkout("variables")
        session.trust_state()
        assert "not restored: con" in " ".join(session.restore_notice())
        read = "(same is names['a'], point.x, twice(1), open('note.txt').read())"
        assert "(True, 7, 3, 'kept')" in value_of(session, read)
        session.fork("earlier", at_round=2)
        session.checkout("earlier")
        assert "(True, 7, 2, 'kept')" in value_of(session, read)


def test_a_conversation_with_a_model_has_its_posts_and_pictures(stored: Path) -> None:
    with opened(stored) as app:
        session = session_of(app, MODEL)
        first, last = session.memory.conversation.rounds
        texts = [post.message for post in first.post_list]
        assert any("ZeroDivisionError" in text for text in texts)
        assert texts[-1] == "Here is the picture."
        assert (session.execution_cwd / "figure_1.png").is_file()
        assert last.user_query == "thank you"


def test_an_experience_and_a_receipt_run_again(stored: Path) -> None:
    experience = next((stored / "project" / "experience").glob("raw_exp_*.yaml"))
    command(stored, "--trust", "replay", str(experience))
    receipt = next(stored.rglob("cwd/sums.receipt.json"))
    assert "same" in command(stored, "--trust", "check", str(receipt))


@pytest.mark.parametrize(("run", "best"), [("over", 30), ("stopped", 0), ("scripts", 2)])
def test_runs_are_shown_and_reported(stored: Path, run: str, best: int) -> None:
    assert f": {best}  best" in command(stored, "search", "show", run)
    command(stored, "search", "report", run)
    report = (stored / "project" / "experiments" / run / "report.md").read_text("utf-8")
    assert "## What came out" in report


def test_a_stopped_run_goes_on(stored: Path) -> None:
    made = search(stored / "project", Climber(), name="stopped", resume=True, steps=5)
    assert [node.id for node in made.state.journal.nodes][:3] == ["n0001", "n0002", "n0003"]
    assert len(made.state.journal.nodes) == 5
    assert made.state.journal.nodes[-1].value > 0


def test_a_node_can_be_asked(stored: Path) -> None:
    with opened(stored) as app:
        session, _ = session_on_node(app, "scripts/n0003")
        assert session.memory.conversation.rounds[-1].user_query
        answer = session.send_message("how did it go?")
        assert answer.post_list[-1].message == "welcome back"


def test_a_memory_opens_with_all_its_branches(stored: Path) -> None:
    with BranchedMemory(stored / "memory.sqlite") as store:
        blocks, threads = store["blocks"], store["threads"]
        assert dict(blocks.core) == {"goal": "a faster solver", "best_time": "1.4 s"}
        assert dict(threads.core) == {"best_time": "1.4 s"}
        assert [record.text for record in threads.search("cache")] == [
            "Blocks of 32 rows fit the cache."
        ]
        states = {branch.id: branch.state for branch in store.branches()}
        assert states == {"run": "open", "blocks": "sealed", "threads": "open", "gone": "pruned"}
        with pytest.raises(BranchSealed):
            blocks.core["best_time"] = "1 s"
        threads.core["best_time"] = "1 s"
        before = store.seq
        (old,) = threads.search("cache")
        threads.remember("Blocks of 64 rows fit the cache.", replaces=[old.id])
        assert [record.text for record in threads.search("cache")] == [
            "Blocks of 64 rows fit the cache."
        ]
        assert (
            threads.search("cache", at=before)[0].text == blocks.search("cache")[0].text == old.text
        )
        assert [record.id for record in threads.closed()] == [old.id]
        assert store.verify().problems == ()
