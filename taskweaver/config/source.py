"""Reads the configuration file of a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskweaver.config.errors import ConfigError
from taskweaver.utils.app_utils import MOST_BYTES
from taskweaver.utils.files import read_text


def read_config_file(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object of dotted keys.

    Raises:
        ConfigError: If it is missing, not JSON, or not an object; names the file and the line.
    """
    try:
        text = read_text(path, MOST_BYTES)
        data = json.loads(text, object_pairs_hook=_without_repetition)
    except FileNotFoundError:
        raise ConfigError(str(path), "there is no such file.") from None
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(str(path), f"is not JSON: {error.msg} at {place}.") from error
    except RecursionError:
        raise ConfigError(str(path), "is nested too deeply.") from None
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
