"""Consolidation: old events become a digest. Works without a model, and better with one.

The originals stay where they are: a search still finds them, and siblings and ancestors see them
as before. A descendant starts from the digest it inherits, so nothing is summarised twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from taskweaver.memory.branched.storage.database import Writer
from taskweaver.memory.branched.tiers.compression import Compressor, Prompts
from taskweaver.memory.branched.tiers.digests import RECALL
from taskweaver.memory.branched.tiers.event_rows import grouped
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import FOREVER, Branch, Digest, Event, TextModel
from taskweaver.memory.branched.values import whole
from taskweaver.utils.text import unfenced

DIGEST_CHARS = 1200
_FEWEST_TEXTS = 3
_FEWEST_CHARS = 1200
"""Texts and characters below which a model is not asked: lines of the events say as much."""


class _Old(NamedTuple):
    """The events that a digest covers, after another one, and all of both by kind."""

    before: Digest | None
    events: Sequence[Event]
    kinds: Counter[str]


class Consolidation:
    """Keeps the events in view within their window."""

    def __init__(self, tiers: Tiers, prompts: Prompts, llm: TextModel | None) -> None:
        self._database = tiers.database
        self._branches = tiers.branches
        self._recall = tiers.recall
        self._digests = tiers.digests
        self._config = tiers.config
        self._log = tiers.log
        self._prompts = prompts
        self._llm = llm

    def within_append(self, writer: Writer, branch_id: str) -> None:
        """Consolidate in the transaction of an append, unless a model is to be asked."""
        if self._llm is None and self._is_due(branch_id):
            branch = self._branches.writable(writer, branch_id)
            threshold = self._config.consolidation_threshold
            old = self._old(writer.connection, branch, self._kept, above=threshold)
            if old is not None:
                self._add(writer, branch, old, self._extract(old), self._kept)

    def after_append(self, branch_id: str) -> int:
        """Consolidate when the events in view exceed the threshold; return how many were."""
        if not self._is_due(branch_id):
            return 0
        return self.consolidate(branch_id, above=self._config.consolidation_threshold)

    def _is_due(self, branch_id: str) -> bool:
        return self._branches.countdown.is_due(branch_id) and self._config.auto_consolidate

    @property
    def _kept(self) -> int:
        return self._config.recall_max_events

    def consolidate(
        self,
        branch_id: str,
        *,
        keep: int | None = None,
        inherited_only: bool = False,
        above: int = 0,
    ) -> int:
        """Sum up all events in view but the newest, and return how many a new digest covers.

        Those to `keep` stay as they are, None keeps a window; `inherited_only` are ancestors'
        events. Nothing is done unless more events than `above` are in view.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        kept = self._kept if keep is None else whole("keep", keep)
        with self._database.snapshot() as connection:
            branch = self._branches.find(connection, branch_id)
            old = self._old(connection, branch, kept, inherited_only=inherited_only, above=above)
            path = self._branches.path(connection, branch)
        if old is None:
            return 0
        shared = {number for number, up_to in path[1:] if up_to == FOREVER}
        text = self._summary(branch, old, shared)
        left = None if inherited_only else kept

        def act(writer: Writer) -> bool:
            return self._add(writer, self._branches.writable(writer, branch_id), old, text, left)

        return len(old.events) if self._database.write(act) else 0

    def _old(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        kept: int,
        *,
        inherited_only: bool = False,
        above: int = 0,
    ) -> _Old | None:
        """Return the events that a new digest covers; see `consolidate`."""
        before = self._digests.newest(connection, branch, RECALL)
        rows = self._recall.beyond(connection, branch, before, inherited_only=inherited_only)
        events = grouped(connection, rows[kept:]) if len(rows) > above else []
        if not events:
            if above:
                self._branches.countdown.counted(branch, above + 1 - len(rows))
            return None
        kinds = Counter(self._digests.kinds(connection, before))
        for event in events:
            kinds[event.kind] += event.count
        return _Old(before, events, kinds)

    def _add(self, writer: Writer, branch: Branch, old: _Old, text: str, left: int | None) -> bool:
        """Add a digest of old events to a branch; return False if another one was faster.

        `left` is the number of events it does not cover; None if that is not known.
        """
        up_to, kinds = old.events[0].seq, dict(old.kinds)
        is_added = self._digests.add(writer, branch, old.before, up_to, kinds, text)
        if is_added and left is not None:
            threshold = self._config.consolidation_threshold
            self._branches.countdown.counted(branch, threshold + 1 - left)
        return is_added

    def _summary(self, branch: Branch, old: _Old, shared: Collection[int]) -> str:
        """Sum events up, with a model where it has enough to read.

        Events of `shared` branches, whose later writes all descendants see, are summed up there:
        here each of many descendants would ask the same. Their lines follow on the summary.
        """
        told = [event for event in old.events if event.kind not in self._config.plain_kinds]
        own = [event for event in told if event.branch not in shared]
        is_enough = len(own) >= _FEWEST_TEXTS and sum(len(e.text) for e in own) >= _FEWEST_CHARS
        if self._llm is not None and is_enough:
            try:
                answer = self._ask(self._llm, branch, old.before, own)
            except Exception as error:  # noqa: BLE001 - a model may raise anything; ours never fails
                self._log.problem("events were summed up without the model", error)
            else:
                lines = [_line(event) for event in told if event.branch in shared]
                return Compressor.cut("\n".join([answer, *lines]), DIGEST_CHARS)
        return self._extract(old)

    def _extract(self, old: _Old) -> str:
        """Sum events up without a model; kinds that prompts show otherwise are only counted."""
        told = [event for event in old.events if event.kind not in self._config.plain_kinds]
        return extract(old.before, told, old.kinds)

    def _ask(
        self, llm: TextModel, branch: Branch, before: Digest | None, old: Sequence[Event]
    ) -> str:
        entries = [{"kind": "earlier summary", "text": before.text}] if before else []
        entries += [{"kind": event.kind, "text": event.text} for event in reversed(old)]
        values = {
            "context": f"They are in view on the branch {branch.id!r}; it inherits some of them.",
            "max_chars": DIGEST_CHARS,
            "entries_json": json.dumps(entries, ensure_ascii=False, indent=1),
        }
        answer = unfenced(llm(self._prompts.fill("consolidation", values)))
        if not answer:
            raise ValueError("the answer is empty")
        return Compressor.cut(answer, DIGEST_CHARS)


def extract(before: Digest | None, old: Sequence[Event], kinds: Counter[str]) -> str:
    """Sum events up without a model: how many of which kind, and the newest lines.

    The events are the newest first. `kinds` counts all of them, and those of the digest they follow
    on, which has the same form.
    """
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    text = f"{sum(kinds.values())} events: {counts}"
    earlier = before.text.splitlines()[1:] if before else []
    for line in [*map(_line, old), *earlier]:
        if len(text) + len(line) + 1 > DIGEST_CHARS:
            break
        text += f"\n{line}"
    return Compressor.cut(text, DIGEST_CHARS)


def _line(event: Event) -> str:
    times = f" x{event.count}" if event.count > 1 else ""
    return f"- [{event.kind}{times}] {Compressor.cut(' '.join(event.text.split()), 160)}"
