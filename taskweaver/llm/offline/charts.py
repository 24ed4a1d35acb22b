"""The code that draws: charts of columns, and of results."""

from __future__ import annotations

import re

from taskweaver.llm.offline.grammar import Request

_WORDS = {"std": "standard deviation", "nunique": "number of distinct values", "hist": "histogram"}


def scatter(data: str, a: str, b: str) -> str:
    """Return the code that draws one column against another."""
    title = f"{b} against {a}"
    draw = f"ax = {data}.plot.scatter(x={a!r}, y={b!r}, alpha=0.4, title={title!r})"
    return f"{draw}\n{save(title)}"


def one_column(column: str, data: str, chart: str) -> str:
    """Return the code that draws one column: its distribution, or how often its values occur."""
    kind = "pie" if chart == "pie" else "bar"
    return (
        f"values = {data}[{column!r}]\n"
        "if pd.api.types.is_numeric_dtype(values):\n"
        f"    ax = values.plot.hist(bins=30, title={f'Distribution of {column}'!r})\n"
        "    result = values.describe()\n"
        "else:\n"
        "    result = values.value_counts().head(30)\n"
        f"    ax = result.plot.{kind}(title={f'Rows per {column}'!r})\n"
        f"{save(column)}\n"
        "result"
    )


def draw_result(request: Request, labels: list[str], values: list[str], title: str) -> str:
    """Return the code that draws a result with group labels and values."""
    kind = (
        request.chart
        if request.chart in {"line", "bar", "pie"}
        else ("line" if request.period else "bar")
    )
    title = title[:1].upper() + title[1:]
    if len(labels) > 1:
        pivot = (
            f"result.pivot_table(index={labels[0]!r}, columns={labels[1]!r}, values={values[0]!r})"
        )
        draw = f"ax = {pivot}.plot(kind={kind!r}, title={title!r})"
    elif kind == "pie":
        shares = f"result.set_index({labels[0]!r})[{values[0]!r}]"
        draw = f"ax = {shares}.plot.pie(autopct='%1.0f%%', title={title!r})"
        return f"{draw}\nax.set_ylabel('')\n{save(title)}"
    else:
        marker = ", marker='o'" if kind == "line" else ""
        axes = f"x={labels[0]!r}, y={values!r}, kind={kind!r}{marker}"
        draw = f"ax = result.plot({axes}, title={title!r})"
    function = word(request.functions[0]) if request.functions and request.columns else ""
    y = f"{function} {values[0]}".strip()
    names = f"ax.set_xlabel({labels[0]!r})\nax.set_ylabel({y!r})"
    return f"{draw}\n{names}\nplt.xticks(rotation=45, ha='right')\n{save(title)}"


def save(title: str) -> str:
    """Return the code that saves the chart under a name made of its title."""
    stem = re.sub(r"\W+", "_", title.lower()).strip("_")[:60] or "chart"
    return f"plt.tight_layout()\nplt.savefig({f'{stem}.png'!r})"


def word(function: str) -> str:
    """Return the name of a function in words."""
    return _WORDS.get(function, function)


def joined(names: list[str]) -> str:
    """Return names as a list in words."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
