"""From a request to the cell that answers it: short pandas code a person would write."""

from __future__ import annotations

from dataclasses import replace

from taskweaver.llm.offline.charts import draw_result, joined, one_column, save, scatter, word
from taskweaver.llm.offline.conditions import Filter
from taskweaver.llm.offline.grammar import PERIOD_NAMES, Request
from taskweaver.llm.offline.loading import load, look, split_table, variable


def cell(
    request: Request, known: frozenset[str], *, is_careful: bool = False, encoding: str = ""
) -> str:
    """Return the cell for a request.

    Args:
        request: What is asked, with exact columns.
        known: Variables that exist.
        is_careful: Whether a plainer cell failed: load the file again, with care.
        encoding: Encoding of the file; empty for UTF-8.
    """
    match request.kind:
        case "code":
            return request.text
        case "arithmetic":
            return request.text
        case "files":
            return "from pathlib import Path\n\nsorted(path.name for path in Path().iterdir())"
        case "sql":
            return _sql(request)
        case "columns":
            return look(request.file, is_careful=is_careful, encoding=encoding)
    data = variable(request.file)
    parts = []
    if data not in known or is_careful:
        parts = [load(request.file, is_careful=is_careful, encoding=encoding)]
    if request.filters:
        conditions = " & ".join(_condition(data, item) for item in request.filters)
        parts.append(f"chosen = {data}[{conditions}]")
        data = "chosen"
    return "\n".join([*parts, _body(request, data)])


def _condition(data: str, item: Filter) -> str:
    if item.operator == "year":
        return f"({data}[{item.column!r}].dt.year == {item.value})"
    return f"({data}[{item.column!r}] {item.operator} {item.value})"


def _sql(request: Request) -> str:
    place = f"file:{split_table(request.file)[0]}?mode=ro"
    return (
        "import sqlite3\n\nimport pandas as pd\n\n"
        f"with sqlite3.connect({place!r}, uri=True) as connection:\n"
        f"    result = pd.read_sql_query({request.text!r}, connection)\nresult"
    )


def _body(request: Request, data: str) -> str:
    columns = list(request.columns)
    picked = f"{data}[{columns!r}]" if columns else data
    n = request.n or 5
    simple = {
        "describe": f"{picked}.describe(include='all')",
        "head": f"{data}.head({n})",
        "tail": f"{data}.tail({n})",
        "sample": f"{data}.sample(min({n}, len({data})), random_state=0)",
        "rows": f"len({data})",
        "missing": f"{data}.isna().sum().rename('missing').to_frame()",
    }
    if request.kind in simple:
        return simple[request.kind]
    bodies = {
        "distinct": _distinct,
        "aggregate": _aggregate,
        "top": _top,
        "filter": _filtered,
        "correlate": _correlate,
        "plot": _plot,
        "outliers": _outliers,
    }
    return bodies[request.kind](request, data)


def _distinct(request: Request, data: str) -> str:
    return f"{data}[{request.columns[0]!r}].value_counts(dropna=False).to_frame()"


def _filtered(request: Request, data: str) -> str:
    if request.functions == ("count",):
        return f"len({data})"
    return f"print(len({data}), 'rows')\n{data}.head({request.n or 20})"


def _groups(request: Request, data: str) -> tuple[str, list[str]]:
    """Return the code of the group keys and their names."""
    keys, labels = [], []
    by = list(request.by)
    if request.period:
        name = PERIOD_NAMES[request.period]
        date = by.pop(0)
        keys.append(
            f"{data}[{date!r}].dt.to_period({request.period!r}).astype(str).rename({name!r})"
        )
        labels.append(name)
        # Rows without a date belong to no period.
    keys += [repr(column) for column in by]
    labels += by
    return "[" + ", ".join(keys) + "]", labels


def _aggregate(request: Request, data: str) -> str:
    functions = list(request.functions) or ["mean"]
    columns = list(request.columns)
    if not (request.by or request.period):
        return _aggregate_all(data, columns, functions)
    keys, labels = _groups(request, data)
    dated = f"{data}.dropna(subset=[{request.by[0]!r}])" if request.period else data
    if request.period and dated != data:
        keys = keys.replace(f"{data}[", "dated[", 1)
        prelude, data = f"dated = {dated}\n", "dated"
    else:
        prelude = ""
    if not columns:
        grouped = f"{data}.groupby({keys}, dropna=False).size().reset_index(name='rows')"
        values, words = ["rows"], "Rows"
    elif len(functions) == 1:
        grouped = (
            f"{data}.groupby({keys}, dropna=False)[{columns!r}].{functions[0]}().reset_index()"
        )
        values, words = columns, f"{word(functions[0])} of {joined(columns)}"
    else:
        grouped = (
            f"{data}.groupby({keys}, dropna=False)[{columns[0]!r}].agg({functions!r}).reset_index()"
        )
        values, words = functions, f"{joined([word(f) for f in functions])} of {columns[0]}"
    text = f"{prelude}result = {grouped}"
    if request.chart:
        text += "\n" + draw_result(request, labels, values, f"{words} per {joined(labels)}")
    return f"{text}\nresult"


