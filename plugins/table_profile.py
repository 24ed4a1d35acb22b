"""A profile of a table: statistics of each column, what is odd about it, and a report in HTML.

Counts, missing and distinct values, quantiles, histograms, ranges and gaps are of all rows. What
costs more (duplicate rows, correlations, lengths and kinds of texts) is of a random sample when the
table is large, and the description says so.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from taskweaver.plugin import Plugin, register_plugin, test_plugin

FIELDS = (
    "column dtype kind count missing missing_pct distinct min q25 median q75 max mean std zeros "
    "outliers top top_count length_min length_mean length_max first last largest_gap notes"
).split()
MAX_REPORTED_COLUMNS = 200
MAX_CORRELATED_COLUMNS = 100
MIN_CORRELATED_ROWS = 5
SHOWN_CHARS = 60
_NUMBER = r"[+-]?\s?[€$£]?\s?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:[.,' ]\d{3})+)(?:[.,]\d+)?\s?[%€$£]?"
_DAY = r"\d{4}-\d\d-\d\d(?:[ T].*)?"
_NUMBER_KINDS = frozenset({"integer", "floating", "mixed-integer-float", "decimal"})
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light dark; --ground: #fbfaf7; --panel: #fff; --line: #d9d4c9;
  --ink: #24211c; --soft: #6d675d; --note: #a04000; --bar: #4878a8 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #16181a; --panel: #1d2023; --line: #3a3f45; --ink: #e4e2dd; --soft: #9a968d;
    --note: #e0a068; --bar: #7aa7d4 }} }}
* {{ box-sizing: border-box }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 66rem;
  color: var(--ink); background: var(--ground); overflow-wrap: anywhere }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.05rem; margin: 0 0 .4rem }}
h2 small {{ color: var(--soft); font-weight: normal }}
.note {{ color: var(--note); margin: 0 0 .4rem }}
section {{ background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem 1rem; margin: 0 0 .8rem }}
.parts {{ display: flex; flex-wrap: wrap; gap: .6rem 2rem }}
.facts {{ flex: 1 1 16rem; min-width: 0; margin: 0; display: grid; gap: .5rem 1rem;
  grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)) }}
dt {{ color: var(--soft); font-size: .8rem }} dd {{ margin: 0 }}
table {{ border-collapse: collapse; align-self: flex-start }}
td {{ padding: 0 1rem 0 0; vertical-align: top }}
svg {{ max-width: 100%; align-self: flex-start }} rect {{ fill: var(--bar) }}
</style></head><body><h1>{title}</h1>
{body}
</body></html>
"""


@dataclass
class Column:
    """What is known of one column: a row of the summary, and what only the report shows."""

    facts: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    values: np.ndarray | None = None
    top: list[tuple[str, int]] = field(default_factory=list)


@register_plugin
class TableProfile(Plugin):
    """Describes a table and writes a report."""

    def __call__(self, df: pd.DataFrame, title: str | None = None) -> tuple[pd.DataFrame, str]:
        """Describe a table.

        Args:
            df: The table; it is not changed.
            title: Heading of the report.

        Returns:
            One row per column, and a text about what stands out.

        Raises:
            ValueError: If `df` is no DataFrame.
        """
        if not isinstance(df, pd.DataFrame):
            raise ValueError(f"table_profile needs a DataFrame, not {type(df).__name__}.")
        limit = max(int(self.config.get("sample_rows", 100_000)), 100)
        table = df.reset_index(drop=True)
        table.columns = pd.RangeIndex(table.shape[1])
        sample = table.sample(limit, random_state=0) if len(table) > limit else table
        with np.errstate(all="ignore"):
            columns = [
                _profile(table[at], sample[at], name)
                for at, name in enumerate(_unique([_short(name) for name in df.columns]))
            ]
            threshold = float(self.config.get("high_correlation", 0.95))
            findings = [_duplicates(sample, len(table)), *_correlated(sample, columns, threshold)]
        for column in columns:
            column.facts["notes"] = "; ".join(column.notes)
        summary = pd.DataFrame([column.facts for column in columns], columns=FIELDS)
        description = _describe(table, sample, columns, [text for text in findings if text])
        page = _page(title or "Table profile", description, columns)
        self.ctx.add_artifact(title or "table profile", "profile.html", "html", page, description)
        self.log("info", description)
        return summary, description


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _profile(full: pd.Series, sample: pd.Series, name: str) -> Column:
    missing = int(full.isna().sum())
    column = Column(
        {
            "column": name,
            "dtype": str(full.dtype),
            "count": len(full) - missing,
            "missing": missing,
            "missing_pct": round(100 * missing / len(full), 2) if len(full) else 0.0,
        }
    )
    known = full.dropna()
    kind, values = _kind(known)
    column.facts["kind"] = kind
    if kind == "number":
        _profile_numbers(column, values)
    elif kind == "time":
        _profile_times(column, values)
    elif kind != "empty":
        _profile_texts(column, known, sample.dropna())
    if column.facts.get("distinct") == 1 and len(known) > 1 and not missing:
        column.notes.append("constant")
    if kind == "empty":
        column.facts["distinct"] = 0
        column.notes.extend(["all missing"] if len(full) else [])
    return column


