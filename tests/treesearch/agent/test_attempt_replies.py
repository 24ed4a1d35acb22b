"""Attempts as models write them: files, edits and commands in fences."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples, some

from taskweaver.treesearch.agent.attempt_replies import Basis, Proposal, read_phases, read_script
from taskweaver.treesearch.agent.edits import Edit, edited, edits_in
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.artifacts import artifact_commands, artifact_files, read_artifacts
from taskweaver.treesearch.model.phase_plan import PhasePlan

SOURCE = "int main() {\n    for (int i = 0; i < 9; i++) {\n        go(i);\n    }\n}\n"
COMMANDS = {
    "compile": {"build_plan": {"language": "other"}, "commands": ["cc -o main main.c"]},
    "run": {"commands": ["./main"]},
}
NEW = Basis({}, None, ("gcc",))
PARENT = PhasePlan.from_dict(
    {"coding": {"workspace": {"files": [{"path": "main.c", "content": SOURCE}]}}, **COMMANDS}
)
OLD = Basis({"main.c": SOURCE, "twice.c": "go();\ngo();\n"}, PARENT, ("gcc",))
RUN = '```commands\n{"run": {"commands": ["sh a.sh"]}}\n```'
EDIT = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"


def reply(*fences: str, words: str = "Go faster. It should help.") -> str:
    return "\n\n".join([words, *fences])


def fence(info: str, body: str) -> str:
    return f"```{info}\n{body.rstrip()}\n```"


def files_of(found: Proposal) -> dict[str, str]:
    return artifact_files(found.artifacts)


@pytest.mark.parametrize(
    "file",
    [
        fence("file src/main.c", SOURCE),
        fence("file /workspace/src/main.c", SOURCE),
        fence("file ./src/main.c", SOURCE),
        fence("c src/main.c", SOURCE),
        fence("c:src/main.c", SOURCE),
        fence("c title=src/main.c", SOURCE),
        "**`src/main.c`**\n" + fence("c", SOURCE),
        "### src/main.c\n\n" + fence("c", SOURCE),
        "File: src/main.c\n" + fence("", SOURCE),
        "````file src/main.c\n" + SOURCE + "````",
        "~~~file src/main.c\n" + SOURCE + "~~~",
    ],
)
@pytest.mark.parametrize("word", ["commands", "json"])
def test_a_file_is_named_in_many_ways(file: str, word: str) -> None:
    text = reply(file, fence(word, json.dumps({"name": "o=3", **COMMANDS})))
    found = read_phases(text, NEW)
    assert files_of(found) == {"src/main.c": SOURCE}
    assert (found.plan, found.name) == ("Go faster. It should help.", "o=3")
    assert artifact_commands(found.artifacts)["run"] == ["./main"]


def test_parts_that_are_left_out_are_the_parents() -> None:
    edit = EDIT.format("        go(i);", "        go(i + 1);")
    found = read_phases(reply(fence("edit main.c", edit)), OLD)
    assert files_of(found) == {"main.c": SOURCE.replace("go(i)", "go(i + 1)")}
    assert artifact_commands(found.artifacts) == artifact_commands(PARENT)
    text = reply(fence("commands", '{"name": "n=2", "run": {"commands": ["./main 2"]}}'))
    found = read_phases(text, OLD)
    assert (files_of(found), found.name) == ({}, "n=2")
    assert artifact_commands(found.artifacts)["run"] == ["./main 2"]


def test_whole_replies_in_json_are_read() -> None:
    section = {"workspace": {"files": [{"path": "a.sh", "content": "```\nx\n```\n"}]}}
    data = {"plan": "p", "name": "n", "phase_artifacts": {"coding": section, **COMMANDS}}
    for text in (json.dumps(data), fence("json", json.dumps(data)), f"So:\n{json.dumps(data)}"):
        found = read_phases(text, NEW)
        assert files_of(found) == {"a.sh": "```\nx\n```\n"}
        assert found.plan == "p"


@pytest.mark.parametrize(
    ("file", "search", "problem"),
    [
        ("other.c", "a", "no such file to edit"),
        ("twice.c", "go();", "at lines 1, 2; add lines"),
        ("main.c", "goo(i);", "nearest lines there are"),
        ("main.c", "i", "not in it"),  # part of a line, more than once
        ("main.c", "", "needs lines to find"),
    ],
)
def test_an_edit_that_does_not_fit_names_the_place(file: str, search: str, problem: str) -> None:
    with pytest.raises(PhasePlanError, match=problem):
        read_phases(reply(fence(f"edit {file}", EDIT.format(search, "x"))), OLD)


def test_a_text_that_stands_once_need_not_be_whole_lines() -> None:
    for search, replace, expected in (
        ("i < 9", "i < 8", SOURCE.replace("9", "8")),
        ("i++) {\n        go(i);", "i += 2) {\n        go(i);", SOURCE.replace("i++", "i += 2")),
        ("  i < 9; ", "i < 7;", SOURCE.replace("i < 9", "i < 7")),
    ):
        found = read_phases(reply(fence("edit main.c", EDIT.format(search, replace))), OLD)
        assert files_of(found)["main.c"] == expected


@pytest.mark.parametrize("commands", ['```commands\n{"run": {"commands": []}}\n```', ""])
def test_attempt_that_an_evaluator_measures_may_run_nothing(commands: str) -> None:
    text = reply(fence("file a.py", "x = 1"), commands)
    with pytest.raises(PhasePlanError, match=r"run\.commands"):
        read_phases(text, NEW)
    found = read_phases(text, Basis({}, None, ("gcc",), is_measured=True))
    assert artifact_commands(found.artifacts)["run"] == []
    assert read_artifacts(found.artifacts.to_dict()) == found.artifacts


def test_an_edit_keeps_the_indentation_that_the_file_has() -> None:
    text = edited("main.c", SOURCE, [Edit("go(i);\n", "stop(i);\n  go(i);\n")])
    assert text == SOURCE.replace("        go(i);\n", "        stop(i);\n          go(i);\n")


def test_a_script_is_read_in_each_form() -> None:
    fences = [fence(info, "x = 1") for info in ("python", "py", "file experiment.py")]
    for text in (*fences, json.dumps({"plan": "p", "code": "x = 1\n"})):
        assert files_of(read_script(f"p\n\n{text}", NEW)) == {"experiment.py": "x = 1\n"}
    for text in ("", "I cannot.", fence("python", ""), "{}"):
        with pytest.raises((PhasePlanError, ValueError)):
            read_script(text, NEW)


LINES = st.lists(
    st.from_regex(r"[a-z ]{1,6}\.", fullmatch=True), min_size=1, max_size=8, unique=True
)


@settings(max_examples=examples(len(some(range(100), 40))))
@given(LINES, st.data())
def test_an_edit_replaces_its_lines_and_no_others(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    new = data.draw(st.lists(st.sampled_from(["new", "  newer"]), max_size=3))
    search, replace = ("".join(f"{line}\n" for line in part) for part in (lines[first:last], new))
    block = f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"
    text = "".join(f"{line}\n" for line in lines)
    expected = "".join(f"{line}\n" for line in [*lines[:first], *new, *lines[last:]])
    assert edited("f", text, edits_in(block)) == expected


@settings(max_examples=examples(200))
@given(st.text(alphabet='`~ \n<>=SEARCHREPLACEfile.c{}:"x'))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_phases, read_script):
        try:
            assert read(text, OLD).artifacts is not None
        except (PhasePlanError, ValueError):
            continue


def test_the_plan_begins_after_its_label() -> None:
    plan = "Plan the cuts first. A planned step follows."
    for words in (
        "## Plan\n{}", "Here is my attempt.\n\n**Plan**: {}", "Sure.\n\n**Plan:** {}", "Plan: {}",
        "plan\n{}", "## Plan: {}", "{}",
    ):  # fmt: skip
        found = read_phases(reply(fence("file a.sh", "ls"), RUN, words=words.format(plan)), NEW)
        assert found.plan == plan


def test_commands_in_no_fence_and_a_fence_left_open_are_told() -> None:
    shell = "### Commands\n```bash\npython main.py\n```"
    with pytest.raises(PhasePlanError, match="in a fence ```commands"):
        read_phases(reply(fence("file main.py", "pass"), shell), NEW)
    text = (
        "A tree of depth 3.\n\n```file main.py\nprint(1)\n```file smoke.py\nprint(2)\n```\n\n"
        '```commands\n{"run": {"commands": ["python main.py"]}}\n```\n'
    )
    with pytest.raises(PhasePlanError, match=r"open where ```file smoke\.py begins"):
        read_phases(text, NEW)
    four = text.replace("```file main.py", "````file main.py").replace(
        "print(2)\n```\n", "print(2)\n```\n````\n"
    )
    assert list(artifact_files(read_phases(four, NEW).artifacts)) == ["main.py"]
