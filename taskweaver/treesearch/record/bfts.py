"""The original's ``bfts_config.yaml``, read as keys of this project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.config.keys.known_keys import find
from taskweaver.treesearch.errors import SearchError
from taskweaver.utils.files import read_yaml

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
    """Read a ``bfts_config.yaml``; paths in it start at the current folder.

    Raises:
        SearchError: If it cannot be read.
    """
    try:
        data = read_yaml(file)
    except FileNotFoundError as error:
        raise SearchError(f"There is no file {file.name}.") from error
    except (OSError, ValueError) as error:
        raise SearchError(f"{file} cannot be read: {error}.") from error
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
