"""The branched memory, the slow way: every question looks at every row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Row:
    """One row of the memory; `expires` is a time, `seq` is a number of the one order."""

    seq: int
    branch: str
    tier: str
    key: str | int
    value: str | None
    written: float
    expires: float | None = None


@dataclass
class Line:
    """A branch: its parent, and the newest row of the parent that it sees."""

    parent: str | None
    fork_seq: int
    live: bool


class Model:
    """Rows and branches, and the views of the branches at any row and time."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.lines: dict[str, Line] = {}

    def below(self, branch: str) -> set[str]:
        """Return a branch and its descendants."""
        found = {branch}
        for name, line in self.lines.items():  # parents come first
            if line.parent in found:
                found.add(name)
        return found

    def drop(self, names: set[str]) -> None:
        """Remove branches with all their rows."""
        for name in names:
            del self.lines[name]
        self.rows = [row for row in self.rows if row.branch not in names]

    def erase(self, text: str) -> None:
        """Remove a text: from rows that contain it, with rows that are nothing else."""
        for row in list(self.rows):
            cleaned = (row.value or "").replace(text, "[erased]")
            if cleaned == (row.value or ""):
                continue
            is_whole = (
                cleaned.removeprefix("[Evicted Recall Event]").split("\n\n")[-1] == "[erased]"
            )
            if is_whole and row.tier == "event":
                self.rows.remove(row)
            else:
                row.value = None if is_whole else cleaned

    def time_of(self, at: int) -> float:
        """Return when the newest row up to a number was written; exclusions have no time."""
        dated = [row for row in self.rows if row.tier != "hidden" and row.seq <= at]
        return max(dated, key=lambda row: row.seq).written if dated else 0.0

    def seen(self, branch: str, tier: str, at: int) -> list[tuple[int, Row]]:
        """Return the rows a branch sees at a number, with how far away they were written."""
        found, end, name, distance = [], at, branch, 0
        while True:
            line = self.lines[name]
            is_open = line.live and tier != "hidden"
            upper = at if is_open and distance else end
            found += [
                (distance, row)
                for row in self.rows
                if row.branch == name and row.tier == tier and row.seq <= upper
            ]
            if line.parent is None:
                return found
            end, name, distance = min(end, line.fork_seq), line.parent, distance + 1

    def core(self, branch: str, at: int, now: float) -> dict[str, str]:
        """Return the keys in view: of each branch its newest value, the nearest that counts."""
        newest: dict[tuple[str | int, int], Row] = {}
        for distance, row in self.seen(branch, "core", at):
            known = newest.get((row.key, distance))
            if known is None or known.seq < row.seq:
                newest[row.key, distance] = row
        found: dict[str, str | None] = {}
        for (key, _), row in sorted(newest.items(), key=lambda item: item[0][1]):
            if row.expires is None or row.expires > now:
                found.setdefault(str(key), row.value)
        return {key: value for key, value in found.items() if value is not None}

    def archival(self, branch: str, at: int) -> dict[int, str]:
        """Return the texts of the records in view."""
        best: dict[str | int, tuple[int, int, Row]] = {}
        for distance, row in self.seen(branch, "archival", at):
            rank = (distance, -row.seq, row)
            if row.key not in best or rank[:2] < best[row.key][:2]:
                best[row.key] = rank
        return {int(key): row.value for key, (_, _, row) in best.items() if row.value is not None}

    def events(self, branch: str, at: int) -> dict[str, int]:
        """Return what is seen, and how often, of events that are not hidden."""
        hidden: dict[int, int] = {}
        for _, row in self.seen(branch, "hidden", at):
            hidden[int(row.key)] = max(row.seq, hidden.get(int(row.key), 0))
        counts: dict[str, int] = {}
        for _, row in self.seen(branch, "event", at):
            if row.seq > hidden.get(int(row.key), 0):
                counts[str(row.value)] = counts.get(str(row.value), 0) + 1
        return counts
