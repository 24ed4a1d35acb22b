"""Effects of opening a project that need consent: risky values, code, and foreign places."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

import psutil

from taskweaver.config.coercion import coerce
from taskweaver.config.config_mgt import AppConfigSource, env_name
from taskweaver.config.errors import ConfigError
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import BY_NAME
from taskweaver.config.keys.roles import EXT_ROLES, INTERPRETERS
from taskweaver.trust.keys import Risk, known_key, risk_of
from taskweaver.utils.app_utils import CONFIG_FILE
from taskweaver.utils.system.installation import state_folder

_MOST_BYTES = 64 << 20
"""Largest file whose content is hashed; of a larger one, size and time of change are."""

_CACHES = "__pycache__"


class TrustEffect(NamedTuple):
    """An effect of opening a project that needs consent.

    Attributes:
        line: The key with its value, the code or the link, as it is shown.
        content: All that it depends on, as JSON can hold it.
        keys: The configuration keys that are removed where consent is missing.
        is_link: Whether it is a link that leads out of the folder.
    """

    line: str
    content: Any
    keys: tuple[str, ...]
    is_link: bool = False


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a resolved path is a resolved folder or lies below."""
    return path == folder or str(path).startswith(os.path.join(folder, ""))  # noqa: PTH118


def digest_of_file(path: Path) -> str:
    """Return the hash of a regular file's content, else an empty text."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not S_ISREG(facts.st_mode):
            return ""
        if facts.st_size > _MOST_BYTES:
            return f"{facts.st_size} bytes, changed at {facts.st_mtime_ns}"
        return hashlib.sha256(file.read(_MOST_BYTES + 1)).hexdigest()


def digests_below(folder: Path) -> dict[str, str]:
    """Return the hash of each file below a folder, by path. Links are followed once."""
    found: dict[str, str] = {}
    seen: set[tuple[int, int]] = set()
    for here, names, files in os.walk(folder, followlinks=True):
        names[:] = [
            name for name in sorted(names) if name != _CACHES and _is_new(Path(here, name), seen)
        ]
        for name in sorted(files):
            path = Path(here, name)
            found[str(path.relative_to(folder))] = digest_of_file(path)
    return found


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        facts = path.stat()
    except OSError:
        return False
    place = (facts.st_dev, facts.st_ino)
    is_new = place not in seen
    seen.add(place)
    return is_new


def links_out(folder: Path, root: Path, *, is_deep: bool) -> Iterator[tuple[Path, Path]]:
    """Yield links in a folder, or below, that leave the resolved `root`, with the targets.

    A folder that is not there has none.
    """
    waiting = [folder]
    while waiting:
        try:
            entries = sorted(os.scandir(waiting.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                target = Path(os.path.realpath(entry.path))
                if not is_inside(target, root):
                    yield Path(entry.path), target
            elif is_deep and entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


_PLAIN_PROVIDERS = frozenset(
    "auto none offline function recorded ollama lmstudio llamacpp vllm jan duckduckgo".split()
)
"""Values of provider keys that need no consent: local models, and the default web search."""
_OPENAI = "https://api.openai.com/v1"
_USUAL = {("llm.api_type", "openai"), ("llm.api_base", _OPENAI), ("llm.openai.api_base", _OPENAI)}
_WEB_ROLES = frozenset({"web_search", "web_explorer"})


def risky_values(src: AppConfigSource) -> Iterator[TrustEffect]:
    """Yield the values of the configuration file that need consent, with the named files.

    A value that cannot be read as its type has no effect: opening the project is an error. Neither
    has one that the environment or the program overrides, nor a default.
    """
    base = src.app_base_path
    for name, value in src.json_file_store.items():
        is_in_environment = bool(os.environ.get(env_name(name), "").strip())
        if is_in_environment or src.in_memory_store.get(name) is not None:
            continue
        if _is_usual(src, name, value):
            continue
        risk = risk_of(name)
        if risk in ("programs", "models"):
            for entry, part in value.items() if isinstance(value, Mapping) else ():
                fields = part if isinstance(part, Mapping) else {}
                if risk == "programs" or any(
                    k.startswith("llm.") and _is_risky(k, v, risk_of(k), base)
                    for k, v in fields.items()
                ):
                    yield _shown(f"{name}.{entry}", part, _files_of_program(fields, base), name)
        elif risk != "path" and _is_risky(name, value, risk, base):
            files = digest_of_file(Path(src.get_path(name))) if risk == "file" else ""
            yield _shown(name, value, files, name)


def _shown(place: str, value: Any, files: Any, name: str) -> TrustEffect:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return TrustEffect(f"{place}: {text}", [value, files], (name,))


def _is_usual(src: AppConfigSource, name: str, value: Any) -> bool:
    """Return whether a value names the endpoint that a user's own key leads to anyway."""
    chosen = src.lookup("llm.api_type")
    is_default = chosen is None or chosen.value in ("auto", "openai")
    is_usual = (name, str(value).rstrip("/")) in _USUAL
    return is_default and is_usual and not os.environ.get("OPENAI_BASE_URL")


