"""Plans as plain pandas code: one expression, which runs without TaskWeaver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from taskweaver.tables.packing import PACKED
from taskweaver.tables.plans.plan import (
    Down,
    Drop,
    ReadPlan,
    Step,
    Tidy,
    ToNumber,
    ToTime,
    ToType,
)
from taskweaver.tables.plans.steps import ACCOUNTING, SERIALS, numbered, removal_pattern
from taskweaver.utils.sqlite_files import quoted_name

MODULES = {
    "gzip": "gzip.open",
    "json": "json.loads",
    "pathlib": "pathlib.Path",
    "pyarrow.parquet": "pyarrow.parquet.read_table",
    "sqlite3": "sqlite3.connect",
    "zipfile": "zipfile.ZipFile",
}
"""Modules beside pandas that code of plans uses, by the name that shows the use."""
_TIDY = {
    "names": ".rename(columns=str)",
    "strip": ".rename(columns=str.strip)",
    "rows": ".dropna(how='all').reset_index(drop=True)",
    "columns": ".dropna(axis='columns', how='all')",
    "index": ".reset_index(names='row')",
    "labels": ".reset_index()",
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
    source = _source(plan.path)
    match plan.reader:
        case "csv":
            if "date_format" in options:
                options["parse_dates"] = list(options["date_format"])
            is_numbered = "header" in options
            if is_numbered and "dtype" in options:
                options["dtype"] = numbered(options["dtype"])
            return _call("pd.read_csv", path, options) + (_NUMBERED if is_numbered else "")
        case "excel":
            return _call("pd.read_excel", source or path, {**options, "dtype": "object"})
        case "parquet":
            if "exact" not in options:
                return f"pd.read_parquet({source or path})"
            read = f"pyarrow.parquet.read_table({source or path})"
            return f"{read}.to_pandas(integer_object_nulls=True)"
        case "sql":
            return _sql(plan, source)
        case "json" | "jsonl":
            return _json(plan, source)


def _source(path: str) -> str:
    """Return the code that opens a compressed file; empty for another file."""
    suffix = PurePath(path).suffix.lower()
    if suffix == ".zip":
        return f"(lambda z: z.open(z.namelist()[-1]))(zipfile.ZipFile({path!r}))"
    return f"gzip.open({path!r})" if suffix in PACKED else ""


def _sql(plan: ReadPlan, source: str) -> str:
    query = f"SELECT * FROM {quoted_name(str(plan.options['table']))}"
    connection = f"sqlite3.connect({plan.path!r})"
    if source:
        memory = "sqlite3.connect(':memory:')"
        connection = f"(lambda c: c.deserialize({source}.read()) or c)({memory})"
    if "exact" not in plan.options:
        return f"pd.read_sql_query({query!r}, {connection})"
    frame = "pd.DataFrame(rows, columns=[c[0] for c in rows.description], dtype=object)"
    return f"(lambda rows: {frame})({connection}.execute({query!r}))"


def _json(plan: ReadPlan, source: str) -> str:
    encoding = plan.options.get("encoding", "utf-8")
    text = f"pathlib.Path({plan.path!r}).read_text({encoding!r})"
    if source:
        text = f"{source}.read().decode({encoding!r})"
    data = f"json.loads({text})"
    if "key" in plan.options:
        data += f"[{plan.options['key']!r}]"
    if plan.reader == "jsonl":
        data = f"[json.loads(line) for line in {text}.split('\\n') if line.strip()]"
    kind = ", dtype=object" if "exact" in plan.options else ""
    match plan.options.get("shape"):
        case "columns":
            return f"pd.DataFrame({data}{kind}).reset_index(drop=True)"
        case "index":
            frame = f"pd.DataFrame.from_dict({data}, orient='index'{kind})"
            return f"{frame}.reset_index(names='key')"
        case "split":
            frame = f"pd.DataFrame(split['data'], columns=split['columns']{kind})"
            return f"(lambda split: {frame})({data})"
        case "nested":
            flat = "pd.json_normalize(row).to_dict('records')[0]"
            return f"pd.DataFrame([{flat} for row in {data}]{kind})"
        case _:
            return f"pd.DataFrame({data}{kind})" if kind else f"pd.json_normalize({data})"


def _call(function: str, path: str, options: dict[str, Any]) -> str:
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"{function}({path}{given})"


def _conversion(step: Step) -> str:
    match step:
        case ToNumber():
            errors = ", errors='coerce'" if step.is_partial else ""
            errors += ", dtype_backend='numpy_nullable'" if step.is_whole else ""
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
        case ToType():
            return f"t[{step.column!r}].astype({step.type!r})"
        case Down():
            above = f"t[{step.column!r}].ffill()"
            return f"t[{step.column!r}].where(~t.index.isin({[*step.rows]}), {above})"
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
