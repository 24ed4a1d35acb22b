"""The phases of a node, and their commands: download, coding, compile, run. A worker runs them."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from taskweaver.ces.command import CommandResult, run_command
from taskweaver.ces.command_process import Command
from taskweaver.treesearch.errors import PhasePlanError, SearchError, system_errors
from taskweaver.treesearch.execution.job import (
    PACKAGES,
    FileStates,
    Job,
    JobResult,
    run_variables,
)
from taskweaver.treesearch.execution.machine import VISIBLE_GPUS, devices_of
from taskweaver.treesearch.execution.results import (
    BadResult,
    place_evaluator,
    printed_result,
    read_result,
    remove_evaluator,
)
from taskweaver.treesearch.execution.timing import HostLoad
from taskweaver.treesearch.execution.workspace import (
    apply_workspace_plan,
    empty_working,
    list_files,
    take_over,
)
from taskweaver.treesearch.model.node import USED_BY_OTHERS, CommandRun, NodeError, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import PHASES, WORKING
from taskweaver.treesearch.model.plan_checks import CommandText
from taskweaver.utils.text import counted

_LAST_LINES = 20
_LAST_CHARS = 2000
_MOST_ERRORS = 12
_LONGEST_LINE = 400
_LONGEST_NAME = 200
# gcc, clang and gfortran; their linkers; make; Python.
_ERROR_LINE = re.compile(
    r"\b(?:fatal error|error|internal compiler error)\b\s*:"
    r"|undefined reference|multiple definition|cannot find -l|No rule to make target"
    r"|^\w*Error\b|command not found|: not found",
    re.IGNORECASE,
)
_CONFIG_FILES = frozenset(
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO CONDARC PIP_CERT"
    " NODE_EXTRA_CA_CERTS PIP_CLIENT_CERT PIP_CONFIG_FILE PIP_FIND_LINKS UV_CONFIG_FILE".split()
)
"""Variables of certificates and configurations, whose files downloads may read."""
_FETCHING = ("HF_ENDPOINT", "PIP_*", "UV_*", *_CONFIG_FILES)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_OWN_WAYS = frozenset(
    "PIP_TARGET PIP_PREFIX PIP_USER PIP_ROOT PIP_UPGRADE PIP_CACHE_DIR UV_CACHE_DIR PIP_LOG".split()
)
"""Variables of the places pip writes to, which the search decides."""
_KINDS = {
    "download": "DownloadError",
    "coding": "CodingError",
    "compile": "CompilationError",
    "run": "RuntimeError",
}
_LEAST_NOTED = 0.25
_MOST_NAMED = 10
_COMMAND_CHARS = 2000


def run_commands_with_logging(commands: Sequence[Command], log_path: Path) -> list[CommandResult]:
    """Run commands in order, up to the first that fails, and return the results of those started.

    Each gets a block at the end of the log: ``$`` and the command, its output as it comes, byte for
    byte within its limit, and ``exit_code=``.

    Raises:
        OSError: If the log cannot be written.
    """
    results: list[CommandResult] = []
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab", buffering=0) as log:
        if not commands:
            log.write(b"No commands.\n")
        for command in commands:
            log.write(f"$ {shown(command)}\n".encode("utf-8", "backslashreplace"))
            result = run_command(command, log=log)
            results.append(result)
            code = "none" if result.exit_code is None else result.exit_code
            log.write(f"\nexit_code={code}  # {result.ending}\n\n".encode("utf-8", "replace"))
            if not result.is_ok:
                break
    return results


def shown(command: Command) -> str:
    """Return a command as a person would type it."""
    return command.run if isinstance(command.run, str) else shlex.join(command.run)


def failure(command: Command, result: CommandResult, *, is_compiler: bool) -> str:
    """Return why a command failed, in a few lines: a compiler's first errors, or the last lines."""
    name = shown(command)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}..."
    errors = first_errors(result.head) if is_compiler else ""
    return f"`{name}`: {result.ending}\n{errors or last_lines(result.tail)}".strip()


