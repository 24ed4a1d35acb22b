"""``taskweaver plugin``: write and test plugins of a project."""

from __future__ import annotations

import sys
from pathlib import Path

import click

_EXAMPLES = """\b
Examples:
  taskweaver -p sales plugin new exchange_rate
  taskweaver -p sales plugin test exchange_rate"""


@click.group(epilog=_EXAMPLES)
def plugin() -> None:
    """Functions of your own that the model can call: write and test them."""


@plugin.command()
@click.argument("name")
@click.pass_obj
def new(project: Path | None, name: str) -> None:
    """Write a plugin that works, with a test in it, for you to change."""
    from taskweaver.cli.projects.plugin_work import create

    for line in create(project, name):
        click.echo(line)


@plugin.command()
@click.argument("name", required=False)
@click.pass_obj
def test(project: Path | None, name: str | None) -> None:
    """Load plugins into a kernel and run the tests in their files; without a name, all.

    The exit status is 1 when a plugin does not load or a test fails.
    """
    from taskweaver.cli.projects.plugin_work import run_tests

    sys.exit(run_tests(project, name))
