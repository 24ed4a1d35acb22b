"""Checks of single values in a plan: each returns the value in its plain form, or refuses it."""

from __future__ import annotations

import codecs
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.utils.redact import MASK_ADVICE, has_mask

ROOT = "/workspace"
"""What plans call the workspace."""

CommandText = str | tuple[str, ...]
"""A text for bash, or the words of a command."""

ENCODINGS = frozenset({"utf-8", "utf-8-sig", "ascii", "iso8859-1", "utf-16"})
_MAX_MODE = 0o755
_MAX_COMMANDS = 200
_MAX_COMMAND_BYTES = 100_000  # of one word; the system takes 128 KiB
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 1024
_MAX_DEPTH = 32
_MODE = re.compile(r"(?:0o)?([0-7]{1,6})")


def refuse_mask(place: str, data: object) -> None:
    """Refuse code or commands that hold a mask, which stands for a secret in copies for readers.

    Raises:
        PhasePlanError: If it does.
    """
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    if has_mask(text):
        raise PhasePlanError(place, f"holds a mask. {MASK_ADVICE}")


def section(place: str, value: object) -> Mapping[str, Any]:
    """Return a part of a plan. A missing part is empty.

    Raises:
        PhasePlanError: If it is no mapping.
    """
    found: Mapping[str, Any] = _typed(place, value, Mapping, "an object", {})
    return found


def items(place: str, value: object) -> list[Any]:
    """Return a list. A missing list is empty.

    Raises:
        PhasePlanError: If it is no list.
    """
    return list(_typed(place, value, list | tuple, "a list", ()))


def text(place: str, value: object) -> str:
    """Return text without NUL that UTF-8 can hold. A missing text is empty.

    Raises:
        PhasePlanError: If it is none.
    """
    found: str = _typed(place, value, str, "text", "")
    if "\0" in found:
        raise PhasePlanError(place, "holds a NUL")
    try:
        found.encode()
    except UnicodeEncodeError:
        raise PhasePlanError(place, "holds half of a surrogate pair") from None
    return found


def _typed(place: str, value: object, kind: Any, noun: str, missing: object) -> Any:
    if value is None:
        return missing
    if not isinstance(value, kind):
        raise PhasePlanError(place, f"must be {noun}, not {_kind(value)}")
    return value


def note(value: object) -> str:
    """Return a remark, in whatever form it was given."""
    if value is None:
        return ""
    return str(value).encode("utf-8", "replace").decode()


def inner_path(place: str, value: object) -> str:
    """Return a path inside the workspace, relative to it and in its shortest form.

    A first part ``workspace``, which trees of plans often have, is the workspace itself.

    Raises:
        PhasePlanError: If it is none.
    """
    path = text(place, value)
    if not path.strip():
        raise PhasePlanError(place, "is empty")
    if not path.isprintable():
        raise PhasePlanError(place, f"holds characters that cannot be printed: {path!r:.80}")
    if path.startswith("/"):
        raise PhasePlanError(place, f"must be relative to the workspace, not {path:.80}")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise PhasePlanError(place, f"must stay inside the workspace, not {path:.80}")
    if len(path.encode()) > _MAX_PATH_BYTES or len(parts) > _MAX_DEPTH:
        raise PhasePlanError(place, f"is too long or too deep: {path:.80}")
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        raise PhasePlanError(place, f"holds a name of more than {_MAX_NAME_BYTES} bytes")
    while parts and parts[0] == ROOT.strip("/"):
        parts = parts[1:]
    return str(PurePosixPath(*parts))


def path_below_root(place: str, value: object) -> str:
    """Return a path that may begin with `ROOT`, relative to `ROOT`. A missing path is ``.``.

    Raises:
        PhasePlanError: If it leads elsewhere.
    """
    path = text(place, value).strip()
    if path.rstrip("/") in {"", ROOT}:
        return "."
    return inner_path(place, path.removeprefix(f"{ROOT}/"))


def file_path(place: str, value: object) -> str:
    """Return the path of a file inside the workspace.

    Raises:
        PhasePlanError: If it is none.
    """
    path = inner_path(place, value)
    if path == "." or str(value).endswith("/"):
        raise PhasePlanError(place, f"must name a file, not the folder {value!r:.80}")
    return path


def mode(place: str, value: object) -> int:
    """Return the mode of a file, from octal digits, 0644 for a missing mode.

    Raises:
        PhasePlanError: If it is none, or gives more than reading, writing and running.
    """
    if value is None:
        return 0o644
    # JSON has no octal numbers: 644 was meant as its digits.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    digits = str(value) if is_number or isinstance(value, str) else ""
    match = _MODE.fullmatch(digits.strip())
    if match is None or int(match[1], 8) > _MAX_MODE:
        raise PhasePlanError(place, f"must be octal digits up to 0755, not {value!r:.40}")
    return int(match[1], 8)


def encoding(place: str, value: object) -> str:
    """Return the name of an encoding, UTF-8 for a missing name.

    Raises:
        PhasePlanError: If it is none of `ENCODINGS`.
    """
    name = text(place, value) or "utf-8"
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        known = ""
    if known not in ENCODINGS:
        wanted = ", ".join(sorted(ENCODINGS))
        raise PhasePlanError(place, f"must be one of {wanted}, not {name!r:.40}")
    return known


def words(place: str, value: object) -> tuple[str, ...]:
    """Return words, from a list or from a text as a shell reads it.

    Raises:
        PhasePlanError: If they are none.
    """
    if isinstance(value, str):
        try:
            return tuple(shlex.split(text(place, value)))
        except ValueError as error:
            raise PhasePlanError(place, f"cannot be split into words: {error}") from error
    return tuple(text(f"{place}[{n}]", word) for n, word in enumerate(items(place, value)))


def commands(place: str, value: object) -> tuple[CommandText, ...]:
    """Return commands: a text alone, or a list of texts and lists of words.

    Raises:
        PhasePlanError: If they are none, or too many.
    """
    given = [value] if isinstance(value, str) else items(place, value)
    if len(given) > _MAX_COMMANDS:
        raise PhasePlanError(place, f"holds {len(given)} commands, more than {_MAX_COMMANDS}")
    return tuple(_command(f"{place}[{n}]", one) for n, one in enumerate(given))


def _command(place: str, value: object) -> CommandText:
    if isinstance(value, str):
        command: CommandText = text(place, value).strip()
    elif isinstance(value, list | tuple):
        command = words(place, value)
    else:
        raise PhasePlanError(place, f"must be text or a list of words, not {_kind(value)}")
    parts = (command,) if isinstance(command, str) else command
    if not parts or not parts[0]:
        raise PhasePlanError(place, "is empty")
    if any(len(part.encode()) > _MAX_COMMAND_BYTES for part in parts):
        raise PhasePlanError(place, f"is longer than {_MAX_COMMAND_BYTES:,} bytes")
    return command


def _kind(value: object) -> str:
    return f"{type(value).__name__} {value!r:.40}"
