"""Resources of a run: data and code of a file, made available to nodes, described in prompts.

Folders of this machine are shown where the resource file says, by a link, and can only be read in
the sandbox. Items are at ``resources/<class>/<name>``: small ones as copies, others as links.
Those from elsewhere are fetched by commands of the download phase. See
`memory.branched.run.resource_file`.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.run.resource_file import (
    CLASSES,
    WORKSPACE,
    Item,
    ResourceSource,
    read_resource_file,
)
from taskweaver.memory.branched.run.resources import update_resource_snapshot_if_changed
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.phases import prepare_workspace
from taskweaver.treesearch.execution.workspace import link_inside
from taskweaver.treesearch.model.phase_plan import WORKING
from taskweaver.treesearch.model.plan_checks import CommandText
from taskweaver.treesearch.record.places import remove
from taskweaver.utils.file_system.copy_tree import CopyRules, CopyTooLarge, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder, copy_content, open_ordinary

FOLDER = "resources"
_COPIED = frozenset({"template", "setup", "document"})
_COPY_BYTES = 1 << 30
_MOST_FILES = 100_000
_NOT_WRITABLE = 0o555
_GITHUB = "https://github.com"
_HUB = (
    "import sys, huggingface_hub as hub; name, kind, revision, place = sys.argv[1:];"
    " hub.snapshot_download(name, repo_type=kind, revision=revision or None, local_dir=place)"
)
# Where it is not installed it is fetched too, for this one command.
_HUB_THERE = (
    'export PYTHONPATH="$TMPDIR/hub:$PYTHONPATH"'
    " && { python -c 'import huggingface_hub' 2>/dev/null"
    ' || pip install --quiet --target "$TMPDIR/hub" --only-binary=:all: huggingface_hub; }'
)


def stage_resources(items: Sequence[Item], workspace: Path) -> list[Path]:
    """Make the local items available in a node's folder, in place of old ones; return their paths.

    Raises:
        SearchError: If an item is missing, or its place is taken.
    """
    if (workspace / FOLDER).is_symlink():
        remove(workspace / FOLDER)
    for class_ in CLASSES:  # something that was fetched may stand beside them
        remove(workspace / FOLDER / class_)
    staged: list[Path] = []
    local = [item for item in items if item.source.kind == "local"]
    for source in dict.fromkeys(item.source for item in local):
        link_inside(workspace, _inner(source), Path(source.origin).resolve())
    for item in local:
        origin = Path(source_path := item.source.origin).resolve()
        place = (origin / item.path).resolve()
        if not place.exists() or not place.is_relative_to(origin):
            raise SearchError(f"The resource {item.name} is missing: {source_path}/{item.path}.")
        target = f"{FOLDER}/{item.class_}/{_name(item)}"
        if item.class_ in _COPIED:
            _copy(place, workspace, target)
        else:
            link_inside(workspace, target, place)
        staged.append(workspace / target)
    return staged


def with_resources(policy: SandboxPolicy, items: Sequence[Item]) -> SandboxPolicy:
    """Return a policy by which the local items can be read."""
    folders = (Path(item.source.origin).resolve() for item in items if item.source.kind == "local")
    return replace(policy, read_only=tuple(dict.fromkeys((*policy.read_only, *folders))))


def check_places(items: Sequence[Item]) -> None:
    """Refuse items that cannot be put where they should be.

    Raises:
        SearchError: If a source or an item has no place of its own.
    """
    for item in items:
        _inner(item.source)
        _name(item)


def fetch_commands(items: Sequence[Item]) -> tuple[str, ...]:
    """Return the commands that fetch missing items, for the download phase.

    They work in the node's folder, and leave items alone that a parent has fetched.
    """
    sources = dict.fromkeys(item.source for item in items if item.source.kind != "local")
    return tuple(
        _fetching(source, [item for item in items if item.source == source]) for source in sources
    )


def _fetching(source: ResourceSource, items: Sequence[Item]) -> str:
    place = _inner(source)
    there, partial = shlex.quote(f"./{place}"), shlex.quote(f"./{place}.partial")
    if source.kind == "github":
        fetch = _clone(source, place)
    else:
        facts = [source.origin, source.type, source.revision, f"./{place}.partial"]
        fetch = [_HUB_THERE, shlex.join(["python", "-c", _HUB, *facts])]
    steps = [f"rm -rf {partial}", *fetch]
    for item in (one for one in items if one.path.parts):
        problem = shlex.quote(f"The resource {item.name} is missing: {source.name}/{item.path}.")
        wanted = shlex.quote(f"./{place}.partial/{item.path}")
        steps.append(f"{{ test -e {wanted} || {{ echo {problem} >&2; false; }}; }}")
    # It is there wholly or not at all.
    return f"test -e {there} || {{ {' && '.join(steps)} && mv {partial} {there}; }}"


def _clone(source: ResourceSource, place: str) -> list[str]:
    # A commit can be fetched by its number, but not cloned.
    url = source.origin if ":" in source.origin else f"{_GITHUB}/{source.origin}"
    partial = f"./{place}.partial"
    steps = [
        ["init", "--quiet", "--template=", partial],
        ["-C", partial, "fetch", "--quiet", "--depth", "1", "--", url, source.revision or "HEAD"],
        ["-C", partial, "checkout", "--quiet", "FETCH_HEAD"],
    ]
    return [shlex.join(["git", *step]) for step in steps]


def _inner(source: ResourceSource) -> str:
    """Return where a source stands, relative to the workspace."""
    place = str(source.place.relative_to(WORKSPACE))
    if place == ".":
        raise SearchError(f"The resource {source.name} must stand below {WORKSPACE}, not be it.")
    if place.partition("/")[0] == WORKING:
        raise SearchError(f"The resource {source.name} cannot stand in {WORKING}: runs empty it.")
    return place


def _name(item: Item) -> str:
    if "/" in item.name or item.name in {".", ".."}:
        raise SearchError(f"The resource {item.name!r} needs a name without a slash.")
    return str(PurePosixPath(item.name))


def _copy(place: Path, workspace: Path, path: str) -> None:
    """Copy a file or a folder, and take the right to write from it."""
    rules = CopyRules(_COPY_BYTES, _MOST_FILES, is_read_only=True)
    try:
        with system_errors(f"{place} cannot be copied"), Folder.at(workspace) as root:
            parent = PurePosixPath(path).parent
            above = filter(None, map(root.stat, (PurePosixPath(FOLDER), parent)))
            if any(stat.S_ISLNK(facts.st_mode) for facts in above):
                raise SearchError(f"{path} is inside of a folder that another resource shows.")
            root.make_folders(parent)
            if place.is_dir():
                root.make_folder(path, 0o755)
                with Folder.at(place.resolve()) as source, root.folder(path) as target:
                    copy_tree(source, target, rules)
            else:
                _copy_file(place, root, path)
    except CopyTooLarge as error:
        raise _too_much(place) from error


def _copy_file(place: Path, root: Folder, path: str) -> None:
    with open_ordinary(place) as source:
        facts = os.fstat(source.fileno())
        if facts.st_size > _COPY_BYTES:
            raise _too_much(place)
        with root.replacing(path) as target:
            copy_content(source, target)
            os.fchmod(target.fileno(), facts.st_mode & _NOT_WRITABLE)


def _too_much(place: Path) -> SearchError:
    return SearchError(
        f"{place} is more than is copied, {_COPY_BYTES >> 20} MiB or {_MOST_FILES:,} files.",
        "Make it a dataset, a model or a library: those are shown where they are.",
    )


@dataclass(frozen=True, slots=True)
class Materials:
    """The resources of a run, which a file lists; without a file there are none."""

    file: Path | None = None
    items: tuple[Item, ...] = ()
    memory: BranchedMemory | None = None

    def text(self) -> str:
        """Return the lines of prompts about them; empty for none."""
        return "\n".join(f"- {_line(item)}" for item in self.items)

    def prepared(self, job: Job, installs: Sequence[CommandText]) -> Job:
        """Place the resources in a node's workspace; return the job that can read and fetch them.

        The download phase then goes on with the commands in `installs`.

        Raises:
            SearchError: If one is missing, or its place is taken.
        """
        if self.items:
            prepare_workspace(job)
            stage_resources(self.items, job.workspace)
        sandbox = job.sandbox and with_resources(job.sandbox, self.items)
        plan = replace(job.plan, download=(*fetch_commands(self.items), *installs))
        return replace(job, sandbox=sandbox, plan=plan)

    def note_fetched(self, workspace: Path, branch: str) -> None:
        """Write the content of fetched resources to a node's memory."""
        if self.file is None or self.memory is None:
            return
        if any(item.source.kind != "local" for item in self.items):
            with suppress(InvalidUpdate):  # the file was changed: it is read when a run opens
                folder = self.memory.path.parent
                update_resource_snapshot_if_changed(
                    self.memory[branch], self.file, workspace, folder=folder
                )


def read_materials(file: Path | None, memory: BranchedMemory | None = None) -> Materials:
    """Return the resources a file lists; none without a file.

    Raises:
        SearchError: If the file cannot be used.
    """
    if file is None:
        return Materials()
    try:
        items = tuple(read_resource_file(file))
    except (InvalidUpdate, OSError) as error:
        raise SearchError(f"The resources cannot be used: {error}") from error
    check_places(items)
    return Materials(file, items, memory)


def _line(item: Item) -> str:
    kind = item.source.kind
    is_local = kind == "local"
    own = f"{FOLDER}/{item.class_}/{item.name}"
    place = own if is_local else str(item.source.place / item.path)
    notes = f": {item.notes}" if item.notes else ""
    return f"{item.name} ({item.class_}, {kind}), in {place}{notes}"
