"""Writes what a plan says into a node's folder: everything or nothing, and never through a link.

Experiments write there too, so nothing in it is trusted. What a node takes over from its parent,
and how its folder is looked at, is in `takeover`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from taskweaver.treesearch.errors import PhasePlanError, SearchError
from taskweaver.treesearch.plan import PlannedFile, WorkspacePlan
from taskweaver.treesearch.plan_values import ROOT, inner_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER_RIGHTS = 0o600


def apply_workspace_plan(
    workspace_root: Path, plan: WorkspacePlan, *, expected_root: str = ROOT
) -> list[Path]:
    """Write the files of a plan: all of them, or none.

    Everything is checked first, then written beside the files there are, then moved into place.

    Args:
        workspace_root: The node's folder.
        plan: What to write.
        expected_root: What the plan may call the folder.

    Returns:
        The files, in the order of the plan.

    Raises:
        PhasePlanError: If it cannot be written as planned; nothing is changed.
        SearchError: If the system refuses; what was changed is undone.
    """
    if plan.root.rstrip("/") not in {"", expected_root}:
        raise PhasePlanError("coding.workspace.root", f"must be {expected_root}, not {plan.root}")
    for path in (*plan.tree, *(file.path for file in plan.files)):
        if inner_path("coding.workspace", path) != path:
            raise PhasePlanError("coding.workspace", f"{path} is not in its shortest form")
    try:
        with _opened(workspace_root.resolve(), None) as root:
            for n, folder in enumerate(plan.tree):
                _check_folder(f"coding.workspace.tree[{n}]", root, PurePosixPath(folder).parts)
            for n, file in enumerate(plan.files):
                _check_file(f"coding.workspace.files[{n}].path", root, file.path)
            _write_all(root, plan)
    except OSError as error:
        raise SearchError(f"The workspace cannot be written: {error}.") from error
    return [workspace_root / file.path for file in plan.files]


def link_inside(workspace_root: Path, path: str, target: Path) -> None:
    """Make a link in a node's folder, never through another; one that is there is replaced.

    Args:
        workspace_root: The node's folder.
        path: Where, relative to it.
        target: Where it leads.

    Raises:
        PhasePlanError: If something else is there.
        SearchError: If the system refuses.
    """
    parent, name = PurePosixPath(path).parent.parts, PurePosixPath(path).name
    try:
        with _opened(workspace_root.resolve(), None) as root, ExitStack() as undo:
            _check_folder(path, root, parent)
            _make(root, parent, undo)
            with _inner(root, parent) as folder:
                kind = _kind(folder, name)
                if kind is not None and not stat.S_ISLNK(kind):
                    raise PhasePlanError(path, "is there already")
                if kind is not None:
                    os.unlink(name, dir_fd=folder)
                os.symlink(target, name, dir_fd=folder)
            undo.pop_all()
    except OSError as error:
        raise SearchError(f"{path} cannot be linked: {error}.") from error


@contextmanager
def _opened(path: str | Path, folder: int | None) -> Iterator[int]:
    fd = os.open(path, _FOLDER, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _check_folder(place: str, root: int, parts: Sequence[str]) -> None:
    """Refuse a folder that cannot be one: a part of its path is a link, or no folder."""
    with ExitStack() as stack:
        folder = root
        for n, part in enumerate(parts):
            kind = _kind(folder, part)
            if kind is None:
                return
            if not stat.S_ISDIR(kind):
                what = "a link" if stat.S_ISLNK(kind) else "no folder"
                raise PhasePlanError(place, f"{'/'.join(parts[: n + 1])} is {what}")
            folder = stack.enter_context(_opened(part, folder))


def _check_file(place: str, root: int, path: str) -> None:
    parent, name = PurePosixPath(path).parent, PurePosixPath(path).name
    _check_folder(place, root, parent.parts)
    with suppress(FileNotFoundError), _inner(root, parent.parts) as folder:
        kind = _kind(folder, name)
        if kind is not None and not stat.S_ISREG(kind):
            raise PhasePlanError(place, f"{path} is there, and is no plain file")


def _kind(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _inner(root: int, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder inside another, never through a link."""
    with ExitStack() as stack:
        folder = root
        for part in parts:
            folder = stack.enter_context(_opened(part, folder))
        yield folder


def _write_all(root: int, plan: WorkspacePlan) -> None:
    draft = f".plan-{secrets.token_hex(8)}"
    os.mkdir(draft, 0o700, dir_fd=root)
    with ExitStack() as at_end:
        at_end.callback(shutil.rmtree, draft, ignore_errors=True, dir_fd=root)
        drafts = at_end.enter_context(_opened(draft, root))
        for n, file in enumerate(plan.files):
            _write(drafts, f"new-{n}", file)
        with ExitStack() as undo:
            for folder in plan.tree:
                _make(root, PurePosixPath(folder).parts, undo)
            for n, file in enumerate(plan.files):
                _move(root, drafts, n, file.path, undo)
            undo.pop_all()


def _write(folder: int, name: str, file: PlannedFile) -> None:
    fd = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(fd, "wb") as new:
        new.write(file.data)
        # A child that takes it over must be able to read and replace it.
        os.fchmod(fd, file.mode | _OWNER_RIGHTS)


def _make(root: int, parts: Sequence[str], undo: ExitStack) -> None:
    with ExitStack() as stack:
        folder = root
        for n, part in enumerate(parts):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
                undo.callback(_remove_folder, root, parts[: n + 1])
            folder = stack.enter_context(_opened(part, folder))


def _remove_folder(root: int, parts: Sequence[str]) -> None:
    with _inner(root, parts[:-1]) as folder:
        os.rmdir(parts[-1], dir_fd=folder)


def _move(root: int, drafts: int, n: int, path: str, undo: ExitStack) -> None:
    parent, name = PurePosixPath(path).parent.parts, PurePosixPath(path).name
    _make(root, parent, undo)
    with _inner(root, parent) as folder:
        kind = _kind(folder, name)
        if kind is not None and not stat.S_ISREG(kind):
            raise FileExistsError(f"{path} is no plain file")
        if kind is not None:
            os.rename(name, f"old-{n}", src_dir_fd=folder, dst_dir_fd=drafts)
            undo.callback(_put, root, drafts, f"old-{n}", parent, name)
        os.rename(f"new-{n}", name, src_dir_fd=drafts, dst_dir_fd=folder)
        undo.callback(_unlink, root, parent, name)


def _put(root: int, drafts: int, source: str, parent: Sequence[str], name: str) -> None:
    with _inner(root, parent) as folder:
        os.rename(source, name, src_dir_fd=drafts, dst_dir_fd=folder)


def _unlink(root: int, parent: Sequence[str], name: str) -> None:
    with _inner(root, parent) as folder:
        os.unlink(name, dir_fd=folder)
