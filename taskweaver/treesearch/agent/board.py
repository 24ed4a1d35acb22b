"""The board of a run: what its attempts learnt, in the prompts for further ones.

A lesson stands until a later attempt finds it untrue.
"""

from __future__ import annotations

import math

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.samples import Difference
from taskweaver.treesearch.record.run_statistics import gain, gain_text, measured_ancestor
from taskweaver.utils.text import shorten_words

_MOST_CHARS = 1_500
_FINDINGS_CHARS = 260


def board(journal: Journal, node: Node, *, has_parent: bool = False) -> list[str]:
    """Return the lessons of other attempts, in their order; of the parent too if it `has_parent`.

    Where there is no room for all, those with a clear effect are kept, the largest before others,
    then the newest. A finding that the parent or an earlier attempt has too is left out, and so is
    one that was found untrue.
    """
    parent = journal[node.parent] if node.parent and not has_parent else None
    untrue = journal.refuted
    known = {_plain(parent.summary.get("findings", ""))} if parent else set()
    found: list[tuple[tuple[bool, float, int], int, str]] = []
    for other in journal.finished:
        findings = other.summary.get("findings", "")
        is_other = not (other.repeats or other is parent or other.id == node.id)
        if not is_other or other.id in untrue or not findings or _plain(findings) in known:
            continue
        known.add(_plain(findings))
        effect = gain(journal, other, measured_ancestor(journal, other)) if other.is_good else None
        size = abs(effect.gain) / (abs(other.value or 0.0) or 1.0) if effect else 0.0
        rank = (bool(effect and effect.is_clear), size, other.step)
        found.append((rank, other.step, _line(journal, other, effect)))
    kept, left = [], _MOST_CHARS
    for _, step, line in sorted(found, reverse=True):
        if len(line) < left:
            kept.append((step, line))
            left -= len(line) + 1
    return [line for _, line in sorted(kept)]


def _line(journal: Journal, node: Node, effect: Difference | None) -> str:
    name = f" {node.name}" if node.name else ""
    reached = journal.objective.text(node.value) if node.is_good else str(node.status)
    gained = f" ({gain_text(journal.objective, effect)})" if effect else ""
    if node.is_good and journal.rank(node.id) == -math.inf:
        gained = ", but it failed when it was repeated"
    findings = shorten_words(node.summary["findings"], _FINDINGS_CHARS)
    return f"{node.id} {node.kind}{name}: {reached}{gained}. {findings}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
