"""Reading what a model proposed: patient about its form, strict about its content."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phase_plans import artifacts, in_c, with_file
from sizes import examples

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.phase_plan import MAX_FILE_BYTES, BuildPlan, PhasePlan

FORMS = [
    lambda plan: plan,
    lambda plan: {"phase_artifacts": plan, "constraints": {}},
    lambda plan: {"plan": plan},
    lambda plan: {"plan": {"phase_artifacts": plan}},
    lambda plan: [plan],
    lambda plan: [{"phase_artifacts": [plan]}],
    lambda plan: plan | {"something": "else"},
]


@pytest.mark.parametrize("form", FORMS)
def test_it_may_be_wrapped(form: Any) -> None:
    assert PhasePlan.from_dict(form(artifacts())) == PhasePlan.from_dict(artifacts())


def test_paths_come_in_their_shortest_form() -> None:
    plan = PhasePlan.from_dict(
        artifacts(
            coding={
                "workspace": {
                    "tree": ["workspace/", "workspace/src//", "workspace_data/raw", "./src/m.c"],
                    "files": [{"path": "workspace/src/./m.c", "content": ""}],
                }
            },
            compile={"build_plan": {"workdir": "/workspace/src/", "output": "/workspace/bin/x"}},
            run={"commands": ["x"], "expected_outputs": ["/workspace/working/d.npy", "./e"]},
        )
    )
    assert plan.workspace.tree == ("src", "workspace_data/raw")
    assert plan.workspace.files[0].path == "src/m.c"
    assert (plan.build.workdir, plan.build.output) == ("src", "bin/x")
    assert plan.expected_outputs == ("working/d.npy", "e")


def test_python_is_not_compiled() -> None:
    given_ = {
        "build_plan": {"language": "Python", "compiler_selected": "gcc"},
        "commands": ["gcc"],
    }
    plan = PhasePlan.from_dict(artifacts(compile=given_))
    assert plan.compile == ()
    assert plan.build.compiler_selected == ""


@pytest.mark.parametrize(
    ("value", "wanted"), [("0644", 0o644), ("0o755", 0o755), (600, 0o600), (None, 0o644), (0, 0)]
)
def test_modes(value: Any, wanted: int) -> None:
    assert PhasePlan.from_dict(with_file(mode=value)).workspace.files[0].mode == wanted


BAD: dict[str, tuple[Any, str]] = {
    "nothing": (None, "phase_artifacts"),
    "text": ("run it", "phase_artifacts"),
    "empty": ({}, "phase_artifacts"),
    "number": (7, "phase_artifacts"),
    "list of two": ([artifacts(), artifacts()], "phase_artifacts"),
    "section is a number": (artifacts(download=3), "download"),
    "coding is text": (artifacts(coding="x"), "coding"),
    "workspace is a list": (artifacts(coding={"workspace": ["x"]}), "coding.workspace"),
    "files is a number": (
        artifacts(coding={"workspace": {"files": 3}}),
        "coding.workspace.files",
    ),
    "file is null": (
        artifacts(coding={"workspace": {"files": [None, "x"]}}),
        "coding.workspace.files[",
    ),
    "no path": (with_file(path=...), "files[0].path"),
    "path is null": (with_file(path=None), "files[0].path"),
    "path is a number": (with_file(path=1), "files[0].path"),
    "path is empty": (with_file(path=" "), "files[0].path"),
    "path is the root": (with_file(path="."), "files[0].path"),
    "path is a folder": (with_file(path="src/"), "files[0].path"),
    "path is absolute": (with_file(path="/etc/passwd"), "files[0].path"),
    "path is absolute inside": (with_file(path="/workspace/x"), "files[0].path"),
    "path goes up": (with_file(path="../x"), "files[0].path"),
    "path goes up in the middle": (with_file(path="src/../../x"), "files[0].path"),
    "path goes up behind the root": (with_file(path="workspace/../x"), "files[0].path"),
    "path has a NUL": (with_file(path="a\0b"), "files[0].path"),
    "path has a newline": (with_file(path="a\nb"), "files[0].path"),
    "path is no UTF-8": (with_file(path="a\ud800"), "files[0].path"),
    "name is too long": (with_file(path="x" * 300), "files[0].path"),
    "path is too long": (with_file(path="/".join(["xxxxxxxx"] * 200)), "files[0].path"),
    "path is too deep": (with_file(path="/".join("x" * 50)), "files[0].path"),
    "path is in working": (with_file(path="working/result.json"), "files[0].path"),
    "no content": (with_file(content=...), "files[0].content"),
    "content is null": (with_file(content=None), "files[0].content"),
    "content is a list": (with_file(content=["a"]), "files[0].content"),
    "content is a number": (with_file(content=1), "files[0].content"),
    "content is half a pair": (with_file(content="\ud800"), "files[0].content"),
    "content does not fit": (with_file(content="é", encoding="ascii"), "files[0].content"),
    "content is too large": (with_file(content="x" * (MAX_FILE_BYTES + 1)), "files[0].content"),
    "content is too large in bytes": (
        with_file(content="é" * (MAX_FILE_BYTES // 2 + 1)),
        "files[0].content",
    ),
    "encoding is unknown": (with_file(encoding="utf-99"), "files[0].encoding"),
    "encoding is no text": (with_file(encoding="rot13"), "files[0].encoding"),
    "encoding is a number": (with_file(encoding=8), "files[0].encoding"),
    "encoding has a NUL": (with_file(encoding="utf\0"), "files[0].encoding"),
    "mode sets the user": (with_file(mode="4755"), "files[0].mode"),
    "mode sets the group": (with_file(mode=2644), "files[0].mode"),
    "mode is too wide": (with_file(mode="0777"), "files[0].mode"),
    "mode is not octal": (with_file(mode="0999"), "files[0].mode"),
    "mode is words": (with_file(mode="rw-r--r--"), "files[0].mode"),
    "mode is true": (with_file(mode=True), "files[0].mode"),
    "mode is below nothing": (with_file(mode=-1), "files[0].mode"),
    "mode is a list": (with_file(mode=[0o644]), "files[0].mode"),
    "two files of one name": (
        artifacts(coding=[{"path": "a", "content": ""}, {"path": "./a", "content": ""}]),
        "files[1].path",
    ),
    "a file below a file": (
        artifacts(coding=[{"path": "a", "content": ""}, {"path": "a/b", "content": ""}]),
        "coding.workspace.files",
    ),
    "too many files": (
        artifacts(coding=[{"path": f"f{n}", "content": ""} for n in range(501)]),
        "coding.workspace.files",
    ),
    "too much in all": (
        artifacts(coding=[{"path": f"f{n}", "content": "x" * MAX_FILE_BYTES} for n in range(11)]),
        "coding.workspace.files",
    ),
    "tree goes up": (
        artifacts(coding={"workspace": {"tree": ["../../evil"]}}),
        "coding.workspace.tree[0]",
    ),
    "tree is text": (artifacts(coding={"workspace": {"tree": "src"}}), "coding.workspace.tree"),
    "root is a number": (artifacts(coding={"workspace": {"root": 1}}), "coding.workspace.root"),
    "commands is an object": (artifacts(run={"commands": {"a": 1}}), "run.commands"),
    "command is a number": (artifacts(run={"commands": [1]}), "run.commands[0]"),
    "command is empty": (artifacts(run={"commands": ["ls", " "]}), "run.commands[1]"),
    "command has no words": (artifacts(run={"commands": [[]]}), "run.commands[0]"),
    "word is a number": (artifacts(run={"commands": [["a", 1]]}), "run.commands[0][1]"),
    "command has a NUL": (artifacts(run={"commands": ["a\0"]}), "run.commands[0]"),
    "command is no UTF-8": (artifacts(run={"commands": ["a\udc00"]}), "run.commands[0]"),
    "command is endless": (artifacts(run={"commands": ["x" * 200_000]}), "run.commands[0]"),
    "too many commands": (artifacts(download={"commands": ["x"] * 201}), "download.commands"),
    "nothing to run": (artifacts(run={"commands": []}), "run.commands"),
    "output goes up": (
        artifacts(run={"commands": ["x"], "expected_outputs": ["../x"]}),
        "run.expected_outputs[0]",
    ),
    "output is elsewhere": (
        artifacts(run={"commands": ["x"], "expected_outputs": ["/etc/x"]}),
        "run.expected_outputs[0]",
    ),
    "output is the root": (
        artifacts(run={"commands": ["x"], "expected_outputs": ["/workspace"]}),
        "run.expected_outputs[0]",
    ),
    "language is unknown": (in_c("", language="cobol"), "compile.build_plan.language"),
    "language is a number": (in_c("", language=1), "compile.build_plan.language"),
    "no compiler": (in_c("", compiler_selected=""), "compile.build_plan.compiler_selected"),
    "compiler is a command": (
        in_c("", compiler_selected="gcc; rm -rf /"),
        "compile.build_plan.compiler_selected",
    ),
    "compiler is not here": (
        in_c("", compiler_selected="icc"),
        "compile.build_plan.compiler_selected",
    ),
    "flags have half a quote": (in_c("", cflags="-DX='"), "compile.build_plan.cflags"),
    "flags are numbers": (in_c("", cflags=[1]), "compile.build_plan.cflags[0]"),
    "workdir goes up": (in_c("", workdir="/workspace/../x"), "compile.build_plan.workdir"),
    "workdir is elsewhere": (in_c("", workdir="/tmp"), "compile.build_plan.workdir"),
    "nothing to compile": (
        artifacts(compile={"build_plan": {"language": "c", "compiler_selected": "gcc"}}),
        "compile.commands",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_carried_out_is_refused_with_its_place(name: str) -> None:
    data, place = BAD[name]
    with pytest.raises(PhasePlanError) as caught:
        PhasePlan.from_dict(data, compilers=["gcc", "g++"])
    assert place in caught.value.place
    assert str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.place, again.problem) == (caught.value.place, caught.value.problem)


def test_placeholders() -> None:
    build = BuildPlan("c", "gcc", ("-O3", "-DX='a b'"), ("-lm",), output="bin/a b")
    text = "{compiler_selected} {cflags} m.c -o {output} {ldflags}"
    assert build.filled(text) == """gcc -O3 '-DX='"'"'a b'"'"'' m.c -o 'bin/a b' -lm"""
    words = ("{compiler_selected}", "{cflags}", "-o{output}", "{ldflags}", "{other}")
    assert build.filled(words) == ("gcc", "-O3", "-DX='a b'", "-obin/a b", "-lm", "{other}")


@pytest.mark.parametrize(
    "command",
    ["awk '{print $1}' f", "for i in a; do echo ${i}; done", "echo ${output} {0} {}", "{workdir}"],
)
def test_other_braces_stay(command: str) -> None:
    assert BuildPlan("c", "gcc", output="o").filled(command) == command


names = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/"), min_size=1)
paths = st.lists(names.map(lambda name: f"x{name[:40]}"), min_size=1, max_size=4).map("/".join)
commands = st.lists(
    st.one_of(
        st.text(min_size=1).map(lambda text: f"echo {text}"),
        st.lists(st.text(min_size=1), min_size=1),
    ),
    min_size=1,
    max_size=3,
)
files = st.fixed_dictionaries(
    {"path": paths, "content": st.text()},
    optional={"mode": st.sampled_from(["0600", "755", None]), "encoding": st.just("utf-8")},
)
plans = st.fixed_dictionaries(
    {"run": st.fixed_dictionaries({"commands": commands})},
    optional={
        "download": st.fixed_dictionaries({"commands": commands}, optional={"notes": st.text()}),
        "coding": st.fixed_dictionaries(
            {"workspace": st.fixed_dictionaries({"files": st.lists(files), "tree": st.just([])})}
        ),
        "compile": st.fixed_dictionaries(
            {"build_plan": st.fixed_dictionaries({"cflags": st.lists(st.text())})}
        ),
    },
)


@settings(max_examples=examples(30))
@given(plans)
def test_a_plan_survives_being_written(data: Any) -> None:
    try:
        plan = PhasePlan.from_dict(data)
    except PhasePlanError:
        return  # a NUL, a file below a file: told from the rest above
    written = plan.to_dict()
    assert PhasePlan.from_dict(json.loads(json.dumps(written))) == plan
    assert PhasePlan.from_dict(written).to_dict() == written


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                "phase_artifacts plan download coding compile run workspace files tree root path"
                " content mode encoding commands build_plan language cflags workdir output"
                " expected_outputs notes compiler_selected".split()
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=30,
)


@settings(max_examples=examples(50))
@given(anything)
def test_whatever_comes_is_a_plan_or_a_plan_error(data: Any) -> None:
    try:
        plan = PhasePlan.from_dict(data)
    except PhasePlanError:
        return
    assert PhasePlan.from_dict(plan.to_dict()) == plan


def test_a_compiler_that_is_not_named_is_the_first_program() -> None:
    data = in_c("", compiler_selected="")
    data["compile"]["commands"] = ["gcc -O2 main.c -o main"]
    assert PhasePlan.from_dict(data, {"gcc"}).build.compiler_selected == "gcc"
    data["compile"]["commands"] = ["make all"]
    with pytest.raises(PhasePlanError, match="must be the name of a compiler"):
        PhasePlan.from_dict(data, {"gcc"})