def first_errors(output: str) -> str:
    """Return the first lines of a compiler's output that name errors, with the one after each.

    Empty when there is none.
    """
    lines = output.splitlines()
    kept: list[str] = []
    for n, line in enumerate(lines):
        if _ERROR_LINE.search(line):
            kept += [text[:_LONGEST_LINE] for text in lines[n : n + 2] if text not in kept]
        if len(kept) >= _MOST_ERRORS:
            break
    return "\n".join(kept)


def last_lines(output: str) -> str:
    """Return the last lines of an output."""
    return "\n".join(output.rstrip().splitlines()[-_LAST_LINES:])[-_LAST_CHARS:]


def host_variables(
    names: Collection[str], *, is_fetching: bool, has_network: bool
) -> dict[str, str]:
    """Return variables of this process for a command.

    Those are the variables whose names match one of `names`, and where the command fetches, those
    of package indexes and certificates. A command that has the network itself, and no proxy of the
    sandbox, uses the host's proxies too, and pip's configuration file.
    """
    patterns = [*names, *(_FETCHING if is_fetching else ())]
    if is_fetching and has_network:
        patterns += [*_PROXIES, *map(str.upper, _PROXIES)]
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in _OWN_WAYS and any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    file = _pip_file() if is_fetching else None
    return found if file is None else {"PIP_CONFIG_FILE": str(file), **found}


