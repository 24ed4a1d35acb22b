"""Pages that need nothing else: data goes into a template that has one script and no other."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from typing import Any

from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def fill_page(template: str, title: str, data: Any) -> str:
    """Return a page; nothing in the data can end its script, and no other script runs in it.

    Args:
        template: HTML with ``{{title}}``, ``{{script_hash}}`` in its Content-Security-Policy,
            ``{{data}}`` in a script element of the type ``application/json``, and last the one
            script that runs.
        title: Its title.
        data: Plain data for the script; its secrets are masked, since a page is given to others.
    """
    script = template.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = template.replace("{{script_hash}}", f"sha256-{digest}")
    before, _, after = template.partition("{{data}}")
    before = before.replace("{{title}}", html.escape(redact_secrets(title)))
    text = json.dumps(redact_secrets_in(data), ensure_ascii=False, separators=(",", ":"))
    return f"{before}{text.translate(_ESCAPES)}{after}"
