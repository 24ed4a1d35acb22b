"""``taskweaver eval``: the table, its comparison, and what ends with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from evaluation.eval_support import say, talk, write_cases
from support import NO_STATES, make_project

from taskweaver.cli.main import commands


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", NO_STATES | {"llm.api_type": "recorded"})


def run(project: Path, *arguments: object) -> Result:
    return CliRunner().invoke(commands, ["-p", str(project), "eval", *map(str, arguments)])


def test_the_table_has_rows_sums_and_means(tmp_path: Path, project: Path) -> None:
    two = talk("two", "It is 8.", held_out=True)
    two["steps"].append({"ask": "more?", "replies": [say("No.")]})
    cases = write_cases(tmp_path, talk("one"), two, {"name": "bare", "steps": [{"ask": "x"}]})
    found = run(project, cases, "--held-out", "--jobs", 2, "--out", tmp_path / "r.jsonl")
    assert found.exit_code == 1
    head, one, second, bare, *rest = found.stdout.splitlines()
    assert head.split() == [
        "case", "kind", "answered", "by", "result", "calls", "prompt", "completion", "time",
    ]  # fmt: skip
    assert one.split()[:5] == ["one", "mine", "recording", "passed", "1"]
    assert second.split()[:5] == ["two*", "mine", "recording", "failed", "2"]
    assert bare.split() == ["bare", "mine", "recording", "skipped", "-", "-", "-", "-"]
    assert rest[0].split()[:5] == ["sum", "1", "of", "2", "3"]
    assert rest[1].split()[:5] == ["mean", "of", "a", "case", "1.5"]
    assert rest[2].split()[:5] == ["mean", "of", "a", "question", "1.0"]
    assert "they prove nothing about prompts" in found.stdout
    assert "two: failed: step 1: 'number: 7' is not met; answer: It is 8." in found.stdout
    assert "skipped, it has no recorded replies: bare" in found.stdout
    assert found.stdout.endswith("1 of 2 played cases passed; skipped: 1\n")
    assert "model: the recorded replies of the cases" in found.stderr
    assert "passed   one" in found.stderr
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {row["case"]: row["outcome"] for row in rows} == {
        "one": "passed", "two": "failed", "bare": "skipped",
    }  # fmt: skip


def test_a_run_is_compared_with_the_one_before(tmp_path: Path, project: Path) -> None:
    before, now = tmp_path / "before.jsonl", tmp_path / "now.jsonl"
    cases = write_cases(tmp_path, talk("good", "8"), talk("bad"), talk("same"), talk("gone"))
    run(project, cases, "--out", before)
    cases = write_cases(tmp_path, talk("good"), talk("bad", "8"), talk("same"), talk("fresh"))
    found = run(project, cases, "--out", now, "--against", before)
    assert "answered by: recording" in found.stdout
    assert (
        "  good: failed -> passed\n  bad: passed -> failed\nnew: fresh\ngone: gone" in found.stdout
    )
    head, before_, now_ = found.stdout.partition("mean of the 3 cases")[2].split("\n")[1:4]
    assert head.split() == ["passed", "calls", "prompt", "completion", "time"]
    assert before_.split()[:3] == ["before", "67%", "1.0"]
    assert now_.split()[:3] == ["now", "67%", "1.0"]
    again = run(project, cases, "--out", now, "--against", before)
    assert "taken from the file: 4" in again.stdout
    assert "cases to play: 0" in again.stderr


def test_a_run_of_another_answerer_is_not_compared_like_with_like(
    tmp_path: Path, project: Path
) -> None:
    cases, before = write_cases(tmp_path, talk("one")), tmp_path / "before.jsonl"
    run(project, cases, "--out", before)
    row = json.loads(before.read_text()) | {"by": "live", "model": "m"}
    before.write_text(json.dumps(row) + "\n")
    found = run(project, cases, "--against", before)
    assert found.exit_code == 0
    assert "answered by: live\nAnother one answers now" in found.stdout


def test_a_mistake_ends_with_one_line(tmp_path: Path, project: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: one\nsteps: [{ask: a, checks: [{nmber: 1}]}]")
    found = run(project, tmp_path / "bad.yaml")
    assert found.exit_code == 2
    assert "did you mean 'number'?" in found.stderr
    assert found.stderr.count("\n") == 1
    cases = write_cases(tmp_path, talk("one"))
    assert "is no result" in run(project, cases, "--against", cases).stderr


def test_names_and_answers_of_a_case_steer_no_terminal(tmp_path: Path, project: Path) -> None:
    case = talk("one\x1b[31m", "\x1b]0;title\x07 It is 8.")
    found = run(project, write_cases(tmp_path, case))
    assert found.exit_code == 1
    assert "\x1b" not in found.stdout + found.stderr
