"""Writes the files of a plan into a node's folder: all or none, and never through a link.

Experiments write there too, so nothing in it is trusted. `takeover` has the files a node takes over
from its parent, and the listing of its folder.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from taskweaver.treesearch.errors import PhasePlanError, SearchError
from taskweaver.treesearch.model.phase_plan import WorkspacePlan
from taskweaver.treesearch.model.plan_checks import ROOT, inner_path
from taskweaver.utils.file_system.safe_fs import Folder

_OWNER_RIGHTS = 0o600


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
    try:
        with Folder.at(workspace_root) as root:
            for n, folder in enumerate(plan.tree):
                _check_folder(f"coding.workspace.tree[{n}]", root, PurePosixPath(folder).parts)
            for n, file in enumerate(plan.files):
                _check_file(f"coding.workspace.files[{n}].path", root, file.path)
            _write_all(root, plan)
    except OSError as error:
        raise SearchError(f"The workspace cannot be written: {error}.") from error
    return [workspace_root / file.path for file in plan.files]


def link_inside(workspace_root: Path, path: str, target: Path) -> None:
    """Make a link at a path in a node's folder, never through another; a link there is replaced.

    Raises:
        PhasePlanError: If something else is there.
        SearchError: If the system refuses.
    """
    parent = PurePosixPath(path).parent.parts
    try:
        with Folder.at(workspace_root) as root, ExitStack() as undo:
            _check_folder(path, root, parent)
            _make(root, parent, undo)
            kind = _kind(root, path)
            if kind is not None and not stat.S_ISLNK(kind):
                raise PhasePlanError(path, "is there already")
            root.remove(path)
            root.make_link(path, target)
            undo.pop_all()
    except OSError as error:
        raise SearchError(f"{path} cannot be linked: {error}.") from error


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
