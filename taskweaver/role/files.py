"""The files that roles work with: the list that their prompts show, and files brought on use."""

from __future__ import annotations

from typing import Protocol


class RoleFiles(Protocol):
    """The user's files, as a role sees them."""

    def text(self) -> str:
        """Return the section of a prompt that lists them; empty for none."""
        ...

    def bring(self, text: str) -> None:
        """Copy the files that a message or code names into the working folder, unless there.

        Raises:
            TaskWeaverError: If one cannot be read or written.
        """
        ...


class NoFiles:
    """The files of a role that has none."""

    def text(self) -> str:
        """Return no section."""
        return ""

    def bring(self, text: str) -> None:
        """Do nothing."""
