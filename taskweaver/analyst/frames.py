"""Names of the variables that tables are loaded into, and the frame that an expression is about."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from taskweaver.analyst.profile import ColumnProfile, Kind, TableId

RESULT = "result"
"""Variable of the chosen rows, and then of the table that is shown."""

_RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), RESULT, "group", "values", "sqlite3"}
    | {
        "pd",
        "np",
        "plt",
        "read_table",
        "profile_tables",
        "connection",
        "closing",
        "os",
        "In",
        "Out",
    }
    | {"display", "get_ipython", "exit", "quit", "closing"}
)
_MOST_CHARS = 40


def variable_names(tables: Iterable[TableId]) -> dict[TableId, str]:
    """Return the name of the variable of each table; no two have the same.

    A name is made of the file's name and the sheet or table; of the file's ending too, where two
    tables would have the same name.
    """
    ids, short = _short_names(tables)
    found: dict[TableId, str] = {}
    for table in ids:
        name = short[table]
        if list(short.values()).count(name) > 1:
            name = _name(table.file, table.part)
        while name in found.values():
            name += "_"
        found[table] = name
    return found


def lasting_names(tables: Iterable[TableId]) -> set[str]:
    """Return the names that stay those of their tables, whatever tables are looked at later.

    A variable with another name may hold a table that had the name before.
    """
    ids = list(tables)
    _, short = _short_names(ids)
    names = variable_names(ids)
    often = Counter([*short.values(), *(_name(table.file, table.part) for table in short)])
    return {
        name
        for table, name in names.items()
        if name == short[table] and often[name] == 1 + (name == _name(table.file, table.part))
    }


def _short_names(tables: Iterable[TableId]) -> tuple[list[TableId], dict[TableId, str]]:
    ids = sorted(set(tables), key=lambda table: (table.file, table.part))
    return ids, {table: _name(PurePath(table.file).stem, table.part) for table in ids}


def _name(file: str, part: str) -> str:
    text = unicodedata.normalize("NFKC", f"{file} {part}").lower()
    name = re.sub(r"\W+", "_", text).strip("_")[:_MOST_CHARS].rstrip("_")
    if not name.isidentifier():
        name = f"table_{name}".rstrip("_")
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        name = "table"
    return f"{name}_table" if name in _RESERVED else name


@dataclass(frozen=True)
class Frame:
    """Frame as code refers to it.

    Attributes:
        name: Variable of the frame.
        columns: Profiles of its columns, as far as they are known.
    """

    name: str
    columns: Mapping[str, ColumnProfile]

    def column(self, name: str) -> str:
        """Return the code of a column."""
        return f"{self.name}[{name!r}]"

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a column's values; None where it is not known."""
        profile = self.columns.get(name)
        return profile.kind if profile else None