def _is_risky(name: str, value: Any, risk: Risk, base: Path) -> bool:
    """Return whether a value needs consent: readable, no default, and loosening something."""
    key = known_key(name)
    if key is None or value is None or risk == "harmless":
        return False
    try:
        read = coerce(key, value, base)
    except ValueError:
        return False
    if read == key.default:
        return False
    loosens = _LOOSENS.get(risk)
    return loosens(key, read, base) if loosens else bool(read)


def _is_raised(key: Key, value: Any) -> bool:
    default = key.default
    if default is None and key.name == "execution.memory_limit_mb":
        default = psutil.virtual_memory().total // 2 >> 20
    if value == 0 and key.name.startswith("session."):
        return False  # nothing is kept
    return bool(default) and not 0 < value <= default


_LOOSENS: dict[Risk, Callable[[Key, Any, Path], bool]] = {
    "sandbox": lambda _key, value, _: bool(value) and value != "bwrap",
    "limit": lambda key, value, _: _is_raised(key, value),
    "policy": lambda key, value, _: not {*value}.issuperset(key.default),
    "provider": lambda _key, value, _: value not in _PLAIN_PROVIDERS,
    "roles": lambda _key, value, _: not _WEB_ROLES.isdisjoint(value),
    "sent": lambda _key, value, _: value in (True, "otlp"),
    "path": lambda _key, value, base: bool(value) and not is_inside(Path(value), base),
    # What holds more than a name is a path below a folder that is not known here.
    "name": lambda _key, value, _: bool(value) and (value != Path(value).name or "\0" in value),
    "unknown": lambda _key, _value, _: True,
}
"""Whether a value that is no default loosens something; of other risks each that is not empty."""


