"""The place of a case: a folder for its files and sessions, and the configuration of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from taskweaver.evaluation.cases.case import CaseFile, EvalCase
from taskweaver.evaluation.errors import CaseFailed
from taskweaver.utils.file_system.safe_fs import Folder

_OWN_FOLDERS = {
    "workspace.workspace_path": "workspace",
    "execution_service.env_dir": "workspace/env",
    "logging.log_folder": "logs",
    "session.data_dir": "data",
    "session.experience_dir": "experience",
}


@dataclass(frozen=True, slots=True)
class CasePlace:
    """Folders and configuration of a case.

    Attributes:
        folder: Its folder, which is removed at the end.
        config: Configuration keys, before those of the project.
    """

    folder: Path
    config: Mapping[str, Any]


def prepare_case(case: EvalCase, folder: Path) -> CasePlace:
    """Write the files of a case, and return the configuration that leads to them.

    Nothing of a case is written into the project's own folder.

    Raises:
        CaseFailed: If a package that it needs is not installed, or a file cannot be written.
    """
    for requirement in case.dependencies:
        _require_package(case.name, requirement)
    config = {key: str(folder / name) for key, name in _OWN_FOLDERS.items()}
    parts: list[tuple[str, str, tuple[CaseFile, ...] | None]] = [
        ("", "data", case.data),
        ("plugin.base_path", "plugins", case.plugins),
        ("document_retriever.index_folder", "documents", case.documents),
    ]
    try:
        for key, name, files in parts:
            if files is None:
                continue
            write_files(folder / name, files)
            if key:
                config[key] = str(folder / name)
    except OSError as error:
        raise CaseFailed(case.name, f"its files cannot be written: {error}") from error
    return CasePlace(folder, {**config, **case.config})


def write_files(folder: Path, files: Iterable[CaseFile]) -> None:
    """Write files into a folder of this program.

    Raises:
        OSError: If one cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)


def place_files(cwd: Path, files: Iterable[CaseFile]) -> None:
    """Write files into a working directory, in which code may have put links.

    Raises:
        CaseFailed: If one cannot be written.
    """
    try:
        with Folder.at(cwd.resolve()) as folder:
            for file in files:
                folder.make_folders(PurePath(file.name).parent)
                with folder.replacing(file.name) as target:
                    target.write(file.content)
    except (OSError, ValueError) as error:
        raise CaseFailed(str(cwd), f"files cannot be written: {error}") from error


def _require_package(case: str, text: str) -> None:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise CaseFailed(case, f"{text!r} is no requirement: {error}") from error
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        raise CaseFailed(case, f"the package {requirement.name} is not installed.") from None
    if not requirement.specifier.contains(installed, prereleases=True):
        raise CaseFailed(case, f"{text} is needed, and {installed} is installed.")
