"""Files of cases, of this program and of the original, and the mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs_.blocks import all_blocks
from evaluation.eval_support import say, talk, write_cases

from taskweaver.evaluation.case import read_cases
from taskweaver.evaluation.forms import EvaluationError
from taskweaver.utils.files import write_yaml

ORIGINAL = """\
version: 0.1
config_var:
  execution_service.kernel_mode: "local"
app_dir: ../project/
dependencies: ["numpy"]
data_files:
  - demo.csv
task_description: calculate mean value of ./demo.csv
scoring_points:
  - score_point: "The correct mean value is 2.5"
    weight: 2
  - score_point: "A number is named"
    weight: 1
    eval_code: |-
      assert "2.5" in chat_history[-1].content
"""


def problem_of(place: Path) -> str:
    with pytest.raises(EvaluationError) as caught:
        read_cases(place)
    return str(caught.value)


def test_a_file_holds_one_case_or_several(tmp_path: Path) -> None:
    alone = {"steps": [{"ask": "hi", "replies": ["hello"]}]}
    write_yaml(tmp_path / "a" / "alone.yaml", alone)
    write_cases(tmp_path / "a", talk("one"), talk("two", held_out=True, limit_s=5, offline=True))
    cases, broken = read_cases(tmp_path / "a")
    assert broken == []
    assert [case.name for case in cases] == ["alone", "one", "two"]
    assert [case.kind for case in cases] == ["other", "mine", "mine"]
    assert cases[2].held_out
    assert cases[2].offline
    assert cases[2].limit_s == 5
    assert cases[1].steps[0].replies is not None


def test_files_lie_beside_the_case_or_in_it(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text("a\n1\n")
    written = {"notes/x.txt": "hello"}
    file = write_cases(tmp_path, talk("one", files=["tables/t.csv", "tables"], data=written))
    ((case,), _) = read_cases(file)
    assert [*case.files] == ["t.csv", "tables/t.csv"]
    assert case.data == {"notes/x.txt": b"hello"}
    (tmp_path / "tables" / "t.csv").write_text("a\n2\n")
    ((changed,), _) = read_cases(file)
    assert changed.digest != case.digest


def test_the_case_in_the_document_is_read(tmp_path: Path) -> None:
    (block,) = [item for item in all_blocks("yaml") if item.page == "evaluation.md"]
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "sales.csv").write_text("product,units\nlamp,25\n")
    (tmp_path / "case.yaml").write_text(block.text)
    ((case,), _) = read_cases(tmp_path / "case.yaml")
    assert case.is_recorded
    assert len(case.steps[0].checks) == 2


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"stepz": []}, "stepz: is not known; did you mean 'steps'?"),
    ({"steps": ["hello"]}, "steps.1: "),
    ({"steps": [{"ask": "a", "run": "b"}]}, "steps.1: has 2 of ask, converse, run, "),
    ({"steps": [{"ask": ""}]}, "steps.1.ask: "),
    ({"steps": [{"ask": "a", "checks": [{"numbr": 1}]}]}, "numbr: is not known; did you mean 'num"),
    ({"steps": [{"ask": "a", "checks": [{"matches": "("}]}]}, "is no regular expression"),
    ({"steps": [{"ask": "a", "checks": [{"holds": "1"}]}]}, "belongs to the checks of a case"),
    ({"steps": [{"ask": "a", "checks": [{"number": "x"}]}]}, "valid number, not 'x'"),
    ({"files": ["gone.csv"]}, "gone.csv cannot be read"),
    ({"files": ["../x.csv"]}, "leads out of"),
    ({"files": {"/etc/x": "1"}}, "is not a path inside of its folder"),
    ({"held_out": "true"}, "held_out: Input should be a valid boolean, not 'true'"),
]


@pytest.mark.parametrize(("change", "problem"), BROKEN)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    found = problem_of(write_cases(tmp_path, talk("one") | change))
    assert problem in found
    assert str(tmp_path / "cases.yaml") in found


def test_a_broken_file_of_many_is_left_out(tmp_path: Path) -> None:
    write_cases(tmp_path, talk("one"))
    (tmp_path / "broken.yaml").write_text("cases: [")
    (tmp_path / "tag.yaml").write_text("!!python/object/apply:os.system [id]")
    cases, broken = read_cases(tmp_path)
    assert [case.name for case in cases] == ["one"]
    assert [Path(error.source).name for error in broken] == ["broken.yaml", "tag.yaml"]
    assert "is not YAML" in str(broken[0])
    assert "is not YAML" in problem_of(tmp_path / "broken.yaml")


def test_there_must_be_cases_with_names_of_their_own(tmp_path: Path) -> None:
    assert "there is no file or folder" in problem_of(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    assert "holds no cases" in problem_of(tmp_path / "empty")
    assert "is taken by a case of" in problem_of(write_cases(tmp_path, talk("one"), talk("one")))


def test_replies_are_texts_responses_and_calls(tmp_path: Path) -> None:
    call = {"name": "run_python", "arguments": {"code": "1"}}
    replies = ["text", say("hi"), {"text": "look", "calls": [call]}]
    file = write_cases(tmp_path, {"name": "one", "steps": [{"ask": "a", "replies": replies}]})
    ((case,), _) = read_cases(file)
    assert case.is_recorded
    played = case.steps[0].replies or ()
    assert [reply.text for reply in played] == ["text", "", "look"]
    assert [reply.response and reply.response.message for reply in played] == [None, "hi", None]
    (found,) = (case.steps[0].replies or ())[2].calls
    assert (found.name, found.arguments) == ("run_python", '{"code": "1"}')


def test_cases_of_others_name_what_needs_consent(tmp_path: Path) -> None:
    config = {
        "session.roles": ["planner", "code_interpreter"], "planner.max_retry_count": 1,
        "execution.sandbox": "none", "llm.api_base": "http://example.org/v1",
    }  # fmt: skip
    file = write_cases(tmp_path, talk("one", config=config, plugins={"p.py": "x = 1"}), talk("two"))
    (one, two), _ = read_cases(file)
    assert one.effects == [
        "the configuration key execution.sandbox",
        "the configuration key llm.api_base",
        "plugins of its own",
    ]
    assert two.effects == []


def test_a_case_of_the_original_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "auto_eval" / "cases" / "calc_mean"
    folder.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (folder / "calc.yaml").write_text(ORIGINAL)
    (folder / "demo.csv").write_text("a\n2\n3\n")
    ((case,), _) = read_cases(folder)
    assert (case.name, case.kind) == ("calc_mean", "auto_eval")
    assert [step.action for step in case.steps] == ["converse"]
    assert [(point.weight, bool(point.eval_code)) for point in case.points] == [
        (2, False),
        (1, True),
    ]
    assert [*case.files] == ["demo.csv"]
    assert case.dependencies == ("numpy",)
    assert case.app_dir == tmp_path / "project"
    assert case.command_folder == tmp_path / "auto_eval"
    assert case.effects == ["the code of a scoring point (eval_code)"]


def test_older_forms_of_the_original_are_read(tmp_path: Path) -> None:
    point = "scoring_points: [{score_point: a}]"
    for text, questions in (
        (f"user_query: hi\n{point}", ["hi"]),
        (f"eval_query: [{{user_query: one, {point}}}, {{user_query: two}}]", ["one", "two"]),
        (f"dialogues: [one, {{user_query: two}}]\n{point}", ["one", "two"]),
    ):
        (tmp_path / "old.yaml").write_text(text)
        ((case,), _) = read_cases(tmp_path / "old.yaml")
        assert [(step.action, step.text) for step in case.steps] == [("ask", q) for q in questions]
        assert len(case.points) == 1


def test_mistakes_in_the_form_of_the_original(tmp_path: Path) -> None:
    for text, problem in (
        ("user_query: hi", "scoring_points are missing"),
        ("user_query: hi\nscoring_pts: 1", "did you mean 'scoring_points'?"),
        ("eval_query: []\nscoring_points: [{score_point: a}]", "steps: Value should have at least"),
    ):
        (tmp_path / "bad.yaml").write_text(text)
        assert problem in problem_of(tmp_path / "bad.yaml")
        assert "?." not in problem_of(tmp_path / "bad.yaml")
