"""Strategies: readings of all types, with names and values that would be code if they could."""

from __future__ import annotations

from hypothesis import strategies as st

from taskweaver.analyst.readings import (
    And,
    Arithmetic,
    Column,
    Comparison,
    Condition,
    Constant,
    Contains,
    Contrast,
    Cumulative,
    During,
    Expression,
    GroupKey,
    Latest,
    Measure,
    Missing,
    Not,
    OnCalendar,
    OneOf,
    Or,
    PeriodChange,
    Rank,
    Reading,
    Rows,
    Share,
    Sql,
    Summary,
    TableSource,
    TableView,
)
from taskweaver.tables.files.profile import TableId

HOSTILE = [
    "a", "b", "it's", 'say "x"', "a\nb", "'); import os; os.system('x') #", "{title}", "`tick`",
    "\\",
    "__import__('os')", "\u202ea\u2028b", "", "$x$ $y$", "result", "print", "名前", "%%bash", "{0}",
    '"""', "a'] = 1 #", "\x00\x1b[31m", "x" * 300,
]  # fmt: skip
names = st.sampled_from(HOSTILE)
scalars = st.one_of(
    names, st.integers(-5, 3000), st.booleans(), st.floats(allow_nan=True, allow_infinity=True)
)
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(st.builds(Column, names), st.builds(Constant, st.floats())),
    lambda inner: st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/"]), inner, inner),
    max_leaves=4,
)
dates = st.sampled_from(["", "2024-01-01", "2025-01-01", "2024-03-05T10:00:00", "x'", "9999-12-31"])
units = st.sampled_from(["year", "quarter", "month", "week", "day", "hour"])
parts = st.sampled_from(["quarter", "month", "weekday", "day", "hour"])
comparators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
simple: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Comparison, expressions, comparators, st.one_of(scalars, expressions)),
    st.builds(OneOf, names, st.lists(scalars, max_size=3).map(tuple)),
    st.builds(Contains, names, names),
    st.builds(Missing, names),
    st.builds(During, names, dates, dates),
    st.builds(OnCalendar, names, parts, st.lists(st.integers(0, 31), max_size=3).map(tuple)),
    st.builds(Latest, names, st.integers(1, 9), units),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)
functions = st.sampled_from(
    "count nunique sum mean median min max std var range iqr percentile mode nth missing "
    "correlation".split()
)
measures = st.builds(
    Measure,
    functions,
    st.none() | expressions,
    quantile=st.floats(0, 1),
    n=st.integers(-5, 5),
    other=st.none() | expressions,
).filter(lambda measure: measure.of is not None or measure.function in {"count", "missing"})
keys = st.builds(GroupKey, names, st.none() | units, st.none()) | st.builds(
    GroupKey, names, st.none(), st.none() | parts
)
ids = st.builds(TableId, names, st.sampled_from(["", "it's", "Plan"]))
sources = st.one_of(
    st.builds(lambda id: TableSource((id,)), ids),
    st.builds(lambda a, b, on: TableSource((a, b), ((on,),)), ids, ids, names),
)
thens = st.one_of(
    st.none(), st.builds(Share, st.none() | conditions), st.builds(PeriodChange, st.booleans()),
    st.builds(Contrast, conditions, conditions, st.booleans()), st.builds(Cumulative),
)  # fmt: skip
ranks = st.none() | st.builds(
    Rank, st.booleans(), st.none() | st.integers(1, 50), st.integers(0, 3)
)
charts = st.sampled_from([None, "line", "bar", "pie", "histogram", "box", "scatter"])
columns = st.lists(names, max_size=3, unique=True).map(tuple)
views = st.sampled_from(
    "describe columns sample values missing correlations outliers span shape".split()
)
readings: st.SearchStrategy[Reading] = st.one_of(
    st.builds(
        Summary, sources, st.lists(measures, min_size=1, max_size=3).map(tuple),
        st.lists(keys, max_size=3).map(tuple), st.none() | conditions, thens, ranks, st.booleans(),
        charts,
    ),
    st.builds(
        Rows, sources, columns, st.none() | conditions, st.none() | expressions, ranks,
        st.booleans(), charts, names,
    ),
    st.builds(TableView, sources, views, columns, st.none() | conditions, st.integers(1, 9)),
    st.builds(Sql, names, names),
)  # fmt: skip
