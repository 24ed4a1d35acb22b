"""Reading and writing YAML and JSON files: bounded, atomic, and named when they are wrong."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from taskweaver.utils.file_system.links import without_links
from taskweaver.utils.file_system.safe_fs import open_ordinary
from taskweaver.utils.markup.yaml_limits import (
    YamlTooLarge,
    require_shallow,
    require_small,
)
from taskweaver.utils.markup.yaml_limits import limited_loader as _loader

MAX_BYTES = 64 << 20
PRIVATE = 0o600
"""Mode of a file that only its owner can read."""
PRIVATE_FOLDER = 0o700
"""Mode of a folder that only its owner can enter."""


# PyYAML is imported by those who read or write YAML: kernels import this package and do not.


@cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("_Dumper", (base,), {})
    dumper.add_representer(str, _represent_text)
    return dumper


def _represent_text(dumper: Any, text: str) -> Any:
    # Text of several lines as a block, the way a person would write it.
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def inside(folder: Path, sub_path: str) -> Path:
    """Return a path inside a folder, links followed.

    Raises:
        ValueError: If it leads out of the folder, or has a loop of links.
    """
    root = folder.resolve()
    try:
        path = Path(without_links(str(root / sub_path)))
    except ValueError as error:
        raise ValueError(f"{sub_path!r} is not {error}") from None
    if not path.is_relative_to(root):
        raise ValueError(f"{sub_path!r} leads out of {folder}")
    return path


def read_text(path: Path | str, max_bytes: int = MAX_BYTES) -> str:
    """Read a UTF-8 text file, with or without a byte order mark.

    Raises:
        OSError: If it cannot be read, or is no ordinary file.
        ValueError: If it is larger than `max_bytes` or not UTF-8; names the file.
    """
    with open_ordinary(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path} is larger than {max_bytes:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error


def parse_yaml(text: str, name: str) -> Any:
    """Parse YAML, called `name` in errors; plain data only, no tags that make objects.

    Raises:
        ValueError: If it is not YAML; names the place.
    """
    import yaml

    try:
        require_shallow(text)
        data = yaml.load(text, Loader=_loader())  # noqa: S506 - a safe one
        require_small(text, data)
    except yaml.YAMLError as error:
        raise ValueError(f"{name} is not YAML: {_one_line(error)}") from error
    except YamlTooLarge as error:
        raise ValueError(f"{name} cannot be loaded: {error}") from error
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    except (ValueError, KeyError, AttributeError) as error:
        # Raised by the loader for a value that does not fit its tag, e.g. `!!bool maybe`.
        raise ValueError(f"{name} holds a value that does not fit its type: {error}") from error
    return data


@lru_cache(maxsize=64)
def parse_yaml_once(text: str, name: str) -> Any:
    """Parse YAML as `parse_yaml`, the same text only once; nobody may change the result.

    Raises:
        ValueError: If it is not YAML; names the place.
    """
    return parse_yaml(text, name)


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    return f"{problem} at line {mark.line + 1}, column {mark.column + 1}"


def read_yaml(path: Path | str, max_bytes: int = MAX_BYTES) -> Any:
    """Read a YAML file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is too large, not UTF-8 or not YAML; names the file.
    """
    return parse_yaml(read_text(path, max_bytes), str(path))


def dump_yaml(data: Any) -> str:
    """Return plain data as YAML: keys in their order, text of several lines as a block.

    Raises:
        ValueError: If it holds anything but plain data.
    """
    import yaml

    try:
        return str(
            yaml.dump(data, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=100)
        )
    except yaml.YAMLError as error:
        raise ValueError(f"cannot be written as YAML: {_one_line(error)}") from error


def create_private(path: Path | str) -> None:
    """Create an empty file that only its owner can read; a file that exists is left as it is.

    Raises:
        OSError: If it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))


def write_yaml(path: Path | str, data: Any, *, mode: int | None = None) -> None:
    """Write plain data as YAML, all of it or nothing; `mode` is that of `write_bytes`.

    Raises:
        OSError: If it cannot be written.
        ValueError: If it holds anything but plain data; names the file.
    """
    try:
        text = dump_yaml(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    write_text(path, text, mode=mode)


def read_json(path: Path | str, max_bytes: int = MAX_BYTES) -> Any:
    """Read a JSON file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is too large, not UTF-8 or not JSON; names the file.
    """
    text = read_text(path, max_bytes)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{path} is not JSON: {error.msg} at {place}") from error
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None


def write_json(path: Path | str, data: Any) -> None:
    """Write plain data as JSON, all of it or nothing.

    Raises:
        OSError: If it cannot be written.
        ValueError: If it holds anything but plain data; names the file.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be written as JSON: {error}") from error
    write_text(path, text + "\n")


def write_text(
    path: Path | str, text: str, *, mode: int | None = None, is_synced: bool = True
) -> None:
    """Write a UTF-8 file so that a reader sees the old content or the new, never a part.

    Halves of surrogate pairs, which UTF-8 cannot hold, become question marks. `mode` and
    `is_synced` are those of `write_bytes`.

    Raises:
        OSError: If it cannot be written; the old file is then untouched.
    """
    write_bytes(path, text.encode("utf-8", "replace"), mode=mode, is_synced=is_synced)


def write_bytes(
    path: Path | str, data: bytes, *, mode: int | None = None, is_synced: bool = True
) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    Its folder is made. `mode` has its rights, e.g. `PRIVATE`; None keeps those it has, and gives a
    new file the usual ones. One that is not synced outlives the process, but may be lost or empty
    if the machine goes down.

    Raises:
        OSError: If it cannot be written; the old file is then untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The mode of a link is that of another file; the right of all to write is not kept.
    is_there = target.is_file() and not target.is_symlink()
    if mode is None and is_there:
        mode = target.stat().st_mode & 0o775
    draft = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}")
    try:
        # Narrow from the beginning: a right that is taken away later may have been used.
        rights = 0o666 if mode is None else mode & PRIVATE
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def leaves(path: Path, root: Path | None) -> bool:
    """Return whether a link leads a path below a folder out of it.

    Args:
        path: The path; one that is not below `root` does not leave it.
        root: The folder, resolved; None for any target.
    """
    if root is None:
        return False
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - its links stay
    if absolute.resolve().is_relative_to(root):
        return False
    return any(parent.resolve().is_relative_to(root) for parent in absolute.parents)
