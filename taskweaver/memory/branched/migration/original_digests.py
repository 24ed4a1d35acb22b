"""Summaries and exclusions of the original, which become digests.

The original showed a branch its own summaries of inherited events, and hid the events it had
excluded; branches below saw neither. So a branch gets one digest that holds all its summaries. It
covers the oldest events in view as far as all of them are excluded; an excluded event between
others is hidden by a row of its own. These rows stand after every other row, and after the forks
of the branches of the original, so that no branch that was there inherits them.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from taskweaver.memory.branched.migration.migration_report import MigrationReport
from taskweaver.memory.branched.migration.original_tree import NameOf, id_of, text_of
from taskweaver.utils.sqlite_files import insert_row


@dataclass(slots=True)
class _Summaries:
    """The summaries of one branch."""

    texts: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    newest: float = 0.0

    @property
    def text(self) -> str:
        """The digest: how many events of each kind, then the summaries, newest first."""
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        lines = (f"- [inherited_summary] {text}" for text in self.texts)
        return "\n".join([f"{self.kinds.total()} events: {counts}", *lines])


class OriginalDigests:
    """Digests and exclusions of one database of the original."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        numbers: NameOf,
        events: Mapping[int, tuple[int, int]],
        report: MigrationReport,
    ) -> None:
        """Prepare the copy, in a transaction; the branches and events are copied.

        By ids in the original, `numbers` has those of branches now, `events` number and branch.
        """
        self._connection = connection
        self._numbers = numbers
        self._events = events
        self._report = report
        self._parents: dict[int, int | None] = dict(
            connection.execute("SELECT id, parent_id FROM branches")
        )
        self._by_branch: dict[int, list[int]] = {}
        for seq, branch in events.values():
            insort(self._by_branch.setdefault(branch, []), seq)

    def copy(self, summaries: str | None, exclusions: str | None, seq: int) -> int:
        """Copy both tables, those that exist; return the newest number in use, which was `seq`."""
        hidden = {} if exclusions is None else self._read_exclusions(exclusions)
        digests = {} if summaries is None else self._read_summaries(summaries)
        for branch, found in digests.items():
            covered = self._covered(branch, hidden.get(branch, set()))
            seq += 1
            row = {
                "seq": seq,
                "branch_id": branch,
                "subject": "recall",
                "up_to_seq": covered,
                "count": found.kinds.total(),
                "kinds": json.dumps(found.kinds, ensure_ascii=False),
                "text": found.text,
                "created_at": found.newest,
            }
            insert_row(self._connection, "digests", row)
            under = {event for event in hidden.get(branch, ()) if event <= covered}
            self._report.take("inherited_exclusions", "an event under a digest", len(under))
            hidden[branch] = hidden.get(branch, set()) - under
        for branch, event in ((b, event) for b, events in hidden.items() for event in events):
            seq += 1
            row = {"seq": seq, "branch_id": branch, "event_seq": event}
            insert_row(self._connection, "exclusions", row)
            self._report.take("inherited_exclusions", "an event hidden by a row of its own")
        return seq

    def _read_exclusions(self, table: str) -> dict[int, set[int]]:
        """Return the numbers of the excluded events by branch."""
        found: dict[int, set[int]] = {}
        rows = self._connection.execute(f"SELECT branch_id, excluded_event_id FROM {table}")
        for raw, event in rows:
            branch = self._numbers.get(id_of(raw))
            name = f"{text_of(raw)}/{event}"
            if branch is None:
                self._report.leave("inherited_exclusions", name, "its branch does not exist")
            elif event not in self._events:
                self._report.leave("inherited_exclusions", name, "its event does not exist")
            elif self._events[event][0] in found.setdefault(branch, set()):
                self._report.leave("inherited_exclusions", name, "another row says the same")
            else:
                found[branch].add(self._events[event][0])
        return found

    def _read_summaries(self, table: str) -> dict[int, _Summaries]:
        """Return the summaries by branch, each branch's newest first, as the original did."""
        found: dict[int, _Summaries] = {}
        rows = self._connection.execute(
            f"SELECT branch_id, summary_text, summarized_event_ids, kind, created_at FROM {table}"
            " ORDER BY created_at DESC, id"
        )
        for raw, text, events, kind, created in rows:
            branch = found.setdefault(self._numbers[id_of(raw)], _Summaries())
            branch.texts.append(text_of(text))
            branch.kinds[text_of(kind) or "event"] += _count(events)
            branch.newest = max(branch.newest, float(created or 0))
            self._report.take("inherited_summaries", "a part of its branch's digest")
        return found

    def _covered(self, branch: int, hidden: set[int]) -> int:
        """Return the newest event in view up to which every one is hidden; 0 for none."""
        covered = 0
        for seq in heapq.merge(*self._lines(branch)):
            if seq not in hidden:
                break
            covered = seq
        return covered

    def _lines(self, branch: int) -> Iterator[list[int]]:
        place: int | None = branch
        while place is not None:
            yield self._by_branch.get(place, [])
            place = self._parents[place]


def _count(events: object) -> int:
    """Return the number of events that a summary names."""
    try:
        ids = json.loads(text_of(events) or "[]")
    except ValueError:
        return 0
    return len(ids) if isinstance(ids, list) else 0
