"""Attempts that are one script: run in a kernel, new or forked from the parent's."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.ces.common import Client, ExecutionResult, Manager, Snapshot
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError
from taskweaver.treesearch.job import JobResult
from taskweaver.treesearch.node import NodeError, PhaseOutcome
from taskweaver.treesearch.result_file import BadResult, read_result
from taskweaver.treesearch.takeover import WORKING, list_files, remove
from taskweaver.utils.files import write_text
from taskweaver.utils.text import shorten

_OUTPUT_CHARS = 20_000
_MESSAGE_CHARS = 1500


# What is in a workspace is written by the kernel: code of the same sandbox may put links there.
@dataclass(frozen=True, slots=True)
class Script:
    """A script to run.

    Attributes:
        node_id: The node.
        parent_id: The node it is made from; None for none.
        code: The program.
        workspace: Its folder.
        log: File of its output.
        seed: Its seed.
    """

    node_id: str
    parent_id: str | None
    code: str
    workspace: Path
    log: Path
    seed: int


@dataclass(slots=True)
class ScriptRunner:
    """Runs scripts in kernels, and keeps the states of those that worked. Close it.

    Attributes:
        manager: The owner of the kernels.
        folder: Folder below which all workspaces are.
        is_forking: Whether a script starts from its parent's state.
        longest_s: Longest time of a script.
        most_states: States that are kept; the oldest is given up for a new one.
    """

    manager: Manager
    folder: Path
    is_forking: bool
    longest_s: float
    most_states: int = 8
    _states: OrderedDict[str, Snapshot] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _anchor: Client | None = None
    _running: dict[str, Client] = field(default_factory=dict)
    _given_up: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Start a kernel that only sleeps: the sandbox, and the states in it, live as long."""
        self._anchor = self.manager.get_session_client("search", session_dir=self.folder)
        self._anchor.start()

    def can_fork(self, parent_id: str | None) -> bool:
        """Return whether there is a state of a node to start from."""
        return self.is_forking and parent_id in self._states

    def run(self, script: Script) -> JobResult:
        """Run a script; what goes wrong is in the result."""
        remove(script.workspace)  # other scripts of the sandbox can write here
        try:
            client, note = self._client(script)
            try:
                return self._carry_out(script, client, note)
            finally:
                self._running.pop(script.node_id, None)
                client.stop()
        except KernelError as error:
            failure = NodeError("RuntimeError", str(error))
            return JobResult((PhaseOutcome("run", "failed", message=str(error)),), failure)

    def _carry_out(self, script: Script, client: Client, note: str) -> JobResult:
        client.execute_code("begin", _beginning(script))
        self._running[script.node_id] = client
        if script.node_id in self._given_up:
            raise KernelClosed("The script was given up.")
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            client.interrupt()

        timer = threading.Timer(self.longest_s, end)
        timer.start()
        try:
            done = client.execute_code(script.node_id, script.code)
        finally:
            timer.cancel()
            timer.join()
        result = self._result(script, done, note, is_late=is_late.is_set())
        if result.error is None and self.is_forking:
            self._keep(script.node_id, client)
        return result

    def give_up(self, node_id: str) -> None:
        """End the script of a node, from any thread."""
        self._given_up.add(node_id)
        client = self._running.get(node_id)
        if client is not None:
            client.interrupt()

    def _client(self, script: Script) -> tuple[Client, str]:
        id_, folder, cwd = script.node_id, self.folder, script.workspace
        note = "a new kernel"
        with self._lock:
            state = self._states.get(script.parent_id or "") if self.is_forking else None
            if state is not None:
                try:
                    made = self.manager.fork_session_client(state, id_, session_dir=folder, cwd=cwd)
                except ForkRefused as error:
                    note = str(error)
                else:
                    return made, f"forked from the kernel of {script.parent_id}"
            return self.manager.get_session_client(id_, session_dir=folder, cwd=cwd), note

    def _keep(self, node_id: str, client: Client) -> None:
        try:
            state = client.snapshot()
        except KernelError:
            return  # its children start from nothing; what they print says so
        with self._lock:
            self._states[node_id] = state
            while len(self._states) > self.most_states:
                self._states.popitem(last=False)[1].close()

    def _result(
        self, script: Script, done: ExecutionResult, note: str, *, is_late: bool
    ) -> JobResult:
        printed = "".join([*done.stdout, *done.stderr]) + (f"\n{done.error}" if done.error else "")
        write_text(script.log, f"# {note}\n{printed}\n")
        output = shorten(printed, _OUTPUT_CHARS)
        if not done.is_success:
            is_late = is_late or done.status == "timeout"
            message = shorten(str(done.error or done.status), _MESSAGE_CHARS)
            if is_late and done.status != "timeout":
                message = f"The script was stopped after {self.longest_s:g} s."
            error = NodeError("TimeoutError" if is_late else "RuntimeError", message)
            status = "timeout" if is_late else "failed"
            phase = PhaseOutcome("run", status, done.duration_s, None, message)
            return JobResult((phase,), error, output, exec_seconds=done.duration_s)
        result: Mapping[str, Any] | None = None
        problem: NodeError | None = None
        try:
            result = read_result(script.workspace)
        except BadResult as error:
            problem = error.error
        phase = PhaseOutcome("run", "ok", done.duration_s, 0, note)
        files = tuple(list_files(script.workspace, WORKING))
        return JobResult((phase,), problem, output, result, files, done.duration_s)

    def close(self) -> None:
        """Give all states up."""
        with self._lock:
            while self._states:
                self._states.popitem()[1].close()
        if self._anchor is not None:
            self._anchor.stop()


def _beginning(script: Script) -> str:
    """Return code that prepares a script's folder: it runs inside, where links lead nowhere."""
    variables = {"TASKWEAVER_SEED": str(script.seed), "TASKWEAVER_NODE": script.node_id}
    return (
        f"import os as _os\n_os.environ.update({variables!r})\n"
        '_os.makedirs("working", exist_ok=True)\n'
        'with open("experiment.py", "w", encoding="utf-8") as _file:\n'
        f"    _file.write({script.code!r})\ndel _os, _file\n"
    )
