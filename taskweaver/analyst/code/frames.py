"""Names of variables, the frame that an expression is about, and the layout of long code."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from taskweaver.analyst.readings import Rank
from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId

RESULT = "result"
"""Variable of the chosen rows, and then of the table that is shown."""

_KERNEL = "read_table profile_tables In Out display get_ipython exit quit".split()
_CODE = "pd np plt os sqlite3 connection closing group values".split()
_RESERVED = frozenset(
    [*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *_KERNEL, *_CODE, RESULT]
)
_MOST_CHARS = 40


def variable_names(tables: Iterable[TableId]) -> dict[TableId, str]:
    """Return the name of the variable of each table; no two have the same.

    A name is made of the file's name and the sheet or table; of the file's ending too, where two
    tables would have the same name.
    """
    ids = sorted(set(tables), key=lambda table: (table.file, table.part))
    short = {table: _name(PurePath(table.file).stem, table.part) for table in ids}
    found: dict[TableId, str] = {}
    for table in ids:
        name = short[table]
        if list(short.values()).count(name) > 1:
            name = _name(table.file, table.part)
        while name in found.values():
            name += "_"
        found[table] = name
    return found


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


def ranked_code(name: str, by: str, rank: Rank, *, is_sorted: bool, end: str = "head") -> str:
    """Return the code of the rows of a frame that a rank by a column shows, in its order.

    Sorted rows are cut at an end, ``head`` or ``tail``; others are the largest or smallest.
    """
    if rank.nth:
        order = f"{name}[{by!r}].rank(method='dense', ascending={rank.ascending})"
        return f"{name}[{order} == {rank.nth}]"
    if rank.count is None or is_sorted:
        code = f"{name}.sort_values({by!r}, ascending={rank.ascending}, kind='stable')"
        return code if rank.count is None else f"{code}.{end}({rank.count})"
    most = "nsmallest" if rank.ascending else "nlargest"
    keep = ", keep='all'" if rank.count == 1 else ""
    return f"{name}.{most}({rank.count}, {by!r}{keep})"


MOST_CHARS = 96
_TOKEN = re.compile(
    r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[(\[{]|[)\]}]|\.(?=[a-z_]+\()|.""", re.DOTALL
)
_START = re.compile(r"(?P<indent> *)(?P<target>(?:\w+ = )?)(?P<chain>.*)", re.DOTALL)


def laid_out(line: str) -> str:
    """Return a line of code; a chain of calls that is too long has a line for each call."""
    if len(line) <= MOST_CHARS or "\n" in line:
        return line
    match = _START.fullmatch(line)
    links = _links(match["chain"]) if match else []
    if match is None or len(links) < 3:
        return line
    indent = match["indent"]
    inner = f"\n{indent}    ".join(links)
    return f"{indent}{match['target']}(\n{indent}    {inner}\n{indent})"


def _links(chain: str) -> list[str]:
    """Return an object with its first call, and each further call, of a chain of calls."""
    links, depth = [""], 0
    for token in _TOKEN.findall(chain):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "." and depth == 0 and links != [""]:
            links.append("")
        links[-1] += token
    return ["".join(links[:2]), *links[2:]]
