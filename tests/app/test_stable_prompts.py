"""Each prompt of a chat begins with the prompt before it, which a provider's cache has.

Prompts of long conversations are as short after a resume, a fork and an undo as before.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from fake_endpoint import Call, good
from rounds import app_over, ask, cell
from support import (
    NO_SNAPSHOTS,
    NO_STATES,
    Script,
    add_table,
    code_reply,
    make_project,
    planner_reply,
)
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage
from taskweaver.session.session import Session

ROUNDS = 5
LATE = {f"{role}.compaction_threshold": 50 for role in ("planner", "code_generator")}
EARLY = {
    f"{role}.{key}": value
    for role in ("planner", "code_generator")
    for key, value in {"compaction_threshold": 3, "compaction_retain_recent": 1}.items()
}
Body = dict[str, Any]


def drawing(number: int) -> str:
    """Return a cell that makes a variable, a table and a picture."""
    return (
        "import matplotlib.pyplot as plt\n"
        f"part_{number} = pd.read_csv('tiny.csv')\n"
        f"part_{number}.assign(n={number}).to_csv('part_{number}.csv', index=False)\n"
        f"plt.plot([1, {number}])\n"
        f"int(part_{number}['Count'].sum()) + {number}"
    )


def played(
    project: Path,
    act: Callable[[Session, int], None] = lambda *_: None,
    write: Callable[[int], str] = drawing,
    rounds: int = ROUNDS,
) -> list[Body]:
    """Return the requests of a chat with a cell in each round; `act` runs before each round.

    No summary is made: it replaces the rounds that it summarises.
    """

    def answer(call: Call) -> None:
        is_outcome = call.body["messages"][-1]["role"] == "tool"
        run = called(cell(write(call.number + 1)))
        call.stream(good("The sum is above.") if is_outcome else run)

    config = {**LATE, **NO_STATES}
    with app_over(project, *[answer] * 99, **config) as (app, calls), app.get_session() as session:
        for number in range(rounds):
            act(session, number)
            assert session.send_message(f"What is sum {number}?").state == "finished"
    return [call.body for call in calls]


def stable_text(body: Body) -> str:
    return json.dumps([body["tools"], *body["messages"]])[:-1]


def test_each_prompt_begins_with_the_one_before_and_names_changes_of_the_situation(
    project: Path,
) -> None:
    add_table(project)
    chat = played(project)
    texts = [stable_text(body) for body in chat]
    assert len(texts) == 2 * ROUNDS
    for number, (before, after) in enumerate(pairwise(texts)):
        assert after.startswith(before), number
    assert sum(map(len, texts[:-1])) / sum(map(len, texts[1:])) > 0.9  # is reused
    messages = chat[-1]["messages"]
    asked = [str(m["content"]) for m in messages if m["role"] == "user"]
    assert '- "tiny.csv", 2 rows, columns' in asked[0]
    assert sum(text.count('"tiny.csv"') for text in asked) == 1
    assert "- part_1: " in asked[1]
    assert not any("- part_1: " in text for text in asked[2:])
    outcome = next(str(m["content"]) for m in messages if m["role"] == "tool")
    assert '### Files\n- "part_1.csv", 2 rows, columns' in outcome
    assert "figure_1.png" in outcome
    assert not any("figure_1.png" in text or "part_1.csv" in text for text in asked)


def test_facts_that_stay_the_same_stand_once_and_changed_ones_move(project: Path) -> None:
    def act(session: Session, number: int) -> None:
        if number in (0, 2):
            session.long_memory.add(f"rule {number} is that revenue is net of tax")

    bodies = played(project, act, "20 + {}".format, rounds=4)
    for body in bodies:
        assert json.dumps(body["messages"]).count("## Memory") == 1
    texts = [stable_text(body) for body in bodies]
    breaks = [n for n in range(1, len(texts)) if not texts[n].startswith(texts[n - 1])]
    assert breaks == [4]


def test_a_new_process_names_the_files_of_cells_apart_from_the_users(project: Path) -> None:
    add_table(project)
    code = "open('own.txt', 'w').write('x')\npd.DataFrame({'a': [1]}).to_csv('made.csv')"
    order, done = planner_reply("CodeInterpreter", "write"), planner_reply("User", "Done.")
    with TaskWeaverApp(
        project, model=Script([order, code_reply(code), done]), config=NO_STATES
    ) as app:
        app.get_session().send_message("write a file")
    script = Script([done])
    with TaskWeaverApp(project, model=script, config=NO_STATES) as app:
        app.resume_session().send_message("which files are there?")
    users, _, made = script.last(0).partition("Written or changed by cells:")
    assert '- "tiny.csv"' in users
    assert '- "made.csv"' in made
    assert '- "own.txt"' in made


class Model:
    """A model of both roles; a summary names the text it was asked with.

    A counter would depend on the order of summaries and calls.
    """

    def __init__(self) -> None:
        self.prompts: list[list[ChatMessage]] = []
        self.summaries = 0

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        system, newest = str(messages[0]["content"]), str(messages[-1]["content"])
        if "## Notes so far" in newest:
            self.summaries += 1
            return f"The notes, number {zlib.crc32(newest.encode()):08x}."
        self.prompts.append(list(messages))
        if "You are the Planner" not in system:
            return code_reply("40 + 2")
        if newest.startswith("From: CodeInterpreter"):
            return planner_reply("User", "It is 42.")
        return planner_reply("CodeInterpreter", "Compute 40 + 2.")


def without_situation(prompts: list[list[ChatMessage]]) -> list[list[str]]:
    """Return prompts without files and variables: a new process gives them whole, once."""
    section = re.compile(r"^## (?:Files|Variables)\n(?:.+\n)+\n", re.MULTILINE)
    return [[section.sub("", str(message["content"])) for message in one] for one in prompts]


def test_a_resumed_session_asks_exactly_as_one_that_went_on(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    questions = [f"question {number:03}" for number in range(ROUNDS + 1)]
    keys = EARLY | NO_SNAPSHOTS
    onward, stopped, resumed = Model(), Model(), Model()
    with TaskWeaverApp(project, model=onward, config=EARLY | NO_STATES) as app:
        session = app.get_session()
        assert [ask(session, text).state for text in questions] == ["finished"] * len(questions)
    with TaskWeaverApp(project, model=stopped, config=keys) as app:
        session = app.get_session()
        id_ = session.session_id
        for question in questions[:-1]:
            ask(session, question)
    with TaskWeaverApp(project, model=resumed, config=keys) as app:
        session = app.resume_session(id_)
        ask(session, questions[-1])
        session.undo()
        ask(session, questions[-1])

    assert stopped.summaries >= 2  # one for both roles, and its successor
    assert resumed.summaries == 0  # also after the undo
    assert without_situation(resumed.prompts[:3]) == without_situation(onward.prompts[-3:])
    assert "The notes, number" in str(resumed.prompts[0])
    assert "tiny.csv" in str(resumed.prompts[0][-1])
    assert "- 1: question 000 -> It is 42." in str(resumed.prompts[0])
    assert "Message: question 000" not in str(resumed.prompts)
