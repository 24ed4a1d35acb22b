"""Texts that are erased, and how they are found and replaced: in texts, in JSON, in files.

A text is found as it is, with its white space folded to single blanks, as a log masks it, and as a
beginning that was cut off with dots. A short text, for example the value ``8``, is no needle for a
haystack: it is found only as the whole of a text, or beside its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from taskweaver.memory.branched.erasure.finding import Form, TextFinder
from taskweaver.utils.redact import MASK, redact

ERASED = "[erased]"
_LEAST_BYTES = 12
_DOTS = "..."
_HEADER = re.compile(r"(?:\[Evicted Recall Event\]\nKind: [^\n]*\n\n|Core evicted: [^\n]*\n)")
_TEXT_FIELDS = frozenset(
    "text summary content value text_preview summary_preview value_preview".split()
)
"""Fields of logs and results that hold a text of the memory, or a value."""


class Needles:
    """Texts to erase."""

    def __init__(
        self,
        texts: Iterable[str],
        *,
        keyed: Mapping[str, Iterable[str]] | None = None,
        is_exact: bool = False,
    ) -> None:
        """Take the texts.

        Args:
            texts: The texts.
            keyed: Values of core keys, by key.
            is_exact: Whether short texts are found inside of others too.
        """
        values = {key: sorted(set(items), key=len) for key, items in (keyed or {}).items()}
        given = {text for text in texts if text.strip()}
        given |= {value for items in values.values() for value in items if value.strip()}
        found = {form for text in given for form in _spellings(text) if is_exact or _is_long(form)}
        self._within = sorted(found, key=len, reverse=True)
        self._finder = TextFinder(self._within, _DOTS)
        beside_keys = {value for items in values.values() for value in items}
        short = {text.strip() for text in given - beside_keys if not _is_long(text)}
        self._short = set() if is_exact else short
        self._keyed = {key: [v for v in items if v.strip()] for key, items in values.items()}
        self._lines = [_line_of(key, items) for key, items in self._keyed.items() if items]

    def __bool__(self) -> bool:
        """Whether there is a text to look for."""
        return bool(self._within or self._short or self._lines)

    def is_whole(self, text: str) -> bool:
        """Return whether a text is one to erase, and nothing else but the header of an eviction."""
        bare = _HEADER.sub("", text, count=1)
        left = _HEADER.sub("", self.clean(text), count=1)
        return bool(bare.strip()) and (is_mark(self.clean(bare)) or is_mark(left))

    def clean(self, text: str) -> str:
        """Return a text with `ERASED` in place of erased texts."""
        if text.strip() in self._short:
            return ERASED
        for line in self._lines:
            text = line.sub(rf"\g<1>{ERASED}", text)
        for start, end in reversed(self._finder.spans(text)):
            text = text[:start] + ERASED + text[end:]
        return text

    def clean_data(self, data: Any, kept: frozenset[str] = frozenset(), field: str = "") -> Any:
        """Return plain data with `ERASED` in place of erased texts, also in the names of fields.

        The values of fields that are `kept` stay; with any, the names of fields stay too. `field`
        is the name of the field that holds the data.
        """
        if isinstance(data, str):
            return self._clean_field(data, field)
        if isinstance(data, list):
            return [self.clean_data(item, kept, field) for item in data]
        if not isinstance(data, dict):
            return data
        return {
            name if kept else self.clean_name(name): value
            if name in kept
            else self.clean_data(value, kept, self._field_of(name, data))
            for name, value in data.items()
        }

    def _field_of(self, name: str, data: Mapping[str, Any]) -> str:
        """Return the core key that a field is the value of, or the field's name."""
        key = data.get("key")
        return key if isinstance(key, str) and name.startswith("value") else name

    def _clean_field(self, text: str, field: str) -> str:
        if text in self._keyed.get(field, ()):
            return ERASED
        if text.strip() in self._short and field not in _TEXT_FIELDS:
            return text
        return self.clean(text)

    def clean_name(self, text: str) -> str:
        """Return a name as `clean` does, but leave one that is a short text."""
        return text if text.strip() in self._short else self.clean(text)

    def forms(self) -> list[Form]:
        """Return the forms of the texts in files: plain, inside of JSON, and of JSON in JSON."""
        found: dict[Form, None] = {}
        for text in self._within:
            found |= dict.fromkeys(_encodings("", text, ""))
        for text in sorted(self._short):
            for name in sorted(_TEXT_FIELDS):
                for gap in ("", " "):
                    found |= dict.fromkeys(_in_json(f'"{name}":{gap}"', text, '"'))
        for key, items in self._keyed.items():
            for value in items:
                found |= dict.fromkeys(_keyed_forms(key, value))
        return list(found)


def _line_of(key: str, items: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of a line with a key and one of its values."""
    name, values = re.escape(key), "|".join(map(re.escape, items))
    return re.compile(rf"^((?:- )?{name}: |Core evicted: {name}\n)(?:{values})$", re.MULTILINE)


def is_mark(text: str) -> bool:
    """Return whether nothing is left of a text but the mark, and dots where it was cut off."""
    return text.strip().removesuffix(_DOTS) == ERASED


def _spellings(text: str) -> set[str]:
    """Return a text as memories and logs write it."""
    forms = {text, text.strip(), " ".join(text.split())}
    masked = {redact(form) for form in forms}
    return forms | {form for form in masked if _is_long(form.replace(MASK, "").strip())}


def _is_long(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) >= _LEAST_BYTES


def _json(text: str, *, is_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=is_ascii)[1:-1]


def _for_page(text: str) -> str:
    """Return JSON as a page of HTML holds it."""
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _encodings(before: str, text: str, after: str) -> list[Form]:
    """Return a text with its surroundings plain, as JSON has it, and as JSON inside of JSON."""
    found = [_form(before, text, after)]
    for is_ascii in (True, False):
        inner = [_json(part, is_ascii=is_ascii) for part in (before, text, after)]
        found += _in_json(inner[0], text, inner[2])
    return list(dict.fromkeys(found))


def _in_json(before: str, text: str, after: str) -> list[Form]:
    """Return a text in JSON, between parts of that JSON, and in JSON inside of JSON."""
    inners = [_json(text, is_ascii=is_ascii) for is_ascii in (True, False)]
    found = [_form(before, inner, after) for inner in (*inners, _for_page(inners[1]))]
    for is_ascii in (True, False):
        outer = [_json(part, is_ascii=is_ascii) for part in (before, after)]
        found += [_form(outer[0], _json(inner, is_ascii=is_ascii), outer[1]) for inner in inners]
    return list(dict.fromkeys(found))


def _form(before: str, text: str, after: str) -> Form:
    parts = (part.encode("utf-8", "replace") for part in (before, text, after))
    return Form(*parts)


def _keyed_forms(key: str, value: str) -> Iterator[Form]:
    """Yield forms of the value of a core key, beside the key."""
    for gap in ("", " "):
        names = (_json(key, is_ascii=True), _json(key, is_ascii=False))
        for name in dict.fromkeys(names):
            yield from _in_json(f'"{name}":{gap}"', value, '"')
            for field in ("value", "value_preview"):
                middle = f'"key":{gap}"{name}",{gap}"{field}":{gap}"'
                yield from _in_json(middle, value, '"')
    for line in (f"\n{key}: ", f"- {key}: ", f"Core evicted: {key}\n"):
        yield from _encodings(line, value, "\n")
