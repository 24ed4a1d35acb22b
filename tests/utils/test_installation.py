"""The key of an installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweaver.utils.system import installation


def test_an_existing_key_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = installation.seal(tmp_path)
    installation._key.cache_clear()  # as a process that starts now

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert installation.seal(tmp_path) == before
    assert [path.name for path in (tmp_path / "taskweaver").iterdir()] == ["installation.key"]
