"""Prompt files of the original: their texts in the places ours have.

They are templates for `str.format`, where ``{{`` stands for a brace. Ours are filled by plain
replacement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.utils.files import read_yaml

_SCHEMA = "response_json_schema"
_MARK = re.compile(r"\{\{|\}\}|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class OriginalPrompt:
    """How the original's prompt of a role becomes ours.

    Attributes:
        packaged: Our prompt file; its texts stay where the original has none.
        names: Our names of texts, with the original's.
        places: The original's places, with what stands there.
    """

    packaged: Path
    names: Mapping[str, str]
    places: Mapping[str, str]

    def is_meant(self, texts: Mapping[Any, Any]) -> bool:
        """Return whether a prompt file is one of the original's."""
        return isinstance(texts.get(_SCHEMA), str)

    def translated(self, texts: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the texts of a prompt of ours."""
        schema = texts[_SCHEMA].strip()
        places = {**self.places, _SCHEMA: schema, _SCHEMA.upper(): schema}
        found = {
            ours: _filled(texts[theirs], places)
            for ours, theirs in self.names.items()
            if isinstance(texts.get(theirs), str)
        }
        return {**read_yaml(self.packaged), **found}


def _filled(template: str, places: Mapping[str, str]) -> str:
    def text_at(match: re.Match[str]) -> str:
        name = match[1]
        return match[0][0] if name is None else places.get(name, match[0])

    return _MARK.sub(text_at, template)