def _aggregate_all(data: str, columns: list[str], functions: list[str]) -> str:
    if not columns:
        return f"len({data})"
    if len(columns) == len(functions) == 1:
        return f"{data}[{columns[0]!r}].{functions[0]}()"
    return f"{data}[{columns!r}].agg({functions!r})"


def _top(request: Request, data: str) -> str:
    columns, n, ascending = list(request.columns), request.n or 5, request.is_ascending
    function = request.functions[0] if request.functions else ""
    if request.by and columns:
        function, columns = function or "sum", [request.by[0], columns[-1]]
    if function == "count" or (len(columns) == 1 and not function and request.functions):
        counted = f"{data}[{columns[0]!r}].value_counts(ascending={ascending})"
        text, values = f"result = {counted}.head({n}).reset_index()", ["count"]
    elif function and len(columns) > 1:
        text = (
            f"result = {data}.groupby({columns[0]!r}, dropna=False)[{columns[-1]!r}].{function}()"
            f".sort_values(ascending={ascending}).head({n}).reset_index()"
        )
        values = [columns[-1]]
    else:
        ranked = f"{data}.sort_values({columns[-1]!r}, ascending={ascending})"
        text, values = f"result = {ranked}.head({n})", [columns[-1]]
    if request.chart:
        title = f"Top {n} {columns[0]} by {function} {values[0]}".replace("  ", " ")
        text += "\n" + draw_result(request, [columns[0]], values, title)
    return f"{text}\nresult"


def _correlate(request: Request, data: str) -> str:
    if len(request.columns) == 2:
        a, b = request.columns
        text = f"result = {data}[{a!r}].corr({data}[{b!r}])"
        if request.chart:
            text += "\n" + scatter(data, a, b)
        return f"{text}\nresult"
    picked = f"{data}[{list(request.columns)!r}]" if request.columns else data
    return f"{picked}.corr(numeric_only=True)"


def _outliers(request: Request, data: str) -> str:
    column = request.columns[0]
    return (
        f"values = {data}[{column!r}]\n"
        "middle = values.median()\n"
        "spread = (values - middle).abs().median() * 1.4826  # robust standard deviation\n"
        "score = ((values - middle) / spread).abs()\n"
        f"result = {data}[score > 3.5].assign(score=score[score > 3.5].round(1))\n"
        "print(len(result), 'of', len(values), 'rows are more than 3.5 robust deviations off')\n"
        "result.sort_values('score', ascending=False).head(20)"
    )


def _plot(request: Request, data: str) -> str:
    columns, chart = list(request.columns), request.chart
    if chart in {"hist", "box"}:
        kind = "hist(bins=30" if chart == "hist" else "box("
        comma = ", " if chart == "hist" else ""
        title = f"{'Distribution' if chart == 'hist' else 'Box plot'} of {joined(columns)}"
        text = f"ax = {data}[{columns!r}].plot.{kind}{comma}title={title!r})\n"
        text += f"ax.set_xlabel({columns[0]!r})\n" if chart == "hist" else ""
        return f"{text}{save(title)}\n{data}[{columns!r}].describe()"
    if chart == "scatter" and len(columns) + len(request.by) >= 2:
        a, b = (columns + list(request.by))[:2]
        return f"{scatter(data, a, b)}\n{data}[{a!r}].corr({data}[{b!r}])"
    if request.period or request.by:
        return _aggregate(_with_default_function(request), data)
    if len(columns) == 1:
        return one_column(columns[0], data, chart)
    x, *ys = columns
    title = f"{joined(ys)} over {x}"
    return (
        f"ax = {data}.sort_values({x!r}).plot(x={x!r}, y={ys!r}, title={title!r})\n"
        f"{save(title)}\n{data}[{ys!r}].describe()"
    )


def _with_default_function(request: Request) -> Request:
    default = ("sum",) if request.columns else ("count",)
    return replace(request, functions=request.functions or default)
