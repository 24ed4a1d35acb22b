"""The board of a run: what its attempts learnt, in the prompts for further ones.

A lesson stands until a later attempt finds it untrue.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from heapq import nlargest

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.samples import Difference
from taskweaver.treesearch.record.run_statistics import (
    gain,
    gain_text,
    measured_ancestor,
    outcome,
)
from taskweaver.utils.text import shorten_words

_MOST_CHARS = 1_500
_FEWEST_CHARS = 40
FINDINGS_CHARS = 260
"""Most characters of the findings of an attempt on the board."""
_MOST_WEIGHED = 120


def board(journal: Journal, node: Node, *, has_parent: bool = False) -> list[str]:
    """Return the lessons of other attempts, in their order; of the parent too if it `has_parent`.

    Where there is no room for all, those with a clear effect are kept, the largest before others,
    then the newest. A finding that the parent or an earlier attempt has too is left out, and so is
    one that was found untrue.
    """
    parent = journal[node.parent] if node.parent and not has_parent else None
    known = {_plain(parent.summary.get("findings", ""))} if parent else set()
    found: list[tuple[tuple[bool, float, int], Node, Difference | None]] = []
    for other in _likely(journal, _standing(journal, {node.id, parent.id if parent else ""})):
        findings = _plain(other.summary["findings"])
        if findings in known:
            continue
        known.add(findings)
        effect = gain(journal, other, measured_ancestor(journal, other)) if other.is_good else None
        size = abs(effect.gain) / (abs(other.value or 0.0) or 1.0) if effect else 0.0
        found.append(((bool(effect and effect.is_clear), size, other.step), other, effect))
    kept, left = [], _MOST_CHARS
    for (*_, step), other, effect in sorted(found, key=lambda item: item[0], reverse=True):
        if left < _FEWEST_CHARS:
            break
        line = _line(journal, other, effect)
        if len(line) < left:
            kept.append((step, line))
            left -= len(line) + 1
    return [line for _, line in sorted(kept)]


def shown_ids(lines: Iterable[str]) -> set[str]:
    """Return the ids of the attempts whose findings lines of a board show."""
    return {line.partition(" ")[0] for line in lines}


def _standing(journal: Journal, left_out: Collection[str]) -> list[Node]:
    """Return the attempts with findings of their own that were not found untrue."""
    untrue = {*journal.refuted, *left_out}
    return [
        node
        for node in journal.finished
        if node.summary.get("findings") and node.id not in untrue and not node.repeats
    ]


def _likely(journal: Journal, nodes: list[Node]) -> list[Node]:
    """Return those of many attempts that can be on the board: a look at each would take long.

    Effects are clear where they are large, or where the program was repeated.
    """
    if len(nodes) <= _MOST_WEIGHED:
        return nodes

    def size(node: Node) -> float:
        before = journal[node.parent] if node.parent else node
        change = abs(journal.rank(node.id) - journal.rank(before.id))
        return change if math.isfinite(change) else 0.0

    weighed = {node.id for node in nlargest(_MOST_WEIGHED, nodes, key=size)}
    return [node for node in nodes if node.id in weighed or journal.repetitions(node.id)]


def _line(journal: Journal, node: Node, effect: Difference | None) -> str:
    reached = outcome(journal, node)
    gained = f" ({gain_text(journal.objective, effect)})" if effect else ""
    if node.is_good and journal.rank(node.id) == -math.inf:
        gained = ", but it failed when it was repeated"
    findings = shorten_words(node.summary["findings"], FINDINGS_CHARS)
    return f"{node.id} {node.title}: {reached}{gained}. {findings}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
