"""Which worker gets which file of tests: like files go to the same one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_TOGETHER = {"browser", "cli", "postgres", "sandbox", "search"}
"""Marks of files that share what a worker starts once, as a browser or a PostgreSQL server."""


class LikeFilesTogether(LoadFileScheduling):
    """Gives files with a mark of `_TOGETHER` to the worker that got the first of them.

    A worker takes slow files first: those of its own mark, of a mark that none has yet, of no such
    mark, and of another's mark. So each mark has one worker, until the slow files run short.
    """

    def __init__(
        self, config: pytest.Config, log: Producer | None, marks: Callable[[Path], list[str]]
    ) -> None:
        """Prepare it; `marks` returns the marks of a slow file, and none of a fast one."""
        super().__init__(config, log)
        self._marks = cache(lambda file: marks(config.rootpath / file))
        self._owners: dict[str, WorkerController] = {}

    def remove_node(self, node: WorkerController) -> str | None:
        """Let the marks of a worker that ends, or crashes, go to another one."""
        self._owners = {mark: owner for mark, owner in self._owners.items() if owner is not node}
        return super().remove_node(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the file that suits it best."""
        file = min(self.workqueue, key=lambda name: self._distance(node, name))
        for mark in _TOGETHER.intersection(self._marks(file)):
            self._owners.setdefault(mark, node)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _distance(self, node: WorkerController, file: str) -> int:
        """Return how little a file suits a worker; of equal files, it gets the first."""
        marks = self._marks(file)
        if not marks:
            return 4
        owners = {self._owners.get(mark) for mark in _TOGETHER.intersection(marks)}
        if not owners:
            return 2
        if node in owners:
            return 0
        return 1 if owners == {None} else 3
