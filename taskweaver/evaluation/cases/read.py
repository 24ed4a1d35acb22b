"""Reading of cases: files of YAML, of this program or of the original, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from taskweaver.evaluation.cases.case import EvalCase
from taskweaver.evaluation.cases.original import is_original, original_case
from taskweaver.evaluation.cases.own import own_cases
from taskweaver.evaluation.errors import EvaluationError
from taskweaver.utils.files import read_yaml

SHIPPED = "shipped"
"""Name of the cases that are part of this package."""

_SHIPPED_FOLDER = Path(__file__).parents[1] / "shipped"
_MOST_FILES = 2_000
_MOST_BYTES = 4 << 20


def read_cases(place: str | Path) -> tuple[list[EvalCase], list[EvaluationError]]:
    """Read cases.

    Args:
        place: A file, a folder of files, or ``shipped``.

    Returns:
        The cases, in the order of their files, and an error for each file that is left out.

    Raises:
        EvaluationError: If there is no file at that place, two cases have one name, or the only
            file cannot be read.
    """
    is_shipped = str(place) == SHIPPED
    path = _SHIPPED_FOLDER if is_shipped else Path(place)
    files = list(_files(path))
    cases: list[EvalCase] = []
    broken: list[EvaluationError] = []
    for file in files:
        try:
            cases += _read(file, is_shipped=is_shipped)
        except EvaluationError as error:
            if len(files) == 1:
                raise
            broken.append(error)
    if not cases and not broken:
        raise EvaluationError(str(place), "holds no cases.")
    _require_unique(cases)
    return cases, broken


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise EvaluationError(str(path), "there is no file or folder of cases.")
    found = sorted(file for end in ("*.yaml", "*.yml") for file in path.rglob(end))
    if len(found) > _MOST_FILES:
        raise EvaluationError(str(path), f"holds more than {_MOST_FILES:,} files.")
    yield from found


def _read(file: Path, *, is_shipped: bool) -> list[EvalCase]:
    try:
        data = read_yaml(file, _MOST_BYTES)
    except (OSError, ValueError) as error:
        raise EvaluationError(str(file), f"cannot be read: {error}") from error
    if is_original(data):
        return [original_case(data, file)]
    return own_cases(data, file, is_shipped=is_shipped)


def _require_unique(cases: list[EvalCase]) -> None:
    seen: dict[str, EvalCase] = {}
    for case in cases:
        other = seen.setdefault(case.name, case)
        if other is not case:
            raise EvaluationError(
                str(case.source), f"the name {case.name!r} is taken by a case of {other.source}."
            )
