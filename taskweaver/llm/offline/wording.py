"""A request as a task for the code writer: exact names in back quotes, read back by the grammar."""

from __future__ import annotations

from taskweaver.llm.offline.conditions import Filter
from taskweaver.llm.offline.grammar import PERIOD_NAMES, Request

_FUNCTIONS = {
    "std": "standard deviation",
    "nunique": "distinct count",
    "min": "minimum",
    "max": "maximum",
}
_CHARTS = {"hist": "histogram", "box": "box plot", "any": "chart"}


def task(request: Request) -> str:
    """Return the task in words."""
    columns = " and ".join(f"`{name}`" for name in request.columns)
    functions = " and ".join(_FUNCTIONS.get(name, name) for name in request.functions)
    chart = _CHARTS.get(request.chart, f"{request.chart} chart")
    n = request.n or 5
    match request.kind:
        case "aggregate":
            what = f"Compute the {functions} of {columns}" if columns else "Count the rows"
            if request.functions == ("count",) and columns and not request.by:
                what = f"Compute the count of {columns}"
        case "plot":
            what = f"Plot {columns}" if columns else "Plot the rows"
        case "top":
            order = "bottom" if request.is_ascending else "top"
            first, *rest = request.columns or ("",)
            by_one = "by the count of" if functions else "rows by"
            ranked = f"by the {functions} of" if functions else "by"
            what = (
                f"Show the {order} {n} `{first}` {ranked} `{rest[-1]}`"
                if rest
                else f"Show the {order} {n} {by_one} `{first}`"
            )
        case "distinct":
            what = f"List the distinct values of {columns}"
        case "filter":
            what = "How many rows are there" if request.functions else "Show the rows"
        case "correlate":
            what = f"Correlate {columns}" if columns else "Correlate all columns"
        case "outliers":
            what = f"Find outliers of {columns}"
        case _:
            return _plain(request, n)
    parts = [what, _grouping(request), _conditions(request.filters), f"in `{request.file}`"]
    text = " ".join(filter(None, parts))
    if request.chart:
        text += f", and plot it as a {chart}" if request.kind != "plot" else f" as a {chart}"
    return text + "."


def _plain(request: Request, n: int) -> str:
    columns = " and ".join(f"`{name}`" for name in request.columns)
    texts = {
        "describe": f"Describe {columns + ' of ' if columns else ''}`{request.file}`.",
        "columns": f"Load `{request.file}` and show its columns.",
        "head": f"Show the first {n} rows of `{request.file}`.",
        "tail": f"Show the last {n} rows of `{request.file}`.",
        "sample": f"Show a sample of {n} rows of `{request.file}`.",
        "rows": f"Count the rows of `{request.file}`.",
        "missing": f"Count the missing values in `{request.file}`.",
        "files": "List the files.",
        "sql": f"Run this SQL on `{request.file}`:\n{request.text}",
        "code": f"Run this code:\n```python\n{request.text}\n```",
        "arithmetic": f"Compute {request.text}",
    }
    return texts[request.kind]


def _grouping(request: Request) -> str:
    by = [f"`{name}`" for name in request.by]
    if request.period:
        first = f"per {PERIOD_NAMES[request.period]} of {by[0]}"
        return f"{first} by {' and '.join(by[1:])}" if by[1:] else first
    return f"by {' and '.join(by)}" if by else ""


def _conditions(filters: tuple[Filter, ...]) -> str:
    plain = [
        f"`{item.column}` {item.operator} {item.value}"
        for item in filters
        if item.operator != "year"
    ]
    years = [f"in {item.value} of `{item.column}`" for item in filters if item.operator == "year"]
    where = f"where {' and '.join(plain)}" if plain else ""
    return " ".join(filter(None, [where, *years]))
