"""Each operation in a folder of sandboxed code, beside a process that swaps files and folders."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from patience import PATIENCE_S
from races import SECRET, TRIES, state_of, swapping

from taskweaver.ces.kernel.artifacts import contained
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.process.process import KernelHome
from taskweaver.ces.template.template import Rendezvous
from taskweaver.errors import TaskWeaverError
from taskweaver.ext_role.image_reader.images import find_image
from taskweaver.session.storage.compare import files_of
from taskweaver.session.storage.workdir import add_files, clone_into
from taskweaver.treesearch.execution.workspace import (
    apply_workspace_plan,
    empty_working,
    list_files,
    read_inside,
    take_over,
)
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.record.places import remove
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder, copy_in

Operation = Callable[[Path, Path, int], Any]
"""Gets the folder that code writes, one that it does not, and the number of the try."""


def create(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside) as folder, folder.create_file(f"spot/deep/new-{n}") as file:
        file.write(b"x")


def replace(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside / "spot" / "deep") as folder, folder.replacing("file") as file:
        file.write(b"x")


def replace_a_link(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside) as folder, folder.replacing("file") as file:
        file.write(b"x")


def bring(inside: Path, clean: Path, n: int) -> None:
    (clean / "source").write_bytes(b"x")
    with Folder.at(inside) as folder:
        copy_in(clean / "source", folder, "spot/deep/file")


def read(inside: Path, clean: Path, n: int) -> bytes:
    with Folder.at(inside) as folder, folder.open_file("spot/deep/file") as file:
        return file.read()


def read_a_link(inside: Path, clean: Path, n: int) -> bytes:
    with Folder.at(inside) as folder, folder.open_file("file") as file:
        return file.read()


def copy(inside: Path, clean: Path, n: int) -> None:
    target = clean / f"copy-{n}"
    target.mkdir()
    with Folder.at(inside) as source, Folder.at(target) as folder:
        copy_tree(source, folder, CopyRules(1 << 20))


def clone(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside.parent) as session, Folder.at(inside / "spot") as source:
        clone_into(session, source, PurePosixPath("inside/spot"), "cwd", limit_bytes=1 << 20)


def make(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside) as folder:
        folder.make_folders(f"spot/made-{n}/more")


def move_in(inside: Path, clean: Path, n: int) -> None:
    (clean / f"move-{n}").write_bytes(b"x")
    with Folder.at(clean) as source, Folder.at(inside) as folder:
        source.move(f"move-{n}", folder, f"spot/deep/moved-{n}")


def remove_below(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside) as folder:
        folder.remove("spot/deep/file")


def remove_all(inside: Path, clean: Path, n: int) -> None:
    with Folder.at(inside) as folder:
        folder.remove("spot")
        folder.make_folders("spot/deep")


def look(inside: Path, clean: Path, n: int) -> object:
    with Folder.at(inside) as folder:
        return files_of(folder)


def add(inside: Path, clean: Path, n: int) -> None:
    add_files(inside / "spot", [{"name": "file", "content": "x"}])


def accept(inside: Path, clean: Path, n: int) -> object:
    found = contained(inside, "spot/file")
    assert found is None or found[1] < len(SECRET)
    return found


def start_kernel(inside: Path, clean: Path, n: int) -> None:
    with KernelHome(Homes(inside, clean)) as home, Rendezvous(home.place):
        assert home.file.name == "c.json"


def see(inside: Path, clean: Path, n: int) -> object:
    return find_image("spot/file", [inside])


def plan(inside: Path, clean: Path, n: int) -> None:
    file = {"path": "deep/file", "content": "x"}
    workspace = {"root": "/workspace", "tree": ["made"], "files": [file]}
    planned = PhasePlan.from_dict({"coding": {"workspace": workspace}})
    apply_workspace_plan(inside / "spot", planned.workspace)


def inherit(inside: Path, clean: Path, n: int) -> None:
    take_over(inside / "spot", clean / f"node-{n}")


def start_run(inside: Path, clean: Path, n: int) -> None:
    empty_working(inside / "spot")


def results(inside: Path, clean: Path, n: int) -> object:
    list_files(inside / "spot")
    return read_inside(inside, "spot/deep/file", 1 << 20)


def clear(inside: Path, clean: Path, n: int) -> None:
    remove(inside / "spot" / "deep")


OPERATIONS = (
    create, replace, replace_a_link, bring, read, read_a_link, copy, clone, make, move_in,
    remove_below, remove_all, look, add, accept, start_kernel, see, plan, inherit, start_run,
    results, clear,
)  # fmt: skip
EXPECTED = (OSError, ValueError, TaskWeaverError, CopyTooLarge)


def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Make a folder that code writes, one that it does not, and one it must not reach."""
    inside, clean, outside = (tmp_path / name for name in ("inside", "clean", "outside"))
    for folder in (inside / "spot" / "deep", clean, outside / "deep", tmp_path / "staging"):
        folder.mkdir(parents=True)
    for folder in (outside, outside / "deep"):
        (folder / "file").write_bytes(SECRET)
    for folder in (inside, inside / "spot", inside / "spot" / "deep"):
        (folder / "file").write_bytes(b"own")
    (inside / "away").symlink_to(outside)
    (inside / "away-file").symlink_to(outside / "file")
    (inside / "spot" / "away").symlink_to(outside / "deep")
    return inside, clean, outside


def swaps(inside: Path) -> tuple[tuple[Path, Path], ...]:
    names = (("spot", "away"), ("file", "away-file"), ("spot/deep", "spot/away"))
    return tuple((inside / one, inside / other) for one, other in names)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_nothing_outside_is_written_or_read(operation: Operation, tmp_path: Path) -> None:
    inside, clean, outside = places(tmp_path)
    before = state_of(outside)
    with swapping(*swaps(inside)):
        for n in range(TRIES):
            with suppress(*EXPECTED):
                found = operation(inside, clean, n)
                assert SECRET.decode() not in repr(found)
    assert state_of(outside) == before
    copies = [path for path in clean.rglob("file") if path.resolve() == path and path.is_file()]
    assert [path for path in copies if path.read_bytes() == SECRET] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("by_path", [
    lambda inside, n: (inside / "spot" / "deep" / f"new-{n}").write_bytes(b"x"),
    lambda inside, n: shutil.copy(inside / "file", inside / "spot" / "deep" / f"new-{n}"),
])  # fmt: skip
def test_the_race_is_won_against_operations_by_path(
    by_path: Callable[[Path, int], object], tmp_path: Path
) -> None:
    inside, _, outside = places(tmp_path)
    before, deadline, n = state_of(outside), time.monotonic() + PATIENCE_S, 0
    with swapping(*swaps(inside)):
        while state_of(outside) == before and time.monotonic() < deadline:
            n += 1
            with suppress(*EXPECTED):
                by_path(inside, n)
    assert state_of(outside) != before