def _kind(known: pd.Series) -> tuple[str, Any]:
    """Tell numbers, times, flags and texts apart; return what is then worked with."""
    types = pd.api.types
    if known.empty:
        return "empty", known
    if types.is_bool_dtype(known.dtype):
        return "flag", known
    if types.is_datetime64_any_dtype(known.dtype):
        return "time", known
    if types.is_numeric_dtype(known.dtype) and not types.is_complex_dtype(known.dtype):
        return "number", known.to_numpy(dtype="float64")
    if known.dtype != object:
        return "text" if types.is_string_dtype(known.dtype) else "other", known
    return _kind_of_cells(known)


def _kind_of_cells(known: pd.Series) -> tuple[str, Any]:
    inferred = pd.api.types.infer_dtype(known)
    if inferred in _NUMBER_KINDS:
        return "number", known.map(_as_float).to_numpy(dtype="float64")
    if inferred in {"date", "datetime", "datetime64"}:
        times = pd.to_datetime(known, errors="coerce", utc=True)
        if times.notna().all():
            has_zone = getattr(known.iloc[0], "tzinfo", None) is not None
            return "time", times if has_zone else times.dt.tz_localize(None)
    return {"boolean": "flag", "string": "text"}.get(inferred, "other"), known


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an int without bounds
        return math.inf if number > 0 else -math.inf


def _as_floats(column: pd.Series) -> pd.Series:
    """Return numbers of any type as floats, missing ones as NaN."""
    if column.dtype == object:
        column = column.map(lambda value: math.nan if pd.isna(value) else _as_float(value))
    return column.astype("float64")


def _profile_numbers(column: Column, values: np.ndarray) -> None:
    column.facts["distinct"] = len(pd.unique(values))
    finite = values[np.isfinite(values)]
    if len(finite) < len(values):
        column.notes.append(f"{len(values) - len(finite):,} infinite")
    if not len(finite):
        return
    low, q25, median, q75, high = (float(q) for q in np.quantile(finite, [0, 0.25, 0.5, 0.75, 1]))
    column.facts |= {"min": low, "q25": q25, "median": median, "q75": q75, "max": high}
    column.facts |= {"mean": float(finite.mean()), "zeros": int((finite == 0).sum())}
    column.facts["std"] = float(finite.std(ddof=1)) if len(finite) > 1 else None
    reach = 1.5 * (q75 - q25)
    # Where half of the values are the same, the quartiles say nothing about what is far.
    if reach > 0:
        outliers = int(((finite < q25 - reach) | (finite > q75 + reach)).sum())
        column.facts["outliers"] = outliers
        if outliers:
            column.notes.append(
                f"{_counted(outliers, 'outlier')} (beyond 1.5 interquartile ranges)"
            )
    column.values = finite


def _profile_times(column: Column, times: pd.Series) -> None:
    ordered = times.sort_values()
    column.facts |= {"distinct": int(times.nunique())}
    column.facts |= {"first": str(ordered.iloc[0]), "last": str(ordered.iloc[-1])}
    gaps = ordered.drop_duplicates().diff().dropna()
    if len(gaps):
        column.facts["largest_gap"] = str(gaps.max())
        usual = gaps.median()
        wide = int((gaps > 1.5 * usual).sum()) if len(gaps) > 2 else 0
        if wide:
            column.notes.append(f"{_counted(wide, 'gap')} wider than the usual step of {usual}")
    column.values = ordered.dt.tz_localize(None).to_numpy("datetime64[s]").astype("float64")


