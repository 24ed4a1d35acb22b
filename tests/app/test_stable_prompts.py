"""Each prompt of a chat begins with the prompt before it, which a provider's cache has."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good, serving
from sizes import some
from support import Script, code_reply, make_project, planner_reply
from tool_replies import called

from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

ROUNDS = some((5, 10), 1)[-1]
KEYS: dict[str, object] = {"llm.model": "m", "llm.api_key": "k", "llm.max_retries": 0} | {
    f"{role}.compaction_threshold": 50 for role in ("planner", "code_generator")
}
Body = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def cell(number: int) -> str:
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
    write: Callable[[int], str] = cell,
    rounds: int = ROUNDS,
) -> list[Body]:
    """Return the requests of a chat with a cell in each round; `act` runs before each round.

    No summary is made: it replaces the rounds that it summarises.
    """
    bodies: list[Body] = []

    def answer(call: Call) -> None:
        bodies.append(call.body)
        number = len(bodies)
        if call.body["messages"][-1]["role"] == "tool":
            call.stream(good("The sum is above."))
        else:
            run = {"intent": f"sum part {number}", "code": write(number)}
            call.stream(called(("run_python", run)))

    with serving(answer) as endpoint:
        more = {"llm.api_type": "openai", "llm.api_base": endpoint.url}
        keys = {**KEYS, **more}
        with TaskWeaverApp(project, config=keys) as app, app.get_session() as session:
            for number in range(rounds):
                act(session, number)
                assert session.send_message(f"What is sum {number}?").state == "finished"
    return bodies


def stable_text(body: Body) -> str:
    return json.dumps([body["tools"], *body["messages"]])[:-1]


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> list[Body]:
    """The requests of a chat in which nothing else happens."""
    return played(make_project(tmp_path_factory.mktemp("chat") / "project"))


def test_each_prompt_of_a_chat_with_cells_begins_with_the_one_before(chat: list[Body]) -> None:
    texts = [stable_text(body) for body in chat]
    assert len(texts) == 2 * ROUNDS
    for number, (before, after) in enumerate(pairwise(texts)):
        assert after.startswith(before), number
    reused = sum(map(len, texts[:-1])) / sum(map(len, texts[1:]))
    assert reused > 0.9


def test_the_situation_is_whole_once_and_then_names_changes(chat: list[Body]) -> None:
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
            session.long_memory.add(f"revenue is net of tax, rule {number}")

    bodies = played(project, act, "20 + {}".format, rounds=4)
    for body in bodies:
        assert json.dumps(body["messages"]).count("## Memory") == 1
    texts = [stable_text(body) for body in bodies]
    breaks = [n for n in range(1, len(texts)) if not texts[n].startswith(texts[n - 1])]
    assert breaks == [4]


def test_a_new_process_names_the_files_of_cells_apart_from_the_users(project: Path) -> None:
    code = "open('own.txt', 'w').write('x')\npd.DataFrame({'a': [1]}).to_csv('made.csv')"
    order, done = planner_reply("CodeInterpreter", "write"), planner_reply("User", "Done.")
    script = Script([order, code_reply(code), done])
    with TaskWeaverApp(project, model=script) as app, app.get_session() as session:
        session.send_message("write a file")
        id_ = session.session_id
    script = Script([done])
    with TaskWeaverApp(project, model=script) as app:
        app.resume_session(id_).send_message("which files are there?")
    text = script.last(0)
    users, _, made = text.partition("Written or changed by cells:")
    assert '- "tiny.csv"' in users
    assert '- "made.csv"' in made
    assert '- "own.txt"' in made
