"""The span of a node: a trace of its own, linked to that of the node's parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskweaver.logging.spans import Value, workflow
from taskweaver.logging.tracing import Tracing
from taskweaver.treesearch.model.node import Node

NODE = "search_node"
"""Name of the workflow that the work on a node is."""


class NodeSpans:
    """The spans of a run's nodes. A run may last for days: one trace could not be looked at."""

    def __init__(self, tracing: Tracing, run: str) -> None:
        """Prepare to record the spans of a run, by its name."""
        self._tracing = tracing
        self._run = run
        self._contexts: dict[str, Any] = {}

    def run(self, node: Node, work: Callable[[], Node]) -> Node:
        """Record the work on a node that begins; return and raise as that does."""
        ids: dict[str, Value] = {
            "taskweaver.search.run": self._run,
            "taskweaver.search.node": node.id,
            "taskweaver.search.kind": node.kind.value,
            "taskweaver.search.stage": node.stage,
            "taskweaver.search.attempt": node.attempt,
        }
        if node.parent:
            ids["taskweaver.search.parent"] = node.parent
        parent = self._contexts.get(node.parent or "")
        links = [parent] if parent is not None else []
        operation = workflow(NODE, ids, links=links, is_root=True)
        with self._tracing.running(operation) as span:
            if span.context is not None:
                self._contexts[node.id] = span.context
            done = work()
            span.set("taskweaver.search.status", done.status.value)
            if done.metric is not None and done.metric.value is not None:
                span.set("taskweaver.search.metric", done.metric.value)
            if done.error is not None:
                span.fail(done.error.kind)
            return done
