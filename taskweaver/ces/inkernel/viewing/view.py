"""Views of a kernel's variables: a list of them with sizes, and pages of tables; small pictures.

The list and the pages run code of the objects that they show, and change nothing by themselves.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from taskweaver.ces.inkernel.cell.variables import describe, shown_variables
from taskweaver.ces.inkernel.state.placeholder import LostObject
from taskweaver.ces.inkernel.state.placeholder import describe as describe_lost
from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit
from taskweaver.ces.inkernel.viewing.cells import cell_value
from taskweaver.ces.inkernel.viewing.problem import ViewProblem
from taskweaver.ces.inkernel.viewing.selection import select
from taskweaver.ces.inkernel.viewing.tables import is_table, table_of

MOST_VARIABLES = 1_000
MOST_ROWS, MOST_COLUMNS = 200, 50
_LIMIT_S = 20.0

Payload = dict[str, Any]


def view(
    payload: Mapping[str, Any], namespace: Mapping[str, Any], hidden: frozenset[str]
) -> Payload:
    """Return a view, or the ``problem`` with its ``kind`` and ``text``.

    Args:
        payload: ``view``, which is ``variables`` or ``page``, and its arguments.
        namespace: The kernel's namespace.
        hidden: Names that are not the user's.
    """
    try:
        with time_limit(_LIMIT_S):
            if payload["view"] == "variables":
                return {"variables": list(_variables(namespace, hidden))}
            return _page(payload, namespace, hidden)
    except ViewProblem as error:
        return _problem(error.kind, str(error))
    except TooSlow:
        return _problem("slow", f"It took more than {_LIMIT_S:.0f} s.")
    except KeyboardInterrupt:
        return _problem("slow", "It was given up.")
    except Exception as error:  # noqa: BLE001 - values are the user's objects; the reason is told
        return _problem("invalid", f"{type(error).__name__}: {error}"[:300])


def _problem(kind: str, text: str) -> Payload:
    return {"problem": {"kind": kind, "text": text}}


def _variables(namespace: Mapping[str, Any], hidden: frozenset[str]) -> Iterator[Payload]:
    for name, value in shown_variables(namespace, hidden)[-MOST_VARIABLES:]:
        yield {
            "name": name,
            "type": type(value).__name__,
            "text": describe(value),
            "shape": _shape(value),
            "bytes": _bytes(value),
            "is_table": is_table(value),
        }


def _shape(value: Any) -> list[int] | None:
    shape = getattr(value, "shape", None) if not isinstance(value, types.SimpleNamespace) else None
    if isinstance(shape, tuple) and all(isinstance(side, int) for side in shape):
        return list(shape)
    is_sized = isinstance(value, list | tuple | dict | set | frozenset | str | bytes)
    return [len(value)] if is_sized else None


def _bytes(value: Any) -> int | None:
    """Return the size of a value in memory, without the objects that it refers to."""
    try:
        if hasattr(type(value), "memory_usage"):
            used = value.memory_usage(deep=False)
            return int(used if isinstance(used, int) else used.sum())
        for name in ("nbytes", "estimated_size"):
            size = getattr(value, name, None)
            if size is not None:
                return int(size() if callable(size) else size)
        return sys.getsizeof(value)
    except Exception:  # noqa: BLE001 - the user's code; the size is left out
        return None


def _page(
    payload: Mapping[str, Any], namespace: Mapping[str, Any], hidden: frozenset[str]
) -> Payload:
    name = payload["name"]
    if name in hidden or name not in namespace:
        raise ViewProblem("missing", f"There is no variable {name!r:.100}.")
    value = namespace[name]
    if type(value) is LostObject:
        raise ViewProblem("missing", f"{name!r:.100}: {describe_lost(value)}.")
    table = table_of(value)
    rows, columns = table.shape
    filters = [(int(at), str(how), str(value)) for at, how, value in payload["filters"]]
    order = [(int(at), bool(is_descending)) for at, is_descending in payload["order"]]
    if filters or order:
        found: Any = select(table, filters, order)
    else:
        found = range(rows)
    first, count = payload["first_row"], min(payload["rows"], MOST_ROWS)
    positions = list(map(int, found[first : first + count]))
    begin = payload["first_column"]
    numbers = range(begin, min(columns, begin + min(payload["columns"], MOST_COLUMNS)))
    shown = [table.column(number) for number in numbers]
    options = {"is_nan_missing": table.is_nan_missing}
    by_column = [
        [cell_value(one, column.kind, **options) for one in table.values(number, positions)]
        for number, column in zip(numbers, shown, strict=True)
    ]
    labels = [
        [cell_value(one, "object", **options) for one in level] for level in table.labels(positions)
    ]
    return {
        "rows": rows,
        "found_rows": len(found),
        "total_columns": columns,
        "first_row": first,
        "first_column": begin,
        "columns": [{"name": c.name[:500], "dtype": c.dtype[:200], "kind": c.kind} for c in shown],
        "label_names": [one[:500] for one in table.label_names],
        "labels": [list(row) for row in zip(*labels, strict=True)] if labels else [],
        "cells": [[values[at] for values in by_column] for at in range(len(positions))],
    }
