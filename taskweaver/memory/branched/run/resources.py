"""Resources of a run: a snapshot of them in the memory, and the notes of their use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.run.ingest import keep_record, read_text, sha256
from taskweaver.memory.branched.run.resource_file import WORKSPACE, Item, read_resource_file
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.tiers.core import INDEX_KEY
from taskweaver.memory.branched.values import file_path, folder_path
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import write_json

RESOURCE_TAG = "RESOURCE_ITEM"
SNAPSHOT_FILE = "resource_snapshot.json"
_RECORD_CHARS = 6000
_DEEPEST = 4
_SUMMARY_LINES = 8
_QUOTED = frozenset(
    ".c .cc .cpp .h .hpp .py .sh .md .txt .json .yaml .yml .ini .cfg .toml .cmake .mk .rst".split()
)
_QUOTED_NAMES = {"Makefile", "CMakeLists.txt", "requirements.txt", "setup.py"}

_KEPT_BY_TOOLS = {".git", ".cache"}

Availability = Literal["available", "missing", "pending_fetch"]
_FETCH_STATUS = {"available": "available", "pending_fetch": "pending", "missing": "failed"}


@dataclass(frozen=True, slots=True)
class ItemState:
    """An item in its present state: the files, a line each, and the quoted part of the content.

    `source` is ``kind:name``, `container_path` where the run finds it, `fetch_status` one of
    ``available``, ``pending`` and ``failed``, and `digest` the SHA-256 of all of it.
    """

    id: str
    name: str
    class_: str
    source: str
    container_path: str
    availability: Availability
    fetch_status: str
    notes: str
    tree: str
    content: str
    digest: str


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """All items in their present state, sorted by id.

    The digest is the SHA-256 over the file that lists them and all of them.
    """

    resource_file: str
    resource_file_sha: str
    items: tuple[ItemState, ...]
    resource_digest: str


def build_resource_snapshot(
    resource_file: str | Path, workspace_root: str | Path
) -> ResourceSnapshot:
    """Look at everything a resource file, YAML or JSON, lists.

    ``/workspace`` in it stands for `workspace_root`, a folder of this machine.

    Raises:
        InvalidUpdate: If the file or an entry in it is wrong.
    """
    path = file_path("resource_file", resource_file)
    workspace = folder_path("workspace_root", workspace_root)
    items = tuple(_state(item, workspace) for item in read_resource_file(path))
    sha = sha256(read_text(path))
    digest = _digest([sha, *(item.digest for item in items)])
    return ResourceSnapshot(str(path), sha, items, digest)


def _state(item: Item, workspace: Path) -> ItemState:
    source = item.source
    # What was fetched is where programs of strangers write: a link there must not lead out.
    # The workspace itself is not resolved: code may have put a link in its place.
    own = workspace.parent.resolve() / workspace.name
    fetched = own / source.place.relative_to(WORKSPACE)
    base = Path(source.origin).resolve() if source.kind == "local" else fetched
    place = (base / item.path).resolve()
    availability: Availability = "available"
    if source.kind != "local" and not base.exists():
        availability = "pending_fetch"
    elif not place.exists() or not place.is_relative_to(base):
        availability = "missing"
    is_there = availability == "available"
    facts = {
        "id": item.id,
        "name": item.name,
        "class_": item.class_,
        "source": f"{source.kind}:{source.name}",
        "container_path": str(source.place / item.path),
        "availability": availability,
        "fetch_status": _FETCH_STATUS[availability],
        "notes": item.notes,
        "tree": _tree(place, item) if is_there and item.limits.tree else "",
        "content": _content(place, item) if is_there and item.limits.content else "",
    }
    return ItemState(**facts, digest=_digest([facts, source.origin, source.revision]))  # type: ignore[arg-type]


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of the files below a place, sorted, without folders of tools.

    Links are not followed.
    """
    if place.is_file():
        yield place.name, place
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(set(folders) - _KEPT_BY_TOOLS)
        if len(Path(folder).relative_to(place).parts) >= _DEEPEST:
            folders.clear()
        paths = (Path(folder) / name for name in sorted(names))
        yield from ((path.relative_to(place).as_posix(), path) for path in paths)


def _tree(place: Path, item: Item) -> str:
    lines: list[str] = []
    left = item.limits.max_total_chars
    for line, _ in _files(place):
        if len(lines) >= item.limits.max_files or len(line) + 1 > left:
            return "\n".join([*lines, "... (tree truncated)"])
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def _content(place: Path, item: Item) -> str:
    parts: list[str] = []
    left = item.limits.max_total_chars
    wanted = {(place / name).resolve() for name in item.files}
    for name, path in _files(place):
        is_quotable = path.suffix.lower() in _QUOTED or path.name in _QUOTED_NAMES
        is_chosen = path.resolve() in wanted if wanted else is_quotable
        if not is_chosen or path.is_symlink() or not path.is_file():
            continue
        if left <= 0 or len(parts) >= item.limits.max_files:
            break
        text = _quoted(path, min(item.limits.max_chars, left))
        if text:
            parts.append(f"== {name}\n{text}")
            left -= len(text)
    return "\n\n".join(parts)


