"""Files and tables that a request can refer to, with the profiles of their columns and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["number", "integer", "time", "text", "flag"]
"""Kind of a column's values. Zip codes and other numerals that are names are text."""


@dataclass(frozen=True, slots=True)
class TableId:
    """Address of a table.

    Attributes:
        file: Path of the file, relative to the working folder.
        part: Sheet of a workbook or table of a database; empty for a file with one table.
    """

    file: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Profile of a column.

    Attributes:
        name: Exact name.
        low: Smallest value as text (ISO 8601 for times); empty for texts.
        high: Largest value as text.
        values: All distinct values as text, of columns with few; None for others.
        spellings: Further spellings of values, and the value each is counted as.
        bars: Numbers of values in equal parts of the range, or of each value from the most frequent
            on; only in outlines of files.
    """

    name: str
    kind: Kind
    distinct: int
    missing: int = 0
    low: str = ""
    high: str = ""
    values: tuple[str, ...] | None = None
    spellings: Mapping[str, str] = field(default_factory=dict, hash=False)
    bars: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """Value of a text column that the words of a request may mean.

    Attributes:
        is_exact: Whether the words are the value, apart from case; else a form of it, as
            ``Japanese`` of ``Japan``.
    """

    column: str
    value: str
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class TableProfile:
    """Profile of a table.

    Attributes:
        columns: Its columns, in order.
        matches: For words of the requests so far, in lower case, the values they may mean. A
            column of any number of values is searched.
        searched: Requests, in full, whose words were looked up.
        hidden: Number of further columns, which the printed profile had no room for.
    """

    id: TableId
    rows: int
    columns: tuple[ColumnProfile, ...]
    matches: Mapping[str, tuple[ValueMatch, ...]] = field(default_factory=dict)
    searched: frozenset[str] = frozenset()
    hidden: int = 0


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
        unreadable: Reasons why files hold no table, found by a look at them.
        given: Files that came with the request, which it is about unless it names others.
    """

    files: tuple[FileInfo, ...] = ()
    tables: Mapping[TableId, TableProfile] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
