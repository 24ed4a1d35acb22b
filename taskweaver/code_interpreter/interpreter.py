"""The base of roles that pass session variables on to code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping


class Interpreter(ABC):
    """A role that runs code. A subclass overrides `update_session_variables`."""

    @abstractmethod
    def update_session_variables(self, session_variables: dict[str, str]) -> None:
        """Set variables that plugins read."""

    def update_session_var(self, session_var: Mapping[str, str]) -> None:
        """Set variables that plugins read. Called by the session."""
        self.update_session_variables(dict(session_var))
