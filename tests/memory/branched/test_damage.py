"""A damaged file is refused with an error of the memory's own, at opening and by every call.

`MUTATIONS` sets how many damaged files of each kind are tried; `make long` tries 500.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from damage import DAMAGES, QUIET, make_memory, untyped_errors

from taskweaver.memory.branched import MemoryManager

TRIES = int(os.environ.get("MUTATIONS", "10"))
SURELY_FOUND = ("noise_in_texts", "rows_gone")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound memory and an export of another."""
    folder = tmp_path_factory.mktemp("good")
    make_memory(folder / "m.sqlite")
    with MemoryManager(folder / "other.sqlite", QUIET) as other:
        other.create_branch(None, branch_id="imported")
        other.write_event("imported", "k", "x")
        other.export(folder / "good.jsonl")
    return folder


def copied(good: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("m.sqlite", "good.jsonl"):
        shutil.copy(good / name, folder)
    return folder / "m.sqlite"


def test_every_call_ends_well_on_a_sound_file(good: Path, tmp_path: Path) -> None:
    assert untyped_errors(copied(good, tmp_path / "sound")) == ([], False)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_never_an_untyped_error(good: Path, tmp_path: Path, kind: str) -> None:
    for seed in range(TRIES):
        path = copied(good, tmp_path / str(seed))
        DAMAGES[kind](path, random.Random(f"{kind} {seed}"))
        is_changed = path.read_bytes() != (good / "m.sqlite").read_bytes()
        untyped, is_found = untyped_errors(path)
        assert not untyped, f"{kind} {seed}"
        if kind in SURELY_FOUND and is_changed:
            assert is_found, f"{kind} {seed}"
        shutil.rmtree(path.parent)


def test_a_sound_file_passes_errors_of_the_caller_on(good: Path, tmp_path: Path) -> None:
    with MemoryManager(copied(good, tmp_path / "sound"), QUIET) as memory:
        with pytest.raises(ZeroDivisionError), memory._parts.database.snapshot():
            raise ZeroDivisionError
        with pytest.raises(LookupError):
            memory._parts.database.write(lambda _writer: {}["missing"])


def test_a_backup_keeps_a_log_when_it_is_opened(good: Path, tmp_path: Path) -> None:
    with MemoryManager(copied(good, tmp_path / "copy"), QUIET) as memory:
        memory.backup(tmp_path / "backup.sqlite")
    with MemoryManager(tmp_path / "backup.sqlite", QUIET) as memory:
        reading = memory._parts.database.reading
        assert reading.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        reading.execute("BEGIN")
        assert reading.execute("SELECT count(*) FROM events").fetchone()
        memory.mem_core_set("while another reads", "1", branch_id="run")
        reading.execute("COMMIT")
