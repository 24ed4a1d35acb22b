"""The chat at a terminal."""

from __future__ import annotations

from pathlib import Path


def chat_taskweaver(app_dir: str | Path | None = None) -> None:
    """Chat at a terminal.

    Args:
        app_dir: Project folder; None looks upwards from the current one.

    Raises:
        TaskWeaverError: If the project cannot be opened.
    """
    from taskweaver.cli.chat import converse

    converse(Path(app_dir) if app_dir is not None else None)
