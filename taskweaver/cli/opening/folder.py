"""Checks of the project folder that a command is given, and the secrets it may show."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from taskweaver.utils.system.installation import own_command

TRUST_CHOICE = "taskweaver.trust"
"""Name under which commands share the option ``--trust`` or ``--no-trust``."""


def require_folder(project: Path | None) -> None:
    """Check that it is there; nothing is made in a folder whose name was mistyped.

    Raises:
        click.UsageError: If it is not.
    """
    if project is not None and not project.is_dir():
        raise click.UsageError(
            f"There is no folder {project}; `{own_command('init', project)}` makes a project there."
        )


def register_secrets_around(*folders: Path) -> None:
    """Make the secrets of the environment and of the projects that hold some folders known.

    For commands that open no project, and show texts that may hold its keys.
    """
    from taskweaver.config.config_mgt import AppConfigSource
    from taskweaver.config.errors import ConfigError
    from taskweaver.config.secrets import register_secrets
    from taskweaver.utils.app_utils import CONFIG_FILE
    from taskweaver.utils.redact import keep_places, register_environment

    keep_places(*map(str, folders))
    register_environment(os.environ)
    for place in {above for folder in folders for above in (folder, *folder.parents)}:
        file = place / CONFIG_FILE
        if file.is_file():
            # A configuration that cannot be read names no key; the file is shown all the same.
            with suppress(ConfigError):
                register_secrets(AppConfigSource(file, {}, place))
