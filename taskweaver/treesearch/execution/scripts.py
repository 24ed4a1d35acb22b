"""Attempts that are one script: run in a kernel, new or forked from the parent's.

A kernel that is gone, because the run was resumed or there were too many, is made again: the
programs that were run in it are run again, each in a folder of its own and with its own seed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from taskweaver.ces.common import Client, ExecutionResult, Manager, Snapshot
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.node_states import NodeStates
from taskweaver.treesearch.execution.results import BadResult, read_result
from taskweaver.treesearch.execution.workspace import list_files
from taskweaver.treesearch.model.artifacts import SCRIPT, ScriptArtifact
from taskweaver.treesearch.model.node import Node, NodeError, NodeKind, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import WORKING
from taskweaver.treesearch.record.places import remove
from taskweaver.utils.files import write_text
from taskweaver.utils.text import shorten

REPLAY_ERROR = "ReplayError"
"""Kind of error of a script that was not run, for want of the variables it starts with."""
BEFORE = ".before"
"""Folder of a workspace in which programs are run again, each in one of its own."""
_OUTPUT_CHARS = 20_000
_MESSAGE_CHARS = 1500


class Program(NamedTuple):
    """A program of a node, with its seed."""

    node_id: str
    code: str
    seed: int


# What is in a workspace is written by the kernel: code of the same sandbox may put links there.
@dataclass(frozen=True, slots=True)
class Script:
    """A script to run in its workspace, after programs whose variables it starts with, in order.

    Its output goes to `log`.
    """

    program: Program
    workspace: Path
    log: Path
    before: tuple[Program, ...] = ()


@dataclass(slots=True)
class ScriptRunner:
    """Runs scripts in kernels, and keeps the states of those that worked. Close it.

    Attributes:
        manager: The owner of the kernels.
        folder: Folder below which all workspaces are.
        is_forking: Whether a script starts from its parent's state.
        longest_s: Longest time of a script.
        devices: Devices of the GPUs that all of them may use.
        stored: Stores the variables of scripts that worked; None where the run has no memory.
        most_states: States that are kept; the one that was not wanted for longest goes first.
    """

    manager: Manager
    folder: Path
    is_forking: bool
    longest_s: float
    devices: tuple[Path, ...] = ()
    stored: NodeStates | None = None
    most_states: int = 8
    _states: OrderedDict[str, Snapshot] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _anchor: Client | None = None
    _running: dict[str, Client] = field(default_factory=dict)
    _cancelled: set[str] = field(default_factory=set)
    _unkept: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Start a kernel that only sleeps: the sandbox, and the states in it, live as long."""
        self._anchor = self._new("search", None)
        self._anchor.start()

    def line(self, node: Node, parent: Node) -> tuple[str, ...]:
        """Return the nodes whose programs run before a new node's, in its kernel.

        The same program with another seed, or repaired, starts where it did the first time.
        """
        if node.kind is NodeKind.SEED or not parent.is_good:
            return parent.line
        is_kept = self.is_forking and parent.id not in self._unkept
        return (*parent.line, parent.id) if is_kept else ()

    def run(self, script: Script) -> JobResult:
        """Run a script. Its failures are in the result."""
        remove(script.workspace)  # other scripts of the sandbox can write here
        own, client = script.program, None
        try:
            client, there = self._client(script)
            problem = self._replay(script, client, there)
            if problem:
                write_text(script.log, f"# {problem}\n")
                phase = PhaseOutcome("run", "failed", message=problem)
                return JobResult((phase,), NodeError(REPLAY_ERROR, problem))
            done, is_late = self._execute(own, client, own.node_id, script.workspace)
            if done.is_success and self.is_forking:
                self._keep(own.node_id, client)
            if done.is_success and self.stored is not None:
                self.stored.store(own.node_id, client)
            return self._result(script, done, _origin(script, there), is_late=is_late)
        except KernelError as error:
            failure = NodeError("RuntimeError", str(error))
            return JobResult((PhaseOutcome("run", "failed", message=str(error)),), failure)
        finally:
            self._running.pop(own.node_id, None)
            self._cancelled.discard(own.node_id)
            if client is not None:
                client.stop()

    def _replay(self, script: Script, client: Client, there: int) -> str:
        """Run the programs before a script again, from the first missing, and return a failure."""
        missing = script.before[there:]
        for number, program in enumerate(missing, there + 1):
            folder = script.workspace / BEFORE / f"{number:02}_{program.node_id}"
            done, is_late = self._execute(program, client, script.program.node_id, folder)
            if not done.is_success:
                return (
                    f"This program was not run: it starts with the variables of {program.node_id},"
                    f" whose kernel is gone, and the program of {program.node_id} failed when it"
                    f" was run again.\n{self._failure(done, is_late=is_late).message}"
                )
        if missing and self.is_forking:
            self._keep(missing[-1].node_id, client)
        return ""

    def _execute(
        self, program: Program, client: Client, owner: str, folder: Path
    ) -> tuple[ExecutionResult, bool]:
        """Run a program on behalf of a node, and return its outcome, and whether it was late."""
        self._running[owner] = client
        client.execute_code("begin", _beginning(program, folder))
        if owner in self._cancelled:
            raise KernelClosed("The script was cancelled.")
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            client.interrupt()

        timer = threading.Timer(self.longest_s, end)
        timer.start()
        try:
            done = client.execute_code(program.node_id, program.code)
        finally:
            timer.cancel()
            timer.join()
        return done, is_late.is_set()

    def cancel(self, node_id: str) -> None:
        """End the script of a node, from any thread."""
        self._cancelled.add(node_id)
        client = self._running.get(node_id)
        if client is not None:
            client.interrupt()

    def _client(self, script: Script) -> tuple[Client, int]:
        """Return a kernel for a script, and how many of the programs before it were run in it."""
        id_, folder, cwd = script.program.node_id, self.folder, script.workspace
        with self._lock:
            for there in range(len(script.before), 0, -1):
                origin = script.before[there - 1].node_id
                if origin not in self._states:
                    continue
                self._states.move_to_end(origin)
                state = self._states[origin]
                with suppress(ForkRefused):  # then what was run in it is run again
                    made = self.manager.fork_session_client(state, id_, session_dir=folder, cwd=cwd)
                    return made, there
            return self._new(id_, cwd), 0

    def _new(self, id_: str, cwd: Path | None) -> Client:
        return self.manager.get_session_client(
            id_, session_dir=self.folder, cwd=cwd, devices=self.devices
        )

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
            failure = self._failure(done, is_late=is_late)
            status = "timeout" if failure.kind == "TimeoutError" else "failed"
            phase = PhaseOutcome("run", status, done.duration_s, None, failure.message)
            return JobResult((phase,), failure, output, exec_seconds=done.duration_s)
        result: Mapping[str, Any] | None = None
        problem: NodeError | None = None
        try:
            result = read_result(script.workspace)
        except BadResult as error:
            problem = error.error
        phase = PhaseOutcome("run", "ok", done.duration_s, 0, note)
        files = tuple(list_files(script.workspace, WORKING))
        ran = JobResult((phase,), problem, output, result, files, done.duration_s)
        return replace(ran, variables=tuple(done.variables))

    def _failure(self, done: ExecutionResult, *, is_late: bool) -> NodeError:
        message = shorten(str(done.error or done.status), _MESSAGE_CHARS)
        if is_late and done.status != "timeout":
            message = f"The script was stopped after {self.longest_s:g} s."
        is_late = is_late or done.status == "timeout"
        return NodeError("TimeoutError" if is_late else "RuntimeError", message)

    def close(self) -> None:
        """Discard all kept kernels."""
        with self._lock:
            while self._states:
                self._states.popitem()[1].close()
        anchor, self._anchor = self._anchor, None
        if anchor is not None:
            anchor.stop()


def program_of(node: Node) -> Program:
    """Return the program of a node, an empty one where it proposed no script."""
    code = node.artifacts.code if isinstance(node.artifacts, ScriptArtifact) else ""
    return Program(node.id, code, node.seed)


def _origin(script: Script, there: int) -> str:
    """Return the kernel a script started from, in words, for the log and its phase."""
    names = [program.node_id for program in script.before]
    start = f"forked from the kernel of {names[there - 1]}" if there else "a new kernel"
    missing = ", ".join(names[there:])
    return f"{start}; run again in it, as their kernels are gone: {missing}" if missing else start


def _beginning(program: Program, folder: Path) -> str:
    """Return code that prepares a program's folder: it runs inside, where links lead nowhere."""
    variables = {"TASKWEAVER_SEED": str(program.seed), "TASKWEAVER_NODE": program.node_id}
    return (
        "import IPython as _python, os as _os\n"
        f"_os.environ.update({variables!r})\n"
        f"_python.get_ipython().kernel.enter_directory({str(folder)!r})\n"
        '_os.makedirs("working", exist_ok=True)\n'
        f'with open({SCRIPT!r}, "w", encoding="utf-8") as _file:\n'
        f"    _file.write({program.code!r})\ndel _os, _file, _python\n"
    )
