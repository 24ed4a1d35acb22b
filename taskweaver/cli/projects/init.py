"""Making a project folder."""

from __future__ import annotations

import csv
import io
import random
import shutil
from datetime import date, timedelta
from pathlib import Path

import click

from taskweaver.app.errors import ProjectError
from taskweaver.cli.options import FOLDER
from taskweaver.utils.system.installation import own_command

TEMPLATE = Path(__file__).with_name("template")
ROWS = 400
_FIRST_DAY = date(2025, 1, 1)
_PRICES = {"chair": 89.0, "desk": 240.0, "lamp": 35.0, "shelf": 120.0}
_REGIONS = ("north", "south", "east", "west")


@click.command("init")
@click.argument("folder", required=False, type=FOLDER)
@click.option("-p", "--project", "same", metavar="DIR", type=FOLDER, help="The same as FOLDER.")
@click.pass_obj
def init_command(project: Path | None, folder: Path | None, same: Path | None) -> None:
    """Make a project folder: configuration, examples, sample data."""
    target = folder or same or project
    if target is None:
        raise click.UsageError("Which folder? For example: taskweaver init sales")
    for line in create_project(target):
        click.echo(line)


def create_project(folder: Path) -> list[str]:
    """Make a project in a new or empty folder: configuration, README, examples, sample data.

    Returns:
        Lines for the user: the files made, and the next steps.

    Raises:
        ProjectError: If the folder is not empty, or cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ProjectError(str(folder), "is not empty; name a folder that is new or empty.")
        _copy_template(folder)
        (folder / "data" / "orders.csv").write_text(sample_orders(), "utf-8", newline="")
    except OSError as error:
        problem = f"a project cannot be made there: {error.strerror or error}"
        raise ProjectError(str(folder), problem) from error
    return [
        f"{folder} is a project now, with {ROWS} rows to ask about in data/orders.csv.",
        f"Try: {own_command('-m', 'describe orders.csv', project=folder)}",
        f"Chat: {own_command(project=folder)}",
    ]


def _copy_template(folder: Path) -> None:
    """Copy the packaged files; not their modes, which an installer may have made read-only."""
    for name in ("data", "plugins", "roles"):
        (folder / name).mkdir(parents=True)
    for source in TEMPLATE.rglob("*.*"):
        hidden = {"gitignore.txt": ".gitignore"}.get(source.name, source.name)
        target = folder / source.relative_to(TEMPLATE).with_name(hidden)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def sample_orders() -> str:
    """Return a table of invented orders as CSV, the same each time; a few amounts are missing."""
    chance = random.Random(7)
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["date", "region", "product", "quantity", "amount"])
    for number in range(ROWS):
        day = _FIRST_DAY + timedelta(days=number * 364 // (ROWS - 1))
        product, price = chance.choice(list(_PRICES.items()))
        quantity = chance.randint(1, 6)
        amount = "" if chance.random() < 0.03 else f"{quantity * price:.2f}"
        rows.writerow([day.isoformat(), chance.choice(_REGIONS), product, quantity, amount])
    return text.getvalue()
