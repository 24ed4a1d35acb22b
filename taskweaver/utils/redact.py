"""Takes secrets out of text before it is logged, shown or stored.

Two nets: values known to be secret, registered as they are read, and the shapes secrets usually
have. Both work in one pass, in time that grows with the text and not with its content.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

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
            r"(?P<bare>(?:(?:bearer|basic)\s{1,3})?[^\s\"'\\,;&<>(){}\[\]]{4,}))",
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


def _mask(match: re.Match[str]) -> str:
    found = match.groupdict()
    value = found["quoted"] or found["bare"]
    if value is not None:
        is_count = value.isdigit() and "token" in found["name"].lower()
        is_harmless = is_count or value.lower() in _HARMLESS or value.startswith(("$", "{"))
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
        if len(value) < MIN_SECRET_CHARS or value.lower() in _HARMLESS:
            return
        with self._lock:
            self._values |= {value}
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """Return `text` with every secret replaced by `MASK`."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        return _SHAPES.sub(_mask, text)


_shared = Redactor()


def register_secret(value: str) -> None:
    """Treat `value` as secret in everything this process redacts with `redact`."""
    _shared.add(value)


def redact(text: str) -> str:
    """Return `text` with secrets of the usual shapes and all registered values masked."""
    return _shared.redact(text)
