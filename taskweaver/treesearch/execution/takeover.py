"""The files a node takes over from its parent, and the listing of a node's folder.

Experiments write there, so nothing in it is trusted: links are copied and never followed, special
files are left out, and depth, number and size are bounded.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.phase_plan import WORKING
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

TAKE_OVER_BYTES = 8 << 30
"""Most bytes that are really copied; files that share storage are free."""

_MOST_ENTRIES = 100_000
_MOST_LISTED = 1000


def take_over(parent: Path, workspace: Path) -> None:
    """Copy a parent's files, all but those of its run, to a folder that is made; links stay links.

    Raises:
        SearchError: If there is more to copy, or it cannot be done; `workspace` is not made.
    """
    rules = CopyRules(TAKE_OVER_BYTES, _MOST_ENTRIES, left_out=WORKING)
    draft = f"{workspace.name}.partial"
    try:
        with Folder.at(workspace.parent) as place, Folder.at(parent) as source:
            try:
                place.remove(draft)
                place.make_folder(draft)
                with place.folder(draft) as target:
                    copy_tree(source, target, rules)
                place.move(draft, place, workspace.name)
            finally:
                place.remove(draft)
    except OSError as error:
        raise SearchError(f"{parent} cannot be taken over: {error}.") from error
    except CopyTooLarge as error:
        raise SearchError(
            f"{parent} cannot be taken over: it holds more than {error.limit}.",
            "Keep large files in working, which is not taken over.",
        ) from error


def list_files(workspace: Path, below: str = "") -> list[str]:
    """Return the plain files `below` a folder of a workspace, sorted; the first thousand."""
    prefix = f"{below}/" if below else ""
    try:
        with Folder.at(workspace) as root, root.folder(below) as folder:
            return [prefix + path for path, _ in islice(folder.files(), _MOST_LISTED)]
    except OSError:  # there is none, or a link in its place
        return []


def read_inside(workspace: Path, path: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a plain file in a folder; None when there is none.

    No part of its path may be a link.

    Raises:
        ValueError: If there is something else, or it is larger.
    """
    try:
        with Folder.at(workspace) as folder, folder.open_file(path) as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path} is no plain file: {error.strerror}") from error
    if len(data) > max_bytes:
        raise ValueError(f"{path} is larger than {max_bytes:,} bytes")
    return data


def empty_working(workspace: Path) -> None:
    """Make the folder of a run, empty.

    Raises:
        SearchError: If it cannot be emptied.
    """
    try:
        with Folder.at(workspace) as folder:
            folder.remove(WORKING)
            folder.make_folder(WORKING)
    except OSError as error:
        raise SearchError(f"{workspace / WORKING} cannot be emptied: {error}.") from error
