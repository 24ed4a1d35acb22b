"""The folder of a node: files of its plan, files of its parent, and the listing of its content.

Experiments write there, so nothing in it is trusted: links are copied and never followed, special
files are left out, and depth, number and size are bounded.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from taskweaver.treesearch.errors import PhasePlanError, SearchError, system_errors
from taskweaver.treesearch.model.phase_plan import WORKING, WorkspacePlan
from taskweaver.treesearch.model.plan_checks import ROOT, inner_path
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

_OWNER_RIGHTS = 0o600
TAKE_OVER_BYTES = 8 << 30
"""Most bytes that are really copied; files that share storage are free."""

_MOST_ENTRIES = 100_000
_MOST_LISTED = 1000


def apply_workspace_plan(
    workspace_root: Path, plan: WorkspacePlan, *, expected_root: str = ROOT
) -> list[Path]:
    """Write the files of a plan, all of them or none; return them in its order.

    The plan may call the folder `expected_root`.

    Everything is checked first, then written beside the files there are, then moved into place.

    Raises:
        PhasePlanError: If it cannot be written as planned; nothing is changed.
        SearchError: If the system refuses; changes are undone.
    """
    if plan.root.rstrip("/") not in {"", expected_root}:
        raise PhasePlanError("coding.workspace.root", f"must be {expected_root}, not {plan.root}")
    for path in (*plan.tree, *(file.path for file in plan.files)):
        if inner_path("coding.workspace", path) != path:
            raise PhasePlanError("coding.workspace", f"{path} is not in its shortest form")
    with system_errors("The workspace cannot be written"), Folder.at(workspace_root) as root:
        for n, folder in enumerate(plan.tree):
            _check_folder(f"coding.workspace.tree[{n}]", root, PurePosixPath(folder).parts)
        for n, file in enumerate(plan.files):
            _check_file(f"coding.workspace.files[{n}].path", root, file.path)
        _write_all(root, plan)
    return [workspace_root / file.path for file in plan.files]


def link_inside(workspace_root: Path, path: str, target: Path) -> None:
    """Make a link at a path in a node's folder, never through another; a link there is replaced.

    Raises:
        PhasePlanError: If something else is there.
        SearchError: If the system refuses.
    """
    parent = PurePosixPath(path).parent.parts
    cannot = system_errors(f"{path} cannot be linked")
    with cannot, Folder.at(workspace_root) as root, ExitStack() as undo:
        _check_folder(path, root, parent)
        _make(root, parent, undo)
        kind = _kind(root, path)
        if kind is not None and not stat.S_ISLNK(kind):
            raise PhasePlanError(path, "is there already")
        root.remove(path)
        root.make_link(path, target)
        undo.pop_all()


def _check_folder(place: str, root: Folder, parts: Sequence[str]) -> None:
    """Refuse a folder that cannot be one: a part of its path is a link, or no folder."""
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        kind = _kind(root, path)
        if kind is None:
            return
        if not stat.S_ISDIR(kind):
            raise PhasePlanError(
                place, f"{path} is {'a link' if stat.S_ISLNK(kind) else 'no folder'}"
            )


def _check_file(place: str, root: Folder, path: str) -> None:
    _check_folder(place, root, PurePosixPath(path).parent.parts)
    kind = _kind(root, path)
    if kind is not None and not stat.S_ISREG(kind):
        raise PhasePlanError(place, f"{path} is there, and is no plain file")


def _kind(root: Folder, path: str) -> int | None:
    facts = root.stat(path)
    return None if facts is None else facts.st_mode


def _write_all(root: Folder, plan: WorkspacePlan) -> None:
    draft = f".plan-{secrets.token_hex(8)}"
    root.make_folder(draft)
    with ExitStack() as at_end:
        at_end.callback(root.remove, draft)
        drafts = at_end.enter_context(root.folder(draft))
        for n, file in enumerate(plan.files):
            with drafts.create_file(f"new-{n}") as new:
                new.write(file.data)
                # A child that takes it over must be able to read and replace it.
                os.fchmod(new.fileno(), file.mode | _OWNER_RIGHTS)
        with ExitStack() as undo:
            for folder in plan.tree:
                _make(root, PurePosixPath(folder).parts, undo)
            for n, file in enumerate(plan.files):
                _move(root, drafts, n, file.path, undo)
            undo.pop_all()


def _make(root: Folder, parts: Sequence[str], undo: ExitStack) -> None:
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        with suppress(FileExistsError):
            root.make_folder(path, 0o755)
            undo.callback(root.remove, path)


def _move(root: Folder, drafts: Folder, n: int, path: str, undo: ExitStack) -> None:
    _make(root, PurePosixPath(path).parent.parts, undo)
    kind = _kind(root, path)
    if kind is not None and not stat.S_ISREG(kind):
        raise FileExistsError(f"{path} is no plain file")
    if kind is not None:
        root.move(path, drafts, f"old-{n}")
        undo.callback(drafts.move, f"old-{n}", root, path)
    drafts.move(f"new-{n}", root, path)
    undo.callback(root.remove, path)


def take_over(parent: Path, workspace: Path) -> None:
    """Copy a parent's files, all but those of its run, to a folder that is made; links stay links.

    Raises:
        SearchError: If there is more to copy, or it cannot be done; `workspace` is not made.
    """
    rules = CopyRules(TAKE_OVER_BYTES, _MOST_ENTRIES, left_out=WORKING)
    draft = f"{workspace.name}.partial"
    cannot = system_errors(f"{parent} cannot be taken over")
    try:
        with cannot, Folder.at(workspace.parent) as place, Folder.at(parent) as source:
            try:
                place.remove(draft)
                place.make_folder(draft)
                with place.folder(draft) as target:
                    copy_tree(source, target, rules)
                place.move(draft, place, workspace.name)
            finally:
                place.remove(draft)
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
    with system_errors(f"{workspace / WORKING} cannot be emptied"), Folder.at(workspace) as folder:
        folder.remove(WORKING)
        folder.make_folder(WORKING)
