"""Files and tables that a request can refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taskweaver.tables.files.profile import TableId, TableProfile


@dataclass(frozen=True, slots=True)
class PartInfo:
    """Table of a file, as far as it is known before the file is looked at.

    Attributes:
        name: Sheet of a workbook or table of a database; empty for a file with one table.
        columns: Names of the columns; empty if they are not known.
        rows: Number of rows; None if it is not known.
    """

    name: str = ""
    columns: tuple[str, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class FileInfo:
    """File of the working folder, as the prompt lists it.

    Attributes:
        name: Path of the file, relative to the working folder.
        parts: Its tables; empty if they are not known.
    """

    name: str
    parts: tuple[PartInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a request can refer to.

    Attributes:
        files: The files, those of the newest message first.
        tables: Profiles of the tables that have been looked at.
        unreadable: Files that a look found to hold no table.
        given: Files that came with the request, which it is about unless it names others.
    """

    files: tuple[FileInfo, ...] = ()
    tables: Mapping[TableId, TableProfile] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
