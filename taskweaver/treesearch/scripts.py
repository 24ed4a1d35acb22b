"""Attempts that are one script: run in a kernel, new or forked from the parent's.

A kernel that is gone, because the run was resumed or there were too many, is not silently done
without: the programs that made it are run again before the child's.
"""

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
from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Node, NodeError, PhaseOutcome
from taskweaver.treesearch.places import RunPlaces
from taskweaver.treesearch.result_file import BadResult, read_result
from taskweaver.treesearch.takeover import WORKING, list_files, remove
from taskweaver.utils.files import write_text
from taskweaver.utils.text import shorten

NEW_KERNEL = "a new kernel"
"""What is said of a script that started with no variables."""
_OUTPUT_CHARS = 20_000
_MESSAGE_CHARS = 1500
_REASON_CHARS = 200


# What is in a workspace is written by the kernel: code of the same sandbox may put links there.
@dataclass(frozen=True, slots=True)
class Script:
    """A script to run.

    Attributes:
        node_id: The node.
        code: The program.
        workspace: Its folder.
        log: File of its output.
        seed: Its seed.
        before: The programs whose variables it starts with, the oldest first.
    """

    node_id: str
    code: str
    workspace: Path
    log: Path
    seed: int
    before: tuple[Script, ...] = ()


@dataclass(slots=True)
class ScriptRunner:
    """Runs scripts in kernels, and keeps the states of those that worked. Close it.

    Attributes:
        manager: The owner of the kernels.
        folder: Folder below which all workspaces are.
        is_forking: Whether a script starts from its parent's state.
        longest_s: Longest time of a script.
        most_states: States that are kept; the one that was not wanted for longest goes first.
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
    _unkept: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Start a kernel that only sleeps: the sandbox, and the states in it, live as long."""
        self._anchor = self.manager.get_session_client("search", session_dir=self.folder)
        self._anchor.start()

    def before(self, journal: Journal, places: RunPlaces, origin: str) -> tuple[Script, ...]:
        """Return what was run in the kernel of a node that children start from, the oldest first.

        Nothing where they start from nothing: it failed, or its kernel cannot be forked.
        """
        found: list[Script] = []
        if not self.is_forking or origin in self._unkept:
            return ()
        for node in reversed(journal.path(origin)):
            if not node.phases or node.phases[-1].has_failed:
                break
            found.insert(0, script_of(node, places))
            if node.phases[-1].message == NEW_KERNEL:
                break
        return tuple(found)

    def run(self, script: Script) -> JobResult:
        """Run a script; what goes wrong is in the result."""
        remove(script.workspace)  # other scripts of the sandbox can write here
        client = None
        try:
            client, note, has_lost = self._client(script)
            if has_lost:
                note += self._replay(script, client)
            done, is_late = self._execute(script, client, script.node_id)
            if done.is_success and self.is_forking:
                self._keep(script.node_id, client)
            return self._result(script, done, note, is_late=is_late)
        except KernelError as error:
            failure = NodeError("RuntimeError", str(error))
            return JobResult((PhaseOutcome("run", "failed", message=str(error)),), failure)
        finally:
            self._running.pop(script.node_id, None)
            if client is not None:
                client.stop()

    def _execute(self, script: Script, client: Client, owner: str) -> tuple[ExecutionResult, bool]:
        """Run a script on behalf of a node; return what came of it, and whether it was stopped."""
        client.execute_code("begin", _beginning(script))
        self._running[owner] = client
        if owner in self._given_up:
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
        return done, is_late.is_set()

    def give_up(self, node_id: str) -> None:
        """End the script of a node, from any thread."""
        self._given_up.add(node_id)
        client = self._running.get(node_id)
        if client is not None:
            client.interrupt()

    def _client(self, script: Script) -> tuple[Client, str, bool]:
        """Return a kernel for a script, what it is, and whether it lacks what it should have."""
        id_, folder, cwd = script.node_id, self.folder, script.workspace
        note = NEW_KERNEL
        if script.before:
            origin, reason = script.before[-1].node_id, "it is gone"
            with self._lock:
                state = self._states.get(origin)
                try:
                    if state is not None:
                        made = self.manager.fork_session_client(
                            state, id_, session_dir=folder, cwd=cwd
                        )
                        self._states.move_to_end(origin)
                        return made, f"forked from the kernel of {origin}", False
                except ForkRefused as error:
                    reason = str(error)
            note += f" in place of that of {origin} ({reason})"
        client = self.manager.get_session_client(id_, session_dir=folder, cwd=cwd)
        return client, note, bool(script.before)

    def _replay(self, script: Script, client: Client) -> str:
        """Run in a new kernel what was run before in the one that is gone; say what came of it."""
        for earlier in script.before:
            done, _ = self._execute(earlier, client, script.node_id)
            if not done.is_success:
                problem = shorten(str(done.error or done.status).splitlines()[-1], _REASON_CHARS)
                return f": the program of {earlier.node_id} did not run again: {problem}"
        self._keep(script.before[-1].node_id, client)
        return ": what was run in it was run again"

    def _keep(self, node_id: str, client: Client) -> None:
        try:
            state = client.snapshot()
        except KernelError:
            self._unkept.add(node_id)  # its children start from nothing, and are told
            return
        with self._lock:
            if node_id in self._states:
                self._states[node_id].close()
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
            phase = PhaseOutcome("run", status, done.duration_s, None, f"({note}) {message}")
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


def script_of(node: Node, places: RunPlaces, before: tuple[Script, ...] = ()) -> Script:
    """Return the script of a node."""
    own = places.node(node.id)
    code = str((node.artifacts or {}).get("code", ""))
    return Script(node.id, code, own.workspace, own.phase_logs / "run.log", node.seed, before)


def _beginning(script: Script) -> str:
    """Return code that prepares a script's folder: it runs inside, where links lead nowhere.

    The folder is not empty where programs were run again in this kernel.
    """
    variables = {"TASKWEAVER_SEED": str(script.seed), "TASKWEAVER_NODE": script.node_id}
    return (
        f"import os as _os, shutil as _shutil\n_os.environ.update({variables!r})\n"
        "for _file in _os.scandir():\n"
        "    if _file.is_dir(follow_symlinks=False): _shutil.rmtree(_file)\n"
        "    else: _os.unlink(_file)\n"
        '_os.makedirs("working")\n'
        'with open("experiment.py", "w", encoding="utf-8") as _file:\n'
        f"    _file.write({script.code!r})\ndel _os, _shutil, _file\n"
    )
