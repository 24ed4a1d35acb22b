"""The evaluator of a run: a program of its own, which measures each attempt after its run.

It is kept in the run's folder, where no attempt reaches it, and copied anew into a workspace
after the processes of the attempt's run have ended.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution.metric_file import bad_result, checked_result
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

PLACE = ".evaluator"
"""Folder of a workspace with the evaluator, while it runs."""
_MOST_BYTES, _MOST_ENTRIES = 64 << 20, 1000
_SHOWN_CHARS = 6000


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A program that measures attempts, and prints the metric as JSON in its last line.

    Attributes:
        command: Its command, run in the workspace.
        folder: Folder of its files; None for a command of the machine.
        source: The text of its file, as prompts show it.
    """

    command: str
    folder: Path | None = None
    source: str = ""


def keep_evaluator(line: str, beside: Path, folder: Path) -> None:
    """Copy the evaluator that an idea names into a folder of the run; a lone command is not copied.

    A file beside the idea is copied alone, one in a folder with all of that folder.

    Raises:
        SearchError: If there is no such file or command, or it cannot be copied.
    """
    name = _words(line)[0]
    source = beside / name
    if not source.is_file() or not source.resolve().is_relative_to(beside.resolve()):
        if shutil.which(name) and "/" not in name:
            return
        raise SearchError(
            f"The idea names the evaluator {name}, which is no file in {beside} and no command.",
            "Put it beside the idea, as in `Evaluate: evaluate.py`.",
        )
    try:
        if "/" in name:
            _copy(source.parent, folder)
        else:
            folder.mkdir()
            shutil.copyfile(source, folder / source.name)
        (folder / source.name).chmod(0o500)
    except OSError as error:
        raise SearchError(f"The evaluator {name} cannot be copied: {error}.") from error


def kept_evaluator(line: str, folder: Path) -> Evaluator:
    """Return the evaluator that an idea names, as it was kept when the run began."""
    first, *arguments = _words(line)
    file = folder / Path(first).name
    if not file.is_file():
        return Evaluator(line)
    start = ["python"] if file.suffix == ".py" else []
    command = shlex.join([*start, f"{PLACE}/{file.name}", *arguments])
    text = file.read_text("utf-8", "replace")
    return Evaluator(command, folder, text[:_SHOWN_CHARS])


def place_evaluator(evaluator: Evaluator, workspace: Path) -> None:
    """Copy an evaluator into a workspace, in place of anything that is there.

    Raises:
        SearchError: If it cannot be copied.
    """
    if evaluator.folder is None:
        return
    try:
        with Folder.at(workspace) as place, Folder.at(evaluator.folder) as source:
            place.remove(PLACE)
            place.make_folder(PLACE)
            with place.folder(PLACE) as target:
                copy_tree(source, target, CopyRules(_MOST_BYTES, _MOST_ENTRIES))
    except (OSError, CopyTooLarge) as error:
        raise SearchError(f"The evaluator cannot be copied: {error}.") from error


def remove_evaluator(workspace: Path) -> None:
    """Remove the evaluator from a workspace, whose files children take over."""
    with Folder.at(workspace) as place:
        place.remove(PLACE)


def printed_result(output: str) -> Mapping[str, Any]:
    """Return the result in the last line of an evaluator's output that is a JSON object.

    Raises:
        BadResult: If there is none, or it says that the attempt is not valid.
    """
    for line in reversed(output.splitlines()):
        if line.lstrip().startswith("{"):
            try:
                return checked_result(json.loads(line), "the evaluator's output")
            except (ValueError, RecursionError):
                continue
    raise bad_result("the evaluator's output", "its last lines hold no JSON object with a metric")


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line.strip().strip("`"))
    except ValueError as error:
        raise SearchError(f"The idea's line `Evaluate: {line}` cannot be read: {error}.") from error
    if not words:
        raise SearchError("The idea's line `Evaluate:` names no program.")
    return words


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    with Folder.at(source) as files, Folder.at(target) as place:
        try:
            copy_tree(files, place, CopyRules(_MOST_BYTES, _MOST_ENTRIES))
        except CopyTooLarge as error:
            raise SearchError(f"{source} holds more than {error.limit}.") from error
