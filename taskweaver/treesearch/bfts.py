"""Reads the original's ``bfts_config.yaml``: its keys, as keys of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from taskweaver.config.known_keys import find
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


def settings_of(file: Path) -> dict[str, Any]:
    """Return the settings a file makes; what has no meaning here is left out.

    Raises:
        SearchError: If it cannot be read.
    """
    try:
        data = read_yaml(file)
    except (OSError, ValueError) as error:
        raise SearchError(f"{file} cannot be read: {error}.") from error
    if not isinstance(data, Mapping):
        raise SearchError(f"{file} is no configuration: it must be a mapping.")
    found: dict[str, Any] = {}
    for name, value in _flat(data):
        key = _KEYS.get(name) or (name if name.startswith("memory.") and find(name) else None)
        if key is not None and value is not None:
            found[key] = value
    stages = [f"search.stage{n}_nodes" for n in range(1, 5)]
    if all(stage in found for stage in stages):
        found["search.steps"] = 0  # the stages' own numbers are the limit
    return found


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