def _quoted(path: Path, max_chars: int) -> str:
    """Return a text file, or the first lines and an excerpt. Binary files give an empty text."""
    try:
        with Folder.at(path.parent) as folder, folder.open_file(path.name) as file:
            data = file.read(4 * max_chars + 4)
        text = data.decode("utf-8", "ignore" if len(data) > 4 * max_chars else "strict")
    except (OSError, UnicodeDecodeError):
        return ""
    if "\0" in text:
        return ""
    if len(text) <= max_chars:
        return text.strip()
    first = [line for line in text.splitlines() if line.strip()][:_SUMMARY_LINES]
    return Compressor.cut("\n".join(["Summary:", *first, "", "Excerpt:", text]), max_chars)


def _digest(data: object) -> str:
    return sha256(json.dumps(data, sort_keys=True))


def update_resource_snapshot_if_changed(
    branch: BranchHandle,
    resource_file: str | Path,
    workspace_root: str | Path,
    *,
    folder: Path | None = None,
) -> bool:
    """Take a snapshot, keep a changed snapshot, and return whether anything changed.

    Of a run, the branch is its root, from which the whole run inherits. ``/workspace`` in the file
    stands for `workspace_root`; ``resource_snapshot.json`` is written to the folder, if any.

    Called at the start of a run, and again after something was fetched.

    Raises:
        InvalidUpdate: If the file or an entry in it is wrong.
        BranchSealed: If the branch takes no writes.
    """
    snapshot = build_resource_snapshot(resource_file, workspace_root)
    kept = branch.core.get("resource_digest")
    if kept == snapshot.resource_digest:
        return False
    persist_resource_snapshot(branch, snapshot, previous_digest=kept or "")
    if folder is not None:
        write_json(folder / SNAPSHOT_FILE, asdict(snapshot))
    return True


def persist_resource_snapshot(
    branch: BranchHandle, snapshot: ResourceSnapshot, *, previous_digest: str = ""
) -> None:
    """Keep a snapshot: an index in core memory, and a record for each item.

    Raises:
        BranchSealed: If the branch takes no writes.
    """
    for item in snapshot.items:
        text = Compressor.cut(_record(item), _RECORD_CHARS)
        # Tags that stay the same while the item's state changes.
        tags = [
            RESOURCE_TAG,
            f"resource_id:{item.id}",
            f"resource:{item.class_}:{item.name}",
            f"resource_path:{item.container_path}",
        ]
        keep_record(branch, text, tags, {"digest": item.digest})
    index = _index(snapshot, previous_digest, branch.config.core_max_chars // 4)
    listed = json.dumps({item.id: item.digest for item in snapshot.items})
    values = {INDEX_KEY: index, "resource_index_json": listed}
    for key, value in {**values, "resource_digest": snapshot.resource_digest}.items():
        branch.core.set(key, value, importance=5)
    event = {"kind": "resource_index_updated", "summary": f"digest={snapshot.resource_digest}"}
    branch.append(event)


def _index(snapshot: ResourceSnapshot, previous: str, max_chars: int) -> str:
    lines = [
        f"digest: {snapshot.resource_digest[:16]}",
        f"resource_file: {snapshot.resource_file} ({snapshot.resource_file_sha[:16]})",
        *([f"previous_digest: {previous[:16]}"] if previous else []),
        *(
            f"- {item.class_}/{item.name} ({item.source}) {item.fetch_status}"
            f" at {item.container_path}{f': {item.notes}' if item.notes else ''}"
            for item in snapshot.items
        ),
        "Details of an item: archival_search with the tag resource:<class>:<name>.",
    ]
    return Compressor.cut("\n".join(lines), max_chars)


def _record(item: ItemState) -> str:
    lines = [
        f"Resource: {item.name}",
        f"Class: {item.class_}",
        f"Source: {item.source}",
        f"Path: {item.container_path}",
        f"Status: {item.fetch_status}",
    ]
    if item.availability != "available":
        lines.append("Its content is not there yet, or is missing.")
    parts = {"Notes": item.notes, "Tree": item.tree, "Content": item.content}
    lines += [f"{title}:\n{text}" for title, text in parts.items() if text]
    return "\n".join(lines)


def track_resource_usage(branch: BranchHandle, item_id: str, *, note: str = "") -> bool:
    """Note that an item was used, and return False when that was noted before.

    Raises:
        InvalidUpdate: If the memory's index does not have the item.
        BranchSealed: If the branch takes no writes.
    """
    known = branch.core.values_of(["resource_index_json", "resource_used"])
    index: Mapping[str, Any] = json.loads(known.get("resource_index_json", "{}"))
    found = [id_ for id_ in index if item_id in {id_, id_.split(":")[1]}]
    if len(found) != 1:
        raise InvalidUpdate("item_id", f"{item_id!r} names {len(found)} of the items in the index")
    used: list[str] = json.loads(known.get("resource_used", "[]"))
    if found[0] in used:
        return False
    text = json.dumps(sorted([*used, found[0]]))
    branch.core.set("resource_used", text, importance=4)
    event = {"kind": "resource_used", "summary": f"{found[0]} | {note}".rstrip(" |")}
    branch.append(event)
    return True
