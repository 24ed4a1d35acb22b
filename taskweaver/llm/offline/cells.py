"""From a request to the cell that answers it: short pandas code a person would write."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

from taskweaver.llm.offline.conditions import Filter
from taskweaver.llm.offline.grammar import PERIOD_NAMES, Request

_READERS = {
    "csv": "pd.read_csv({file})",
    "txt": "pd.read_csv({file}, sep=None, engine='python')",
    "tsv": "pd.read_csv({file}, sep='\\t')",
    "json": "pd.read_json({file})",
    "jsonl": "pd.read_json({file}, lines=True)",
    "ndjson": "pd.read_json({file}, lines=True)",
    "parquet": "pd.read_parquet({file})",
    "xlsx": "pd.read_excel({file})",
    "xls": "pd.read_excel({file})",
}
_DATABASES = {"db", "sqlite", "sqlite3"}
_WORDS = {"std": "standard deviation", "nunique": "number of distinct values", "hist": "histogram"}


def split_table(file: str) -> tuple[str, str]:
    """Split ``shop.db#orders`` into file and table."""
    name, _, table = file.partition("#")
    return name, table


def is_database(file: str) -> bool:
    """Return whether a file holds several tables."""
    return PurePath(split_table(file)[0]).suffix.lower().lstrip(".") in _DATABASES


def variable(file: str) -> str:
    """Return the name of the variable a file is loaded into."""
    name, table = split_table(file)
    stem = re.sub(r"\W+", "_", table or PurePath(name).stem).strip("_").lower()
    return stem if stem and not stem[0].isdigit() else f"data_{stem}"


def load(file: str, *, careful: bool = False) -> str:
    """Return the code that loads a file; `careful` is for one that did not load plainly."""
    name, table = split_table(file)
    data = variable(file)
    if is_database(file):
        query = 'SELECT * FROM "' + table.replace('"', '""') + '"'
        reading = (
            f"with sqlite3.connect({name!r}) as connection:\n"
            f"    {data} = pd.read_sql_query({query!r}, connection)"
        )
        head = "import sqlite3\n\nimport pandas as pd\n"
    else:
        suffix = PurePath(name).suffix.lower().lstrip(".")
        reader = _READERS.get(suffix, _READERS["csv"]).format(file=repr(name))
        if careful and suffix in {"csv", "txt", "tsv"}:
            reader = f"pd.read_csv({name!r}, sep=None, engine='python', encoding='latin-1')"
        head, reading = "import pandas as pd\n", f"{data} = {reader}"
        if suffix == "csv" and not careful:
            reading += (
                f"\nif {data}.shape[1] == 1 and ';' in {data}.columns[0]:"
                f"\n    {data} = pd.read_csv({name!r}, sep=';')"
            )
    dates = (
        f"for column in {data}.columns:  # dates come as text\n"
        f"    texts = {data}[column]\n"
        f"    if pd.api.types.is_numeric_dtype(texts) or texts.isna().all():\n"
        "        continue\n"
        f"    if texts.dropna().astype(str).str.contains(r'\\d[-/.:]\\d').mean() > 0.9:\n"
        f'        dates = pd.to_datetime(texts, errors="coerce", format="mixed")\n'
        f"        if dates.notna().sum() >= 0.9 * texts.notna().sum():\n"
        f"            {data}[column] = dates"
    )
    return f"{head}\n{reading}\n{dates}"


def look(file: str, *, careful: bool = False) -> str:
    """Return the cell that shows what a file holds."""
    name, table = split_table(file)
    if is_database(file) and not table:
        return (
            "import sqlite3\n\n"
            f"with sqlite3.connect({f'file:{name}?mode=ro'!r}, uri=True) as connection:\n"
            "    columns = connection.execute(\n"
            '        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"\n'
            "        \" WHERE m.type = 'table'\"\n"
            "    ).fetchall()\n"
            "tables = {table: [] for table, _ in columns}\n"
            "for table, column in columns:\n"
            "    tables[table].append(column)\n"
            f'{{"file": {name!r}, "tables": tables}}'
        )
    data = variable(file)
    return (
        f"{load(file, careful=careful)}\n"
        f"texts = [name for name in {data}.columns if {data}[name].nunique() <= 20"
        f" and not pd.api.types.is_numeric_dtype({data}[name])]\n"
        f'{{"file": {file!r}, "rows": len({data}),'
        f' "columns": {{str(name): str(kind) for name, kind in {data}.dtypes.items()}},\n'
        ' "values": {name: sorted('
        f"{data}[name].dropna().astype(str).unique()) for name in texts}}}}"
    )


