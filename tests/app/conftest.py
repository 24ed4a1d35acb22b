"""A project of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without a table, which would start a kernel."""
    return make_project(tmp_path / "project", has_table=False)
