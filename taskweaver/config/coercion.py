"""Conversion of configured values to the types of their keys.

Values come from JSON and from Python with their own types, and from the environment as text.
Every function takes the value and returns it converted, or raises `ValueError` with a text that
goes on after "must be".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.config.keys.key import Key, KeyType
from taskweaver.utils.files import absolute_path
from taskweaver.utils.text import did_you_mean

APP_BASE_DIR = "${AppBaseDir}"
MODULE_BASE_DIR = "${ModuleBaseDir}"
_PACKAGE = Path(__file__).parent.parent

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _to_str(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a text")
    return str(value)


def _to_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    truth = _TRUTH.get(str(value).strip().lower()) if isinstance(value, str | int) else None
    if truth is None:
        raise ValueError("true or false (also yes, no, 1, 0)")
    return truth


def _to_int(value: object) -> int:
    is_fraction = isinstance(value, float) and not value.is_integer()
    if isinstance(value, bool) or is_fraction or not isinstance(value, str | int | float):
        raise ValueError("a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError("a whole number") from None


def _to_float(value: object) -> float:
    problem = "a finite number"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(problem)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(problem) from None
    if not math.isfinite(number):
        raise ValueError(problem)
    return number


def _not_below(number: float, minimum: float | None) -> float:
    if minimum is not None and number < minimum:
        raise ValueError(f"at least {minimum:g}")
    return number


def _to_list(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    raise ValueError("a list of texts, or one text with commas")


def _to_dict(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError("an object, set in the file or in Python")
    return dict(value)


_CONVERTERS: dict[KeyType, Callable[[object], Any]] = {
    "str": _to_str,
    "bool": _to_bool,
    "int": _to_int,
    "float": _to_float,
    "list": _to_list,
    "dict": _to_dict,
}


def _to_choice(value: object, choices: tuple[str, ...]) -> str:
    if isinstance(value, bool):  # as a file of JSON or YAML has it
        value = str(value).lower()
    if isinstance(value, str) and value in choices:
        return value
    hint = did_you_mean(str(value), choices)
    raise ValueError(f"one of {', '.join(choices)}" + (f" ({hint})" if hint else ""))


def _to_path(value: object, app_base: Path) -> str:
    if not isinstance(value, str | Path):
        raise ValueError("a path")
    text = str(value).replace(APP_BASE_DIR, str(app_base)).replace(MODULE_BASE_DIR, str(_PACKAGE))
    if "\0" in text:
        raise ValueError("a path without a zero character")
    return absolute_path(text, app_base) if text else ""


def coerce(key: Key, value: object, app_base: Path) -> Any:
    """Convert a configured value, which is not None, to the type of a key.

    `app_base` stands for ``${AppBaseDir}`` in a path, and is where relative paths start.

    Returns:
        The value as `str`, `bool`, `int`, `float`, `list` of texts or `dict`; a path as the text
        of an absolute one, or empty.

    Raises:
        ValueError: If it cannot be converted; the text has the valid form.
    """
    match key.type:
        case "enum":
            return _to_choice(value, key.choices)
        case "path":
            return _to_path(value, app_base)
        case "int" | "float" as kind:
            return _not_below(_CONVERTERS[kind](value), key.minimum)
        case kind:
            return _CONVERTERS[kind](value)
