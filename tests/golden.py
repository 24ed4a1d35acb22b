"""Prompts that are kept byte for byte, in a file for each way of asking.

A part that an earlier call has as well is written as the number of that call and a digest, so that
the files are small and a difference stands in one place. After a change of prompts that is meant,
write the files anew, and read the difference before a commit:
``GOLDEN=write pytest tests/treesearch/engine/test_search_golden.py tests/app/test_chat_golden.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_LEAST_CHARS = 60
_FORMS = ("response_format", "tools", "tool_choice")
"""Parts of a request, beside its messages, that say in which form to reply."""


def check_golden(
    file: Path, requests: Iterable[Mapping[str, Any]], unsteady: Mapping[str, str]
) -> None:
    """Compare the requests to a model with a file, or write that where it is wanted.

    Args:
        file: The file.
        requests: Bodies of the requests, in order.
        unsteady: By pattern, what is written in place of text that differs from run to run.
    """
    text = "".join(_written(requests, unsteady))
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), f"{file.name} has other prompts, see tests/golden.py"


def _written(requests: Iterable[Mapping[str, Any]], unsteady: Mapping[str, str]) -> Iterator[str]:
    known: dict[str, int] = {}
    for number, body in enumerate(requests, 1):
        yield f"======== call {number} of {body['model']}\n"
        for title, text in _parts(body):
            yield f"---- {title}\n"
            for pattern, name in unsteady.items():
                text = re.sub(pattern, name, text, flags=re.MULTILINE)
            for part in _HEADING.split(text):
                call = known.setdefault(part.rstrip(), number)
                is_written = call == number or len(part) < _LEAST_CHARS
                yield part if is_written else _reference(part, call)
            yield "\n"


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _FORMS:
        if name in body:
            yield name, json.dumps(body[name], indent=1, ensure_ascii=False)
    for message in body["messages"]:
        content, role = message["content"], message["role"]
        pieces = [content] if isinstance(content, str | None) else content
        more = {name: value for name, value in message.items() if name not in {"role", "content"}}
        yield role, "\n".join(_text(piece) for piece in (*pieces, more) if piece)


def _text(piece: Any) -> str:
    text = piece if isinstance(piece, str) else piece.get("text")
    return text if isinstance(text, str) else json.dumps(piece, ensure_ascii=False)


def _reference(part: str, call: int) -> str:
    digest = hashlib.sha256(part.encode()).hexdigest()[:12]
    beginning = part[:40].partition("\n")[0]
    return f"<as in call {call}, {digest}> {beginning}\n"
