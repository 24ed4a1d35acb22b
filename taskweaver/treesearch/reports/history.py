"""Findings of earlier runs of the same idea, for Phase 0 of the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import fold, read_log
from taskweaver.utils.text import shorten_words

_MOST_RUNS = 3
_MOST_ERRORS = 5
_TEXT_CHARS = 400


def earlier_runs(places: RunPlaces, idea: Idea) -> tuple[Mapping[str, Any], str]:
    """Return the findings of the newest earlier runs of an idea, as data and in words.

    Runs whose idea has the same title count.
    """
    found = []
    others = [path for path in places.folder.parent.glob("*/journal.jsonl") if path != places.log]
    for log in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            entries = read_log(log)
            state = fold(entries)
        except SearchError:
            continue  # a run that cannot be read teaches nothing
        if state is not None and entries[0].get("title") == idea.title:
            found.append(_summary(log.parent.name, state.journal))
        if len(found) == _MOST_RUNS:
            break
    return {"runs": found}, "\n\n".join(_words(run) for run in found)


def _summary(name: str, journal: Journal) -> dict[str, Any]:
    best = journal.best()
    errors = [
        f"{node.kind}: {node.error.kind}: {shorten_words(node.error.message, _TEXT_CHARS)}"
        for node in journal.buggy
        if node.error is not None
    ]
    return {
        "run": name,
        "nodes": len(journal),
        "best": _told(best, journal) if best else None,
        "path": [_told(node, journal) for node in journal.path(best.id)] if best else [],
        "errors": list(dict.fromkeys(errors))[:_MOST_ERRORS],
    }


def _told(node: Node, journal: Journal) -> dict[str, Any]:
    return {
        "kind": node.kind.value,
        "change": node.name,
        "metric": journal.objective.text(node.value),
        "plan": shorten_words(node.plan, _TEXT_CHARS),
    }


def _words(run: Mapping[str, Any]) -> str:
    lines = [f"Run {run['run']}, {run['nodes']} nodes. Ids of nodes here are those of that run."]
    lines += [
        f"- {step['kind']} {step['change']}: {step['metric']}. {step['plan']}"
        for step in run["path"]
    ]
    lines += [f"- failed: {error}" for error in run["errors"]]
    return "\n".join(lines)
