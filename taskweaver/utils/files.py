"""Reading and writing YAML and JSON files: bounded, atomic, and named in errors.

A YAML text of a hundred kilobytes can be nested so deeply that PyYAML's C loader crashes the
process, and a few aliases of aliases stand for more values than any memory holds: limits keep a
text from using up the stack or the memory of the program.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from taskweaver.utils.file_system.safe_fs import open_ordinary

_MOST_DEPTH = 200
_MOST_VALUES = 2_000_000
"""Values a text may stand for when each alias is written out."""

_MOST_MERGES = 100
_PREFIX = re.compile(r"^[ \-?]+", re.MULTILINE)
MAX_BYTES = 64 << 20
PRIVATE = 0o600
"""Mode of a file that only its owner can read."""

PRIVATE_FOLDER = 0o700
"""Mode of a folder that only its owner can enter."""


def absolute_path(text: str, base: Path) -> str:
    """Return a path as an absolute path, with ``~`` expanded and all links followed.

    `base` is an absolute folder, where a relative path starts.

    Raises:
        ValueError: If the home directory is not known, or as `without_links`; the text has the
            valid form.
    """
    try:
        return without_links(os.path.join(base, Path(text).expanduser()))  # noqa: PTH118
    except RuntimeError:  # a `~` that leads to no home
        raise ValueError("a path whose home directory is known") from None


def without_links(path: str) -> str:
    """Return a path with all links followed. The end of the path may be missing.

    A loop of links cannot be followed. `os.path.realpath` then drops it together with a ``..``
    behind it, and the rest may be a link that was not followed.

    Raises:
        ValueError: If the path has a loop of links.
    """
    found = os.path.realpath(path)
    # Where the path was left as it is, asking again would give the same.
    is_stable = found == path or os.path.realpath(found) == found
    if not is_stable or _is_loop(found):
        raise ValueError("a path without a loop of links")
    return found


def _is_loop(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - many paths are asked for while a project opens
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


class YamlTooLarge(ValueError):
    """A text that is nested too deeply, or stands for too many values."""


@cache
def _limited_loader() -> Any:
    """Return the safe loader, in C if there is a C form, with a limit to merged mappings."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def flatten_mapping(self: Any, node: Any) -> None:
        merged = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
        count = sum(len(value.value) for value in merged)
        base.flatten_mapping(self, node)
        self.merged_pairs = getattr(self, "merged_pairs", 0) + (len(node.value) if merged else 0)
        if count > _MOST_MERGES or self.merged_pairs > _MOST_VALUES:
            raise YamlTooLarge("it merges too many mappings")

    return type("_LimitedLoader", (base,), {"flatten_mapping": flatten_mapping})


def _require_shallow(text: str) -> None:
    """Raise if a text is nested too deeply to be loaded.

    Raises:
        YamlTooLarge: If it is.
        yaml.YAMLError: If it is not YAML up to there.
    """
    brackets = text.count("[") + text.count("{")
    columns = max((len(match[0]) for match in _PREFIX.finditer(text)), default=0)
    if brackets + 2 * columns < _MOST_DEPTH:
        return
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_limited_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise YamlTooLarge("it is nested too deeply")


def _expanded(data: Any) -> int:
    """Return the number of values when each alias is written out, one for a value in itself."""
    sizes: dict[int, int] = {}
    unfinished: set[int] = set()
    waiting = [data]
    while waiting:
        value = waiting[-1]
        parts = list(_parts(value))
        missing = [part for part in parts if id(part) not in sizes]
        missing = [part for part in missing if id(part) not in unfinished]  # it holds itself
        if id(value) in sizes or not missing:
            sizes.setdefault(id(value), 1 + sum(sizes.get(id(part), 1) for part in parts))
            unfinished.discard(id(value))
            waiting.pop()
        else:
            unfinished.add(id(value))
            waiting += missing
    return sizes[id(data)]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set):
        yield from value


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
    """Parse YAML, called `name` in errors: plain data only, without tags that make objects.

    Raises:
        ValueError: If it is not YAML; names the place.
    """
    import yaml

    try:
        _require_shallow(text)
        data = yaml.load(text, Loader=_limited_loader())  # noqa: S506 - a safe one
        if "*" in text and "&" in text and _expanded(data) > _MOST_VALUES:
            raise YamlTooLarge("its aliases stand for too many values")
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
    """Parse YAML as `parse_yaml`, the same text only once. Nobody may change the result.

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
    """Create an empty file that only the owner can read. An existing file is left unchanged.

    Raises:
        OSError: If it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))


def write_yaml(path: Path | str, data: Any, *, mode: int | None = None) -> None:
    """Write plain data as YAML, all or nothing. `mode` is the mode of `write_bytes`.

    Raises:
        OSError: If it cannot be written.
        ValueError: If it holds anything but plain data; names the file.
    """
    try:
        text = dump_yaml(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    write_text(path, text, mode=mode)


def read_json(
    path: Path | str, max_bytes: int = MAX_BYTES, pairs: Callable[[list[Any]], Any] | None = None
) -> Any:
    """Read a JSON file. `pairs` makes objects of names and values in place of dictionaries.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is too large, not UTF-8 or not JSON; names the file.
    """
    text = read_text(path, max_bytes)
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{path} is not JSON: {error.msg} at {place}") from error
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None


def write_json(path: Path | str, data: Any) -> None:
    """Write plain data as JSON, all or nothing.

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
    """Return whether a link leads a path below a folder out of the folder.

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
