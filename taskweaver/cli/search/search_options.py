"""Options of ``taskweaver search``, checked and turned into configuration keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from taskweaver.treesearch.record.bfts import Bfts, read_bfts

_OF_A_NEW_RUN = ("name", "idea_idx", "memory_db")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The run to start or continue, and its settings.

    Attributes:
        idea: The idea of a new run; None to continue one.
        resume: Name of the run to continue.
        settings: Configuration keys, before those of the project.
        name: Name of a new one; empty makes one.
        index: Number of the idea in a JSON list.
        memory_db: File of the memory of a new one; None keeps it in the run's folder.
        note: A note for the user; empty for none.
        models: Names of models by configuration key; used where the project has such aliases.
    """

    idea: Path | None
    resume: str | None
    settings: Mapping[str, Any]
    name: str = ""
    index: int = 0
    memory_db: Path | None = None
    note: str = ""
    models: Mapping[str, str] = field(default_factory=dict)


def read_options(idea: Path | None, resume: str | None, options: dict[str, Any]) -> SearchOptions:
    """Read the options of the command.

    Raises:
        click.UsageError: If they do not go together.
        SearchError: If the configuration of the original cannot be read.
    """
    if (idea is None) == (resume is None):
        raise click.UsageError("Give an idea, or --resume RUN. For example: search idea.md")
    own = {name: options.pop(name) for name in _OF_A_NEW_RUN}
    given = [f"--{name}" for name, value in own.items() if value is not None]
    if resume is not None and given:
        raise click.UsageError(f"{' and '.join(given)}: only for a new run; leave --resume out.")
    file = options.pop("bfts")
    bfts = read_bfts(file) if file else Bfts({}, {}, None, ())
    settings = dict(bfts.settings)
    if options.pop("enable_memgpt"):
        settings["memory.enabled"] = True
    for option, value in options.items():
        if value is not None:
            settings[option.replace("_", ".", 1)] = str(value) if isinstance(value, Path) else value
    ignored, memory_db = list(bfts.ignored), own["memory_db"]
    if bfts.memory_db is not None and memory_db is None:
        if resume is None and settings.get("memory.enabled", True):
            memory_db = bfts.memory_db
        else:
            ignored.append("memory.db_path")
    where = "'Tree search: reference' in the documentation"
    note = f"not used of {file.name}: {', '.join(ignored)}; see {where}" if ignored else ""
    return SearchOptions(
        idea,
        resume,
        settings,
        own["name"] or "",
        own["idea_idx"] or 0,
        memory_db,
        note,
        bfts.models,
    )