def named_files(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of this host that variables of certificates and configurations name."""
    paths = (Path(value) for name, value in variables.items() if name in _CONFIG_FILES)
    return tuple(path for path in paths if path.is_absolute() and path.exists())


def _pip_file() -> Path | None:
    """Return the configuration file of pip that this user has. Commands have another home."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = (settings / "pip/pip.conf", Path.home() / ".pip/pip.conf")
    return next((file for file in files if file.is_file()), None)


def run_job(job: Job) -> JobResult:
    """Execute the phases of a job, up to the first that fails. Their failures raise nothing.

    Raises:
        OSError: If the logs cannot be written.
    """
    run = _Run(job)
    try:
        prepare_workspace(job)
    except SearchError as error:
        return JobResult(error=NodeError("CodingError", str(error)))
    run.execute()
    return run.result()


def run_download_command(job: Job, command: CommandText) -> CommandResult:
    """Run one command of the download phase, for an installer that decides step by step.

    The plan of the job is not used.

    Raises:
        SearchError: If there is no workspace, and none can be made.
        OSError: If the log cannot be written.
    """
    prepare_workspace(job)
    whole = command_of(job, "download", command, job.workspace)
    return run_commands_with_logging([whole], job.log_dir / "download.log")[0]


def prepare_workspace(job: Job) -> None:
    """Make a node's folder, with its parent's files. One that is there stays as it is.

    Files of a parent whose folder is gone are written anew, as far as they were proposed.

    Raises:
        SearchError: If it cannot be made.
    """
    if job.workspace.is_dir():
        return
    with system_errors(f"{job.workspace} cannot be made"):
        job.workspace.parent.mkdir(parents=True, exist_ok=True)
        if job.parent_workspace is not None:
            take_over(job.parent_workspace, job.workspace)
            return
        job.workspace.mkdir()
    for files in job.inherited:
        with suppress(PhasePlanError):  # it could not be written the first time either
            apply_workspace_plan(job.workspace, files)


class _Failed(Exception):
    """A phase that failed."""

    def __init__(self, kind: str, message: str, result: CommandResult | None = None) -> None:
        super().__init__(kind, message)
        self.error = NodeError(kind, message)
        self.result = result


class _Run:
    """The phases of one job."""

    def __init__(self, job: Job) -> None:
        self._job, self._plan = job, job.plan
        self._phases: list[PhaseOutcome] = []
        self._error: NodeError | None = None
        self._output = ""
        self._result: Mapping[str, Any] | None = None
        self._exec_seconds = 0.0
        self._before = job.before
        self._ran: tuple[CommandRun, ...] = ()

    def execute(self) -> None:
        """Run the phases that are asked for, in order, up to the first that fails."""
        plan = self._plan
        before = self._before = self._before or _states(self._job.workspace, plan.expected_outputs)
        steps = {
            "download": lambda: self._commands("download", plan.download),
            "coding": self._coding,
            "compile": lambda: self._commands("compile", plan.compile),
            "run": lambda: self._run(before),
        }
        for name in PHASES:
            if name in self._job.phases and self._error is None:
                self._phase(name, steps[name])

    def result(self) -> JobResult:
        """Return the outcome."""
        return JobResult(
            phases=tuple(self._phases),
            error=self._error,
            output=self._output,
            result=self._result,
            files=tuple(list_files(self._job.workspace, WORKING)),
            exec_seconds=self._exec_seconds,
            before=self._before,
        )

    def _phase(self, name: str, step: Callable[[], PhaseOutcome]) -> None:
        began = time.monotonic()
        self._ran = ()
        try:
            done = step()
        except SearchError as error:
            kind = "PhasePlanError" if isinstance(error, PhasePlanError) else _KINDS[name]
            self._error = NodeError(kind, str(error))
            done = PhaseOutcome(name, "failed", message=str(error))
        except (BadResult, _Failed) as failed:
            self._error = failed.error
            done = PhaseOutcome(name, "failed", message=failed.error.message)
            if isinstance(failed, _Failed) and failed.result is not None:
                status = "timeout" if failed.result.status == "timeout" else "failed"
                done = replace(done, status=status, exit_code=failed.result.exit_code)
        seconds = time.monotonic() - began
        if name == "run":
            self._exec_seconds = seconds
        log = os.path.relpath(self._log(name), self._job.run_dir)
        self._phases.append(replace(done, seconds=seconds, log=log, commands=self._ran))

    def _log(self, phase: str) -> Path:
        return self._job.log_dir / f"{phase}.log"

    def _coding(self) -> PhaseOutcome:
        apply_workspace_plan(self._job.workspace, self._plan.workspace)
        files = self._plan.workspace.files
        log = self._log("coding")
        log.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{file.path} ({len(file.data)} bytes)\n" for file in files]
        with log.open("a", encoding="utf-8") as opened:
            opened.writelines(lines or ["No files.\n"])
        named = _named([file.path for file in files])
        return PhaseOutcome("coding", "ok", message=f"Files: {named}")

    def _commands(self, phase: str, texts: Sequence[CommandText]) -> PhaseOutcome:
        """Run the commands of a phase."""
        build = self._plan.build
        cwd = home = self._job.workspace
        if phase == "compile":
            cwd = (home / build.workdir).resolve()
            if not cwd.is_relative_to(home.resolve()) or not cwd.is_dir():
                missing = f"compile: there is no folder {build.workdir} to work in"
                raise _Failed("CompilationError", missing)
        commands = [command_of(self._job, phase, build.filled(text), cwd) for text in texts]
        results = run_commands_with_logging(commands, self._log(phase))
        if not results:
            return PhaseOutcome(phase, "skipped", message="No commands.")
        last = results[-1]
        self._output = last.tail
        self._ran = tuple(
            CommandRun(shown(command)[:_COMMAND_CHARS], result.exit_code, result.seconds)
            for command, result in zip(commands, results, strict=False)
        )
        if not last.is_ok:
            message = failure(commands[len(results) - 1], last, is_compiler=phase == "compile")
            kind = "TimeoutError" if last.status == "timeout" else _KINDS[phase]
            raise _Failed(kind, f"{phase}: {message}", last)
        compiler = build.compiler_selected if phase == "compile" else ""
        parts = [f"Compiler: {compiler}"] if compiler else []
        parts.append(counted(len(results), "command"))
        return PhaseOutcome(phase, "ok", exit_code=last.exit_code, message=", ".join(parts))

    def _run(self, before: FileStates) -> PhaseOutcome:
        plan = self._plan
        empty_working(self._job.workspace)
        load = HostLoad()
        done = self._commands("run", plan.run)
        after = _states(self._job.workspace, plan.expected_outputs)
        missing = [path for path in plan.expected_outputs if after[path] is None]
        stale = [path for path, state in after.items() if state and state == before[path]]
        if missing or stale:
            parts = [
                *([f"did not write what it should: {', '.join(missing)}"] if missing else []),
                *([f"left as it was before: {', '.join(stale)}"] if stale else []),
            ]
            raise _Failed("RuntimeError", f"run: {'; '.join(parts)}\n{self._output[-2000:]}")
        self._result = self._with_load(self._measured(), load)
        made = _named(list_files(self._job.workspace, WORKING))
        said = done.message if plan.run else "The evaluator alone"
        return replace(done, status="ok", message=f"{said}. Outputs: {made}")

    def _with_load(
        self, result: Mapping[str, Any] | None, load: HostLoad
    ) -> Mapping[str, Any] | None:
        """Return a timed result with the CPUs that other processes used meanwhile."""
        if result is None:
            return None
        others = load.cpus_of_others() if self._job.is_timed else None
        details = result.get("details")
        known = dict(details) if isinstance(details, Mapping) else {}
        is_claimed = known.pop(USED_BY_OTHERS, None) is not None  # by what is measured
        if others is not None and others >= _LEAST_NOTED:
            known[USED_BY_OTHERS] = round(others, 1)
        elif not is_claimed:
            return result
        return {**result, "details": known}

    def _measured(self) -> Mapping[str, Any] | None:
        """Return what the run's evaluator measures, or else the result the attempt wrote."""
        job = self._job
        if job.evaluator is None:
            return read_result(job.workspace)
        try:
            place_evaluator(job.evaluator, job.workspace)
        except SearchError as error:
            raise _Failed("EvaluationError", str(error)) from error
        command = command_of(job, "run", job.evaluator.command, job.workspace)
        (ended,) = run_commands_with_logging([command], self._log("evaluate"))
        remove_evaluator(job.workspace)
        self._output = f"{self._output}\n[evaluator]\n{ended.tail}"
        if not ended.is_ok:
            message = failure(command, ended, is_compiler=False)
            kind = "TimeoutError" if ended.status == "timeout" else "EvaluationError"
            raise _Failed(kind, f"evaluate: {message}", ended)
        return printed_result(ended.tail)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return (", ".join(paths[:_MOST_NAMED]) or "none") + more


def _states(workspace: Path, paths: Sequence[str]) -> FileStates:
    """Return states of files, which a write changes, None where there is none.

    Files a child takes over from its parent must not pass for its own output.
    """
    states: dict[str, tuple[int, ...] | None] = {}
    root = workspace.resolve()
    for path in paths:
        place = root / path
        try:
            facts = place.stat() if place.resolve().is_relative_to(root) else None
        except (OSError, RuntimeError):  # missing, or a loop of links
            facts = None
        states[path] = (facts.st_ino, facts.st_ctime_ns, facts.st_size) if facts else None
    return states


def command_of(job: Job, phase: str, run: CommandText, cwd: Path) -> Command:
    """Return a command of a phase, with its limits. Only downloads have the network.

    Only other commands have the GPUs of this process, a worker's own.
    """
    limits = job.limits
    seconds = {"download": limits.download_s, "compile": limits.compile_s, "run": limits.run_s}
    sandbox = job.sandbox
    packages, is_fetching = str(job.workspace.resolve() / PACKAGES), phase == "download"
    has_network = sandbox is None or sandbox.has_network
    host = host_variables(job.passed, is_fetching=is_fetching, has_network=has_network)
    variables = host | run_variables(job.seed, packages)
    if is_fetching:
        # `pip install` means this folder, and replaces what the parent left there.
        variables |= {"PIP_TARGET": packages, "PIP_UPGRADE": "1"}
    if sandbox is not None and is_fetching:
        sandbox = replace(sandbox, read_only=(*sandbox.read_only, *named_files(host)))
    elif sandbox is not None:
        devices = devices_of(os.environ.get(VISIBLE_GPUS, ""))
        sandbox = replace(sandbox, has_network=False, allowed_hosts=(), devices=devices)
    return Command(
        run,
        job.workspace,
        cwd,
        variables,
        sandbox,
        replace(limits.command, timeout_s=seconds[phase]),
    )
