"""Options of ``taskweaver search`` and the original's ``bfts_config.yaml``, read as keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from taskweaver.config.keys.known_keys import find
from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.utils.files import read_yaml

_OF_A_NEW_RUN = ("name", "idea_idx", "memory_db")
_KEYS = {
    "agent.num_workers": "search.workers",
    "agent.stages.stage1_max_iters": "search.stage1_nodes",
    "agent.stages.stage2_max_iters": "search.stage2_nodes",
    "agent.stages.stage3_max_iters": "search.stage3_nodes",
    "agent.stages.stage4_max_iters": "search.stage4_nodes",
    "agent.multi_seed_eval.num_seeds": "search.num_seeds",
    "agent.search.max_debug_depth": "search.max_debug_depth",
    "agent.search.debug_prob": "search.debug_prob",
    "agent.search.num_drafts": "search.num_drafts",
    "exec.timeout": "search.run_timeout_s",
    "exec.phase_mode": "search.phase_mode",
    "exec.phase1_max_steps": "search.phase1_max_steps",
    "exec.resources": "search.resources",
    "memory.enabled": "memory.enabled",
}
_MODELS = {
    "agent.code.model": "search.code_alias",
    "agent.feedback.model": "search.feedback_alias",
    "agent.vlm_feedback.model": "search.vlm_alias",
    "agent.summary.model": "search.summary_alias",
}
_STEPS, _MEMORY_FILE = "agent.steps", "memory.db_path"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """A run to start or continue, with settings.

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


@dataclass(frozen=True, slots=True)
class Bfts:
    """Content of a ``bfts_config.yaml``.

    Attributes:
        settings: Keys of this project with their values.
        models: Names of models by the key of their work; aliases, where the project has these.
        memory_db: File of the memory; None where it names none.
        ignored: Keys that mean nothing here; by their first two words where these are enough.
    """

    settings: Mapping[str, Any]
    models: Mapping[str, str]
    memory_db: Path | None
    ignored: tuple[str, ...]


def read_bfts(file: Path) -> Bfts:
    """Read a ``bfts_config.yaml``. Paths in it start at the current folder.

    Raises:
        SearchError: If it cannot be read.
    """
    with system_errors(f"{file} cannot be read"):
        if not file.exists():
            raise SearchError(f"There is no file {file.name}.")
        data = read_yaml(file)
    if not isinstance(data, Mapping):
        raise SearchError(f"{file} is no configuration: it must be a mapping.")
    values = {name: value for name, value in _flat(data) if value is not None}
    memory_file = values.pop(_MEMORY_FILE, None)
    steps = values.pop(_STEPS, None)
    models = {_MODELS[name]: str(values.pop(name)) for name in _MODELS if name in values}
    found: dict[str, Any] = {}
    ignored: dict[str, None] = {}
    for name, value in values.items():
        key = _KEYS.get(name) or (name if name.startswith("memory.") and find(name) else None)
        if key is None:
            ignored[_outline(name)] = None
        else:
            found[key] = value
    if "search.resources" in found:
        found["search.resources"] = str(Path(str(found["search.resources"])).absolute())
    stages = [f"search.stage{n}_nodes" for n in range(1, 5)]
    if all(stage in found for stage in stages):
        ignored |= {_STEPS: None} if steps is not None else {}
    elif steps is not None:  # as in the original: of each stage that has no number of its own
        found = dict.fromkeys(stages, steps) | found
    if all(stage in found for stage in stages):
        found["search.steps"] = 0  # the stages' own numbers are the limit
    return Bfts(found, models, Path(str(memory_file)) if memory_file else None, tuple(ignored))


def _outline(name: str) -> str:
    head = ".".join(name.split(".")[:2])
    return name if any(key.startswith(f"{head}.") for key in _KEYS) else head


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
