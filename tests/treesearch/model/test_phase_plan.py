"""Reading what a model proposed: patient about its form, strict about its content."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phase_plans import artifacts, in_c, with_file
from search_lab import ONE, Climber, lab, search
from sizes import examples

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.artifacts import (
    UnreadArtifacts,
    artifact_commands,
    artifact_files,
    read_artifacts,
)
from taskweaver.treesearch.model.node import Node
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
    tree = ["workspace/", "workspace/src//", "workspace_data/raw", "./src/m.c"]
    files = [{"path": "workspace/src/./m.c", "content": ""}]
    build = {"workdir": "/workspace/src/", "output": "/workspace/bin/x"}
    run = {"commands": ["x"], "expected_outputs": ["/workspace/working/d.npy", "./e"]}
    coding = {"workspace": {"tree": tree, "files": files}}
    data = artifacts(coding=coding, compile={"build_plan": build}, run=run)
    plan = PhasePlan.from_dict(data)
    assert plan.workspace.tree == ("src", "workspace_data/raw")
    assert plan.workspace.files[0].path == "src/m.c"
    assert (plan.build.workdir, plan.build.output) == ("src", "bin/x")
    assert plan.expected_outputs == ("working/d.npy", "e")


def test_python_is_not_compiled() -> None:
    given_ = {"build_plan": {"language": "Python", "compiler_selected": "gcc"}, "commands": ["gcc"]}
    plan = PhasePlan.from_dict(artifacts(compile=given_))
    assert plan.compile == ()
    assert plan.build.compiler_selected == ""


@pytest.mark.parametrize(
    ("value", "wanted"), [("0644", 0o644), ("0o755", 0o755), (600, 0o600), (None, 0o644), (0, 0)]
)
def test_modes(value: Any, wanted: int) -> None:
    assert PhasePlan.from_dict(with_file(mode=value)).workspace.files[0].mode == wanted


FILES, BUILD = "coding.workspace.files", "compile.build_plan"
PATHS = (
    ..., 1, " ", ".", "src/", "/etc/passwd", "src/../../x", "workspace/../x", "a\0b", "a\nb",
    "a\ud800", "x" * 300, "/".join("x" * 50), "working/result.json",
)  # fmt: skip
TEXTS = (..., ["a"], "\ud800", "x" * (MAX_FILE_BYTES + 1), "é" * (MAX_FILE_BYTES // 2 + 1))


def files_of(texts: Mapping[str, str]) -> dict[str, Any]:
    return artifacts(coding=[{"path": path, "content": text} for path, text in texts.items()])


def running(*commands: Any, **more: Any) -> dict[str, Any]:
    return artifacts(run={"commands": [*commands], **more})


BAD: Mapping[str, list[Any]] = {
    "phase_artifacts": [None, {}, 7, [artifacts(), artifacts()]],
    "download": [artifacts(download=3)],
    "coding.workspace": [artifacts(coding={"workspace": ["x"]})],
    FILES: [
        artifacts(coding={"workspace": {"files": 3}}),
        files_of({"a": "", "a/b": ""}),
        files_of({f"f{n}": "" for n in range(501)}),
        files_of({f"f{n}": "x" * MAX_FILE_BYTES for n in range(11)}),
    ],
    f"{FILES}[0].path": [with_file(path=path) for path in PATHS],
    f"{FILES}[0].content": [
        *(with_file(content=text) for text in TEXTS), with_file(content="é", encoding="ascii"),
    ],
    f"{FILES}[0].encoding": [with_file(encoding=name) for name in ("utf-99", "rot13", 8, "utf\0")],
    f"{FILES}[0].mode": [with_file(mode=mode) for mode in ("4755", "0777", "0999", True, -1)],
    f"{FILES}[1].path": [files_of({"a": "", "./a": ""})],
    "coding.workspace.tree[0]": [artifacts(coding={"workspace": {"tree": ["../../evil"]}})],
    "coding.workspace.root": [artifacts(coding={"workspace": {"root": 1}})],
    "run.commands[0][1]": [running(["a", 1])],
    "run.commands[0]": [running(bad) for bad in (1, " ", [], "a\0", "a\udc00", "x" * 200_000)],
    "download.commands": [artifacts(download={"commands": ["x"] * 201})],
    "run.commands": [running()],
    "run.expected_outputs[0]": [
        running("x", expected_outputs=[path]) for path in ("../x", "/etc/x", "/workspace")
    ],
    f"{BUILD}.language": [in_c("", language="cobol")],
    f"{BUILD}.compiler_selected": [
        in_c("", compiler_selected=name) for name in ("", "gcc; rm -rf /", "icc")
    ],
    f"{BUILD}.cflags": [in_c("", cflags="-DX='")],
    f"{BUILD}.workdir": [in_c("", workdir=path) for path in ("/workspace/../x", "/tmp")],
    "compile.commands": [
        artifacts(compile={"build_plan": {"language": "c", "compiler_selected": "gcc"}}),
    ],
}  # fmt: skip


def test_what_cannot_be_carried_out_is_refused_with_its_place() -> None:
    for place, data in ((place, data) for place, every in BAD.items() for data in every):
        with pytest.raises(PhasePlanError) as caught:
            PhasePlan.from_dict(data, compilers=["gcc", "g++"])
        assert caught.value.place == place
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.place, again.problem) == (place, caught.value.problem)


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


@pytest.mark.parametrize(
    "data", [{}, {"run": {"commands": ["a\0"]}}, {"phase_artifacts": 7}], ids=str
)
def test_what_cannot_be_carried_out_is_kept_as_it_is(data: dict[str, Any]) -> None:
    found = read_artifacts(data)
    assert isinstance(found, UnreadArtifacts)
    assert found.problem
    assert found.to_dict() == data
    assert artifact_files(found) == {}
    assert not any(artifact_commands(found).values())
    files = [{"path": "a.py", "content": "x = 1"}, {"path": "b.py"}, "c.py"]
    found = read_artifacts(data | {"coding": {"workspace": {"files": files}}})
    assert artifact_files(found) == {"a.py": "x = 1", "b.py": ""}


def test_a_log_with_plans_of_another_time_is_gone_on_with(tmp_path: Path) -> None:
    """Its best node cannot be run again with another seed, which says why."""
    project = lab(tmp_path)
    made = search(project, Climber(), **ONE)
    log = made.places.log
    kept: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in kept:
        if "node" in entry:
            again = Node.from_dict(entry["node"])
            assert json.dumps(again.to_dict()) == json.dumps(entry["node"])
    entries = [entry for entry in kept if entry["t"] in {"run", "stage", "node"}]
    for entry in entries:
        if "node" in entry and entry["node"]["artifacts"]:
            del entry["node"]["artifacts"]["run"]
    log.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    resumed = search(project, Climber(), resume=True, num_seeds=1)
    (seed,) = resumed.state.journal.repetitions("n0001")
    assert seed.error.kind == "PhasePlanError"
    assert "run.commands" in seed.error.message
