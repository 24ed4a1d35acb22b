"""One effect of opening a project folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["value", "roles", "plugins", "folder", "private", "owned", "link", "owner"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An effect that needs the user's consent.

    Attributes:
        kind: Its source: a ``value`` of the configuration file, code of ``roles`` or ``plugins``,
            a ``folder`` that lies elsewhere, one with ``private`` files, one that is ``owned`` by
            another user, a ``link`` in one, or another ``owner`` of the configuration.
        subject: The key, or the path below the project folder.
        sentence: The effect, as an imperative.
        digest: Hash of everything the effect depends on.
        keys: The keys that are reset when consent is missing.
    """

    kind: Kind
    subject: str
    sentence: str
    digest: str
    keys: tuple[str, ...] = ()


def finding(kind: Kind, subject: str, sentence: str, content: Any, *keys: str) -> Finding:
    """Return a finding whose digest covers `content`, which JSON can hold."""
    text = json.dumps([kind, subject, content], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return Finding(kind, subject, sentence, digest, keys)
