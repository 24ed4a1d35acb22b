"""Files that cannot be read for want of the server's own means."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taskweaver.server.errors import RequestRefused
from taskweaver.server.transfer import explained


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_file_is_not_called_missing_when_there_is_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(RequestRefused) as refused, no_descriptor_left(), explained("a.txt"):
        (tmp_path / "a.txt").open()
    assert (refused.value.status, refused.value.kind) == (503, "busy")
    assert refused.value.retry_after_s
