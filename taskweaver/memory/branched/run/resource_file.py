"""Reads ``resources.yaml``: the resources of a run, and their sources.

Lists: ``local`` (folders of this machine), ``github``, ``huggingface`` (fetched into the
workspace), and ``items``, the templates, libraries, datasets, models, set-up scripts and documents
in them. Paths in the workspace begin with ``/workspace``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.run.ingest import read_text
from taskweaver.memory.branched.values import fields_of, whole
from taskweaver.utils.files import parse_yaml

WORKSPACE = PurePosixPath("/workspace")
SOURCES = ("local", "github", "huggingface")
_ORIGINS = {
    "github": (
        "repo", "ref", re.compile(r"[\w.-]+/[\w.-]+|[^-].*:.*"), "OWNER/NAME or an address",
    ),
    "huggingface": ("repo_id", "revision", re.compile(r"[\w.-]+(/[\w.-]+)?"), "OWNER/NAME"),
}  # fmt: skip
"""Fields of a fetched source for its origin and its revision, and the form of the origin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on quoting an item: the tree, the content, files, characters a file and in all."""

    tree: bool
    content: bool
    max_files: int
    max_chars: int
    max_total_chars: int


CLASSES: Mapping[str, Limits] = {
    "template": Limits(True, True, 12, 3500, 12000),
    "library": Limits(False, False, 6, 2000, 4000),
    "dataset": Limits(False, False, 0, 0, 0),
    "model": Limits(False, False, 0, 0, 0),
    "setup": Limits(True, True, 8, 3000, 8000),
    "document": Limits(False, True, 4, 3000, 8000),
}


@dataclass(frozen=True, slots=True)
class ResourceSource:
    """Origin of items.

    Attributes:
        kind: One of `SOURCES`.
        name: Its name.
        origin: The folder, repository or repository id.
        revision: Branch, tag or commit; empty for the newest.
        place: Where it stands in the workspace.
        type: ``model``, ``dataset`` or ``space``, of a ``huggingface`` source; else empty.
    """

    kind: str
    name: str
    origin: str
    revision: str
    place: PurePosixPath
    type: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """Something a run may use, of one of `CLASSES`, at a path in the source.

    The limits say how much of it is quoted; without `files`, those that look like sources or
    documents are.
    """

    name: str
    class_: str
    source: ResourceSource
    path: PurePosixPath
    notes: str
    limits: Limits
    files: tuple[str, ...]

    @property
    def id(self) -> str:
        """The id: class, name, source kind, source name and path."""
        source = f"{self.source.kind}:{self.source.name}"
        return f"{self.class_}:{self.name}:{source}:{self.path}"


def read_resource_file(path: Path) -> list[Item]:
    """Return the items of a resource file, YAML or JSON.

    Raises:
        InvalidUpdate: If the file cannot be read, or an entry is wrong; its path is named.
    """
    try:
        data = parse_yaml(read_text(path), path.name)
    except ValueError as error:
        raise InvalidUpdate(str(path), str(error)) from error
    fields = fields_of(path.name, data, {*SOURCES, "items"})
    sources = {
        (kind, source.name): source
        for kind in SOURCES
        for n, entry in enumerate(_list(kind, fields.get(kind)))
        for source in [_source(f"{kind}[{n}]", kind, entry)]
    }
    _check_apart(sources.values())
    items = [
        _item(f"items[{n}]", entry, sources)
        for n, entry in enumerate(_list("items", fields.get("items")))
    ]
    ids = [item.id for item in items]
    twice = next((id_ for id_ in ids if ids.count(id_) > 1), None)
    if twice is not None:
        raise InvalidUpdate("items", f"has {twice} twice")
    return sorted(items, key=lambda item: item.id)


_TYPES = ("model", "dataset", "space")
_SOURCE_FIELDS = {
    "local": {"name", "host_path", "mount_path", "read_only"},
    "github": {"name", "repo", "ref", "dest", "as"},
    "huggingface": {"name", "type", "repo_id", "revision", "dest"},
}


def _source(path: str, kind: str, entry: object) -> ResourceSource:
    fields = fields_of(path, entry, _SOURCE_FIELDS[kind])
    name = _text(path, fields, "name")
    if kind == "local":
        origin = _text(path, fields, "host_path")
        if not Path(origin).is_dir():
            raise InvalidUpdate(f"{path}.host_path", f"{origin} is no folder here")
        return ResourceSource(kind, name, origin, "", _place(path, fields, "mount_path"))
    origin_key, revision_key, form, wanted = _ORIGINS[kind]
    origin = _text(path, fields, origin_key)
    if not form.fullmatch(origin):
        raise InvalidUpdate(f"{path}.{origin_key}", f"must be {wanted}, not {origin!r:.60}")
    # Without quotes YAML reads 1.10 as 1.1, and a commit that begins with 0 as another number.
    revision = ""
    if fields.get(revision_key) not in (None, ""):
        revision = _text(path, fields, revision_key)
    place = _place(path, fields, "dest")
    if kind == "github":
        return ResourceSource(kind, name, origin, revision, place)
    type_ = "model" if fields.get("type") is None else fields["type"]
    if type_ not in _TYPES:
        raise InvalidUpdate(
            f"{path}.type", f"must be one of {', '.join(_TYPES)}, not {type_!r:.60}"
        )
    return ResourceSource(kind, name, origin, revision, place, type_)


def _check_apart(sources: Iterable[ResourceSource]) -> None:
    """Refuse sources with equal or nested places."""
    passed: list[ResourceSource] = []
    for source in sources:
        for other in passed:
            inner, outer = sorted((source.place, other.place), key=lambda place: -len(place.parts))
            if inner.is_relative_to(outer):
                both = f"{source.name} at {source.place} and {other.name} at {other.place}"
                raise InvalidUpdate("sources", f"{both} are in each other's way")
        passed.append(source)


_ITEM_FIELDS = {
    "name", "class", "source", "resource", "path", "notes", "include_tree", "include_content",
    "include_files", "max_files", "max_chars", "max_total_chars",
}  # fmt: skip


def _item(path: str, entry: object, sources: Mapping[tuple[str, str], ResourceSource]) -> Item:
    fields = fields_of(path, entry, _ITEM_FIELDS)
    class_ = _text(path, fields, "class")
    if class_ not in CLASSES:
        raise InvalidUpdate(f"{path}.class", f"must be one of {', '.join(CLASSES)}, not {class_!r}")
    key = _text(path, fields, "source"), _text(path, fields, "resource")
    if key not in sources:
        raise InvalidUpdate(f"{path}.resource", f"there is no {key[0]} source called {key[1]!r}")
    place = PurePosixPath(str(fields.get("path") or "."))
    if place.is_absolute() or ".." in place.parts:
        raise InvalidUpdate(f"{path}.path", f"must stay inside the source, not {place}")
    usual = CLASSES[class_]
    limits = Limits(
        bool(fields.get("include_tree", usual.tree)),
        bool(fields.get("include_content", usual.content)),
        *(
            whole(f"{path}.{name}", fields.get(name, getattr(usual, name)))
            for name in ("max_files", "max_chars", "max_total_chars")
        ),
    )
    files = tuple(
        _line(f"{path}.include_files[{n}]", name)
        for n, name in enumerate(_list(f"{path}.include_files", fields.get("include_files")))
    )
    name = _text(path, fields, "name")
    return Item(name, class_, sources[key], place, str(fields.get("notes") or ""), limits, files)


def _list(path: str, value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidUpdate(path, "must be a list")
    return value


def _text(path: str, fields: Mapping[str, Any], name: str) -> str:
    return _line(f"{path}.{name}", fields.get(name))


def _line(path: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidUpdate(path, f"must be a text of one line, not {value!r:.60}")
    return value.strip()


def _place(path: str, fields: Mapping[str, Any], name: str) -> PurePosixPath:
    place = PurePosixPath(_text(path, fields, name))
    if ".." in place.parts or not place.is_relative_to(WORKSPACE):
        raise InvalidUpdate(f"{path}.{name}", f"must be below {WORKSPACE}, not {place}")
    return place
