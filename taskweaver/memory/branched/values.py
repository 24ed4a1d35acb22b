"""Checks values on their way into the store. A wrong value is named by a path."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.types import FOREVER

MOST_CHARS = 10_000_000
_TTL = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_DIGITS = re.compile(r"[+-]?\d{1,18}")
_LONGEST_S = 1e11
_MOST_DIGITS = 10**1000
_SHOWN_CHARS = 60
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def fields_of(path: str, value: Any, known: Set[str]) -> dict[str, Any]:
    """Return an object's fields.

    Raises:
        InvalidUpdate: If it is no object, or has a field that is not known.
    """
    if not isinstance(value, Mapping):
        raise InvalidUpdate(path, f"must be an object with {', '.join(sorted(known))}")
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        allowed = ", ".join(sorted(known))
        raise InvalidUpdate(path, f"has no field {', '.join(unknown)}; it has {allowed}")
    return dict(value)


def checked_text(path: str, value: object, *, may_be_empty: bool = False) -> str:
    """Return a text, unchanged.

    Raises:
        InvalidUpdate: If it is no text, empty, longer than `MOST_CHARS`, or has characters
            that no database keeps (NUL, lone surrogates).
    """
    if not isinstance(value, str):
        value = _number_text(path, value)
    if not value.strip() and not may_be_empty:
        raise InvalidUpdate(path, "must not be empty")
    if len(value) > MOST_CHARS:
        raise InvalidUpdate(path, f"is {len(value):,} characters long, more than {MOST_CHARS:,}")
    if _NO_TEXT.search(value):
        raise InvalidUpdate(path, "has a character that is no text (NUL or a lone surrogate)")
    return value


def _number_text(path: str, value: object) -> str:
    """Return a number, or true or false, as a text.

    Raises:
        InvalidUpdate: If it is something else, or has very many digits.
    """
    if isinstance(value, int) and abs(value) >= _MOST_DIGITS:
        raise InvalidUpdate(path, f"must be a text, not {shown(value)}")
    if not isinstance(value, bool | int | float):
        raise InvalidUpdate(path, f"must be a text, not {_kind(value)}")
    return str(value).lower() if isinstance(value, bool) else str(value)


def checked_tags(path: str, value: object) -> tuple[str, ...]:
    """Return tags, each once, in order, also of a single text or of nothing.

    Raises:
        InvalidUpdate: If they are not texts.
    """
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple | set | frozenset):
        raise InvalidUpdate(path, f"must be a list of texts, not {_kind(value)}")
    ordered = sorted(items, key=str) if isinstance(items, set | frozenset) else items
    texts = [checked_text(f"{path}[{n}]", item).strip() for n, item in enumerate(ordered)]
    return tuple(dict.fromkeys(texts))


def checked_data(path: str, value: object) -> dict[str, Any]:
    """Return an object that JSON can keep.

    Raises:
        InvalidUpdate: If it is no object, or JSON cannot keep it.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidUpdate(path, f"must be an object, not {_kind(value)}")
    checked: dict[str, Any] = json.loads(checked_text(path, json_text(path, dict(value))))
    return checked


def name(path: str, value: object) -> str:
    """Return a name: a key, a kind.

    Raises:
        InvalidUpdate: If it is not 1 to 200 printable characters.
    """
    if not isinstance(value, str) or not 0 < len(value.strip()) <= 200 or not value.isprintable():
        raise InvalidUpdate(path, f"must be 1 to 200 printable characters, not {shown(value)}")
    return value.strip()


def file_path(field: str, value: object) -> Path:
    """Return the path of a file.

    Raises:
        InvalidUpdate: If it is no path, ends in no name, or no file system can hold it.
    """
    path = folder_path(field, value)
    if not path.name:
        raise InvalidUpdate(field, "must end in the name of a file")
    return path


def folder_path(field: str, value: object) -> Path:
    """Return the path of a folder.

    Raises:
        InvalidUpdate: If it is no path, or no file system can hold it.
    """
    if not isinstance(value, str | os.PathLike):
        raise InvalidUpdate(field, f"must be a path, not {_kind(value)}")
    try:
        is_possible = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise InvalidUpdate(field, "has a character that no path has (NUL or a lone surrogate)")
    return Path(value)


def paths(field: str, value: object) -> list[Path]:
    """Return several paths. One alone stands for itself.

    Raises:
        InvalidUpdate: If they are no paths.
    """
    items = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(items, Iterable):
        raise InvalidUpdate(field, f"must be a list of paths, not {_kind(value)}")
    return [folder_path(f"{field}[{n}]", item) for n, item in enumerate(items)]


def importance(path: str, value: object) -> int:
    """Return an importance from 1 to 5. Numbers beyond are brought to the nearer end.

    Raises:
        InvalidUpdate: If it is no whole number.
    """
    return min(5, max(1, whole(path, value, least=None)))


def whole(path: str, value: object, *, least: int | None = 0) -> int:
    """Return a whole number, which may come as a text, or as prompts show ids: ``#7``.

    A number that no row reaches is brought to `FOREVER`, which SQLite can hold.

    Raises:
        InvalidUpdate: If it is none, or below `least`.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and _DIGITS.fullmatch(text := value.strip().removeprefix("#")):
        value = int(text)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidUpdate(path, f"must be a whole number, not {shown(value)}")
    if least is not None and value < least:
        raise InvalidUpdate(path, f"must be at least {least}, not {shown(value)}")
    return min(value, FOREVER)


def ttl(path: str, value: object) -> float | None:
    """Return how long a value lives in seconds, if it ends.

    Raises:
        InvalidUpdate: If it is neither a number of seconds nor like ``30m``, ``2h``, ``7d``.
    """
    if value is None or value == "":
        return None
    seconds = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if abs(value) < _LONGEST_S else math.inf
    elif isinstance(value, str) and (match := _TTL.fullmatch(value.strip().lower())):
        seconds = float(match[1]) * _SECONDS[match[2]]
    if not 0 <= seconds < _LONGEST_S:
        raise InvalidUpdate(path, f"must be seconds, or like 30m, 2h, 7d, not {shown(value)}")
    return seconds


def moment(path: str, value: object) -> float | None:
    """Return a time in seconds since 1970. A time without a zone is of UTC; None stays None.

    Raises:
        InvalidUpdate: If it is no number of seconds, `datetime`, or text like ``2026-05-31``.
    """
    if value is None:
        return None
    with suppress(ValueError, OverflowError):  # refused below
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, datetime):
            value = value.replace(tzinfo=value.tzinfo or UTC).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LONGEST_S:
        raise InvalidUpdate(path, f"must be a time like 2026-05-31, not {shown(value)}")
    return float(value)


def shown(value: object) -> str:
    """Return a value for a message: the beginning, or the kind of deep or large data."""
    if isinstance(value, str):
        return repr(value[:_SHOWN_CHARS])
    if isinstance(value, int) and abs(value) >= FOREVER:
        return "a number that is too large"
    return repr(value) if isinstance(value, int | float) else _kind(value)


def _kind(value: object) -> str:
    kinds = {
        type(None): "null",
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
    }
    return kinds.get(type(value), type(value).__name__)


def json_text(path: str, value: object) -> str:
    """Return a value that JSON can keep as compact JSON.

    Raises:
        InvalidUpdate: If JSON cannot keep it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidUpdate(path, f"must be data that JSON can keep: {error}") from error


def dump(value: object) -> str:
    """Return a value as compact JSON."""
    return _COMPACT.encode(value)
