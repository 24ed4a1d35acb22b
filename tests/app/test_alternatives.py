"""Alternatives: orders side by side, each on a fork of conversation, variables and files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_endpoint import Call, good, serving
from sizes import some
from support import NO_STATES, Listener, make_project
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.session.session import Session

FORMS = ("tools", "json", "fences")
ORDERS = {"double": "Set base to its double.", "treble": "Set base to its treble."}
BASE = "base = 10; open('note.txt', 'w').write('main')"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def cell(form: str, code: str) -> list[bytes]:
    if form == "tools":
        return called(("run_python", {"intent": "go", "code": code}))
    if form == "json":
        fields = {"send_to": "CodeInterpreter", "message": "go", "code": code}
        return good(json.dumps({"response": fields}))
    return good(f"```python\n{code}\n```")


def own_cell(form: str, code: str) -> list[bytes]:
    """Return a cell of the interpreter that ends its order."""
    if form == "tools":
        return called(("run_python", {"intent": "go", "code": code, "is_last": True}))
    if form == "json":
        return good(json.dumps({"response": {"code": code, "is_last": "yes"}}))
    return good(f"```python last\n{code}\n```")


def tries(form: str, orders: dict[str, str]) -> list[bytes]:
    lines = "\n".join(f"{name}: {order}" for name, order in orders.items())
    if form == "tools":
        items = [{"branch": name, "order": order} for name, order in orders.items()]
        return called(("try_alternatives", {"alternatives": items}))
    if form == "json":
        return good(json.dumps({"response": {"alternatives": lines}}))
    return good(f"```alternatives\n{lines}\n```")


def words(form: str, text: str) -> list[bytes]:
    fields = {"send_to": "User", "message": text}
    return good(json.dumps({"response": fields}) if form == "json" else text)


Answer = Callable[[str, str], list[bytes]]


def newest(call: Call) -> str:
    return str(call.body["messages"][-1]["content"])


@contextmanager
def session_with(
    project: Path, form: str, answer: Answer, session_id: str | None = None, **config: object
) -> Iterator[Session]:
    """Open a session whose model answers by the newest message and the instructions."""

    def reply(call: Call) -> None:
        call.stream(answer(newest(call), str(call.body["messages"][0]["content"])))

    with serving(reply) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m",
            "llm.api_key": "k", "llm.max_retries": 0, "llm.form": form, **NO_STATES, **config,
        }  # fmt: skip
        with TaskWeaverApp(project, config=keys) as app, app.get_session(session_id) as session:
            yield session


def doubling(form: str) -> Answer:
    """Return a model that sets a base, has it doubled and trebled, and reports both."""
    double, treble = (
        own_cell(form, f"base = base * {n}; open('note.txt', 'w').write('{name}'); base")
        for n, name in ((2, "double"), (3, "treble"))
    )
    replies = {
        "## Branch double": words(form, "Doubled it is 20, trebled 30."),
        ORDERS["double"]: double,
        ORDERS["treble"]: treble,
        "compare the double": tries(form, ORDERS),
        "which base?": cell(form, "base"),
        "set the base": cell(form, BASE),
    }

    def answer(text: str, _instructions: str) -> list[bytes]:
        found = (reply for mark, reply in replies.items() if mark in text)
        return next(found, words(form, "Done."))

    return answer


def result(session: Session, question: str) -> str:
    round_ = session.send_message(question)
    assert round_.state == "finished", round_
    kind = AttachmentType.execution_result
    reports = [item.content for post in round_.post_list for item in post.get_attachment(kind)]
    return str(reports[-1])


@pytest.mark.parametrize("form", some(FORMS, 1))
def test_alternatives_stay_on_branches_of_their_own(project: Path, form: str) -> None:
    with session_with(project, form, doubling(form)) as session:
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
            assert [past.state for past in session.memory.conversation.rounds] == ["finished"] * 2
            assert value in result(session, "which base?")
            assert (session.execution_cwd / "note.txt").read_text() == name
            assert session.memory.conversation.rounds[1].post_list[-1].message.startswith("Doubled")
    checks = round_.post_list[-1].get_attachment(AttachmentType.answer_check)
    assert [check.content for check in checks] == ["supported"], "by numbers of the alternatives"


@pytest.mark.long
def test_alternatives_are_restored_with_their_variables(project: Path) -> None:
    kept: dict[str, object] = {"session.state_limit_mb": 512}
    with session_with(project, "tools", doubling("tools"), **kept) as session:
        session.send_message("set the base")
        session.send_message("compare the double with the treble")
        session_id = session.session_id
    with session_with(project, "tools", doubling("tools"), session_id, **kept) as session:
        for name, value in (("main", "10"), ("double", "20"), ("treble", "30")):
            session.checkout(name)
            assert value in result(session, "which base?"), name


def test_alternatives_run_at_the_same_time_and_are_shown_in_order(project: Path) -> None:
    """Each waits for the other's cell; listeners are called in one thread, alternative by one."""
    flag = project / "flags"
    flag.mkdir()

    def answer(text: str, _instructions: str) -> list[bytes]:
        if "## Branch one" in text:
            return good("Both are done.")
        for own, other in (("one", "two"), ("two", "one")):
            if f"Run {own}." in text:
                code = f"import pathlib, time\nd = pathlib.Path({str(flag)!r})\n"
                code += f"(d / {own!r}).touch()\n"
                wait = f"while not (d / {other!r}).exists(): time.sleep(0.01)\n'{own}' + ' met'"
                return own_cell("tools", code + wait)
        return tries("tools", {"one": "Run one.", "two": "Run two."})

    threads = set()
    listener = Listener()

    class Threads(Listener):
        def handle(self, event: object) -> None:
            threads.add(threading.get_ident())
            listener.handle(event)  # type: ignore[arg-type]

    keys = {"execution.allowed_folders": [str(flag)]}
    with session_with(project, "tools", answer, **keys) as session:
        round_ = session.send_message("compare", Threads())
    assert round_.state == "finished", round_
    assert "one met" in round_.post_list[-2].message
    assert "two met" in round_.post_list[-2].message
    assert threads == {threading.get_ident()}


