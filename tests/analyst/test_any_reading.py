"""Arbitrary readings: the code touches its tables alone, and the words stay on one line."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from arbitrary_readings import HOSTILE, readings
from hypothesis import HealthCheck, given, settings
from sizes import examples, some

from taskweaver.analyst.code.cell import as_code
from taskweaver.analyst.code.frames import variable_names
from taskweaver.analyst.readings import Reading
from taskweaver.analyst.wording.requests import in_words
from taskweaver.tables.files.profile import ColumnProfile, TableId, TableProfile

_ALLOWED_NAMES = {"pd", "plt", "len", "print", "min", "read_table", "result", "group", "values",
                  "float", "str", "object", "names", "closing", "sqlite3",
                  "connection"}  # fmt: skip
_MODULES = {"pandas", "matplotlib.pyplot", "sqlite3"}
_FORBIDDEN = {"eval", "query", "system", "pipe", "to_pickle", "read_pickle", "to_csv"}


def _tables() -> Mapping[TableId, TableProfile]:
    kinds = ["number", "integer", "time", "text", "flag"]
    found = tuple(
        ColumnProfile(name, kinds[at % 5], 40 if at % 2 else 3, at % 3, "2020-01-01", "2024-01-01",
                      tuple(HOSTILE[:3]) if at % 2 else None)
        for at, name in enumerate(HOSTILE)
    )  # fmt: skip
    return {
        TableId(name, part): TableProfile(TableId(name, part), 9, found)
        for name in HOSTILE
        for part in ("", "it's", "Plan")
    }


PROFILES = _tables()


@settings(max_examples=examples(len(some(range(200), 80))), suppress_health_check=list(HealthCheck))
@given(readings)
def test_any_reading_is_code_that_touches_only_its_tables(reading: Reading) -> None:
    code = as_code(reading, PROFILES)
    tree = ast.parse(code)
    own = set(variable_names(PROFILES).values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert node.id in _ALLOWED_NAMES | own
        elif isinstance(node, ast.Attribute):
            assert node.attr not in _FORBIDDEN
            assert not node.attr.startswith("_")
        elif isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= _MODULES
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            is_column = isinstance(target, ast.Subscript) and ast.unparse(target.value) == "result"
            assert is_column or ast.unparse(target) in {"result"} | own
        assert not isinstance(node, ast.FunctionDef | ast.Global | ast.For | ast.While)
    words = in_words(reading)
    assert words.isprintable()
    assert words