def cell(request: Request, known: frozenset[str], *, careful: bool = False) -> str:
    """Return the cell for a request.

    Args:
        request: What is asked, with exact columns.
        known: Variables that exist.
        careful: Whether a plainer cell failed: convert what should be numbers.
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
            return look(request.file, careful=careful)
    data = variable(request.file)
    parts = [] if data in known and not careful else [load(request.file, careful=careful)]
    if careful:
        parts += [
            _as_numbers(data, name)
            for name in request.columns
            if request.functions or request.kind in {"correlate", "outliers"}
        ]
    if request.filters:
        conditions = " & ".join(_condition(data, item) for item in request.filters)
        parts.append(f"chosen = {data}[{conditions}]")
        data = "chosen"
    return "\n".join([*parts, _body(request, data)])


def _as_numbers(data: str, name: str) -> str:
    """Return the code that reads a column as numbers, and says what it could not read."""
    return (
        f"numbers = pd.to_numeric({data}[{name!r}], errors='coerce')\n"
        f"lost = int(numbers.isna().sum() - {data}[{name!r}].isna().sum())\n"
        f"if lost * 2 >= len({data}):\n"
        f"    raise ValueError(f'{{lost}} values of ' + {name!r} + ' are no numbers')\n"
        f"if lost:\n"
        f"    print(lost, 'values of', {name!r}, 'are no numbers and were left out')\n"
        f"{data}[{name!r}] = numbers"
    )


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
        values, words = columns, f"{_word(functions[0])} of {_and(columns)}"
    else:
        grouped = (
            f"{data}.groupby({keys}, dropna=False)[{columns[0]!r}].agg({functions!r}).reset_index()"
        )
        values, words = functions, f"{_and([_word(f) for f in functions])} of {columns[0]}"
    text = f"{prelude}result = {grouped}"
    if request.chart:
        text += "\n" + _chart(request, labels, values, f"{words} per {_and(labels)}")
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
        text += "\n" + _chart(request, [columns[0]], values, title)
    return f"{text}\nresult"


def _correlate(request: Request, data: str) -> str:
    if len(request.columns) == 2:
        a, b = request.columns
        text = f"result = {data}[{a!r}].corr({data}[{b!r}])"
        if request.chart:
            text += "\n" + _scatter(data, a, b)
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
        title = f"{'Distribution' if chart == 'hist' else 'Box plot'} of {_and(columns)}"
        text = f"ax = {data}[{columns!r}].plot.{kind}{comma}title={title!r})\n"
        text += f"ax.set_xlabel({columns[0]!r})\n" if chart == "hist" else ""
        return f"{text}{_save(title)}\n{data}[{columns!r}].describe()"
    if chart == "scatter" and len(columns) + len(request.by) >= 2:
        a, b = (columns + list(request.by))[:2]
        return f"{_scatter(data, a, b)}\n{data}[{a!r}].corr({data}[{b!r}])"
    if request.period or request.by:
        return _aggregate(_with_default_function(request), data)
    if len(columns) == 1:
        return _plot_one(columns[0], data, chart)
    x, *ys = columns
    title = f"{_and(ys)} over {x}"
    return (
        f"ax = {data}.sort_values({x!r}).plot(x={x!r}, y={ys!r}, title={title!r})\n"
        f"{_save(title)}\n{data}[{ys!r}].describe()"
    )


def _scatter(data: str, a: str, b: str) -> str:
    title = f"{b} against {a}"
    draw = f"ax = {data}.plot.scatter(x={a!r}, y={b!r}, alpha=0.4, title={title!r})"
    return f"{draw}\n{_save(title)}"


def _plot_one(column: str, data: str, chart: str) -> str:
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
        f"{_save(column)}\n"
        "result"
    )


def _with_default_function(request: Request) -> Request:
    default = ("sum",) if request.columns else ("count",)
    return replace(request, functions=request.functions or default)


def _chart(request: Request, labels: list[str], values: list[str], title: str) -> str:
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
        return f"{draw}\nax.set_ylabel('')\n{_save(title)}"
    else:
        marker = ", marker='o'" if kind == "line" else ""
        axes = f"x={labels[0]!r}, y={values!r}, kind={kind!r}{marker}"
        draw = f"ax = result.plot({axes}, title={title!r})"
    function = _word(request.functions[0]) if request.functions and request.columns else ""
    y = f"{function} {values[0]}".strip()
    names = f"ax.set_xlabel({labels[0]!r})\nax.set_ylabel({y!r})"
    return f"{draw}\n{names}\nplt.xticks(rotation=45, ha='right')\n{_save(title)}"


def _save(title: str) -> str:
    stem = re.sub(r"\W+", "_", title.lower()).strip("_")[:60] or "chart"
    return f"plt.tight_layout()\nplt.savefig({f'{stem}.png'!r})"


def _word(function: str) -> str:
    return _WORDS.get(function, function)


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
