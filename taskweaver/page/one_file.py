"""A conversation as one file that a browser shows without a server: read only."""

from __future__ import annotations

import html
import json
import mimetypes
import re
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from taskweaver.memory.round import Round
from taskweaver.page.assets import page_files
from taskweaver.page.bundle import bundle
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_ENTRY = "read_only.js"
_STYLES = ("tokens", "base", "layout", "outline", "conversation", "panels", "phone")
_PICTURES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}
_MOST_PICTURE_BYTES = 8 << 20
_MOST_BYTES = 64 << 20


def conversation_page(
    rounds: Sequence[Round], folder: Folder | None, title: str, branch: str
) -> str:
    """Return a page with rounds of a branch, and the pictures that their code made.

    Secrets are masked. Scripts and styles are those of the page, named by their hashes, so that
    nothing else of the file runs; pictures that are too large are left out.

    Args:
        rounds: The rounds, from the first.
        folder: The working directory of the branch; None for no pictures.
        title: Title of the page.
        branch: Name of the branch.
    """
    files = page_files().files
    sources = {path: file.content.decode() for path, file in files.items() if path.endswith(".js")}
    # These would change how a browser reads the element; texts and patterns may spell them so.
    script = re.sub(r"<(?=!--|/?script)", r"\\x3c", bundle(sources, _ENTRY))
    style = "\n".join(files[f"styles/{name}.css"].content.decode() for name in _STYLES)
    data: dict[str, Any] = {
        "title": redact_secrets(title),
        "branch": branch,
        "rounds": [_shown(round_) for round_ in rounds],
        "pictures": _pictures(rounds, folder) if folder is not None else {},
    }
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script';"
        " trusted-types 'none'"
    )
    # A closing tag in the data would end its element; JSON has another spelling of the sign.
    block = json.dumps(data).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(redact_secrets(title))}</title>\n<style>{style}</style>\n</head>\n"
        '<body class="read-only">\n<div id="app"></div>\n'
        '<div id="live" role="status" aria-live="polite" class="unseen"></div>\n'
        f'<script type="application/json" id="data">{block}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _shown(round_: Round) -> dict[str, Any]:
    masked: dict[str, Any] = redact_secrets_in({**round_.shown_dict(), "question": round_.question})
    return masked


def _pictures(rounds: Sequence[Round], folder: Folder) -> dict[str, str]:
    """Return the pictures by path, as addresses that hold their bytes."""
    found: dict[str, str] = {}
    room = _MOST_BYTES
    for path in dict.fromkeys(path for round_ in rounds for path in round_.artifacts):
        suffix = f".{path.rpartition('.')[2].lower()}"
        if suffix not in _PICTURES:
            continue
        with suppress(OSError, ValueError), folder.open_file(path) as file:
            content = file.read(_MOST_PICTURE_BYTES + 1)
            if len(content) <= min(room, _MOST_PICTURE_BYTES):
                room -= len(content)
                kind = mimetypes.types_map.get(suffix, "image/png")
                found[path] = f"data:{kind};base64,{b64encode(content).decode()}"
    return found
