"""Masks secrets in copies of text that leave the session: logs, exports, prompts, the screen.

The text that is stored and run is never masked. A secret is a value that is configured as a key, a
token or a password, the value of an environment variable whose name says so, or a text with the
shape of a known provider's key. A path is never a secret. See docs/decisions/0011-redaction.md.

Three levels, each of them includes the one before; the time grows with the length of the text and
not with its content:

- `redact_known`: the known values (screen, ``--json``).
- `redact_secrets`: also the shapes of keys (exports, pages, prompts to other machines).
- `redact`: also the values in ``password = value`` and the like (log files, error reports).
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

MASK = "[[masked:secret]]"
"""Stands for a secret: a syntax error in Python, no command of a shell, and no common text."""
MASK_ADVICE = (
    f"{MASK} stands for a secret that was masked in a copy for readers, and code that holds it does"
    " not run: read the value from its source, such as a file, a plugin or a tool."
)
MIN_SECRET_CHARS = 6
_WORD_CHARS = 40
_KEPT_WORDS = 4096

_NAMES = (
    r"(?:api|access|auth|private|secret|signing|subscription|client|session)[_-]?(?:key|secret|token)"
    r"|password|passwd|secret|token|credentials?"
)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Keys of providers. A prefix that ordinary words may have (`sk-`, `hf_`) needs a long run of
# letters and digits behind it: names of files and packages consist of shorter words.
_SPECIFIC = (
    r"sk-ant-|sk-proj-|sk-svcacct-|sk-or-v1-|github_pat_|glpat-|nvapi-|tvly-|pypi-AgE"
    r"|xox[abeprs]-|AIza|ya29\."
)
_COMMON = r"sk-|pk-lf-|[srp]k_(?:live|test)_|gsk_|xai-|hf_|gh[oprsu]_|npm_|r8_|pplx-|csk-|dop_v1_"
_KEY = re.compile(
    # The first two characters, and then the prefix, are looked at before all else: so most of a
    # text is passed over at once. A key begins where no word goes on; an escaped line break or tab
    # ends a word, too.
    rf"(?:(?=[Acdeghnprstxy][IKSkshilaofpv8yt])(?={_SPECIFIC}|{_COMMON}|A[KS]IA|eyJ)"
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))(?:"
    rf"(?:{_SPECIFIC})[A-Za-z0-9_-]{{16,512}}"
    rf"|(?:{_COMMON})[A-Za-z0-9_-]{{0,64}}?(?:[A-Za-z0-9]{{16}}|{_UUID})[A-Za-z0-9_-]{{0,512}}"
    r"|A[KS]IA[A-Z0-9]{16,64}(?![a-z])"
    r"|eyJ[A-Za-z0-9_-]{10,4096}\.[A-Za-z0-9_-]{10,8192}(?:\.[A-Za-z0-9_-]{0,4096})?))"
)
# Possessive, so that a long value takes no memory for each character; before Python 3.11.5 a
# possessive group with a choice in it matches wrongly.
_MANY = "++" if sys.version_info >= (3, 11, 5) else "+"
_NAMED = re.compile(
    "|".join(
        (
            # name = value, "name": "value", name='value', --name value; the name may have a prefix
            rf"(?P<name>(?<![a-z0-9])(?:[a-z0-9]{{1,40}}[_.-]){{0,4}}(?:{_NAMES})"
            r"\\?[\"']?\s{0,3}(?:[=:]|=>)\s{0,3})"
            r"(?:(?P<quote>\\?[\"'])(?P<quoted>(?:[^\"'\n\\]++|(?!(?P=quote))[\"']|\\[^\"'\n])"
            rf"{_MANY})|"
            # a call or an index is code that gets a secret, not the secret
            r"(?P<bare>(?:(?:bearer|basic)\s{1,3})?[^\s\"'\\,;&<>(){}\[\]]{4,}+(?![(\[])))",
            r"(?P<scheme>\b(?:bearer|basic)\s{1,3})(?P<credential>[a-z0-9._~+/=-]{12,4096})",
            r"(?P<login>://[^\s/:@\"']{0,256}:)[^\s/@\"']{1,256}(?=@)",
        )
    ),
    re.IGNORECASE,
)
# A folded text without any of these has no match of `_NAMED`; to look for them is a lot faster.
# The last two are "basic" with letters that `re.IGNORECASE` takes for an i and that do not fold.
_HINTS = tuple(
    "://|key|token|secret|passw|credent|bearer|basic|bas\u0131c|basi\u0307c".split("|"),
)
_HARMLESS = frozenset({"none", "null", "true", "false", "str", "string", MASK})
# Written where a local server wants any key; masked, these words would be missing everywhere.
_PLACEHOLDERS = frozenset(
    "ollama lm-studio lmstudio llama-server not-needed no-key dummy placeholder changeme"
    " your-api-key your_api_key sk-no-key-required secret masked password".split()
)
_SECRET_NAME = re.compile(rf"(?:.{{0,200}}[_.-])?(?:{_NAMES})", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"[a-z_]{1,40}(?:\.[a-z_]{1,40}){0,4}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+")
# Words of a variable's name that say it holds a secret, and how long that is at least.
_LONG, _SHORT = 16, 8
_LEAST_CHARS = {
    **dict.fromkeys(("key", "apikey", "token", "authtoken"), _LONG),
    **dict.fromkeys(("secret", "password", "passwd", "passphrase", "pgpassword"), _SHORT),
    **dict.fromkeys(("credential", "credentials"), _LONG),
}
_LOCATION = re.compile(
    r"(?:(?:~[\w.-]*|\.{1,2})?[/\\]|[a-z]:[\\/]|file:).*"  # begins like a path
    r"|[^\s=]*[/\\][^\s/\\]*\.\w{1,8}"  # leads to a file
    # an address without a login, a query or a part that looks like a key
    r"|[a-z][a-z0-9+.-]{0,20}://(?!.*[a-z0-9]{20})[^@?]*",
    re.IGNORECASE | re.DOTALL,
)
# Possessive, so that a long value is read once also where it is no number.
_NUMBER = re.compile(r"[+-]?+[.,_ ]*+\d[\d.,_ ]*+(?:[eE][+-]?+\d++)?%?+")
_PARTITION = re.compile(r"[/\\][\w.=-]*\Z")
_LONGEST_PARTITION = 200


def is_location(value: str) -> bool:
    """Return whether a text is a path or an address, which is never a secret."""
    return _LOCATION.fullmatch(value) is not None


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _is_code(name: str, value: str) -> bool:
    """Return whether ``name = value`` or ``name=value`` hands a variable on, as code does."""
    if _VARIABLE.fullmatch(value) is None:
        return False
    return name.rstrip().endswith(" =") or _SECRET_NAME.fullmatch(value) is not None


def _mask(match: re.Match[str]) -> str:
    found = match.groupdict()
    value = found["quoted"] or found["bare"]
    if value is None:
        return f"{found['scheme'] or found['login'] or ''}{MASK}"
    is_harmless = (
        value.lower() in _HARMLESS
        or value.startswith(("$", "{"))
        or is_location(value)
        or _is_number(value)
        or (not found["quote"] and _is_code(found["name"], value))
        or _is_partition(match)
    )
    return match[0] if is_harmless else f"{found['name']}{found['quote'] or ''}{MASK}"


def _is_partition(match: re.Match[str]) -> bool:
    """Return whether ``name=value`` is a folder in a path, e.g. ``/data/token=a/part.csv``."""
    before = match.string[max(match.start() - _LONGEST_PARTITION, 0) : match.start()]
    return _PARTITION.search(before) is not None


class Redactor:
    """Replaces secrets in text: known values, shapes of keys, and values under telling names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._places = ""
        self._pattern: re.Pattern[str] | None = None
        # Names of fields and columns come again and again. What was masked is kept by the number
        # of values, which is never ahead of the pattern: a value that is added counts at once.
        self._masked_words = lru_cache(_KEPT_WORDS)(lambda text, _: self._redact(text))

    def keep(self, places: Iterable[str]) -> None:
        """Do not treat a part of these paths, which the user sees, as secret when added."""
        with self._lock:
            self._places = "\n".join([self._places, *places])

    def add(self, value: str) -> None:
        """Treat `value` as secret from now on.

        A value that is very short, a location or a part of a path to `keep` is left out.
        """
        value = value.strip()
        if len(value) < MIN_SECRET_CHARS or value in self._values or value in self._places:
            return
        if value.lower() in _HARMLESS | _PLACEHOLDERS or is_location(value):
            return
        # As it stands in JSON, in the text of a Python value, and in an address. A variable of the
        # environment may hold bytes that are no UTF-8.
        forms = {value, repr(value)[1:-1], quote(value, safe="", errors="replace")}
        forms |= {json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
        with self._lock:
            values = self._values | forms
            longest_first = sorted(values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
            self._values = values

    def redact(self, text: str) -> str:
        """Return `text` for a log: without secrets and values under telling names."""
        if len(text) > _WORD_CHARS:
            return self._redact(text)
        return self._masked_words(text, len(self._values))

    def _redact(self, text: str) -> str:
        masked = self.redact_secrets(text)
        folded = masked.casefold()
        return _NAMED.sub(_mask, masked) if any(hint in folded for hint in _HINTS) else masked

    def redact_secrets(self, text: str) -> str:
        """Return `text` with the added values and the keys of known shapes replaced by `MASK`."""
        return _KEY.sub(MASK, self.redact_known(text))

    def redact_known(self, text: str) -> str:
        """Return `text` with the added values replaced by `MASK`. Shapes are left alone."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)


_shared = Redactor()
register_secret = _shared.add
"""Treats a value as secret in everything this process redacts."""

redact, redact_secrets, redact_known = _shared.redact, _shared.redact_secrets, _shared.redact_known
"""The three levels, the widest first, with all that is registered."""


def keep_places(*places: str) -> None:
    """Never register a part of these paths as secret: each path below would be masked."""
    _shared.keep(places)


def has_mask(text: str) -> bool:
    """Return whether a text is a masked copy, which must not run as code."""
    return MASK in text


def _least_chars(name: str) -> int | None:
    """Return the least length of a secret under a name, or None if the name names no secret."""
    words = {word.lower() for word in _WORD.findall(name)}
    if "stop" in words:  # `llm.stop_token` is a text that ends a reply
        return None
    return min((_LEAST_CHARS[word] for word in words & _LEAST_CHARS.keys()), default=None)


def names_a_secret(name: str) -> bool:
    """Return whether a word of a name says that the name holds a secret."""
    return _least_chars(name) is not None


def register_environment(variables: Mapping[str, str]) -> None:
    """Treat the values of variables whose names say so as secret: no paths, numbers, short words.

    A value has at least 8 characters under PASSWORD or SECRET and 16 under KEY or TOKEN.
    """
    for name, text in variables.items():
        least, value = _least_chars(name), text.strip()
        if least is None or len(value) < least:
            continue
        # `Path.exists` raises for a name as long as some tokens are.
        is_there = os.path.exists(value)  # noqa: PTH110
        if not is_there and not _is_number(value):
            register_secret(value)


def register_configured(name: str, value: object) -> None:
    """Treat a configured value, and values inside, as secret if the name says so.

    A name that ends in `api_key`, `token`, `password` or the like says so. A name that only has one
    of the words in it, e.g. `primary_key` or `key`, says so for a value as long as a key.
    """
    if isinstance(value, Mapping):
        for inner, item in value.items():
            register_configured(str(inner), item)
    elif isinstance(value, list | tuple):
        for item in value:
            register_configured(name, item)
    elif isinstance(value, str):
        least = _least_chars(name)
        is_exact = _SECRET_NAME.fullmatch(name) is not None
        if least is not None and (is_exact or len(value.strip()) >= least):
            register_secret(value)


def redact_data(data: Any) -> Any:
    """Return plain data for a log: texts redacted, values under names of secrets masked.

    References shared within the data stay shared.
    """
    return mapped(data, redact, _masked_field)


def redact_secrets_in(data: Any) -> Any:
    """Return plain data with `redact_secrets` applied to all texts. Shared parts stay shared."""
    return mapped(data, redact_secrets)


def redact_known_in(data: Any) -> Any:
    """Return plain data with `redact_known` applied to all texts. Shared parts stay shared."""
    return mapped(data, redact_known)


_Field = Callable[[Any, Any], Any]


def mapped(data: Any, change: Callable[[str], str], field: _Field | None = None) -> Any:
    """Return plain data with changed texts. Shared parts stay shared.

    `field` gives the values of some fields by name and value, and None for others.
    """
    done: dict[int, Any] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if id(value) in done:
            return done[id(value)]
        if isinstance(value, Mapping):
            # Remembered before it is filled, so that data which holds itself ends.
            new_map = done[id(value)] = {}
            for key, item in value.items():
                masked = field(key, item) if field is not None else None
                new_map[walk(key)] = masked if masked is not None else walk(item)
            return new_map
        if isinstance(value, list | tuple):
            new_list = done[id(value)] = []
            new_list.extend(map(walk, value))
            return new_list
        return value

    return walk(data)


def _masked_field(name: Any, value: Any) -> str | None:
    """Return a text under the name of a secret for a log, or None for any further field."""
    if not isinstance(name, str) or not isinstance(value, str):
        return None
    if _SECRET_NAME.fullmatch(name) is None:
        return None
    is_harmless = len(value) < MIN_SECRET_CHARS or value.lower() in _HARMLESS
    return value if is_harmless or is_location(value) or _is_number(value) else MASK
