"""Prompt files of the original: their texts under the names of packaged prompts.

They are templates for `str.format`, where ``{{`` stands for a brace. Packaged ones are filled by
plain replacement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.utils.files import read_yaml

_SCHEMA = "response_json_schema"
_READ = {"version", "instruction_template", "content", "requirements", _SCHEMA}
_MARK = re.compile(r"\{\{|\}\}|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class OriginalPrompt:
    """The conversion of a role's prompt file of the original.

    Attributes:
        packaged: Our prompt file; its texts stay where the original has none.
        names: Our names of texts, with the original's.
        places: The original's places, with their texts.
    """

    packaged: Path
    names: Mapping[str, str]
    places: Mapping[str, str]

    def matches(self, texts: Mapping[Any, Any]) -> bool:
        """Return whether a prompt file is one of the original's."""
        return isinstance(texts.get(_SCHEMA), str)

    def translated(self, texts: Mapping[Any, Any]) -> dict[str, Any]:
        """Return its texts under the names of the packaged prompt."""
        schema = texts[_SCHEMA].strip()
        places = {**self.places, _SCHEMA: schema, _SCHEMA.upper(): schema}
        found = {
            own: _filled(texts[theirs], places)
            for own, theirs in self.names.items()
            if isinstance(texts.get(theirs), str)
        }
        return {**read_yaml(self.packaged), **found}


def unread_texts(path: Path) -> list[str]:
    """Return the names of texts of the original's prompt file that no prompt takes up."""
    try:
        texts = read_yaml(path)
    except (OSError, ValueError):  # told where the role reads it
        return []
    is_original = isinstance(texts, Mapping) and isinstance(texts.get(_SCHEMA), str)
    return [str(name) for name in texts if name not in _READ] if is_original else []


def _filled(template: str, places: Mapping[str, str]) -> str:
    return _MARK.sub(lambda mark: places.get(mark[1], mark[0]) if mark[1] else mark[0][0], template)