def _profile_texts(column: Column, known: pd.Series, sample: pd.Series) -> None:
    try:
        counts = known.value_counts()
    except TypeError:  # cells that cannot be hashed, such as lists
        counts = sample.map(repr).value_counts()
        if len(sample) < len(known):
            column.notes.append("values counted in the sample")
    column.top = [(_short(value), int(count)) for value, count in counts.head(8).items() if count]
    column.facts["distinct"] = int((counts > 0).sum())
    if column.top:
        column.facts["top"], column.facts["top_count"] = column.top[0]
    if column.facts["kind"] == "other" and known.dtype == object:
        kinds = Counter(type(value).__name__ for value in sample)
        if len(kinds) > 1:
            mixed = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(5))
            column.notes.append(f"mixed types: {mixed}")
    if column.facts["kind"] == "text" and len(sample):
        _profile_strings(column, sample)


def _profile_strings(column: Column, texts: pd.Series) -> None:
    lengths = texts.str.len()
    column.facts |= {"length_min": int(lengths.min()), "length_max": int(lengths.max())}
    column.facts["length_mean"] = round(float(lengths.mean()), 1)
    stripped = texts.str.strip()
    blank = int((stripped == "").sum())
    if blank:
        column.notes.append(_counted(blank, "blank text"))
    filled = stripped[stripped != ""]
    for pattern, what in ((_NUMBER, "numbers"), (_DAY, "times")):
        if len(filled) and filled.str.slice(0, 40).str.fullmatch(pattern).mean() >= 0.95:
            column.notes.append(f"holds {what} as text")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _short(value: object) -> str:
    # Halves of surrogate pairs cannot be kept in a column of text.
    text = " ".join(str(value).encode("utf-8", "replace").decode().split())
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def _duplicates(sample: pd.DataFrame, rows: int) -> str:
    if not sample.shape[1]:
        return ""
    try:
        count = int(sample.duplicated().sum())
    except TypeError:  # cells that cannot be hashed
        objects = [at for at in sample if sample[at].dtype == object]
        plain = sample.astype(object)
        plain[objects] = plain[objects].map(repr)
        count = int(plain.duplicated().sum())
    if not count:
        return ""
    where = f" in the sample, so at least as many among all {rows:,}" if len(sample) < rows else ""
    return (
        f"{_counted(count, 'row')} {'repeats' if count == 1 else 'repeat'} an earlier one{where}."
    )


def _correlated(sample: pd.DataFrame, columns: list[Column], threshold: float) -> list[str]:
    numeric = [
        at
        for at, column in enumerate(columns)
        if column.facts["kind"] == "number" and column.facts["distinct"] > 1
    ]
    left_out = len(numeric) - MAX_CORRELATED_COLUMNS
    numeric = numeric[:MAX_CORRELATED_COLUMNS]
    numbers = pd.DataFrame({at: _as_floats(sample[at]) for at in numeric})
    matrix = (
        numbers.replace([np.inf, -np.inf], np.nan).corr(min_periods=MIN_CORRELATED_ROWS).to_numpy()
    )
    found = [
        (matrix[i, j], numeric[i], numeric[j])
        for i, j in zip(*np.triu_indices(len(numeric), 1), strict=True)
        if abs(matrix[i, j]) >= threshold
    ]
    found.sort(key=lambda item: -abs(item[0]))
    texts = []
    if found:
        pairs = [
            f"{columns[i].facts['column']} and {columns[j].facts['column']} ({r:+.2f})"
            for r, i, j in found[:10]
        ]
        more = f" and {len(found) - 10} more pairs" if len(found) > 10 else ""
        texts.append(f"Highly correlated: {', '.join(pairs)}{more}.")
    if left_out > 0:
        texts.append(f"Correlations are of the first {MAX_CORRELATED_COLUMNS} numeric columns.")
    return texts


