"""Opens projects for commands."""

from __future__ import annotations

from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.opening import consent_to


def open_app(project: Path | None) -> TaskWeaverApp:
    """Open a project with the user's consent (see `consent_to`).

    Raises:
        TaskWeaverError: If the project cannot be opened, or is not trusted.
    """
    return TaskWeaverApp(project, trust=consent_to(project))
