"""A small memory to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memories import Clock, Open, put_empty

from taskweaver.memory.branched import MemoryConfig, MemoryManager


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_memory(tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Open a memory in a folder of its own; `llm`, `embedder` and configuration by name.

    Its file is a copy of one with nothing in it, unless `is_new`, which makes its tables.
    """
    opened: list[MemoryManager] = []

    def open_(
        name: str = "m.sqlite",
        *,
        llm: Any = None,
        embedder: Any = None,
        is_new: bool = False,
        **keys: Any,
    ) -> Any:
        config = MemoryConfig(**{"memory_log_enabled": False, **keys})
        if not is_new:
            put_empty(tmp_path / name, keys.get("use_fts", "auto"))
        memory = MemoryManager(tmp_path / name, config, llm=llm, embedder=embedder, clock=clock)
        opened.append(memory)
        return memory

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def open_rooted(open_memory: Open) -> Open:
    """Open a memory with a branch `root`, to which it is bound."""

    def open_(*name: str, **keys: Any) -> Any:
        made = open_memory(*name, **keys)
        made.bind(made.create_branch(None, branch_id="root"))
        return made

    return open_


@pytest.fixture
def memory(open_rooted: Open) -> MemoryManager:
    """A root with two children, `a` and `b`."""
    made = open_rooted()
    made.mem_core_set("goal", "a faster solver")
    made.fork("root", "a")
    made.fork("root", "b")
    return made
