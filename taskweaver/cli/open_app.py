"""Opens projects for commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.opening import consent_to


def open_app(project: Path | None, config: dict[str, Any] | None = None) -> TaskWeaverApp:
    """Open a project with the user's consent; see `consent_to`.

    `config` goes before the environment and the project's file.

    Raises:
        TaskWeaverError: If the project cannot be opened, or is not trusted.
    """
    return TaskWeaverApp(project, config, trust=consent_to(project))
