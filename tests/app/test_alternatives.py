"""Alternatives: orders side by side, each on a fork of conversation, variables and files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good
from rounds import app_over, cell, newest
from support import Listener
from tool_replies import called

from taskweaver.memory.attachment import AttachmentType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

Answer = Callable[[str], list[bytes]]


def own_cell(code: str) -> list[bytes]:
    return called(cell(code, is_last=True))


def tries(**orders: str) -> list[bytes]:
    items = [{"branch": name, "order": order} for name, order in orders.items()]
    return called(("try_alternatives", {"alternatives": items}))


@contextmanager
def session_with(project: Path, answer: Answer, **config: Any) -> Iterator[Session]:
    """Open a session whose model answers by the newest message."""

    def reply(call: Call) -> None:
        call.stream(answer(newest(call)))

    with app_over(project, *[reply] * 99, **config) as (app, _), app.get_session() as session:
        yield session


def result(session: Session, question: str) -> str:
    round_ = session.send_message(question)
    assert round_.state == "finished", round_
    kind = AttachmentType.execution_result
    reports = [item.content for post in round_.post_list for item in post.get_attachment(kind)]
    return str(reports[-1])


def test_alternatives_stay_on_branches_of_their_own(project: Path) -> None:
    write = "base = base * {0}; open('note.txt', 'w').write('{1}'); base"
    replies = {
        "## Branch double": good("Doubled it is 20, trebled 30."),
        "Set base to its double.": own_cell(write.format(2, "double")),
        "Set base to its treble.": own_cell(write.format(3, "treble")),
        "compare": tries(double="Set base to its double.", treble="Set base to its treble."),
        "which base?": called(cell("base")),
        "set the base": called(cell("base = 10; open('note.txt', 'w').write('main')")),
    }

    def answer(text: str) -> list[bytes]:
        return next((reply for mark, reply in replies.items() if mark in text), good("Done."))

    with session_with(project, answer) as session:
        session.send_message("set the base")
        round_ = session.send_message("compare the double with the treble")
        assert round_.state == "finished"
        assert round_.post_list[-1].message == "Doubled it is 20, trebled 30."
        assert [branch.name for branch in session.branches()] == ["main", "double", "treble"]
        report = round_.post_list[-2]
        assert report.message.index("## Branch double") < report.message.index("## Branch treble")
        assert "/checkout" in report.message
        assert "10" in result(session, "which base?")
        assert (session.execution_cwd / "note.txt").read_text() == "main"
        for name, value in (("double", "20"), ("treble", "30")):
            session.checkout(name)
            rounds = session.memory.conversation.rounds
            assert [past.state for past in rounds] == ["finished"] * 2
            assert value in result(session, "which base?")
            assert (session.execution_cwd / "note.txt").read_text() == name
            assert rounds[1].post_list[-1].message.startswith("Doubled")
    checks = round_.post_list[-1].get_attachment(AttachmentType.answer_check)
    assert [check.content for check in checks] == ["supported"], "by numbers of the alternatives"


def meeting(folder: Path, orders: dict[str, str], code: str) -> Answer:
    """Return a model whose alternatives note in a folder that their cells have begun."""
    folder.mkdir()
    begin = f"import pathlib, time\nd = pathlib.Path({str(folder)!r})\n"

    def answer(text: str) -> list[bytes]:
        if "## Branch" in text or "again" in text:
            return good("Here I am.")
        for name in ("one", "two"):
            if f"Run {name}." in text:
                return own_cell(f"{begin}(d / {name!r}).touch()\n{code}\n'{name}' + ' met'")
        return tries(**orders)

    return answer


def test_alternatives_run_at_the_same_time_and_are_shown_in_order(project: Path) -> None:
    """Each waits for the other's cell; listeners are called in one thread.

    Names that are taken or none are changed.
    """
    flags, threads = project / "flags", set()
    orders = {"main": "Run one.", "../a b": "Run two."}
    answer = meeting(flags, orders, "while len(list(d.iterdir())) < 2: time.sleep(0.01)")

    class Threads(Listener):
        def handle(self, event: Any) -> None:
            super().handle(event)
            threads.add(threading.get_ident())

    with session_with(project, answer, **{"execution.allowed_folders": [str(flags)]}) as session:
        round_ = session.send_message("compare", Threads())
        assert [branch.name for branch in session.branches()] == ["main", "main-1", "a-b"]
    assert round_.state == "finished", round_
    report = round_.post_list[-2].message
    assert report.index("one met") < report.index("two met")
    assert threads == {threading.get_ident()}


def test_an_interrupt_ends_all_alternatives(project: Path) -> None:
    """The branches keep the round as failed, and the session goes on."""
    flags, done = project / "flags", threading.Event()
    answer = meeting(flags, {"one": "Run one.", "two": "Run two."}, "time.sleep(600)")
    with session_with(project, answer, **{"execution.allowed_folders": [str(flags)]}) as session:

        def interrupt() -> None:
            while not done.wait(0.02):
                if len(list(flags.iterdir())) == 2:
                    session.interrupt()
                    return

        watcher = threading.Thread(target=interrupt)
        watcher.start()
        round_ = session.send_message("compare")
        done.set()
        watcher.join()
        assert round_.state == "failed"
        assert session.send_message("again").post_list[-1].message == "Here I am."
        for name in ("one", "two"):
            session.checkout(name)
            assert session.memory.conversation.rounds[0].state == "failed"


def test_an_alternative_that_fails_leaves_the_others(project: Path) -> None:
    def answer(text: str) -> list[bytes]:
        if "## Branch good" in text:
            return good("One was done.")
        if "Be bad." in text or "could not be used" in text:
            return called(("no_such_tool", {}))
        if "Be good." in text:
            return own_cell("'very' + ' good'")
        return tries(bad="Be bad.", good="Be good.")

    with session_with(project, answer) as session:
        round_ = session.send_message("compare")
        assert round_.state == "finished"
        report = round_.post_list[-2].message
        assert "very good" in report
        assert "## Branch bad" in report
        session.checkout("bad")
        assert session.memory.conversation.rounds[-1].state == "finished"
