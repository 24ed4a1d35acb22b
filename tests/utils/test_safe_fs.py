"""File operations relative to open directories: what they refuse, and what they leave."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import DEEPEST, Folder, copy_in

RULES = CopyRules(1 << 20)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "inside" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "file-link").symlink_to(tmp_path / "outside" / "file")
    return Folder.at(tmp_path / "inside")


Operation = Callable[[Folder, str], object]
OPERATIONS: tuple[Operation, ...] = (
    lambda folder, path: folder.open_file(path),
    lambda folder, path: folder.create_file(path),
    lambda folder, path: folder.replacing(path).__enter__(),
    lambda folder, path: folder.make_folder(path),
    lambda folder, path: folder.make_folders(path),
    lambda folder, path: folder.remove(path),
    lambda folder, path: folder.make_link(path, "x"),
    lambda folder, path: folder.move(path, folder, "new"),
    lambda folder, path: folder.folder(path),
    lambda folder, path: folder.stat(path),
)


@pytest.mark.parametrize("path", ["../outside/x", "/etc/x", "a//b", "./x", "sub/../x", "a\0b"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_path_that_is_not_plainly_inside_is_refused(
    folder: Folder, operation: Operation, path: str
) -> None:
    with folder, pytest.raises(OSError, match="no path inside"):
        operation(folder, path)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_link_on_the_way_is_refused(folder: Folder, operation: Operation, tmp_path: Path) -> None:
    with folder, pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        operation(folder, "link/file")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]


def test_a_folder_is_opened_by_an_absolute_path_without_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with Folder.at(tmp_path / "real" / "sub") as found:
        assert found.names() == []
    for path in (tmp_path / "link", tmp_path / "link" / "sub", Path("real"), tmp_path / "none"):
        with pytest.raises(OSError, match=r".+"):
            Folder.at(path)


def test_only_ordinary_files_are_opened(folder: Folder, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(inside / "socket"))
    with folder:
        for name in ("pipe", "socket", "sub", "file-link", "none"):
            with pytest.raises(OSError, match=r".+"):
                folder.open_file(name)


def test_a_move_replaces_nothing(folder: Folder, tmp_path: Path) -> None:
    with folder:
        for name in ("one", "two"):
            with folder.create_file(name) as file:
                file.write(name.encode())
        with pytest.raises(FileExistsError):
            folder.move("one", folder, "two")
        with pytest.raises(FileExistsError):
            folder.move("one", folder, "link")
        folder.move("one", folder, "sub/three")
    assert (tmp_path / "inside" / "sub" / "three").read_text() == "one"
    assert (tmp_path / "inside" / "two").read_text() == "two"


def test_a_file_that_is_not_written_to_its_end_leaves_the_old_one(
    folder: Folder, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    (inside / "file").write_text("old")

    def write_half() -> None:
        with folder.replacing("file") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with folder, pytest.raises(ZeroDivisionError):
        write_half()
    assert (inside / "file").read_text() == "old"
    assert sorted(path.name for path in inside.iterdir()) == ["file", "file-link", "link", "sub"]


def test_a_tree_deeper_than_any_recursion_is_removed(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)
    with Folder.at(tmp_path) as folder:
        folder.remove("d")
        assert folder.names() == []


def test_folders_without_rights_and_links_are_removed_and_what_they_lead_to_stays(
    folder: Folder, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "sub" / "locked" / "deep").mkdir(parents=True)
    (inside / "sub" / "away").symlink_to(outside)
    (inside / "sub" / "locked" / "deep").chmod(0)
    (inside / "sub" / "locked").chmod(0o500)
    with folder:
        for name in ("sub", "link", "file-link", "none"):
            folder.remove(name)
        assert folder.names() == []
    assert (outside / "file").read_text() == "secret"


def test_a_copy_has_no_special_files_and_no_rights_of_others(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "sub").mkdir(parents=True)
    target.mkdir()
    (source / "run").write_text("x")
    (source / "run").chmod(0o6777)
    os.utime(source / "run", ns=(10**18, 10**18))
    (source / "sub" / "away").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    with Folder.at(source) as old, Folder.at(target) as new:
        copy_tree(old, new, RULES)
    assert sorted(path.name for path in target.rglob("*")) == ["away", "run", "sub"]
    facts = (target / "run").stat()
    assert (stat.S_IMODE(facts.st_mode), facts.st_mtime_ns) == (0o755, 10**18)
    assert (target / "sub" / "away").readlink() == Path("/etc")


@pytest.mark.parametrize(
    ("depth", "rules", "limit"),
    [
        (1, CopyRules(5 << 20), "5 MiB"), (1, CopyRules(1 << 30, 3), "3 files"),
        (DEEPEST + 2, CopyRules(1 << 30), f"{DEEPEST} levels"),
    ],
)  # fmt: skip
def test_a_copy_over_its_limits_is_refused(
    tmp_path: Path, depth: int, rules: CopyRules, limit: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.joinpath(*["d"] * depth).mkdir(parents=True)
    target.mkdir()
    for n in range(4):
        (source / str(n)).write_bytes(bytes(2 << 20))
    with (
        Folder.at(source) as old,
        Folder.at(target) as new,
        pytest.raises(CopyTooLarge, match=limit),
    ):
        copy_tree(old, new, rules)


NAMES = st.text("abcé. -", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})
TREES = st.recursive(
    st.binary(max_size=20), lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def _write(place: Path, content: object) -> None:
    if isinstance(content, bytes):
        place.write_bytes(content)
        return
    assert isinstance(content, dict)
    place.mkdir()
    for name, inner in content.items():
        _write(place / name, inner)


def _read(place: Path) -> object:
    if place.is_file():
        return place.read_bytes()
    return {path.name: _read(path) for path in place.iterdir()}


@given(tree=st.dictionaries(NAMES, TREES, max_size=4))
@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_copy_equals_its_source_and_both_are_removed(
    tmp_path: Path, tree: dict[str, object]
) -> None:
    _write(tmp_path / "source", tree)
    with Folder.at(tmp_path) as parent:
        parent.make_folder("target")
        with parent.folder("source") as source, parent.folder("target") as target:
            copy_tree(source, target, RULES)
            paths = [path for path, _ in target.files()]
        assert _read(tmp_path / "target") == tree
        assert all((tmp_path / "source" / path).is_file() for path in paths)
        parent.remove("source")
        parent.remove("target")
        assert parent.names() == []


def test_a_file_of_the_users_is_brought_in_once(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n")
    with folder:
        copy_in(tmp_path / "data.csv", folder, "file-link")
    assert (tmp_path / "outside" / "file").read_text() == "secret"
    assert (tmp_path / "inside" / "file-link").read_text() == "a,b\n"
