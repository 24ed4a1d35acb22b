"""The files that roles work with: their list in prompts, files brought on use, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from taskweaver.tables.files.file_list import ListedFile


@dataclass(frozen=True, slots=True)
class CellPicture:
    """A picture that a cell made.

    Attributes:
        name: Path of its file, relative to the working folder.
        url: Its content as a ``data:`` address; empty where it cannot be shown.
        problem: Reason why it cannot be shown; empty for none.
    """

    name: str
    url: str
    problem: str = ""


PicturesOf = Callable[[str], Sequence[CellPicture]]
"""Returns the pictures of a report, by the id of its post."""


def no_pictures(_post_id: str) -> Sequence[CellPicture]:
    """Return none: the descriptions in the reports stand for the pictures."""
    return ()


class RoleFiles(Protocol):
    """The user's files, as a role sees them."""

    def listed(self) -> Sequence[ListedFile]:
        """Return them as they are now."""
        ...

    def keep_pictures(self, post_id: str, names: Sequence[str]) -> None:
        """Keep those files of a report that are pictures, as they are now.

        Args:
            post_id: Id of the report.
            names: Its files, relative to the working folder.
        """
        ...

    def pictures(self, post_id: str) -> Sequence[CellPicture]:
        """Return the pictures of a recent report; none of an older one."""
        ...

    def bring(self, text: str) -> None:
        """Copy the files that a message or code names into the working folder, unless there.

        Raises:
            TaskWeaverError: If one cannot be read or written.
        """
        ...


class NoFiles:
    """The files of a role that has none."""

    def listed(self) -> Sequence[ListedFile]:
        """Return none."""
        return ()

    def keep_pictures(self, post_id: str, names: Sequence[str]) -> None:
        """Do nothing."""

    def pictures(self, _post_id: str) -> Sequence[CellPicture]:
        """Return none."""
        return ()

    def bring(self, text: str) -> None:
        """Do nothing."""
