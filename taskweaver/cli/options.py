"""Parts of options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)
FOLDER = click.Path(file_okay=False, resolve_path=True, path_type=Path)
PATH = click.Path(resolve_path=True, path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
