"""Account of a migration: each row of the original, by name, and its place in the new file.

The account is a JSON file beside the copy of the original (`memory.sqlite.original.json` beside
`memory.sqlite.original`). As an event it would stand in every prompt, and as rows of the memory
it would change with them; a file beside the copy describes exactly that copy, and can be read
without this program.
"""

from __future__ import annotations

import glob
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import StoreCorrupt, StoreUnwritable
from taskweaver.utils.files import PRIVATE, write_text

FORMAT = "taskweaver-memory-migration"
FORMAT_VERSION = 1
_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class LeftRow:
    """A row, by id or ``branch/key``, that is only in the copy of the original, and the reason."""

    table: str
    row: str
    reason: str


@dataclass(slots=True)
class MigrationReport:
    """Account of a migration.

    Attributes:
        rows: Number of rows of the original, by table.
        taken: Number of rows taken over, by table and by the form they have now.
        left: Rows that were not taken over.
        changed: Differences between the original and the new file, a line each.
        ids: New numbers of events and records, by table and by former id.
        migrated_at: Time of the migration, in seconds since 1970.
        original: Name of the file that holds the copy of the original.
    """

    rows: dict[str, int] = field(default_factory=dict)
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    left: list[LeftRow] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    ids: dict[str, dict[int, int]] = field(default_factory=dict)
    migrated_at: float = 0.0
    original: str = ""

    def take(self, table: str, form: str, count: int = 1) -> None:
        """Count rows of a table of the original that have another form now, e.g. ``event``."""
        if not count:
            return
        forms = self.taken.setdefault(table, {})
        forms[form] = forms.get(form, 0) + count
        self.rows[table] = self.rows.get(table, 0) + count

    def leave(self, table: str, row: object, reason: str) -> None:
        """Name a row that was not taken over."""
        self.rows[table] = self.rows.get(table, 0) + 1
        self.left.append(LeftRow(table, str(row), reason))

    def lines(self) -> list[str]:
        """Return the account in words: a line for each table, each change and each row left."""
        found = []
        for table, count in self.rows.items():
            forms = self.taken.get(table, {})
            parts = [f"{number} as {form}" for form, number in forms.items()]
            rest = count - sum(forms.values())
            parts += [f"{rest} not taken over"] if rest else []
            found.append(f"{table}: {count} rows, {', '.join(parts)}")
        left = [f"{row.table} {row.row} not taken over: {row.reason}" for row in self.left]
        return [*found, *self.changed, *left]

    def save(self, kept: Path) -> None:
        """Write the account beside the copy of the original.

        Raises:
            StoreUnwritable: If it cannot be written.
        """
        self.original = kept.name
        target = report_path(kept)
        data = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(self)}
        try:
            write_text(target, json.dumps(data, ensure_ascii=False, indent=1), mode=PRIVATE)
        except OSError as error:
            raise StoreUnwritable(f"{target} cannot be written: {error}") from error


def report_path(kept: Path) -> Path:
    """Return the place of the account of a copy of an original."""
    return kept.with_name(kept.name + _ENDING)


def migration_reports(path: Path) -> list[MigrationReport]:
    """Return the accounts of the migrations of a memory file, oldest first.

    Raises:
        StoreCorrupt: If one cannot be read.
    """
    reports = []
    for file in path.parent.glob(f"{glob.escape(path.name)}.original*{_ENDING}"):
        try:
            reports.append(_parsed(json.loads(file.read_text("utf-8"))))
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise StoreCorrupt(f"{file} is no readable account of a migration: {error}") from error
    return sorted(reports, key=lambda report: report.migrated_at)


def _parsed(data: dict[str, Any]) -> MigrationReport:
    if data["format"] != FORMAT or data["version"] != FORMAT_VERSION:
        raise ValueError("it has another format")
    return MigrationReport(
        rows=dict(data["rows"]),
        taken={table: dict(forms) for table, forms in data["taken"].items()},
        left=[LeftRow(**row) for row in data["left"]],
        changed=[str(line) for line in data["changed"]],
        ids={
            table: {int(old): int(new) for old, new in ids.items()}
            for table, ids in data["ids"].items()
        },
        migrated_at=float(data["migrated_at"]),
        original=str(data["original"]),
    )
