"""Evaluations through the library's function: who answers, limits, results that go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from evaluation.eval_support import TABLE, as_text, cell, say, talk, write_cases
from fake_endpoint import Call, FakeEndpoint, good, serving
from rounds import keys_of
from support import make_project

from taskweaver.evaluation.evaluation import Evaluation, evaluate
from taskweaver.evaluation.forms import EvaluationError
from taskweaver.evaluation.results import ResultRow, read_rows

pytestmark = pytest.mark.usefixtures("no_states")

RECORDED = {"llm.api_type": "recorded"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


def play(cases: Path, project: Path, **choices: Any) -> Evaluation:
    return evaluate(cases, project, **({"config": RECORDED} | choices))


def only(done: Evaluation) -> ResultRow:
    (row,) = done.rows
    return row


@contextmanager
def live(answer: str | None) -> Iterator[tuple[FakeEndpoint, dict[str, Any]]]:
    """Give an endpoint whose model answers with one text, judges, and plays a user."""

    def reply(call: Call) -> None:
        system = str(call.body["messages"][0]["content"])
        newest = str(call.body["messages"][-1]["content"])
        if "You compare statements" in system:
            hit = "yes" if answer and answer in newest and "seven" in newest else "no"
            call.stream(good(json.dumps({"reason": "I looked", "is_hit": hit})))
        elif "You play the user" in system:
            is_first = "Write the first message" in newest
            call.stream(good("What is it?" if is_first else "TASK_FINISHED"))
        elif answer is None:
            call.stall()
        else:
            call.stream(good(as_text(say(answer))))

    with serving(reply) as endpoint:
        yield endpoint, keys_of(endpoint.url)


def test_a_row_has_result_cost_and_answers(tmp_path: Path, project: Path) -> None:
    row = only(play(write_cases(tmp_path, talk("seven")), project))
    facts = (row.case, row.kind, row.by, row.outcome, row.score)
    assert facts == ("seven", "mine", "recording", "passed", 1.0)
    assert (row.questions, row.calls, row.judge_calls) == (1, 1, 0)
    assert row.prompt_tokens > 100
    assert row.is_estimated
    assert row.answers == ("It is 7.",)
    assert ResultRow.model_validate_json(row.model_dump_json()) == row


def test_steps_run_cells_fork_and_begin_sessions(tmp_path: Path, project: Path) -> None:
    steps = [
        {"run": "x = len(pd.read_csv('t.csv'))\nx"},
        {"fork": "trial"},
        {"ask": "double it", "replies": [cell("x = x * 2\nx"), say("It is 6.")]},
        {"checkout": "main"},
        {"ask": "and here?", "replies": [cell("x"), say("It is 3.")], "checks": [{"number": 3}]},
        {"session": "new"},
        {
            "ask": "is x there?", "files": {"more.txt": "7"},
            "replies": [cell("'x' in globals(), open('more.txt').read()"), say("No: 7.")],
            "checks": [{"prompt": "(False, '7')"}],
        },
    ]  # fmt: skip
    checks = [{"holds": ["'x' not in globals()", "1 == 1"]}, {"cells": 4}, {"calls": 6}]
    case = {"name": "steps", "files": TABLE, "steps": steps, "checks": checks}
    row = only(play(write_cases(tmp_path, case), project))
    assert row.problems == ()
    assert (row.questions, row.calls) == (3, 6)
    few = {"name": "few", "steps": [{"run": "y = 9"}], "checks": [{"holds": "x == 9"}]}
    row = only(play(write_cases(tmp_path, few), project))
    assert row.problems == ("'holds: x == 9' is not met; NameError: name 'x' is not defined",)


def test_a_recording_that_does_not_fit_is_no_failure_of_the_answer(
    tmp_path: Path, project: Path
) -> None:
    short = {"name": "short", "steps": [{"ask": "a", "replies": []}]}
    long = talk("long")
    long["steps"][0]["replies"] += [say("and more")]
    none = {"name": "none", "steps": [{"ask": "a"}]}
    calls = {"name": "calls", "steps": [{"ask": "a", "replies": [{"calls": [{"name": "ask"}]}]}]}
    done = play(write_cases(tmp_path, short, long, none, calls), project)
    rows = {row.case: row for row in done.rows}
    assert rows["short"].outcome == "error"
    assert "short, turn 1 has no recorded reply left" in rows["short"].problems[0]
    assert rows["long"].outcome == "passed"
    assert rows["long"].notes == ("step 1: 1 recorded replies were not asked for",)
    assert rows["none"].outcome == "skipped"
    assert rows["none"].problems == ("it has no recorded replies",)
    assert rows["calls"].outcome == "error"
    assert not done.is_passed


def test_a_killed_run_goes_on(tmp_path: Path, project: Path) -> None:
    cases = write_cases(tmp_path, talk("one"), talk("two"), talk("three", "It is 8."))
    out = tmp_path / "results" / "r.jsonl"
    play(cases, project, out=out, only=["one", "three"])
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines) + lines[0][: len(lines[0]) // 2])
    done = play(cases, project, out=out)
    assert done.resumed == {"one", "three"}
    assert [row.outcome for row in done.rows] == ["passed", "passed", "failed"]
    assert [row.case for row in read_rows(out)] == ["one", "three", "two"]
    out.write_text(out.read_text().replace('"outcome":"failed"', '"outcome":"error"'))
    assert play(cases, project, out=out).resumed == {"one", "two"}  # an error is tried again
    changed = write_cases(tmp_path, talk("one", "7"), talk("two"), talk("three"))
    assert play(changed, project, out=out).resumed == {"two"}


def test_another_file_is_refused_as_a_file_of_results(tmp_path: Path, project: Path) -> None:
    cases, out = write_cases(tmp_path, talk("one")), tmp_path / "notes.txt"
    for text, problem in (
        ("hello\nworld\n", "line 1: is no result"),
        ('{"format": 1, "case": "a"}\n', "line 1: is no result: kind: Field required"),
        ('{"format": 9}\n', "is no result: format: Input should be 1"),
    ):
        out.write_text(text)
        with pytest.raises(EvaluationError, match=problem):
            play(cases, project, out=out)
        assert out.read_text() == text


def test_cases_are_chosen_by_name_and_held_out(tmp_path: Path, project: Path) -> None:
    cases = write_cases(tmp_path, talk("one"), talk("two", held_out=True))
    done = play(cases, project)
    assert ([row.case for row in done.rows], done.left_out) == (["one"], 1)
    assert len(play(cases, project, is_held_out=True).rows) == 2
    assert only(play(cases, project, only=["two"])).is_held_out
    with pytest.raises(EvaluationError, match="did you mean 'two'"):
        play(cases, project, only=["twoo"])


def test_a_live_model_answers_a_judge_decides_and_both_are_counted(
    tmp_path: Path, project: Path
) -> None:
    step = {"ask": "what?", "checks": [{"number": 7}, {"judge": ["it is seven", "it is odd"]}]}
    cases = write_cases(tmp_path, {"name": "judged", "steps": [step]})
    with live("It is 7.") as (endpoint, config):
        row = only(play(cases, project, config=config))
    assert (row.by, row.model, row.outcome, row.score) == ("live", "m", "failed", 0.6667)
    assert (row.calls, row.judge_calls, len(endpoint.calls)) == (1, 2, 3)
    assert row.problems == ("step 1: 'judge: it is odd' is not met; the judge: I looked",)
    recorded = step | {"replies": [say("It is 7.")]}
    row = only(play(write_cases(tmp_path, {"name": "judged", "steps": [recorded]}), project))
    assert row.outcome == "error"
    assert "a judge is needed" in row.problems[0]


def test_a_case_of_the_original_is_scored(tmp_path: Path, project: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE["t.csv"])
    (tmp_path / "o.yaml").write_text(
        "task_description: ask what it is\ndata_files: [t.csv]\nscoring_points:\n"
        "- {score_point: it is seven, weight: 2}\n- {score_point: it is odd, weight: 1}\n"
        "- score_point: it is named\n  weight: 1\n  eval_code: |\n"
        "    assert chat_history[-1].content == 'It is 7.'\n"
        "- score_point: the file is there\n  weight: 1\n  eval_code: |\n"
        "    import os\n    for name in os.listdir():\n        if name == 't.csv':\n"
        "            return True\n    return False\n"
        "- score_point: it is eight\n  weight: 1\n  eval_code: assert '8' in agent_response\n"
    )
    with live("It is 7.") as (_, config):
        refused = only(play(tmp_path / "o.yaml", project, config=config))
        row = only(play(tmp_path / "o.yaml", project, config=config, is_trusted=True))
    assert refused.outcome == "skipped"
    assert "--trust) for the code of a scoring point" in refused.problems[0]
    assert (row.outcome, row.score) == ("failed", round(4 / 6, 4))
    assert [problem.split(";")[0] for problem in row.problems] == [
        "'it is odd' is not met", "'it is eight' is not met",
    ]  # fmt: skip
    assert row.judge_calls == 4
    assert row.answers == ("It is 7.",)


def test_programs_of_a_case_run_first_with_consent(tmp_path: Path, project: Path) -> None:
    (tmp_path / "o.yaml").write_text(
        "user_query: what?\nscoring_points: [{score_point: it is seven}]\n"
        "dependencies: [pandas]\npre_command: ['x=made; test -n \"$x\" && touch $x.txt | cat']\n"
    )
    with live("It is 7.") as (_, config):
        assert only(play(tmp_path / "o.yaml", project, config=config)).outcome == "skipped"
        assert not (tmp_path / "made.txt").exists()
        row = only(play(tmp_path / "o.yaml", project, config=config, is_trusted=True))
        assert (row.outcome, (tmp_path / "made.txt").exists()) == ("passed", True)
        for bad, problem in (
            ("pre_command: ['echo why >&2; exit 3']", "exit status 3. why"),
            ("pre_command: ['no-such-program-here']", "exit status 127"),
            ("dependencies: ['pandas<1']", "pandas<1 is needed"),
            ("dependencies: [no-such-package-here]", "is no package that is installed"),
        ):
            (tmp_path / "o.yaml").write_text(
                f"user_query: what?\nscoring_points: [{{score_point: a}}]\n{bad}\n"
            )
            row = only(play(tmp_path / "o.yaml", project, config=config, is_trusted=True))
            assert row.outcome == "error"
            assert problem in row.problems[0]


def test_a_case_that_hangs_ends_at_its_limit_and_the_others_go_on(
    tmp_path: Path, project: Path
) -> None:
    cases = write_cases(tmp_path, talk("hangs", limit_s=0.5), talk("waits", limit_s=0.5))
    with live(None) as (_, config):
        done = play(cases, project, config=config, jobs=2)
    assert [row.outcome for row in done.rows] == ["timeout", "timeout"]
    assert "it took longer than 0.5 s" in done.rows[0].problems[0]


def test_a_model_that_is_gone_is_an_error_of_each_case(tmp_path: Path, project: Path) -> None:
    cases = write_cases(tmp_path, talk("one"), talk("two"), talk("three"))
    asked = threading.Semaphore(1)

    def reply(call: Call) -> None:
        if asked.acquire(blocking=False):
            call.stream(good(as_text(say("It is 7."))))
        else:
            call.hang_up()

    with serving(reply) as endpoint:
        keys = keys_of(endpoint.url)
        done = play(cases, project, config=keys, out=tmp_path / "r.jsonl")
    assert [row.outcome for row in done.rows] == ["passed", "error", "error"]
    assert "Model call failed" in done.rows[1].problems[0]
    assert len(read_rows(tmp_path / "r.jsonl")) == 3


def test_nothing_of_a_case_stays_in_the_project(tmp_path: Path, project: Path) -> None:
    before = sorted(path for path in project.rglob("*") if path.is_file())
    unchecked = {"answers.check": False}
    case = talk("one", files=TABLE, data=TABLE, documents=TABLE, config=unchecked)
    assert only(play(write_cases(tmp_path, case), project)).outcome == "passed"
    after = sorted(path for path in project.rglob("*") if path.is_file())
    assert [path for path in after if path not in before and path.parent.name != "logs"] == []


def test_without_a_project_an_empty_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = write_cases(tmp_path, talk("one"))
    config = RECORDED | {"execution.zygote": False, "execution.sandbox": "none"}
    assert only(evaluate(cases, config=config)).outcome == "passed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.yaml"]
