"""Plan of reading a table: a reader of pandas with its options, and steps on its columns.

A plan is plain data. The kernel carries it out (`taskweaver.tables.plans.steps`), reports it with
the cell, and an export writes it as code (`taskweaver.tables.plans.code`); no code travels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self, get_args

Reader = Literal["csv", "excel", "parquet", "sql", "json", "jsonl"]
Shape = Literal["records", "nested", "columns", "index", "split"]
Option = str | int | bool | None | dict[str, str] | list[str]
TidyKind = Literal["names", "strip", "rows", "columns", "index", "labels", "infer"]
Exact = Literal["boolean", "int64", "Int64", "UInt64", "string"]
OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    "sep": str,
    "encoding": str,
    "encoding_errors": str,
    "decimal": str,
    "compression": str,
    "on_bad_lines": str,
    "skiprows": int,
    "header": type(None),
    "names": list,
    "index_col": bool,
    "skipinitialspace": bool,
    "dtype": dict,
    "date_format": dict,
    "keep_default_na": bool,
    "na_values": list,
    "exact": bool,
    "sheet_name": str,
    "table": str,
    "shape": str,
    "key": str,
}
"""Options of all readers, with their types. Without a ``header``, names are ``column_1`` ...

The columns of ``date_format`` are parsed as dates by the reader. With ``exact`` the values stay
Python objects, so that integers beside missing values pass through no float."""
MOST_READS = 100
"""Calls of `read_table` that are kept of a cell."""
_REQUIRED: Mapping[str, str] = {"sql": "table", "json": "shape"}
_MOST_STEPS = 5_000
_MOST_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Tidy:
    """Change of the whole frame.

    Attributes:
        kind: ``names``: column names become text; ``strip``: without outer blanks; ``rows`` and
            ``columns``: empty ones are dropped; ``index``: row names become a column;
            ``labels``: levels of the index become columns by their names; ``infer``: columns of
            objects get the types of their values.
    """

    kind: TidyKind
    step: Literal["tidy"] = "tidy"


@dataclass(frozen=True, slots=True)
class Drop:
    """Removal of rows that are no records, by their numbers from 0."""

    rows: tuple[int, ...]
    step: Literal["drop"] = "drop"


@dataclass(frozen=True, slots=True)
class Down:
    """Repetition of the value above in some rows of a column, which merged cells cover."""

    column: str
    rows: tuple[int, ...]
    step: Literal["down"] = "down"


@dataclass(frozen=True, slots=True)
class ToNumber:
    """Conversion of a column of texts to numbers.

    Attributes:
        remove: Texts that are removed from values: units, thousands separators, blanks.
        has_accounting: Whether values in parentheses and with the sign U+2212 are negative.
        is_partial: Whether some values are no numbers, and become missing.
        is_whole: Whether the numbers are integers, and stay integers beside missing values.
    """

    column: str
    remove: tuple[str, ...] = ()
    decimal: str = "."
    has_accounting: bool = False
    is_partial: bool = False
    is_whole: bool = False
    step: Literal["number"] = "number"


@dataclass(frozen=True, slots=True)
class ToTime:
    """Conversion of a column of texts to times.

    Attributes:
        format: Format of `strptime`, ``ISO8601``, or a name of numbers in `steps.SERIALS`.
        is_partial: Whether some values are no times, and become missing.
        is_utc: Whether the values have offsets; the times are in UTC.
    """

    column: str
    format: str
    is_partial: bool = False
    is_utc: bool = False
    step: Literal["time"] = "time"


@dataclass(frozen=True, slots=True)
class ToType:
    """Conversion of a column, which may lack values, to a type of pandas that keeps its values."""

    column: str
    type: Exact
    step: Literal["type"] = "type"


Step = Tidy | Drop | Down | ToNumber | ToTime | ToType
_STEPS: Mapping[str, Callable[..., Step]] = {
    "tidy": Tidy,
    "drop": Drop,
    "down": Down,
    "number": ToNumber,
    "time": ToTime,
    "type": ToType,
}


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Plan of reading a table.

    Attributes:
        path: The file, as it was named.
        options: Options of the reader that are not its defaults; see `OPTIONS`.
        steps: Steps after the reader, in order.
    """

    reader: Reader
    path: str
    options: Mapping[str, Option] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self) | {"steps": list(map(asdict, self.steps))}

    def with_options(self, **more: Option) -> Self:
        """Return the plan with more options, or other values of its options."""
        return replace(self, options={**self.options, **more})


def plan_of(data: object) -> ReadPlan | None:
    """Return the plan in plain data of any origin; None if it is none."""
    match data:
        case {
            "reader": str(reader),
            "path": str(path),
            "options": dict(options),
            "steps": list(steps),
        }:
            found = [_step(step) for step in steps[: _MOST_STEPS + 1]]
            kept = tuple(step for step in found if step is not None)
            is_plan = reader in get_args(Reader) and len(path) <= _MOST_CHARS
            is_plan = is_plan and _REQUIRED.get(reader, "") in {"", *options}
            is_plan = is_plan and all(_is_option(name, value) for name, value in options.items())
            if is_plan and len(kept) == len(steps) <= _MOST_STEPS:
                return ReadPlan(reader, path, options, kept)  # type: ignore[arg-type]  # checked above
    return None


@dataclass(frozen=True, slots=True)
class TableRead:
    """A call of `read_table`.

    Attributes:
        plan: The plan that gives the same frame.
    """

    path: str
    sheet: str | int | None
    plan: ReadPlan

    def to_dict(self) -> dict[str, Any]:
        """Return the call as plain data."""
        return asdict(self) | {"plan": self.plan.to_dict()}


def reads_of(data: object) -> list[TableRead]:
    """Return the calls in plain data of any origin; those that are none are left out.

    So are those whose plan reads another file than they do.
    """
    found = []
    for item in data[:MOST_READS] if isinstance(data, list) else ():
        match item:
            case {"path": str(path), "sheet": str() | int() | None as sheet, "plan": plan}:
                known = plan_of(plan) if len(path) <= _MOST_CHARS else None
                if known is not None and known.path == path:  # or exports would read another file
                    found.append(TableRead(path, sheet, known))
    return found


def _is_option(name: object, value: object) -> bool:
    if not isinstance(name, str) or name not in OPTIONS or not isinstance(value, OPTIONS[name]):
        return False
    if isinstance(value, dict | list):
        texts = [*value, *value.values()] if isinstance(value, dict) else value
        return all(isinstance(text, str) and len(text) <= _MOST_CHARS for text in texts)
    return len(str(value)) <= _MOST_CHARS


_ATTRIBUTES: Mapping[str, type] = {
    "step": str,
    "remove": str,
    "rows": int,
    "column": str,
    "type": str,
    "format": str,
    "decimal": str,
    "kind": str,
    "has_accounting": bool,
    "is_partial": bool,
    "is_whole": bool,
    "is_utc": bool,
}


def _step(data: object) -> Step | None:
    """Return the step in plain data; None if it is none."""
    if not isinstance(data, dict) or not isinstance(kind := data.get("step"), str):
        return None
    values: dict[str, Any] = {}
    for name, value in data.items():
        is_list = name in {"remove", "rows"}
        items = value if is_list and isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, _ATTRIBUTES.get(str(name), ())) for item in items):
            return None
        values[name] = tuple(items) if is_list else value
    choices = {"tidy": ("kind", TidyKind), "type": ("type", Exact)}
    name, known = choices.get(kind, ("", Exact))
    if name and values.get(name) not in get_args(known):
        return None
    try:
        return _STEPS[kind](**values)
    except (KeyError, TypeError):
        return None
