"""Finds the image a task names: an address, or a file of the session or the project."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from taskweaver.errors import TaskWeaverError
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.images import IMAGE_SUFFIXES, image_kind
from taskweaver.utils.text import shorten

MAX_BYTES = 10 << 20
_MOST_LISTED = 30
_REMOTE = re.compile(r"https?://\S+", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class ImageNotUsable(TaskWeaverError):
    """An image that does not exist, is not allowed, or cannot be read."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image a model can be shown, by its address or its content as a ``data:`` address."""

    name: str
    url: str


def find_image(name: str, folders: Sequence[Path]) -> Image:
    """Return the image called `name`.

    Args:
        name: An http or https address, which is passed on as it is, or the path of a file: inside
            one of `folders`, or starting at one of them.
        folders: Folders images are read from, the first one first; their paths hold no links.

    Raises:
        ImageNotUsable: If there is none, it lies elsewhere, is too large, or is no image.
    """
    if _REMOTE.fullmatch(name):
        return Image(name, name)
    shown = shorten(name, 200)
    if _SCHEME.match(name):
        raise ImageNotUsable(f"{shown} is neither an http or https address nor a file.")
    try:
        data = _read(name, folders)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageNotUsable(f"{shown} cannot be read: {reason}.") from error
    if data is None:
        raise ImageNotUsable(
            f"{shown} is not in the session's working directory or the project's data folder, and"
            " only images there are read."
        )
    if len(data) > MAX_BYTES:
        raise ImageNotUsable(f"{shown} is larger than {MAX_BYTES >> 20} MiB; make it smaller.")
    kind = image_kind(data)
    if kind is None:
        raise ImageNotUsable(f"{shown} is no PNG, JPEG, GIF or WebP image.")
    return Image(name, f"data:image/{kind};base64,{base64.b64encode(data).decode()}")


def listed_images(folders: Sequence[Path]) -> list[str]:
    """Return the names of images that lie directly in some folders, some of them if many do."""
    names = {
        path.name
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES and path.name.isprintable()
    }
    return sorted(names)[:_MOST_LISTED]


def _read(name: str, roots: Sequence[Path]) -> bytes | None:
    """Return a file's content, up to a byte over the limit; None if it is in no folder."""
    is_inside = False
    for start in roots:
        path = (start / name).resolve()
        root = next((root for root in roots if path.is_relative_to(root)), None)
        if root is not None and path.exists():
            return _content(root, path)
        if root is None and os.path.lexists(start / name):
            return None  # a link that leads out
        is_inside = is_inside or root is not None
    if is_inside:
        raise FileNotFoundError(2, "the file does not exist")
    return None


def _content(root: Path, path: Path) -> bytes:
    """Read a file below a folder, without following a link.

    Code that runs in the folder could put one there since the path was checked.
    """
    if path == root:
        raise ValueError("it is not a file")
    with Folder.at(root) as folder, folder.open_file(path.relative_to(root)) as file:
        return file.read(MAX_BYTES + 1)
