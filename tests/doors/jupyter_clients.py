"""Stock Jupyter clients, as any program has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client import BlockingKernelClient
from patience import PATIENCE_S


@dataclass
class Shown:
    """What a client is shown of a request: its status, and the messages by their types."""

    status: str = ""
    error: str = ""
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def data(self, kind: str) -> set[str]:
        """Return the forms in which data came in messages of a type."""
        return {mime for one, content in self.messages if one == kind for mime in content["data"]}

    @property
    def text(self) -> str:
        """All that was printed, and the values as text."""
        parts = [
            content.get("text") or content.get("data", {}).get("text/plain", "")
            for _, content in self.messages
        ]
        return "".join(parts)


def ask(client: Any, code: str, **options: Any) -> Shown:
    shown = Shown()

    def take(message: dict[str, Any]) -> None:
        if message["msg_type"] not in {"status", "execute_input"}:
            shown.messages.append((message["msg_type"], message["content"]))

    reply = client.execute_interactive(code, output_hook=take, timeout=PATIENCE_S, **options)
    shown.status = reply["content"]["status"]
    shown.error = reply["content"].get("ename", "")
    return shown


@contextmanager
def joined(file: Path) -> Iterator[BlockingKernelClient]:
    client = BlockingKernelClient(connection_file=str(file))
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield client
    finally:
        client.stop_channels()
