"""The result of an attempt: its own file, or the output of the run's evaluator, both checked.

An evaluator is a program of its own, which measures each attempt after its run. It is kept in the
run's folder, where no attempt reaches it, and copied anew into a workspace after the processes of
the attempt's run have ended.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.execution.workspace import read_inside
from taskweaver.treesearch.model.node import NodeError
from taskweaver.treesearch.model.phase_plan import RESULT_FILE
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

_RESULT_BYTES = 1 << 20
_MOST_DATASETS = 1000
_LONGEST_NAME = 200
EVALUATOR_FOLDER = ".evaluator"
"""Folder of a workspace with the evaluator, while it runs."""
_COPIED = CopyRules(64 << 20, 1000)
_SHOWN_CHARS = 6000


class BadResult(Exception):
    """A result that is none, or says itself that it is not valid. Its error is that of the node."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.error = NodeError(kind, message)


def read_result(workspace: Path) -> Mapping[str, Any] | None:
    """Return ``metric`` (a number, or one per data set), ``valid`` and ``details``, None for none.

    Numbers may be NaN or infinite: whether they count is for the caller to judge.

    Raises:
        BadResult: ``MetricError`` when it is no result, ``ValidityError`` when it says it is not
            valid.
    """
    try:
        data = read_inside(workspace, RESULT_FILE, _RESULT_BYTES)
        if data is None:
            return None
        result = json.loads(data.decode("utf-8-sig"))
        json.dumps(result, ensure_ascii=False).encode()  # halves of surrogate pairs
    except (ValueError, RecursionError) as error:
        raise bad_result(RESULT_FILE, f"cannot be read: {error}") from error
    return checked_result(result, RESULT_FILE)


def checked_result(result: object, place: str) -> Mapping[str, Any]:
    """Return a result, as `read_result`. `place` is where it stands, for messages.

    Raises:
        BadResult: As `read_result`.
    """
    if not isinstance(result, dict):
        raise bad_result(place, f"must hold an object, not {type(result).__name__}")
    valid = result.get("valid", True)
    details = result.get("details") or {}
    if not isinstance(valid, bool):
        raise bad_result(place, f"valid must be true or false, not {valid!r:.60}")
    if not isinstance(details, dict):
        raise bad_result(place, f"details must be an object, not {details!r:.60}")
    if not valid:
        reason = json.dumps(details, ensure_ascii=False)
        raise BadResult("ValidityError", f"The run says its result is not valid: {reason:.2000}")
    return {"metric": _metric(result.get("metric"), place), "valid": True, "details": details}


def _metric(value: object, place: str) -> float | dict[str, float]:
    if not isinstance(value, dict):
        return _number("metric", value, place)
    if not 0 < len(value) <= _MOST_DATASETS:
        raise bad_result(
            place, f"metric must hold 1 to {_MOST_DATASETS} data sets, not {len(value)}"
        )
    long = next((name for name in value if len(name) > _LONGEST_NAME), None)
    if long is not None:
        raise bad_result(place, f"metric has a data set with a name that is too long: {long:.60}")
    return {name: _number(f"metric of {name}", number, place) for name, number in value.items()}


def _number(what: str, value: object, place: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise bad_result(place, f"{what} must be a number, not {value!r:.60}")
    return as_float(value)


def as_float(value: float) -> float:
    """Return a number, infinite where it has hundreds of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def bad_result(place: str, problem: str) -> BadResult:
    """Return the error of a result that is none."""
    return BadResult("MetricError", f"{place}: {problem}")


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
    """Copy the evaluator that an idea names into a folder of the run. A lone command is not copied.

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
    with system_errors(f"The evaluator {name} cannot be copied"):
        folder.mkdir()
        if "/" not in name:
            shutil.copyfile(source, folder / source.name)
        else:
            with Folder.at(source.parent) as files, Folder.at(folder) as place:
                try:
                    copy_tree(files, place, _COPIED)
                except CopyTooLarge as error:
                    raise SearchError(f"{source.parent} holds more than {error.limit}.") from error
        (folder / source.name).chmod(0o500)


def kept_evaluator(line: str, folder: Path) -> Evaluator:
    """Return the evaluator that an idea names, as it was kept when the run began."""
    first, *arguments = _words(line)
    file = folder / Path(first).name
    if not file.is_file():
        return Evaluator(line)
    start = ["python"] if file.suffix == ".py" else []
    command = shlex.join([*start, f"{EVALUATOR_FOLDER}/{file.name}", *arguments])
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
            place.remove(EVALUATOR_FOLDER)
            place.make_folder(EVALUATOR_FOLDER)
            with place.folder(EVALUATOR_FOLDER) as target:
                copy_tree(source, target, _COPIED)
    except (OSError, CopyTooLarge) as error:
        raise SearchError(f"The evaluator cannot be copied: {error}.") from error


def remove_evaluator(workspace: Path) -> None:
    """Remove the evaluator from a workspace, whose files children take over."""
    with Folder.at(workspace) as place:
        place.remove(EVALUATOR_FOLDER)


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