def _describe(
    table: pd.DataFrame, sample: pd.DataFrame, columns: list[Column], findings: list[str]
) -> str:
    rows, width = table.shape
    texts = [f"{_counted(rows, 'row')} and {_counted(width, 'column')}."]
    cells = sum(column.facts["missing"] for column in columns)
    if cells:
        share = f"{100 * cells / (rows * width):.1f} %"
        verb = "is" if cells == 1 else "are"
        texts.append(f"{_counted(cells, 'cell')} ({share}) {verb} missing.")
    texts += findings
    odd = [column for column in columns if column.notes]
    for column in odd[:20]:
        texts.append(f"{column.facts['column']}: {'; '.join(column.notes)}.")
    if len(odd) > 20:
        texts.append(f"{len(odd) - 20} more columns have notes in the summary.")
    if len(sample) < rows:
        texts.append(
            f"Duplicates, correlations, lengths and kinds of texts were measured on a random "
            f"sample of {len(sample):,} rows, the rest on all."
        )
    return " ".join(texts)


def _page(title: str, description: str, columns: list[Column]) -> str:
    parts = [f"<p>{escape(description)}</p>"]
    parts += [_section(column) for column in columns[:MAX_REPORTED_COLUMNS]]
    if len(columns) > MAX_REPORTED_COLUMNS:
        parts.append(f"<p>Only the first {MAX_REPORTED_COLUMNS} columns are shown here.</p>")
    return _PAGE.format(title=escape(title), body="\n".join(parts))


def _section(column: Column) -> str:
    facts = {
        key: value
        for key, value in column.facts.items()
        if value is not None and key not in {"column", "dtype", "notes", "top", "top_count"}
    }
    cells = "".join(
        f"<div><dt>{key.replace('_', ' ')}</dt><dd>{escape(_format(value))}</dd></div>"
        for key, value in facts.items()
    )
    top = "".join(f"<tr><td>{escape(text)}</td><td>{n:,}</td></tr>" for text, n in column.top)
    notes = f'<p class="note">{escape("; ".join(column.notes))}</p>' if column.notes else ""
    name, dtype = escape(column.facts["column"]), escape(column.facts["dtype"])
    parts = [
        f'<dl class="facts">{cells}</dl>',
        f"<table>{top}</table>" if top else "",
        "" if column.values is None else _histogram(column.values),
    ]
    return (
        f"<section><h2>{name} <small>{dtype}</small></h2>{notes}"
        f'<div class="parts">{"".join(parts)}</div></section>'
    )


def _format(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _histogram(values: np.ndarray) -> str:
    """Draw the values as bars, in an SVG of 300 by 90 pixels."""
    low, high = float(values.min()), float(values.max())
    span = high / 2 - low / 2  # halves, because the difference of two floats may be too large
    bins = 30 if span > 0 and len(values) > 1 else 1
    at = np.clip((values / 2 - low / 2) / (span or 1.0) * bins, 0, bins - 1).astype(int)
    counts = np.bincount(at, minlength=bins)
    wide = 300 / bins
    bars = "".join(
        f'<rect x="{i * wide:.1f}" y="{90 - 88 * n / counts.max():.1f}" '
        f'width="{wide - 1:.1f}" height="{88 * n / counts.max():.1f}"/>'
        for i, n in enumerate(counts)
        if n
    )
    size = 'width="300" height="90" viewBox="0 0 300 90"'
    return f'<svg {size} role="img" aria-label="histogram">{bars}</svg>'


@test_plugin(name="columns are described", description="Kinds, missing values and notes.")
def test_columns_are_described(plugin: Plugin) -> None:
    """Kinds, missing values and notes."""
    df = pd.DataFrame({"n": [1, 2, None], "t": ["1,5", "2", "3"], "same": [7, 7, 7]})
    summary, description = plugin(df, "Small")
    assert summary["kind"].tolist() == ["number", "text", "number"], description
    assert summary["notes"].tolist() == ["", "holds numbers as text", "constant"]


@test_plugin(name="an empty table is described", description="No rows and no columns are no error.")
def test_an_empty_table_is_described(plugin: Plugin) -> None:
    """No rows and no columns are no error."""
    summary, description = plugin(pd.DataFrame())
    assert summary.empty
    assert description.startswith("0 rows")
