"""The configuration a run was started with, kept in its folder, and whether it can be believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.trust.keys import risk_of
from taskweaver.utils.files import read_json, write_json
from taskweaver.utils.system.installation import seal

_SEAL = "seal"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The configuration a run was started with, and the foreign keys that were left out of it.

    These need consent, and the file came with the folder.
    """

    values: Mapping[str, Any]
    foreign: tuple[str, ...] = ()


def save_config(places: RunPlaces, values: Mapping[str, Any]) -> None:
    """Write the configuration of a run, and the mark of this installation."""
    write_json(places.config, dict(values) | {_SEAL: _seal(places, values)})


def load_config(places: RunPlaces) -> RunConfig:
    """Return the configuration a run was started with.

    Of a file that this installation did not write for this folder, keys count that loosen nothing.

    Raises:
        SearchError: If it cannot be read.
    """
    try:
        found = read_json(places.config)
    except (OSError, ValueError) as error:
        raise SearchError(f"The run's configuration cannot be read: {error}.") from error
    values = found if isinstance(found, dict) else {}
    if values.pop(_SEAL, None) == _seal(places, values):
        return RunConfig(values)
    kept = {name: value for name, value in values.items() if risk_of(name) == "harmless"}
    return RunConfig(kept, tuple(name for name in values if name not in kept))


def _seal(places: RunPlaces, values: Mapping[str, Any]) -> str:
    text = json.dumps(dict(values), sort_keys=True)
    return seal(places.folder / hashlib.sha256(text.encode()).hexdigest())
