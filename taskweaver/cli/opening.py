"""Opening of a project: consent to the effects, asked for once and kept."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from taskweaver.cli.options import FOLDER, TRUST_CHOICE, require_folder
from taskweaver.config.config_mgt import AppConfigSource, register_secrets
from taskweaver.config.errors import ConfigError
from taskweaver.console.terminal.text import safe
from taskweaver.trust.answers import Answer, answer_for, forget, remember
from taskweaver.trust.errors import ProjectNotTrusted
from taskweaver.trust.opening import Inspection, inspect_folder, read_project
from taskweaver.utils.app_utils import CONFIG_FILE
from taskweaver.utils.redact import keep_places, redact, register_environment
from taskweaver.utils.system.platform import require_supported
from taskweaver.utils.text import shorten

_AGREED = "taskweaver.trust.agreed"
_MOST_LINKS, _MOST_CHARS = 20, 1000
_YES = {"y", "yes"}


def _meta() -> dict[str, Any]:
    """Return the facts that commands and groups share. Outside of a command there are no facts."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else ctx.meta


def consent_to(project: Path | None) -> frozenset[str]:
    """Return the hashes of the effects of opening a project, if the user allows them.

    Effects that are new are shown and asked about at a terminal, and the answer is kept.

    Raises:
        ConfigError: If the configuration cannot be read.
        ProjectNotTrusted: If an answer is needed, and no person can be asked.
    """
    meta = _meta()
    agreed: dict[Path | None, frozenset[str]] = meta.setdefault(_AGREED, {})
    if project not in agreed:
        inspection = inspect(project)
        is_granted = _decide(inspection, meta.get(TRUST_CHOICE))
        agreed[project] = inspection.digests if is_granted else frozenset()
    return agreed[project]


def inspect(project: Path | None) -> Inspection:
    """Return the effects of opening a project, without opening it."""
    require_supported()
    return inspect_folder(project, _is_confined)


def stored_consent(project: Path | None) -> tuple[bool, Inspection]:
    """Return the consent given so far, and the effects of opening, for commands that never ask."""
    choice = _meta().get(TRUST_CHOICE)
    inspection = inspect(project)
    is_granted = _decide(inspection, choice) if choice is not None else inspection.is_granted
    return bool(is_granted), inspection


def read_source(project: Path | None, *, has_code: bool = True) -> AppConfigSource:
    """Return the configuration of a project, without everything that lacks consent.

    Without `has_code` folders of roles and plugins stay in it, for a command that reads or writes
    the files in them and runs none.
    """
    is_granted, inspection = stored_consent(project)
    trust = inspection.digests if is_granted else False
    return read_project(project, {}, trust, _is_confined, has_code=has_code).src


def _is_confined(tier: str) -> bool:
    from taskweaver.ces.sandbox.sandbox import is_confined

    return is_confined(tier)


def _decide(inspection: Inspection, choice: bool | None) -> bool:  # noqa: FBT001
    """Return whether the effects are allowed: by choice, by the stored answer, or by a new one."""
    if choice is False:
        return False
    if not inspection.lines:
        return True
    if choice is None and inspection.is_granted is not None:
        return inspection.is_granted
    folder = inspection.folder
    is_granted: bool | None = True
    if choice is None:
        is_granted = _ask(inspection) if _can_ask() else None
    if is_granted is None:
        raise ProjectNotTrusted(str(folder), inspection.lines)
    if not remember(folder, Answer(inspection.digests, is_granted)):
        click.echo("warning: the answer cannot be stored and holds for this time only.", err=True)
    return is_granted


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def show_effects(inspection: Inspection) -> None:
    """Print a line for each effect to standard error, of many links the first 20."""
    links = [effect.line for effect in inspection.effects if effect.is_link]
    hidden = links[_MOST_LINKS:]
    for line in inspection.lines:
        if line not in hidden:
            click.echo(f"  - {_line(line)}", err=True)
    if hidden:
        click.echo(f"  - and {len(hidden)} more links", err=True)


def _line(sentence: str) -> str:
    """Return a sentence as one line, with a note in the middle where a long line is cut."""
    text = safe(redact(" ".join(sentence.split())))
    return " ".join(shorten(text, _MOST_CHARS).split())


def _ask(inspection: Inspection) -> bool | None:
    """Show the effects, and return whether the user agrees, or None at the end of input."""
    from taskweaver.console.terminal.keyboard import discard_typed

    has_changed = answer_for(inspection.folder) is not None
    since = " (something changed since you were asked)" if has_changed else ""
    place = _line(str(inspection.folder))
    click.echo(f"Opening {place} runs, sends or loosens the following{since}:", err=True)
    show_effects(inspection)
    discard_typed()
    click.echo("Trust this project? [y/N] ", nl=False, err=True)
    line = ""
    try:
        line = sys.stdin.readline()
    finally:
        if not line:  # the end of input, or an interrupt
            click.echo(err=True)
    if not line:
        return None
    is_granted = line.strip().lower() in _YES
    if not is_granted:
        click.echo("It is opened without these.", err=True)
    return is_granted


@click.command("trust")
@click.argument("folder", required=False, type=FOLDER)
@click.option("--forget", "is_forgotten", is_flag=True, help="Forget the decision.")
@click.pass_obj
def trust_command(project: Path | None, *, folder: Path | None, is_forgotten: bool) -> None:
    """Show the code that a project runs and the limits that a project loosens, and decide again.

    At a terminal it asks; elsewhere `taskweaver --trust trust FOLDER` gives consent.
    """
    target = folder or project
    require_folder(target)
    inspection = inspect(target)
    was_decided = forget(inspection.folder)
    if is_forgotten:
        click.echo("Forgotten." if was_decided else "There was no decision.")
        return
    if not inspection.lines:
        click.echo(f"{inspection.folder} runs and loosens nothing; it needs no trust.")
        return
    if not inspection.digests <= consent_to(target):
        click.echo("Not trusted.")
        return
    click.echo("Trusted:")
    show_effects(inspection)


def register_secrets_around(*folders: Path) -> None:
    """Make the secrets of the environment and of the projects that hold some folders known.

    For commands that open no project, and show texts that may hold its keys.
    """
    keep_places(*map(str, folders))
    register_environment(os.environ)
    for place in {above for folder in folders for above in (folder, *folder.parents)}:
        file = place / CONFIG_FILE
        if file.is_file():
            # A configuration that cannot be read names no key; the file is shown all the same.
            with suppress(ConfigError):
                register_secrets(AppConfigSource(file, {}, place))
