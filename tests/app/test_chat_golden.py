"""Every prompt of a short chat, byte for byte, in each form of the replies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_endpoint import good
from golden import check_golden
from rounds import Body, app_over, cell
from support import NO_STATES, make_project
from tool_replies import called

GOLDEN = Path(__file__).parent / "golden"
LOOK = "table = pd.read_csv('tiny.csv')\ntable['Count'].sum()"
WRONG = "table['Sum']"
REQUESTS = ("What is the sum in tiny.csv?", "And again?")
UNSTEADY = {
    r"\b20\d\d-\d\d-\d\d\b": "DAY",
    r"(?<=^Installed too: ).*?(?=\. )": "PACKAGES",
    r"\d+ frames inside|(?<=Region:)\w+": "N",
}
"""Days, what is installed here, and words of its version of pandas."""


def in_json(**fields: str) -> Body:
    return good(json.dumps({"response": fields}))


REPLIES = {
    "tools": [
        called(("sql", {"q": "x"})), called(cell(LOOK, "sum it")), called(cell(WRONG)),
        called(("remember", {"text": "counts are pieces"})), good("It is 9."), good("It is 8."),
        good("As before: 8."),
    ],
    "json": [
        in_json(send_to="Nobody", message="go"),
        in_json(send_to="CodeInterpreter", message="sum it", code=LOOK),
        in_json(send_to="CodeInterpreter", message="again", code=WRONG),
        in_json(send_to="User", message="It is 9."),
        in_json(send_to="User", message="It is 8."), in_json(send_to="User", message="8 again."),
    ],
    "fences": [
        good(""), good(f"Sum it.\n```python\n{LOOK}\n```"),
        good(f"Again.\n```python\n{WRONG}\n```"),
        good("It is 9."), good("It is 8."), good("As before: 8."),
    ],
}  # fmt: skip
"""By form: a refused reply, a cell, one that fails, a wrong number, answers to two requests."""


@pytest.mark.parametrize("form", REPLIES)
def test_the_prompts_of_a_chat_are_those_of_the_file(form: str, tmp_path: Path) -> None:
    config = {"llm.form": form, **NO_STATES}
    project = make_project(tmp_path / "project")
    with app_over(project, *REPLIES[form], **config) as (app, calls), app.get_session() as session:
        rounds = [session.send_message(text) for text in REQUESTS]
    assert [round_.state for round_ in rounds] == ["finished"] * 2
    assert len(calls) == len(REPLIES[form])
    check_golden(GOLDEN / f"{form}.txt", [call.body for call in calls], UNSTEADY)
