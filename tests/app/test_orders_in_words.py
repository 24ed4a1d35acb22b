"""Orders in words: the interpreter looks, computes and answers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import good
from rounds import ALONE, RELAY, cell, hops, newest, play, results
from support import add_table
from tool_replies import called

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import successful_cells

pytestmark = pytest.mark.usefixtures("no_states")

ONE_TRY: dict[str, Any] = {"code_interpreter.max_retry_count": 1}


def order(text: str) -> list[bytes]:
    return called(("ask", {"role": "CodeInterpreter", "order": text}))


def test_look_then_compute_is_one_order(project: Path) -> None:
    add_table(project)
    look, compute = "df = pd.read_csv('tiny.csv')\nlist(df)", "df.Count.sum()"
    (round_,), calls, _ = play(
        project,
        order("sum of Count"), called(cell(look)), called(cell(compute)),
        good("The sum is 8."), good("It is 8."), **RELAY,
    )  # fmt: skip
    assert round_.state == "finished"
    assert hops(round_) == ["UP", "PC", "CC", "CC", "CP", "PU"]
    assert [ran.code for ran in successful_cells([round_])] == [look, compute]
    assert "Region" in newest(calls[2])  # the outcome of the look
    assert "df: " in newest(calls[2])  # and the variable that it made
    before = calls[2].body["messages"]
    assert calls[3].body["messages"][: len(before)] == before
    report = round_.post_list[4]
    assert report.message.startswith("The sum is 8.")
    assert compute in report.message
    assert "Region" in newest(calls[4])


def test_a_cell_that_is_marked_as_the_last_or_words_alone_cost_no_further_call(
    project: Path,
) -> None:
    ask = order("multiply")
    bodies = [ask, called(cell("6 * 7", is_last=True)), good("It is 42.")]
    (computed, said), calls, _ = play(
        project, *bodies, ask, good("Which file?"), good("Which?"), rounds=2, **RELAY
    )
    assert hops(computed) == hops(said) == ["UP", "PC", "CP", "PU"]
    assert "42" in newest(calls[2])
    assert "6 * 7" in newest(calls[2])
    (kind,) = said.post_list[2].get_attachment(AttachmentType.reply_type)
    assert kind.content == "text"
    assert newest(calls[5]) == "Which file?"


def test_an_interpreter_alone_answers_and_reads_the_files_once_and_then_their_changes(
    project: Path,
) -> None:
    add_table(project)
    bodies = [
        called(cell("df = pd.read_csv('tiny.csv')\ndf.head()")), called(cell("df.Count.sum()")),
        good("The sum is 8."), good("Still 8."),
        called(cell("x = 1\npd.DataFrame({'a': [1]}).to_csv('made.csv')")), good("Two."), good("-"),
    ]  # fmt: skip
    (one, *_), calls, _ = play(project, *bodies, rounds=4, **ALONE)
    assert hops(one) == ["UC", "CC", "CC", "CU"]
    assert one.answer.text == "The sum is 8."
    system = str(calls[0].body["messages"][0]["content"])
    assert "never talk to the user" not in system
    assert "last" not in json.dumps(calls[0].body["tools"])
    said = [m for m in calls[3].body["messages"] if m["role"] == "assistant"]
    assert "The sum is 8." in str(said[-1]["content"])
    for before, after in itertools.pairwise(calls):
        old = before.body["messages"]
        assert after.body["messages"][: len(old)] == old  # for the cache
    last = [str(message["content"]) for message in calls[-1].body["messages"][1:]]
    assert sum('"tiny.csv"' in text for text in last) == 1
    assert sum(text.count("- x: 1") for text in last) == 2  # as the outcome, and as a change
    assert sum('"made.csv"' in text and "rows" in text for text in last) == 1


def test_its_own_failure_is_corrected_and_a_look_is_no_try(project: Path) -> None:
    codes = ("a = 1\na", "b = 2\nb", "a / 0", "a / b")
    bodies = [called(cell(code)) for code in codes]
    (round_,), calls, _ = play(project, *bodies, good("It is 0.5."), **ALONE, **ONE_TRY)
    assert round_.answer.text == "It is 0.5."
    assert "ZeroDivisionError" in newest(calls[3])
    assert "write the whole corrected cell" in newest(calls[3])


def test_the_same_cell_for_ever_ends_with_an_answer(project: Path) -> None:
    same = [called(cell("1 + 1"))] * 3
    (round_, second), calls, _ = play(
        project, *same, good("It is 2."), same[0], good(" "), good(" "), rounds=2, **ALONE
    )
    assert round_.answer.text == "It is 2."
    assert "Do not send it again" in newest(calls[2])
    assert "No further cell runs" in newest(calls[3])
    assert calls[3].body["tool_choice"] == "none"
    assert second.state == "finished"  # an empty reply after an outcome: the outcome is reported
    assert "2" in second.post_list[-1].message


def test_after_eight_cells_an_answer_is_asked_for(project: Path) -> None:
    cells = [called(cell(f"{n} + 1")) for n in range(9)]  # a ninth is not run
    bodies = [order("count"), *cells, good("The worker counted to 8.")]
    (round_,), _, _ = play(project, *bodies, **RELAY)
    assert len(successful_cells([round_])) == 8
    report = round_.post_list[-2]
    assert (report.send_from, report.send_to) == ("CodeInterpreter", "Planner")
    assert "7 + 1" in report.message
    assert len(report.message) < 9_000
    assert round_.state == "finished"


def test_a_failed_cell_stops_the_cells_after_it_in_one_reply(project: Path) -> None:
    many = called(*map(cell, ("a = 1\na", "a / 0", "a = 99")))
    (round_,), calls, _ = play(project, many, called(cell("a + 1")), good("It is 2."), **ALONE)
    _, failed, stopped = results(calls[1])
    assert "ZeroDivisionError" in failed
    assert "Not done" in stopped
    assert "2" in newest(calls[2])
    assert round_.answer.text == "It is 2."


def test_a_prompt_file_of_version_1_keeps_one_cell_an_order(project: Path, tmp_path: Path) -> None:
    packaged = Path("taskweaver/code_interpreter/code_generator_prompt_version_1.yaml")
    own = tmp_path / "own.yaml"
    own.write_text(packaged.read_text().replace("You are {ROLE_NAME}.", "You are Ada."))
    fields = {"thought": "", "reply_type": "python", "reply_content": "6 * 7"}
    config = {"code_generator.prompt_file_path": str(own)}
    (round_,), calls, _ = play(project, good(json.dumps({"response": fields})), **ALONE, **config)
    assert hops(round_) == ["UC", "CU"]
    assert "You are Ada." in str(calls[0].body["messages"][0]["content"])
    assert "tools" not in calls[0].body
