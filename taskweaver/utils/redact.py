"""Takes secrets out of text before it is logged, shown or stored.

Two nets: values known to be secret, registered as they are read, and the shapes secrets usually
have. Both work in one pass, in time that grows with the text and not with its content.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "***"
MIN_SECRET_CHARS = 6

_NAMES = (
    r"(?:api|access|auth|private|secret|signing|subscription|client|session)[_-]?(?:key|secret|token)"
    r"|password|passwd|pwd|secret|token|credentials?"
)
_SHAPES = re.compile(
    "|".join(
        (
            # name = value, "name": "value", name='value', --name value; the name may have a prefix
            rf"(?P<name>(?<![a-z0-9])(?:[a-z0-9]{{1,40}}[_.-]){{0,4}}(?:{_NAMES})"
            r"\\?[\"']?\s{0,3}(?:[=:]|=>)\s{0,3})"
            r"(?:(?P<quote>\\?[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n\\]|\\[^\"'\n])++)|"
            # a call or an index is code that gets a secret, not the secret
            r"(?P<bare>(?:(?:bearer|basic)\s{1,3})?[^\s\"'\\,;&<>(){}\[\]]{4,}+(?![(\[])))",
            r"(?P<scheme>\b(?:bearer|basic)\s{1,3})(?P<credential>[a-z0-9._~+/=-]{12,4096})",
            r"(?P<login>://[^\s/:@\"']{0,256}:)[^\s/@\"']{1,256}(?=@)",
            r"(?<![a-z0-9])(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|xox[abprs]|AKIA|AIza)"
            r"(?:(?<=AKIA)|(?<=AIza)|[_-])[a-z0-9_-]{16,512}",
            r"(?<![a-z0-9_-])eyJ[a-z0-9_-]{10,4096}\.[a-z0-9_-]{10,8192}(?:\.[a-z0-9_-]{0,4096})?",
        )
    ),
    re.IGNORECASE,
)
_HARMLESS = frozenset({"none", "null", "true", "false", "str", "string", MASK})
# What people write where a local server wants any key; masked, it would be missing everywhere.
_PLACEHOLDERS = frozenset(
    "ollama lm-studio lmstudio llama-server not-needed no-key dummy placeholder changeme"
    " your-api-key sk-no-key-required".split()
)
_SECRET_NAME = re.compile(rf"(?:.{{0,200}}[_.-])?(?:{_NAMES})", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"[a-z_]{1,40}(?:\.[a-z_]{1,40}){0,4}", re.IGNORECASE)
_MIN_VARIABLE_CHARS = 12


def _is_code(name: str, value: str) -> bool:
    """Return whether ``name = value`` or ``name=value`` hands a variable on, as code does."""
    if _VARIABLE.fullmatch(value) is None:
        return False
    return name.rstrip().endswith(" =") or _SECRET_NAME.fullmatch(value) is not None


def _mask(match: re.Match[str]) -> str:
    found = match.groupdict()
    value = found["quoted"] or found["bare"]
    if value is not None:
        is_count = value.isdigit() and "token" in found["name"].lower()
        is_harmless = is_count or value.lower() in _HARMLESS or value.startswith(("$", "{"))
        is_harmless = is_harmless or (not found["quote"] and _is_code(found["name"], value))
        return match[0] if is_harmless else f"{found['name']}{found['quote'] or ''}{MASK}"
    return f"{found['scheme'] or found['login'] or ''}{MASK}"


class Redactor:
    """Replaces secrets in text: those of the usual shapes, and values added to it."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Treat `value` as secret from now on; very short ones are ignored."""
        value = value.strip()
        if len(value) < MIN_SECRET_CHARS or value.lower() in _HARMLESS | _PLACEHOLDERS:
            return
        with self._lock:
            self._values |= {value}
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """Return `text` with every secret replaced by `MASK`."""
        return _SHAPES.sub(_mask, self.redact_known(text))

    def redact_known(self, text: str) -> str:
        """Return `text` with the added values replaced by `MASK`; shapes are left alone."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)


_shared = Redactor()


def register_secret(value: str) -> None:
    """Treat `value` as secret in everything this process redacts with `redact`."""
    _shared.add(value)


def redact(text: str) -> str:
    """Return `text` with secrets of the usual shapes and all registered values masked."""
    return _shared.redact(text)


def redact_known(text: str) -> str:
    """Return `text` with the registered values masked and all else as it is."""
    return _shared.redact_known(text)


def names_a_secret(name: str) -> bool:
    """Return whether a setting or an environment variable of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None or name.lower().endswith("key")


def register_environment(variables: Mapping[str, str]) -> None:
    """Treat the values of variables whose names say so as secret, unless they are short words."""
    for name, value in variables.items():
        if names_a_secret(name) and len(value) >= _MIN_VARIABLE_CHARS:
            register_secret(value)


def redact_data(data: Any) -> Any:
    """Return plain data with its texts redacted, and what is under the name of a secret masked.

    What is shared in it stays shared.
    """
    return _redact_data(data, {})


def _redact_data(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Mapping):
        # Remembered before it is filled, so that data which holds itself ends.
        new_map = done[id(value)] = {}
        new_map.update((_redact_data(k, done), _field(k, v, done)) for k, v in value.items())
        return new_map
    if isinstance(value, list | tuple):
        new_list = done[id(value)] = []
        new_list.extend(_redact_data(item, done) for item in value)
        return new_list
    return value


def _field(name: Any, value: Any, done: dict[int, Any]) -> Any:
    if isinstance(name, str) and isinstance(value, str) and _SECRET_NAME.fullmatch(name):
        is_harmless = len(value) < MIN_SECRET_CHARS or value.lower() in _HARMLESS
        return value if is_harmless else MASK
    return _redact_data(value, done)
