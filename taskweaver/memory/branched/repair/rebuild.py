"""Makes a memory from the log of its rows, `memory_primitive.jsonl`.

The new memory shows the same as the one that was logged: core, events, records and digests of each
branch, now and at each row. Secrets are masked, as they are in logs. Conversations, the audit trail
of prompts and the store of applied blocks are in no log. A log that is not complete is used as far
as it goes, and the report lists the missing rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from taskweaver.memory.branched.erasure.needles import ERASED
from taskweaver.memory.branched.errors import InvalidUpdate, StoreUnwritable, translated
from taskweaver.memory.branched.logs.row_log import LOGGED, Range, gaps
from taskweaver.memory.branched.repair.damaged_rows import TableRows
from taskweaver.memory.branched.repair.row_lines import LoggedLines, Row, read_lines
from taskweaver.memory.branched.repair.salvage import Salvage, salvage
from taskweaver.utils.sqlite_files import remove_database

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class RebuiltMemory:
    """Outcome of a rebuild, and the gaps of the log.

    Attributes:
        branches: Number of branches.
        rows: Number of rows by table.
        seq: Newest sequence number of the log.
        missing: Ranges of sequence numbers the log says nothing of.
        missing_branches: Ranges of numbers of branches whose creation the log lacks.
        unfinished: Number of processes that did not end their lines: killed ones, or still at work.
        unreadable: Number of lines that were cut off or changed.
        left_out: Reasons why rows could not be used, with their numbers of rows.
        masked: Number of rows that hold a mask in place of a secret.
        clashes: Number of lines with a number of another row: several memories wrote the log.
        files: Names of the files whose rows the log has, sorted.
    """

    branches: int
    rows: Mapping[str, int]
    seq: int
    missing: tuple[Range, ...]
    missing_branches: tuple[Range, ...]
    unfinished: int
    unreadable: int
    left_out: Mapping[str, int]
    masked: int
    clashes: int
    files: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the new memory has every row of the old one."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """Missing rows and other problems, a line each; empty when all is there."""
        found = []
        if self.clashes:
            found.append(
                "lines with a number that another row or branch has:"
                f" {self.clashes}; the log has rows of several memories, or of one before and after"
                " a backup was put in its place. They are mixed here, and the later line of a"
                f" number is taken. {self._advice}"
            )
        if self.missing:
            found.append(f"rows that are not in the log: {_named(self.missing)}")
        if self.missing_branches:
            named = _named(self.missing_branches)
            found.append(f"branches whose creation is not in the log: {named}")
        if self.unfinished:
            found.append(
                f"writers that did not end their lines: {self.unfinished}; rows after {self.seq}"
                " may be missing"
            )
        if self.unreadable:
            found.append(f"lines that cannot be read: {self.unreadable}")
        found += [f"rows left out: {count} ({why})" for why, count in self.left_out.items()]
        return tuple(found)

    @property
    def _advice(self) -> str:
        """Remedy for rows of several memories in one log."""
        if len(self.files) < 2:
            return "Move the log away before another file of that name is put in its place"
        names = ", ".join(self.files)
        return f"Choose the rows of one ({names}) with `--file`, `rebuild(..., file_name=...)`"


def rebuild(log_folder: Path, target: Path, *, file_name: str = "") -> RebuiltMemory:
    """Make a memory from the log of its rows; return its figures, and the gaps of the log.

    Args:
        log_folder: The folder of the logs.
        target: The new file; it must not exist.
        file_name: Name of the file whose rows are taken, where several memories share the log;
            empty for all rows.

    Raises:
        InvalidUpdate: If the log cannot be read, or has no line.
        StoreUnwritable: If the new file exists or cannot be written.
    """
    if target.exists():
        raise StoreUnwritable(f"{target} exists; choose another name for the rebuilt memory.")
    lines = read_lines(log_folder, file_name)
    if not lines.branches and not lines.seqs:
        owner = f"the memory {file_name!r}" if file_name else "a memory"
        others = f"; it has those of {', '.join(sorted(lines.files))}" if lines.files else ""
        raise InvalidUpdate(str(log_folder), f"has no log of the rows of {owner}{others}")
    missing_branches = _missing_branches(lines)
    _apply(lines)
    seqs = lines.seqs
    partial = target.with_name(target.name + ".partial")
    try:
        remove_database(partial)
        made = _write(lines, partial, seqs[-1][1] if seqs else 0)
        with translated(target):
            partial.replace(target)
    except OSError as error:
        raise StoreUnwritable(f"{target} cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            remove_database(partial)
    return RebuiltMemory(
        branches=made.saved.pop("branches", 0) + len(made.remade),
        rows=dict(made.saved),
        seq=seqs[-1][1] if seqs else 0,
        missing=tuple(gaps(seqs)),
        missing_branches=missing_branches,
        unfinished=len(lines.writers),
        unreadable=lines.unreadable,
        left_out=dict(Counter(f"{row.table}: {row.reason}"[:200] for row in made.unfit)),
        masked=lines.masked,
        clashes=lines.clashes,
        files=tuple(sorted(lines.files)),
    )


def _missing_branches(lines: LoggedLines) -> tuple[Range, ...]:
    """Return the numbers of branches that were neither made in the log nor collected."""
    known = lines.branches.keys() | {
        number for change in lines.changes.values() for number, end in change["kept"] if end < 0
    }
    named = {row["branch_id"] for rows in lines.rows.values() for row in rows.values()}
    newest = max(known, default=0)
    found = [*gaps([(number, number) for number in sorted(known)])]
    found += [(number, number) for number in sorted(named) if number > newest]
    return tuple(found)


def _apply(lines: LoggedLines) -> None:
    """Apply the changes, in their order, and name branches of which the name was erased."""
    for seq, change in sorted(lines.changes.items()):
        for number in change["branches"]:
            branch = lines.branches.get(number)
            if branch is not None:
                names = branch.keys() & {"state", "node_uid"} & change.keys()
                branch.update({name: change[name] for name in names})
        for number, end in change["kept"]:
            _collect(lines, seq, number, end)
        for rows in lines.rows.values():
            for gone in rows.keys() & set(change["rows"]):
                del rows[gone]
        lines.skipped += [(gone, gone) for gone in change["rows"]]
    taken: set[str] = set()
    for number, branch in sorted(lines.branches.items()):
        for column in ("name", "node_uid"):
            name = branch[column] or ""
            if name in taken and ERASED in name:  # as an erasure names it
                branch[column] = f"{name[:180]}-{number}"
        taken.add(branch["name"])


def _collect(lines: LoggedLines, seq: int, number: int, end: int) -> None:
    """Remove the rows of a branch that a collection of garbage removed."""
    if end < 0:
        lines.branches.pop(number, None)
    for rows in lines.rows.values():
        gone = [key for key, row in rows.items() if row["branch_id"] == number and end < key <= seq]
        lines.skipped += [(key, key) for key in gone]
        for key in gone:
            del rows[key]


def _write(lines: LoggedLines, target: Path, clock: int) -> Salvage:
    tables = {"branches": _stored(lines.branches)}
    tables["branches"].is_whole = False  # a branch that rows name and the log lacks is made anew
    tables |= {table: _stored(lines.rows[table]) for table in LOGGED}
    return salvage(tables, clock, target, root="")


def _stored(rows: Mapping[int, Row]) -> TableRows:
    return TableRows(dict(rows.items()))


def _named(ranges: tuple[Range, ...]) -> str:
    shown = [
        str(first) if first == last else f"{first} to {last}"
        for first, last in ranges[:_MOST_NAMED]
    ]
    more = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and {more} more stretches" if more else "")
