"""A node's folder: written wholly or not at all, never through a link, taken over without trust."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.treesearch.errors import PhasePlanError, SearchError
from taskweaver.treesearch.execution import workspace
from taskweaver.treesearch.execution.workspace import (
    apply_workspace_plan,
    empty_working,
    list_files,
    read_inside,
    take_over,
)
from taskweaver.treesearch.model.phase_plan import PlannedFile, WorkspacePlan


def plan(*tree: str, **files: str) -> WorkspacePlan:
    return WorkspacePlan(
        "/workspace", tree, tuple(PlannedFile(path, text) for path, text in files.items())
    )


def snapshot(root: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() and not path.is_symlink() else None,
        )
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def test_files_and_folders_are_made(root: Path) -> None:
    code, secret = PlannedFile("src/a/b.c", "int x;\n"), PlannedFile("secret", "x", 0)
    script = PlannedFile("run.sh", "echo é\n", 0o755, "iso8859-1")
    wanted = WorkspacePlan("/workspace/", ("bin", "data/raw"), (code, script, secret))
    written = apply_workspace_plan(root, wanted)
    assert written == [root / "src/a/b.c", root / "run.sh", root / "secret"]
    assert (root / "bin").is_dir()
    assert (root / "data/raw").is_dir()
    assert (root / "run.sh").read_bytes() == b"echo \xe9\n"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in written]
    assert modes == [0o644, 0o755, 0o600]
    assert list_files(root) == ["run.sh", "secret", "src/a/b.c"]


REFUSED = [
    plan(ok="x", **{"out/f": "x"}), plan(ok="x", **{"out-file": "x"}), plan(**{"in/f": "x"}),
    plan(ok="x", dangling="x"), plan(ok="x", fifo="x"), plan(ok="x", folder="x"),
    plan(ok="x", **{"file/f": "x"}), plan("out"), plan("deep/out/x", ok="x"), plan("fifo/x"),
    *(plan(**{path: "x"}) for path in ("../x", "/x", "a//b", "a/../../x", "", "a\0")), plan("./a"),
]  # fmt: skip


def test_links_special_files_and_other_places_are_refused_and_nothing_is_written(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "out-file").symlink_to(outside / "new")
    (root / "in").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    (root / "folder").mkdir()
    (root / "file").write_text("there")
    (root / "deep").mkdir()
    (root / "deep" / "out").symlink_to("../../outside")
    before = snapshot(tmp_path)
    for wanted in REFUSED:
        with pytest.raises(PhasePlanError, match=r"coding\.workspace"):
            apply_workspace_plan(root, wanted)
        assert snapshot(tmp_path) == before
    (tmp_path / "short").symlink_to(root)
    with pytest.raises(SearchError, match="cannot be written"):
        apply_workspace_plan(tmp_path / "short", plan(f="x"))


names = st.sampled_from(["a", "b", "c", "dd", "workspace_data", "é"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(paths, st.text(max_size=5)), max_size=5, unique_by=lambda pair: pair[0]),
    st.lists(st.tuples(paths, st.sampled_from(["link", "file", "folder"])), max_size=4),
    st.lists(paths, max_size=3),
)
def test_any_plan_is_written_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[str, str]],
    there: list[tuple[str, str]],
    tree: list[str],
) -> None:
    base = tmp_path_factory.mktemp("any")
    root = base / "w"
    (base / "outside").mkdir()
    root.mkdir()
    for path, kind in there:
        place = root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                place.symlink_to(base / "outside")
            elif kind == "file":
                place.write_text("old")
            else:
                place.mkdir()
        except OSError:
            continue  # something else is there already
    before = snapshot(base)
    try:
        written = apply_workspace_plan(root, plan(*tree, **dict(files)))
    except SearchError:
        assert snapshot(base) == before
    else:
        assert [path.read_bytes().decode() for path in written] == [text for _, text in files]
        inside = {str(place) for place in before if place.startswith("outside")}
        assert {place for place in snapshot(base) if place.startswith("outside")} == inside
    assert not list(root.rglob(".plan-*"))


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "parent"
    files = {"src/m.c": "int x;", "working/result.json": "{}", "src/working/kept": "",
             "tool": "#!/bin/sh"}  # fmt: skip
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "tool").chmod(0o4755)
    (folder / "out").symlink_to("/etc")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(folder / "s"))
        yield folder


def test_a_child_begins_with_its_parents_files(parent: Path, tmp_path: Path) -> None:
    os.utime(parent / "tool", (1000, 1000))
    child = tmp_path / "nodes" / "child"
    child.parent.mkdir()
    take_over(parent, child)
    assert list_files(child) == ["src/m.c", "src/working/kept", "tool"]
    assert (child / "out").readlink() == Path("/etc")
    assert not (child / "fifo").exists()
    assert stat.S_IMODE((child / "tool").stat().st_mode) == 0o755
    assert (child / "tool").stat().st_mtime == 1000
    (child / "src" / "m.c").write_text("changed")
    assert (parent / "src" / "m.c").read_text() == "int x;"


def test_too_much_to_take_over(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    (parent / "large").write_bytes(bytes(range(256)) * 64)
    monkeypatch.setattr(workspace, "TAKE_OVER_BYTES", 10_000)
    with pytest.raises(SearchError, match="more than"):
        take_over(parent, child)
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]


def test_what_is_listed(parent: Path) -> None:
    assert list_files(parent, "working") == ["working/result.json"]
    assert list_files(parent, "none") == []
    assert list_files(parent, "out") == []
    assert list_files(parent / "none") == []
    (parent / "bad\udcff").write_text("")
    (parent / "bad\nname").write_text("")
    assert "bad" not in "".join(list_files(parent))


def test_a_run_begins_with_an_empty_folder(parent: Path, tmp_path: Path) -> None:
    deep = "/".join(["d"] * 1500)
    subprocess.run(["mkdir", "-p", f"working/{deep}"], cwd=parent, check=True)
    empty_working(parent)
    assert list((parent / "working").iterdir()) == []
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("")
    (parent / "working").rmdir()
    (parent / "working").symlink_to(outside)
    empty_working(parent)
    assert not (parent / "working").is_symlink()
    assert (outside / "f").exists()


def test_reading_inside(parent: Path, tmp_path: Path) -> None:
    assert read_inside(parent, "src/m.c", 100) == b"int x;"
    assert read_inside(parent, "src/none", 100) is None
    assert read_inside(parent, "none/m.c", 100) is None
    (parent / "l").symlink_to("src/m.c")
    for path, problem in [
        ("out/passwd", "plain"), ("l", "plain"), ("fifo", "plain"), ("src", "plain"),
        ("s", "plain"), ("src/m.c", "larger"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=problem):
            read_inside(parent, path, 3)
