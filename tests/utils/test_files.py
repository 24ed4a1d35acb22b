"""Reading and writing files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskweaver.utils import files


def test_yaml_comes_back_as_it_was_written(tmp_path: Path) -> None:
    data = {"b": "Grüße 😀\nzweite Zeile\n", "a": [1, None, True, "yes", "1"], "c": {"d": 1.5}}
    path = tmp_path / "new" / "x.yaml"
    files.write_yaml(path, data)
    assert files.read_yaml(path) == data
    assert list(files.read_yaml(path)) == ["b", "a", "c"]
    assert files.dump_yaml({"t": "Grüße\ntwo"}) == "t: |-\n  Grüße\n  two\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [1", "not YAML"), (b"a: 1\n b: 2", "line 2"), (b"\xff\xfe\xfa", "not UTF-8"),
        (b"a: !!python/object/apply:os.getcwd []", "not YAML"), (b"a: \x07", "not YAML"),
        (b"a: !!bool maybe", "does not fit"), (b"a: !!timestamp never", "does not fit"),
        (b"a: 2024-99-99", "does not fit"), (b"x" * 101, "larger than 100 bytes"),
    ],
)  # fmt: skip
def test_bad_yaml_is_an_error_that_names_the_file(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=problem) as caught:
        files.read_yaml(path, max_bytes=100)
    assert "bad.yaml" in str(caught.value)


@pytest.mark.parametrize("content", ["{", '{"a": 1}\nx', "[" * 200_000])
def test_bad_json_is_an_error_that_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"bad.json"):
        files.read_json(path)


@pytest.mark.parametrize("write", [files.write_yaml, files.write_json])
def test_what_is_not_plain_data_leaves_the_old_file(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(ValueError, match="cannot be written"):
        write(path, {"a": object()})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        files.write_text(target, "x")
    assert list(tmp_path.iterdir()) == [target]


def test_a_private_file_is_its_owners_alone_also_where_another_was(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    files.write_yaml(path, {"a": 1})
    path.chmod(0o644)
    files.write_yaml(path, {"a": 2}, mode=files.PRIVATE)
    assert path.stat().st_mode & 0o777 == 0o600
    files.write_text(path, "a: new \ud83d")
    assert path.stat().st_mode & 0o777 == 0o600, "a replaced file keeps its permissions"
    files.create_private(path)
    assert files.read_yaml(path) == {"a": "new ?"}
    files.create_private(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_a_path_inside_a_folder_follows_links_that_stay_there(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "loop").symlink_to("loop")
    (tmp_path / "in" / "out").symlink_to(tmp_path)
    (tmp_path / "in" / "own").symlink_to("new")
    assert files.inside(tmp_path / "in", "own/x") == tmp_path.resolve() / "in" / "new" / "x"
    with pytest.raises(ValueError, match="leads out"):
        files.inside(tmp_path / "in", "out/x")
    for name in ("loop", "loop/../out"):
        with pytest.raises(ValueError, match="loop of links"):
            files.inside(tmp_path / "in", name)