def test_an_alternative_that_fails_leaves_the_others(project: Path) -> None:
    def answer(text: str, _instructions: str) -> list[bytes]:
        if "## Branch good" in text:
            return good("One was done.")
        if "Be bad." in text:
            return called(("no_such_tool", {}))
        if "Be good." in text:
            return own_cell("tools", "'very' + ' good'")
        if "could not be used" in text:
            return called(("no_such_tool", {}))
        return tries("tools", {"bad": "Be bad.", "good": "Be good."})

    with session_with(project, "tools", answer) as session:
        round_ = session.send_message("compare")
        assert round_.state == "finished"
        report = round_.post_list[-2].message
        assert "very good" in report
        assert "## Branch bad" in report
        session.checkout("bad")
        assert session.memory.conversation.rounds[-1].state == "finished"


def test_taken_and_odd_names_are_changed(project: Path) -> None:
    def answer(text: str, _instructions: str) -> list[bytes]:
        if "## Branch" in text:
            return good("Done.")
        if "Go." in text:
            return own_cell("tools", "1 + 1")
        return tries("tools", {"main": "Go.", "../a b": "Go."})

    with session_with(project, "tools", answer) as session:
        assert session.send_message("compare").state == "finished"
        assert [branch.name for branch in session.branches()] == ["main", "main-1", "a-b"]


@pytest.mark.parametrize(
    ("alternatives", "problem"),
    some(
        [
            ([{"branch": f"b{n}", "order": "go"} for n in range(5)], "there are 5"),
            ([{"branch": "same", "order": "go"}] * 2, "Two alternatives have the same branch"),
            (None, "there are 0"),
            ([], "there are 0"),
            ([{"branch": "a"}], "there are 0"),
        ],
        3,
    ),
)
def test_unusable_alternatives_are_sent_back(
    project: Path, alternatives: object, problem: str
) -> None:
    seen = []

    def answer(text: str, _instructions: str) -> list[bytes]:
        seen.append(text)
        if "could not be used" in text:
            return good("I leave it.")
        return called(("try_alternatives", {"alternatives": alternatives}))

    with session_with(project, "tools", answer) as session:
        round_ = session.send_message("compare")
    assert round_.post_list[-1].message == "I leave it."
    assert problem in seen[-1]


def test_an_interrupt_ends_all_alternatives(project: Path) -> None:
    """The branches keep the round as failed, and the session goes on."""
    started = project / "flags"
    started.mkdir()

    def answer(text: str, _instructions: str) -> list[bytes]:
        for name in ("one", "two"):
            if f"Run {name}." in text:
                path = str(started / name)
                code = f"import time\nopen({path!r}, 'w').close()\ntime.sleep(600)"
                return own_cell("tools", code)
        if "again" in text:
            return good("Here I am.")
        return tries("tools", {"one": "Run one.", "two": "Run two."})

    class Interrupting(Listener):
        """Interrupts once both cells run."""

        def handle(self, event: object) -> None:
            super().handle(event)  # type: ignore[arg-type]

    keys = {"execution.allowed_folders": [str(started)]}
    with session_with(project, "tools", answer, **keys) as session:
        done = threading.Event()

        def interrupt() -> None:
            while not done.wait(0.02):
                if len(list(started.iterdir())) == 2:
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


def posts(session: Session) -> list[Post]:
    return session.memory.conversation.rounds[-1].post_list
