"""Attempts that are one script: run in a kernel that has the variables of the parent's.

The kernel is forked from a snapshot. Where that is gone, because the run was resumed or there were
too many, stored variables are restored. Where variables are not stored either, the programs that
made them are run again, each in a folder of its own and with its own seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from taskweaver.ces.common import Client, ExecutionResult, Forkable, OutputHandler, forkable
from taskweaver.ces.errors import KernelClosed, KernelError
from taskweaver.ces.state_folder import StateDamaged
from taskweaver.ces.state_transfer import Restorable
from taskweaver.session.round_states import RoundEnd, RoundStates
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.results import BadResult, read_result
from taskweaver.treesearch.execution.workspace import list_files
from taskweaver.treesearch.model.artifacts import SCRIPT, ScriptArtifact
from taskweaver.treesearch.model.node import Node, NodeError, NodeKind, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import WORKING
from taskweaver.treesearch.record.places import remove
from taskweaver.utils.files import write_text
from taskweaver.utils.text import shorten

BEFORE = ".before"
"""Folder of a workspace in which programs are run again, each in one of its own."""
_OUTPUT_CHARS = 20_000
_MESSAGE_CHARS = 1500


class ReplayError(KernelError):
    """The variables that a script starts with cannot be made again: it was not run."""


class Program(NamedTuple):
    """A program of a node, with its seed."""

    node_id: str
    code: str
    seed: int


# What is in a workspace is written by the kernel: code of the same sandbox may put links there.
@dataclass(frozen=True, slots=True)
class Script:
    """A script to run in its workspace, after programs whose variables it starts with, in order.

    Its output goes to `log`, and to `on_output` as it comes.
    """

    program: Program
    workspace: Path
    log: Path
    before: tuple[Program, ...] = ()
    on_output: OutputHandler | None = None


@dataclass(slots=True)
class ScriptRunner:
    """Runs scripts in kernels, and takes the variables of those that worked.

    Attributes:
        new_kernel: Makes the kernel of a name with the working directory `cwd`.
        folder: Folder below which all workspaces are.
        is_forking: Whether a script starts from its parent's variables.
        longest_s: Longest time of a script.
        states: Keeps and stores variables, as those of the rounds in which nodes were made.
        end_of: Returns the branch, as a list, and the id of the round in which a node was made.
    """

    new_kernel: Callable[..., Client]
    folder: Path
    is_forking: bool
    longest_s: float
    states: RoundStates
    end_of: Callable[[str], tuple[Sequence[str], str]]
    _running: dict[str, Client] = field(default_factory=dict)
    _cancelled: set[str] = field(default_factory=set)
    _unkept: set[str] = field(default_factory=set)

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
        own = script.program.node_id
        try:
            client, there, origin = self._started(script)
            self._running[own] = client
            again = self._replay(script, client, there)
            done = self._execute(script.program, client, own, script.workspace, script.on_output)
            if done.is_success:
                self._keep(own, client)
            return self._result(script, done, f"{origin}{again}")
        except KernelError as error:
            write_text(script.log, f"# {error}\n")
            kind = type(error).__name__ if isinstance(error, ReplayError) else "RuntimeError"
            failure = NodeError(kind, str(error))
            return JobResult((PhaseOutcome("run", "failed", message=str(error)),), failure)
        finally:
            used = self._running.pop(own, None)
            self._cancelled.discard(own)
            if used is not None:
                used.stop()

    def _started(self, script: Script) -> tuple[Client, int, str]:
        """Return a kernel, the number of programs whose variables are there, and the origin."""
        own, cwd = script.program.node_id, script.workspace
        for there in range(len(script.before), 0, -1):
            name = script.before[there - 1].node_id
            snapshot = self.states.snapshots.get(*self.end_of(name))
            if snapshot is not None:
                with suppress(KernelError):  # it was dropped meanwhile, or there is no room
                    client = snapshot.fork(own, self.folder, cwd)
                    return client, there, f"forked from the kernel of {name}"
            stored = self._stored(name)
            if stored is not None:
                kernel = self._running[own] = forkable(self.new_kernel(own, cwd=cwd))
                if _is_restored(kernel, stored):
                    return kernel, there, f"restored from stored variables of {name}"
                kernel.stop()
                self._check(own)
        return self.new_kernel(own, cwd=cwd), 0, "a new kernel"

    def _stored(self, node_id: str) -> Restorable | None:
        """Return the stored variables of a node, None unless all can be read."""
        self.states.finish()
        folder = self.states.folder
        with suppress(StateDamaged):
            found = folder.find(*self.end_of(node_id)) if folder.is_trusted else None
            if found is not None and not found.lost:
                return Restorable(folder, found, round_number=0)
        return None

    def _replay(self, script: Script, client: Client, there: int) -> str:
        """Run the programs before a script again, from the first missing, and name them."""
        missing = script.before[there:]
        for number, program in enumerate(missing, there + 1):
            folder = script.workspace / BEFORE / f"{number:02}_{program.node_id}"
            done = self._execute(program, client, script.program.node_id, folder)
            if not done.is_success:
                raise ReplayError(
                    f"This program was not run: it starts with the variables of {program.node_id},"
                    f" which are gone, and the program of {program.node_id} failed when it was run"
                    f" again.\n{_problem(done)}"
                )
        last = script.before[-1].node_id if script.before else ""
        if last and self.states.snapshots.get(*self.end_of(last)) is None:
            self._keep(last, client)  # for its next child
        names = ", ".join(program.node_id for program in missing)
        return f"; run again in it, as their variables are gone: {names}" if names else ""

    def _keep(self, node_id: str, client: Client) -> None:
        """Take the variables of a kernel, which may end then."""
        [branch], round_id = end = self.end_of(node_id)
        self.states.end_round(branch, [RoundEnd(branch, round_id, client)])
        self.states.settle()
        if self.is_forking and not (self.states.snapshots.get(*end) or self._stored(node_id)):
            self._unkept.add(node_id)  # its children start from nothing, and are told

    def _execute(
        self,
        program: Program,
        client: Client,
        owner: str,
        folder: Path,
        on_output: OutputHandler | None = None,
    ) -> ExecutionResult:
        """Run a program on behalf of a node."""
        client.execute_code("begin", _beginning(program, folder))
        self._check(owner)
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            client.interrupt()

        timer = threading.Timer(self.longest_s, end)
        timer.start()
        try:
            done = client.execute_code(program.node_id, program.code, on_output)
        finally:
            timer.cancel()
            timer.join()
        if is_late.is_set() and not done.is_success and done.status != "timeout":
            done.stderr.append(str(done.error))
            done.status = "timeout"
            done.error = f"The script was stopped after {self.longest_s:g} s."
        return done

    def _check(self, node_id: str) -> None:
        if node_id in self._cancelled:
            raise KernelClosed("The script was cancelled.")

    def cancel(self, node_id: str) -> None:
        """End the script of a node, from any thread."""
        self._cancelled.add(node_id)
        client = self._running.get(node_id)
        if client is not None:
            client.interrupt()

    def _result(self, script: Script, done: ExecutionResult, note: str) -> JobResult:
        printed = "".join([*done.stdout, *done.stderr]) + (f"\n{done.error}" if done.error else "")
        write_text(script.log, f"# {note}\n{printed}\n")
        output = shorten(printed, _OUTPUT_CHARS)
        if not done.is_success:
            is_late, text = done.status == "timeout", _problem(done)
            status, kind = ("timeout", "TimeoutError") if is_late else ("failed", "RuntimeError")
            phase = PhaseOutcome("run", status, done.duration_s, None, text)
            return JobResult((phase,), NodeError(kind, text), output, exec_seconds=done.duration_s)
        result: Mapping[str, Any] | None = None
        problem: NodeError | None = None
        try:
            result = read_result(script.workspace)
        except BadResult as error:
            problem = error.error
        phase = PhaseOutcome("run", "ok", done.duration_s, 0, note)
        files = tuple(list_files(script.workspace, WORKING))
        ran = (phase,), problem, output, result, files, done.duration_s
        return JobResult(*ran, variables=tuple(done.variables))


def _is_restored(kernel: Forkable, stored: Restorable) -> bool:
    """Fill a kernel with stored variables; return whether all are there."""
    kernel.restore_from(lambda: stored)
    with suppress(KernelError):
        done = kernel.execute_code("restore", "")
        kernel.restore_from(lambda: None)  # if it dies, it does not come back with them
        return done.is_success and all(tag != "variables" for _, tag, _ in done.log)
    return False


def _problem(done: ExecutionResult) -> str:
    return shorten(str(done.error or done.status), _MESSAGE_CHARS)


def program_of(node: Node) -> Program:
    """Return the program of a node, an empty one where it proposed no script."""
    code = node.artifacts.code if isinstance(node.artifacts, ScriptArtifact) else ""
    return Program(node.id, code, node.seed)


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
