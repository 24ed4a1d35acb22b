"""Events of a chat stream with tool calls, as endpoints send them."""

from __future__ import annotations

import json
from typing import Any

import scripted_server
from scripted_server import delta, ending


def piece(text: Any = None, name: str | None = None, **more: Any) -> bytes:
    """Return the event of a piece of a call; `more` are `index` and `id`."""
    return delta(tool_calls=[scripted_server.piece(text, name=name, **more)])


def called(*calls: tuple[str, object], text: str = "", finish: str = "tool_calls") -> list[bytes]:
    """Return the body of a reply with calls, each a name and its arguments."""
    body = [delta(content=text)] if text else []
    for index, (name, arguments) in enumerate(calls):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        body.append(piece("", name, index=index, id=f"call_{index}"))
        body += [piece(written[at : at + 7], index=index) for at in range(0, len(written), 7)]
    return [*body, *ending(finish)]
