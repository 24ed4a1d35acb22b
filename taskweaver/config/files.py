"""Files of configuration: a project's, and the user's own for all projects."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from taskweaver.config.errors import ConfigError
from taskweaver.utils.app_utils import MOST_BYTES
from taskweaver.utils.files import PRIVATE, PRIVATE_FOLDER, read_json, write_text


def read_config_file(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object of dotted keys.

    Raises:
        ConfigError: If it is missing, not JSON, or not an object; names the file and the line.
    """
    try:
        data = read_json(path, MOST_BYTES, _without_repetition)
    except FileNotFoundError:
        raise ConfigError(str(path), "there is no such file.") from None
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise ConfigError(str(path), f"{str(error).removeprefix(f'{path} ')}.") from error
    if not isinstance(data, dict):
        raise ConfigError(str(path), "must hold one JSON object, `{...}`, of configuration keys.")
    return data


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"sets {name!r} twice")
        found[name] = value
    return found


CONFIG, KEYS = "config.json", "keys.json"


@dataclass(frozen=True, slots=True)
class KeptEndpoint:
    """An endpoint that the user added.

    Attributes:
        provider: Its preset.
        address: Its address, up to ``/v1``.
        model: The model asked there.
        key: Its key; empty where none is needed.
    """

    provider: str
    address: str
    model: str
    key: str = field(default="", repr=False)


def user_file(name: str = CONFIG) -> Path | None:
    """Return the path of a file of the user's configuration, or None without a home folder."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        folder = named if named.is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "taskweaver" / name


def user_values(name: str = CONFIG) -> dict[str, Any]:
    """Return the content of a file of the user's configuration, or nothing for a missing file.

    Raises:
        ConfigError: If it cannot be read.
    """
    file = user_file(name)
    if file is None:
        return {}
    try:
        _refuse_link(file)
        is_there = file.exists()
    except OSError as error:
        raise ConfigError(str(file), f"cannot be read: {error.strerror}.") from error
    return read_config_file(file) if is_there else {}


def kept_endpoints() -> list[KeptEndpoint]:
    """Return the endpoints that the user added, without malformed entries.

    Raises:
        ConfigError: If the file cannot be read.
    """
    names = KeptEndpoint.__match_args__
    rows = [row for row in user_values(KEYS).values() if isinstance(row, Mapping)]
    texts = [{name: row.get(name, "") for name in names} for row in rows]
    return [KeptEndpoint(**row) for row in texts if all(isinstance(v, str) for v in row.values())]


def kept_key(address: str) -> str:
    """Return the key that was entered for the host of an address, or an empty text.

    Raises:
        ConfigError: If the file cannot be read.
    """
    return next(
        (one.key for one in kept_endpoints() if _origin(one.address) == _origin(address)), ""
    )


def keep_endpoint(endpoint: KeptEndpoint) -> None:
    """Add an endpoint, in place of an earlier one at the same host, whose key stays without a new.

    Raises:
        ConfigError: If the file cannot be changed; it is untouched then.
    """
    origin = _origin(endpoint.address)

    def change(before: dict[str, Any]) -> dict[str, Any]:
        earlier = before.get(origin)
        kept = earlier.get("key", "") if isinstance(earlier, Mapping) else ""
        return before | {origin: asdict(endpoint) | {"key": endpoint.key or kept}}

    change_file(user_file(KEYS), change)


def change_file(
    file: Path | None, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Change a JSON file of the configuration atomically, and return the content before.

    A new file can be read by its owner alone.

    Raises:
        ConfigError: If it cannot be read or written.
    """
    if file is None:
        raise ConfigError("HOME", "is not set: there is no place for the user's configuration.")
    try:
        _refuse_link(file)
        if not file.parent.exists():
            file.parent.mkdir(parents=True, mode=PRIVATE_FOLDER, exist_ok=True)
        with _alone(file.parent):
            before = read_config_file(file) if file.exists() else {}
            mode = None if file.exists() and file.name != KEYS else PRIVATE
            text = json.dumps(change(dict(before)), indent=2, ensure_ascii=False) + "\n"
            write_text(file.resolve(), text, mode=mode)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}."
        raise ConfigError(str(file), problem, "It is as it was.") from error
    return before


def _refuse_link(file: Path) -> None:
    # It could lead to a folder that others read.
    if file.name == KEYS and file.is_symlink():
        raise ConfigError(str(file), "is a link: keys are kept in a file alone.", "Remove it.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # Two programs that add a key at once would otherwise each write the file without the other's.
    import fcntl  # not everywhere: an import of the package names the missing system

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _origin(address: str) -> str:
    parts = urlsplit(address.strip())
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