def _files_of_program(fields: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Return the hashes of files of the project that a command line names."""
    args = fields.get("args", [])
    words = [fields.get("command", ""), *(args if isinstance(args, list) else [])]
    folder = base / str(fields.get("cwd", "")).replace("\0", "")
    found = {}
    for word in filter(None, map(str, words)):
        if "\0" in word:
            continue
        path = Path(os.path.realpath(folder / word))
        if is_inside(path, base) and os.path.isfile(path):  # noqa: PTH113 - a long word is no error
            found[word] = digest_of_file(path)
    return found


PACKAGE = Path(__file__).parent.parent
_SHIPPED_PLUGINS = PACKAGE.parent / "plugins"
_ROLES = ("planner", "code_interpreter", "code_generator", *INTERPRETERS, *EXT_ROLES)

_CHECKED_BY_READERS = frozenset({"session.data_dir", "document_retriever.index_folder"})
"""Folders whose readers leave out a link that is not trusted, and read the other files."""

_NESTED = (
    ".example_base_path",
    ".index_folder",
    ".prompt_dir",
    ".experience_dir",
    "role.base_path",
)
"""Ends of the keys whose folders are read with the folders in them."""

_ONLY_READ = (
    "plugin.base_path",
    "role.base_path",
    ".example_base_path",
    ".prompt_dir",
    ".prompt_file_path",
    ".compaction_prompt_path",
)
"""Ends of the keys that may lead into this installation: nothing is written there."""

_WORKSPACE, _SESSIONS = "workspace.workspace_path", "sessions"
_PLUGINS, _RUNS, _LOGS = "plugin.base_path", "search.folder", "logging.log_folder"
_OWN = frozenset({_WORKSPACE, _PLUGINS, _RUNS, _LOGS})
"""Folders that hold code, or that this program writes in."""


def risky_places(src: AppConfigSource) -> Iterator[TrustEffect]:
    """Yield the folders and links of a project that lead elsewhere."""
    root = src.app_base_path
    links: dict[str, list[str]] = {}
    for name, path in _places(src):
        if is_shipped(path) and name.endswith(_ONLY_READ):
            continue
        problem = _problem(src, name, path)
        if problem:
            yield TrustEffect(f"{name}: {path}, {problem}", str(path), (name,))
        if not is_inside(path, root):
            continue
        for folder in _folders(name, path):
            for link, target in links_out(folder, root, is_deep=name.endswith(_NESTED)):
                keys = links.setdefault(f"{os.path.relpath(link, root)} -> {target}", [])
                keys += [] if name in _CHECKED_BY_READERS else [name]
    for shown, names in links.items():
        yield TrustEffect(f"link {shown}", shown, tuple(names), is_link=True)


def _problem(src: AppConfigSource, name: str, path: Path) -> str:
    """Return the problem with the folder or file of a key, or an empty text."""
    if not is_inside(path, src.app_base_path):
        return "outside of the folder"
    if name == _PLUGINS and _is_private(src, path):
        return "with conversations or keys that code in the sandbox could read"
    if name in _OWN and any(map(_is_of_another, _folders(name, path)[:2])):
        return "which belongs to another user"
    return ""


def _folders(name: str, path: Path) -> list[Path]:
    """Return the folders of a key in which links are looked for."""
    if name == _WORKSPACE:
        return [path, path / _SESSIONS]
    if name == _RUNS and os.path.isdir(path):  # noqa: PTH112 - a long name is no error
        return [path, *(run for run in path.iterdir() if not run.is_symlink())]
    return [path]


def _is_private(src: AppConfigSource, path: Path) -> bool:
    """Return whether a folder holds, or lies in, a path hidden from code in the sandbox."""
    places = [src.app_base_path / CONFIG_FILE]
    for name, below in ((_WORKSPACE, _SESSIONS), (_RUNS, ""), (_LOGS, "")):
        with suppress(ConfigError):
            places.append(Path(src.get_path(name), below))
    own = [place for place in places if place != src.app_base_path]
    return any(is_inside(place, path) or is_inside(path, place) for place in own)


def _is_of_another(path: Path) -> bool:
    """Return whether a folder belongs to another user, who can exchange the files."""
    try:
        return path.stat().st_uid not in (os.geteuid(), 0)
    except OSError:
        return False


def is_shipped(path: Path) -> bool:
    """Return whether a resolved path belongs to this installation of TaskWeaver."""
    return is_inside(path, PACKAGE) or path == _SHIPPED_PLUGINS


def _places(src: AppConfigSource) -> Iterator[tuple[str, Path]]:
    """Yield the keys of paths that the project sets or leaves at their default, with the path."""
    for name in dict.fromkeys([*_path_keys(), *src.json_file_store]):
        if risk_of(name) != "path":
            continue
        setting = src.lookup(name)
        is_of_project = name not in src.defaults if setting is None else setting.source == "json"
        if not is_of_project:
            continue
        try:
            text = src.get_path(name)
        except ConfigError:  # not set, or opening the project is an error
            continue
        if text:
            yield name, Path(text)


def _path_keys() -> Iterator[str]:
    for row in BY_NAME:
        if "{role}" in row:
            yield from (row.replace("{role}", role) for role in _ROLES)
        else:
            yield row


def set_apart(src: AppConfigSource, key: str) -> None:
    """Let a key lead to an empty folder of the user's state, in place of one without trust."""
    state = state_folder() or Path(os.devnull)
    name = hashlib.sha256(os.fsencode(src.app_base_path)).hexdigest()[:32]
    place = state / "untrusted" / name / key
    src.set_config_value(key, "enum", str(place), source="override")
