"""Read JSON: records, columns, or a table under one key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.sniffing import encoding_of
from taskweaver.tables.packing import opened
from taskweaver.tables.plans.plan import Option, ReadPlan, Shape, Tidy
from taskweaver.tables.plans.steps import carry_out, frame_of, is_flat, json_of
from taskweaver.tables.readers.raw import Raw, exact


def read_json(path: Path, name: str, *, has_lines: bool) -> Raw:
    """Read a JSON file, or one with a JSON value on each line, which the plan calls `name`.

    Raises:
        TableError: If it is no JSON, or holds no table.
    """
    with opened(path) as file:
        content = file.read()
    if not content.strip():
        raise TableError(f"{path.name} is empty.")
    encoding = encoding_of(content[:4000], path.name)
    options: dict[str, Option] = {} if encoding == "utf-8" else {"encoding": encoding}
    try:
        data = json_of(content.decode(encoding), has_lines=has_lines)
    except RecursionError:
        raise TableError(f"{path.name} is nested too deeply.") from None
    except ValueError as error:
        if not has_lines and getattr(error, "msg", "") == "Extra data":
            return read_json(path, name, has_lines=True)
        kind = "JSON in lines" if has_lines else "JSON"
        raise TableError(f"{path.name} is not {kind}: {error}.") from None
    key, shape = _place(data)
    if shape is None:
        raise TableError(f"{path.name} is JSON, but holds no table.")
    if not has_lines:
        options["shape"] = shape
    if key:
        options["key"] = key
    plan = ReadPlan("jsonl" if has_lines else "json", name, options)
    table = data[key] if key else data
    try:
        frame = frame_of(table, shape)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise TableError(f"{path.name} cannot be read as a table: {error}.") from error
    is_nested = shape == "records" and not is_flat(table)
    raw = _tidy(plan, frame, is_nested=is_nested)
    raw.form += [f"table under {key!r}"] if key else []
    return raw


def _tidy(plan: ReadPlan, frame: Any, *, is_nested: bool) -> Raw:
    if not frame.shape[1]:
        raise TableError(f"{Path(plan.path).name} holds no table.")
    if not all(isinstance(name, str) for name in frame.columns):
        plan = replace(plan, steps=(Tidy("names"),))
        frame = carry_out(frame, plan.steps)
    raw = exact(plan, frame, shape="nested" if is_nested else "")
    raw.form = ["JSON lines" if plan.reader == "jsonl" else "JSON"]
    return raw


def _place(data: Any) -> tuple[str, Shape | None]:
    """Return the key under which the table is, empty for none, and its shape; None for no table."""
    if shape := _shape(data):
        return "", shape
    if isinstance(data, dict):
        found = [(key, shape) for key, value in data.items() if (shape := _shape(value))]
        records = [item for item in found if item[1] == "records"] or found
        if len(records) == 1:
            return records[0]
    return "", None


def _shape(data: Any) -> Shape | None:
    if isinstance(data, list):
        return "records" if data and all(isinstance(item, dict) for item in data) else None
    if not isinstance(data, dict) or not data:
        return None
    if isinstance(data.get("columns"), list) and isinstance(data.get("data"), list):
        return "split"
    return _shape_of_values(list(data.values()))


def _shape_of_values(values: list[Any]) -> Shape | None:
    if all(isinstance(value, list) for value in values):
        is_flat = all(not isinstance(item, list | dict) for value in values for item in value[:5])
        return "columns" if is_flat and len({len(value) for value in values}) == 1 else None
    if all(isinstance(value, dict) and value for value in values):
        inner = set(values[0])
        is_table = len(values) > 1 and all(set(value) == inner for value in values)
        if all(str(name).isdecimal() for name in inner):
            return "columns"
        return "index" if is_table else None
    return None
