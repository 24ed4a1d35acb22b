"""Configurations of the search that are evaluated side by side: their table, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.search_evaluation import SearchScore, on_idea, on_landscapes
from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.printing import safe
from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.files import read_text

_ON_LANDSCAPES = frozenset(
    f"search.{name}"
    for name in (
        "policy", "uct_c", "debug_prob", "max_debug_depth", "num_drafts", "num_seeds", "steps",
        "workers",
    )
)  # fmt: skip
"""Keys that a search of a landscape depends on."""
_HEAD = ("case", "configuration", "result", "nodes", "calls", "tokens")


def evaluate(
    project: Path | None,
    files: Sequence[Path],
    ideas: Sequence[Path],
    seeds: int,
    runs: int,
    *,
    as_json: bool,
) -> None:
    """Print the scores of each configuration, as they become known.

    Raises:
        SearchError: If a file holds no configuration, or a search cannot be made.
        TaskWeaverError: If the project, a setting or the model cannot be used.
    """
    configurations = {file.stem: read_settings(file) for file in files}
    without_effect = {key for keys in configurations.values() for key in keys} - _ON_LANDSCAPES
    if without_effect and not ideas:
        names = ", ".join(sorted(without_effect))
        note = f"{names}: without effect on landscapes; name an --idea to compare it."
        click.echo(safe(note), err=True)
    if len(configurations) < len(files):
        raise SearchError("Two configurations have the same file name.", "Rename one of them.")
    with open_app(project) as app:
        rows = (
            (name, score)
            for name, settings in configurations.items()
            for score in _scores(app, settings, ideas, seeds, runs)
        )
        if as_json:
            for name, score in rows:
                click.echo(json.dumps(_entry(name, score), ensure_ascii=False))
        else:
            _print_table(list(rows))


def read_settings(file: Path) -> Mapping[str, Any]:
    """Return the settings of a JSON file: an object of configuration keys.

    Raises:
        SearchError: If it is none.
    """
    try:
        data = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise SearchError(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(data, dict):
        raise SearchError(f"{file} holds no object of configuration keys.")
    return data


def _scores(
    app: TaskWeaverApp, settings: Mapping[str, Any], ideas: Sequence[Path], seeds: int, runs: int
) -> Iterator[SearchScore]:
    if seeds:
        yield from on_landscapes(app, settings, seeds)
    for idea in ideas:
        yield on_idea(app, settings, idea, range(runs))


def _entry(name: str, score: SearchScore) -> dict[str, Any]:
    figures = {"mean": score.mean, "standard_error": score.standard_error}
    return {"configuration": name, **asdict(score), **figures}


def _print_table(rows: Sequence[tuple[str, SearchScore]]) -> None:
    """Print a line for each case and configuration, the configurations of a case together."""
    cases = list(dict.fromkeys(score.case for _, score in rows))
    lines: list[tuple[str, ...]] = [_HEAD]
    for name, score in sorted(rows, key=lambda row: cases.index(row[1].case)):
        figures = (score.nodes, score.calls, score.tokens)
        lines.append((score.case, name, _result(score), *map(str, figures)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(safe("  ".join(cells).rstrip()))


def _result(score: SearchScore) -> str:
    """Return measure, mean and standard error, and how many runs had no result."""
    if score.mean is None:
        return f"no result in {score.runs} runs"
    error = "" if score.standard_error is None else f" ± {score.standard_error:.2g}"
    lost = score.runs - len(score.values)
    return f"{score.measure} {score.mean:.4g}{error}{f', {lost} without' if lost else ''}"
