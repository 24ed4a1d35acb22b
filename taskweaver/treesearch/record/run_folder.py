"""The folder of a run: made for a new one, with the configuration that the run is started with."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.trust.keys import risk_of
from taskweaver.utils.files import PRIVATE, PRIVATE_FOLDER, read_json, write_json, write_text
from taskweaver.utils.sqlite_files import remove_database
from taskweaver.utils.system.installation import seal

_SLUG = re.compile(r"[^a-z0-9]+")
_SEAL = "seal"


def new_run(config: SearchConfig, idea: Idea, name: str = "") -> RunPlaces:
    """Make the folder of a run, with its idea. Without a name it has one of time and title.

    Raises:
        SearchError: If there is one of this name, or it cannot be made.
    """
    slug = _SLUG.sub("_", idea.title.lower()).strip("_")[:40] or "run"
    stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S")
    chosen = name or f"{stamp}_{slug}"
    if Path(chosen).name != chosen or chosen in {".", ".."}:
        raise SearchError(f"{chosen!r} is no name of a run: give one without folders.")
    places = RunPlaces(config.folder / chosen)
    try:
        number = 1
        while not name and places.folder.exists():  # another began in the same second
            number += 1
            places = RunPlaces(config.folder / f"{chosen}-{number}")
        # Private: programs, prompts and outcomes are kept as they are.
        places.folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        write_text(places.idea, idea.text)
    except FileExistsError as error:
        raise SearchError(
            f"There is a run called {chosen} already.", "Go on with it: search --resume."
        ) from error
    except OSError as error:
        raise SearchError(f"{places.folder} cannot be made: {error.strerror}.") from error
    return places


def place_memory(places: RunPlaces, file: Path) -> None:
    """Place a new run's memory in a file elsewhere. A link in the run's folder leads to it.

    Raises:
        SearchError: If the file exists already, or cannot be made.
    """
    file, link = file.resolve(), places.memory
    with system_errors(f"{file} cannot be made"):
        link.parent.mkdir()
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            raise SearchError(
                f"{file} is there already, and each run has a memory of its own.",
                "Name a file that is not there yet, or go on with its run: search --resume.",
            )
        # Of two runs that begin at once, one has it.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
        if file != link.resolve():
            link.symlink_to(file)


def discard_run(places: RunPlaces) -> None:
    """Remove a run that never began, with its memory wherever that is."""
    if places.memory.is_symlink():
        remove_database(places.memory.resolve())
    shutil.rmtree(places.folder, ignore_errors=True)


def save_config(places: RunPlaces, values: Mapping[str, Any]) -> None:
    """Write the configuration of a run, and the mark of this installation."""
    write_json(places.config, dict(values) | {_SEAL: _seal(places, values)})


def load_config(places: RunPlaces) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration of a run, and its foreign keys, which were left out.

    Foreign are keys that loosen something, of a file that this installation did not write for this
    folder: they need consent.

    Raises:
        SearchError: If it cannot be read.
    """
    with system_errors(f"The run's configuration {places.config} cannot be read"):
        found = read_json(places.config)
    values = found if isinstance(found, dict) else {}
    if values.pop(_SEAL, None) == _seal(places, values):
        return values, []
    kept = {name: value for name, value in values.items() if risk_of(name) == "harmless"}
    return kept, [name for name in values if name not in kept]


def _seal(places: RunPlaces, values: Mapping[str, Any]) -> str:
    text = json.dumps(dict(values), sort_keys=True)
    return seal(places.folder / hashlib.sha256(text.encode()).hexdigest())
