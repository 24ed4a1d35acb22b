"""Consent to the effects of opening a project: asks once at a terminal, and keeps the answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from taskweaver.cli.opening.folder import TRUST_CHOICE
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.console.terminal.text import safe
from taskweaver.trust.answers import Answers, answers_for, remember
from taskweaver.trust.errors import ProjectNotTrusted
from taskweaver.trust.finding import Finding
from taskweaver.trust.inspection import Inspection
from taskweaver.trust.opening import inspect_folder, read_project
from taskweaver.utils.redact import redact
from taskweaver.utils.system.platform import require_supported

_AGREED = "taskweaver.trust.agreed"
_MOST_LINKS, _MOST_CHARS = 20, 1000
_YES = {"y", "yes"}


def _meta() -> dict[str, Any]:
    """Return the facts that commands and their groups share; none outside of a command."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else ctx.meta


def consent_to(project: Path | None) -> frozenset[str]:
    """Return the digests of the effects of opening a project that the user allows.

    Effects that are new are shown and asked about at a terminal, and the answer is kept.

    Raises:
        ConfigError: If the configuration cannot be read.
        ProjectNotTrusted: If an answer is needed, and no person can be asked.
    """
    meta = _meta()
    agreed: dict[Path | None, frozenset[str]] = meta.setdefault(_AGREED, {})
    if project not in agreed:
        agreed[project] = _decide(inspect(project), meta.get(TRUST_CHOICE))
    return agreed[project]


def inspect(project: Path | None) -> Inspection:
    """Return the effects of opening a project, without opening it."""
    require_supported()
    return inspect_folder(project, _is_confined)


def stored_consent(project: Path | None) -> tuple[frozenset[str], Inspection]:
    """Return the consent given so far, and the effects of opening; for commands that never ask."""
    choice = _meta().get(TRUST_CHOICE)
    inspection = inspect(project)
    if choice is False:
        return frozenset(), inspection
    if choice is True:
        return _decide(inspection, choice), inspection
    return answers_for(inspection.folder).granted, inspection


def read_source(project: Path | None, *, is_code_read: bool = False) -> AppConfigSource:
    """Return the configuration of a project, without everything that lacks consent.

    With `is_code_read` folders of roles and plugins stay in it, for a command that reads or writes
    the files in them and runs none.
    """
    granted, inspection = stored_consent(project)
    if is_code_read:
        granted |= {f.digest for f in inspection.findings if f.kind in ("roles", "plugins")}
    return read_project(project, {}, granted, _is_confined).src


def _is_confined(tier: str) -> bool:
    from taskweaver.ces.sandbox.sandbox import is_confined

    return is_confined(tier)


def _decide(inspection: Inspection, choice: bool | None) -> frozenset[str]:  # noqa: FBT001
    if not inspection.findings or choice is False:
        return frozenset()
    before = answers_for(inspection.folder)
    undecided = inspection.findings if choice else before.undecided(inspection.findings)
    if not undecided:
        return before.granted
    if choice is None and not _can_ask():
        raise ProjectNotTrusted(str(inspection.folder), undecided)
    is_granted = choice or _ask(inspection.folder, undecided, is_first=before == Answers())
    if is_granted is None:
        raise ProjectNotTrusted(str(inspection.folder), undecided)
    digests = frozenset(item.digest for item in undecided)
    current = inspection.digests
    if is_granted:
        answers = Answers((before.granted & current) | digests, before.declined - digests)
    else:
        answers = Answers(before.granted & current, before.declined | digests)
    if not remember(inspection.folder, answers):
        click.echo("warning: the answer cannot be stored and holds for this time only.", err=True)
    return answers.granted


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def show_findings(findings: Sequence[Finding]) -> None:
    """Print a line for each effect, to standard error; of many links the first ones."""
    links = [item for item in findings if item.kind == "link"]
    for item in [*(item for item in findings if item not in links), *links[:_MOST_LINKS]]:
        click.echo(f"  - {_line(item.sentence)}", err=True)
    if len(links) > _MOST_LINKS:
        click.echo(f"  - And {len(links) - _MOST_LINKS} more links.", err=True)


def _line(sentence: str) -> str:
    """Return a sentence as one line; a long one is cut in the middle, and says so."""
    text = safe(redact(" ".join(sentence.split())))
    more = len(text) - _MOST_CHARS
    if more <= 0:
        return text
    half = _MOST_CHARS // 2
    return f"{text[:half]} [{more:,} characters more] {text[-half:]}"


def _ask(folder: Path, findings: Sequence[Finding], *, is_first: bool) -> bool | None:
    """Show the effects and return whether the user allows them; None at the end of input."""
    from taskweaver.console.terminal.keyboard import discard_typed

    new = "" if is_first else " something new"
    click.echo(f"Opening {_line(str(folder))} would do{new or ' the following'}:", err=True)
    show_findings(findings)
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
