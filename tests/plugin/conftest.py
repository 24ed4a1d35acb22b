"""A context of plugins, and the SQL plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shipped import make

from taskweaver.plugin import Plugin, temp_context


@pytest.fixture
def context() -> Iterator[Any]:
    with temp_context() as ctx:
        yield ctx


@pytest.fixture
def sql(context: Any) -> Plugin:
    return make("sql_query", context, max_rows=3, timeout_s=60)


@pytest.fixture
def writing(context: Any) -> Plugin:
    return make("sql_query", context, read_only=False)
