"""Paths of the files that the roles of a session use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of a session.

    Attributes:
        working_folder: Working directory of its kernel; code may change anything in it at any time.
        data_folder: The project's data, which code cannot change.
    """

    working_folder: Path
    data_folder: Path
