"""Plans as plain pandas code: one expression, which runs without TaskWeaver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskweaver.tables.plans.plan import (
    Down,
    Drop,
    Fill,
    ReadPlan,
    Step,
    Tidy,
    ToFlag,
    ToNumber,
    ToTime,
)
from taskweaver.tables.plans.steps import ACCOUNTING, SERIALS, removal_pattern
from taskweaver.utils.sqlite_files import quoted_name

MODULES = {"json": "json.loads", "pathlib": "pathlib.Path", "sqlite3": "sqlite3.connect"}
"""Modules beside pandas that code of plans uses, by the name that shows the use."""
_TIDY = {
    "names": ".rename(columns=str)",
    "strip": ".rename(columns=str.strip)",
    "rows": ".dropna(how='all').reset_index(drop=True)",
    "columns": ".dropna(axis='columns', how='all')",
    "index": ".reset_index(names='row')",
    "infer": ".infer_objects()",
}
_NUMBERED = ".rename(columns=lambda number: f'column_{number + 1}')"


def as_code(plan: ReadPlan) -> str:
    """Return the expression that reads the table as the plan does; it needs ``pd``.

    Further modules that it uses are those of `modules_of`. Names and texts of the file occur in
    it as literals alone.
    """
    parts = [_reader(plan)]
    pending: list[str] = []
    for step in (*plan.steps, None):
        if step is not None and not isinstance(step, Tidy | Drop):
            pending.append(f"{step.column!r}: lambda t: {_conversion(step)}")
            continue
        if pending:
            parts.append(_assign(pending))
            pending = []
        if isinstance(step, Drop):
            parts.append(f".drop(index={[*step.rows]}).reset_index(drop=True)")
        elif step is not None:
            parts.append(_TIDY[step.kind])
    code = "".join(parts)
    return code if "\n" not in code else f"(\n    {code}\n)"


def modules_of(code: str) -> list[str]:
    """Return the modules beside pandas that the code of plans uses."""
    return [name for name, use in MODULES.items() if use in code]


def _assign(columns: Sequence[str]) -> str:
    if len(columns) == 1:
        return f".assign(**{{{columns[0]}}})"
    lines = "".join(f"\n        {column}," for column in columns)
    return f".assign(**{{{lines}\n    }})"


def _reader(plan: ReadPlan) -> str:
    options: dict[str, Any] = dict(plan.options)
    path = repr(plan.path)
    match plan.reader:
        case "csv":
            if "date_format" in options:
                options["parse_dates"] = list(options["date_format"])
            return _call("pd.read_csv", path, options) + (_NUMBERED if "header" in options else "")
        case "excel":
            return _call("pd.read_excel", path, {**options, "dtype": "object"})
        case "parquet":
            return _call("pd.read_parquet", path, options)
        case "sql":
            query = f"SELECT * FROM {quoted_name(options['table'])}"
            return f"pd.read_sql_query({query!r}, sqlite3.connect({path}))"
        case "jsonl":
            encoding = options.get("encoding", "utf-8")
            text = f"pathlib.Path({path}).read_text({encoding!r})"
            lines = f"[json.loads(line) for line in {text}.split('\\n') if line.strip()]"
            return f"pd.json_normalize({lines})"
        case "json":
            return _json(path, options)


def _json(path: str, options: dict[str, Any]) -> str:
    text = f"pathlib.Path({path}).read_text({options.get('encoding', 'utf-8')!r})"
    key = options.get("key", "")
    data = f"json.loads({text})" + (f"[{key!r}]" if key else "")
    match options["shape"]:
        case "records":
            return f"pd.json_normalize({data})"
        case "columns":
            return f"pd.DataFrame({data}).reset_index(drop=True)"
        case "index":
            return f"pd.DataFrame.from_dict({data}, orient='index').reset_index(names='key')"
        case _:
            frame = "pd.DataFrame(split['data'], columns=split['columns'])"
            return f"(lambda split: {frame})({data})"


def _call(function: str, path: str, options: dict[str, Any]) -> str:
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"{function}({path}{given})"


def _conversion(step: Step) -> str:
    match step:
        case ToNumber():
            errors = ", errors='coerce'" if step.is_partial else ""
            return f"pd.to_numeric({_plain_numbers(step)}{errors})"
        case ToTime():
            errors = ", errors='coerce'" if step.is_partial else ""
            utc = ", utc=True" if step.is_utc else ""
            end = ".dt.tz_localize(None)" if step.is_utc else ""
            column = f"t[{step.column!r}]"
            if step.format == "YYYYMMDD":
                column += ".astype('Int64').astype(str)"
            how = SERIALS.get(step.format, {"format": step.format})
            given = "".join(f", {name}={value!r}" for name, value in how.items())
            return f"pd.to_datetime({column}{given}{errors}{utc}){end}"
        case ToFlag():
            return f"t[{step.column!r}].astype('boolean')"
        case Down():
            above = f"t[{step.column!r}].ffill()"
            return f"t[{step.column!r}].where(~t.index.isin({[*step.rows]}), {above})"
        case Fill():
            return f"t[{step.column!r}].fillna({step.text!r})"
        case Tidy() | Drop():
            return ""


def _plain_numbers(step: ToNumber) -> str:
    text = f"t[{step.column!r}].astype(str)"
    if step.remove:
        text += f".str.replace({removal_pattern(step.remove)!r}, '', regex=True)"
    if step.decimal != ".":
        text += f".str.replace({step.decimal!r}, '.', regex=False)"
    for pattern, replacement in ACCOUNTING if step.has_accounting else ():
        text += f".str.replace({pattern!r}, {replacement!r}, regex=True)"
    return text
