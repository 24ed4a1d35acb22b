"""Functions of this process that cells of a remote kernel call."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from taskweaver.ces.claims import text
from taskweaver.ces.errors import KernelError
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.remote.connection import KernelServer, quoted


class OfferedFunctions:
    """The functions that are offered to one session.

    Attributes:
        functions: The functions; None before they are offered.
    """

    def __init__(self, server: KernelServer, session_path: str) -> None:
        self.functions: HostFunctions | None = None
        self._server = server
        self._path = session_path

    def announce(self) -> None:
        """Let the session call the functions, if there are any.

        Raises:
            KernelError: If the server refuses, or does not answer.
        """
        if self.functions is not None:
            self._server.ask("PUT", f"{self._path}/functions")

    def carry_out(self, data: dict[str, Any]) -> None:
        """Carry out a call of a cell, and send the answer when it is there.

        Called in the thread that waits for the cell, where a person can be asked.
        """
        name, arguments = text(data.get("name"), 200), data.get("arguments")
        call_path = f"{self._path}/calls/{quoted(text(data.get('call_id'), 64))}"
        if self.functions is None or not isinstance(arguments, dict):
            self._send(call_path, {"error": "there is no such function."})
            return
        refusal = self.functions.permit(name, arguments)
        if refusal:
            self._send(call_path, {"error": refusal})
            return
        call = self.functions.call(name, arguments)
        work = (call, call_path)
        threading.Thread(target=self._answer, args=work, name="remote-call", daemon=True).start()

    def _answer(self, call: Future[Any], call_path: str) -> None:
        try:
            answer = {"value": call.result()}
        except BaseException as error:  # noqa: BLE001 - the code gets the text, whatever it raises
            answer = {"error": str(error) or type(error).__name__}
        self._send(call_path, answer)

    def _send(self, call_path: str, answer: dict[str, Any]) -> None:
        with suppress(KernelError):  # the cell has ended, and nothing waits for it
            self._server.ask("POST", call_path, json=answer)
