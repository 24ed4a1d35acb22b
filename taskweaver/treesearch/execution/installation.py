"""The download phase with an installer: the model decides on each command, a worker runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from taskweaver.ces.command import CommandResult
from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import last_lines
from taskweaver.treesearch.model import plan_checks as checks
from taskweaver.treesearch.model.node import Node, NodeError, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.model.plan_checks import CommandText

STEPS_FILE = "phase1_steps.jsonl"
Ending = Literal[
    "done", "empty_command", "max_steps", "repeated", "bad_reply", "cancelled"
]  # fmt: skip
_MOST_REPEATED = 3
_MAX_COMMAND_CHARS = 100_000
_STOPPED = 124  # the exit status that `timeout` gives
Run = Callable[[CommandText], CommandResult]
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*")
# A package is there when it is installed, or when its name can be imported.
_CHECK = (
    "import sys; from importlib import metadata, util;"
    " there = {(one.name or '').lower().replace('_', '-') for one in metadata.distributions()};"
    " print(*(name for name in sys.argv[1:] if name.lower().replace('_', '-') not in there"
    " and not util.find_spec(name.replace('-', '_').partition('.')[0])))"
)


@dataclass(frozen=True, slots=True)
class InstallerStep:
    """A step of the installer.

    Attributes:
        step: Its number, from 1.
        command: The command; empty for none.
        done: Whether the reply calls it the last.
        notes: Remarks of the reply.
        exit_code: Of the command; None when there was none.
        stdout_summary: End of its output, where it went well.
        stderr_summary: End of its output, where it failed, or why it could not run.
    """

    step: int
    command: str
    done: bool
    notes: str
    exit_code: int | None = None
    stdout_summary: str = ""
    stderr_summary: str = ""


@dataclass(frozen=True, slots=True)
class InstallerResult:
    """Outcome of the installation.

    Attributes:
        ending: ``done``, or why it failed: ``empty_command``, ``max_steps``, ``repeated`` (one
            command failed again and again), ``bad_reply`` (no decision was made), ``cancelled``
            (its command was).
        message: The same in words.
        steps: Its steps.
    """

    ending: Ending
    message: str
    steps: tuple[InstallerStep, ...]

    @property
    def is_ok(self) -> bool:
        """Whether everything was installed."""
        return self.ending == "done"

    @property
    def explanation(self) -> str:
        """The message. Of a failure, with the last failed command and its output."""
        failed = [step for step in self.steps if step.exit_code]
        if self.is_ok or not failed:
            return self.message
        return f"{self.message}\n`{failed[-1].command:.200}`: {failed[-1].stderr_summary}"


Decision = tuple[str, bool, str]
"""The next command, empty for none, whether it is the last, and notes."""
Ask = Callable[[Mapping[str, Any]], Decision]


def phase1_iterative_driver(
    ask: Ask,
    run: Run,
    max_steps: int,
    *,
    folder: Path | None = None,
    check: Callable[[], str] | None = None,
) -> InstallerResult:
    """Install step by step, until the reply says it is done, or it cannot go on.

    Args:
        ask: Decides on the next command. It is given ``step``, ``max_steps`` and ``history`` (the
            steps so far as plain data).
        run: Runs a command.
        max_steps: Most steps.
        folder: Folder of `STEPS_FILE`, a line for each step; None writes none.
        check: Returns the packages still missing at the end, in words, and it goes on; empty for
            none. None when there is nothing to check.

    Raises:
        OSError: If the steps cannot be written.
    """
    steps: list[InstallerStep] = []
    for number in range(1, max_steps + 1):
        history = [asdict(step) for step in steps]
        try:
            decided = ask({"step": number, "max_steps": max_steps, "history": history})
        except ReplyUnusable as error:
            return InstallerResult("bad_reply", f"No decision was made: {error}", tuple(steps))
        step = InstallerStep(number, *decided)
        result = run(step.command) if step.command else None
        if result is not None:
            step = _with_result(step, result)
        missing = check() if check is not None and step.done and not step.exit_code else ""
        if missing:
            step = replace(step, stderr_summary=f"It is not done yet: {missing}")
        steps.append(step)
        if folder is not None:
            _keep(step, folder)
        if result is not None and result.status == "cancelled":
            return InstallerResult("cancelled", "It was cancelled.", tuple(steps))
        if not missing and (ending := _ending(steps)) is not None:
            return InstallerResult(*ending, tuple(steps))
    message = f"It was not done within {max_steps} steps."
    return InstallerResult("max_steps", message, tuple(steps))


def _keep(step: InstallerStep, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / STEPS_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(step)) + "\n")


def _ending(steps: Sequence[InstallerStep]) -> tuple[Ending, str] | None:
    """Return why the last step ends the installation, None where it goes on."""
    step, last = steps[-1], steps[-_MOST_REPEATED:]
    if not step.command and not step.done:
        return "empty_command", "There was no command, and it was not done."
    if len(last) == _MOST_REPEATED and all(
        one.command == step.command and one.exit_code for one in last
    ):
        return "repeated", f"The same command failed {_MOST_REPEATED} times."
    # Said to be done together with a command that failed: whoever said it did not know yet.
    if step.done and not step.exit_code:
        return "done", f"Done in {len(steps)} steps."
    return None


def _with_result(step: InstallerStep, result: CommandResult) -> InstallerStep:
    said = last_lines(result.tail)
    return replace(
        step,
        exit_code=_STOPPED if result.exit_code is None else result.exit_code,
        stdout_summary=said if result.is_ok else "",
        stderr_summary="" if result.is_ok else f"{result.ending}\n{said}".strip(),
    )


def read_decision(text: str) -> Decision:
    """Return the decision of a reply.

    Raises:
        ValueError: If it holds none.
        PhasePlanError: If the command cannot be run as it is written.
    """
    reply = required_object(text, {})
    if not {"command", "done"} & reply.keys():
        raise ValueError("`command` and `done` missing")
    command, is_done = reply.get("command") or "", reply.get("done", False)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    command = checks.text("command", command).strip()
    checks.refuse_mask("command", command)
    if not isinstance(is_done, bool):
        raise ValueError(f"done must be true or false, not {is_done!r:.60}")
    if len(command) > _MAX_COMMAND_CHARS:
        raise ValueError(f"command holds more than {_MAX_COMMAND_CHARS:,} characters")
    return command, is_done, str(reply.get("notes") or "")


def install(
    job: Job, ask: Ask, run: Run, max_steps: int, dependencies: Mapping[str, Any]
) -> JobResult:
    """Install the packages an attempt needs: `ask` decides on each command, and `run` runs it.

    Of the `dependencies`, which Phase 0 names, the packages below ``pip`` are looked for.
    """
    job.log_dir.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    listed = dependencies.get("pip")
    texts = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    found = (_PACKAGE.match(name.strip()) for name in texts)
    names = [match[0] for match in found if match]

    def check() -> str:
        """Return the missing packages, in words, empty for none. Once: the plan may be wrong."""
        wanted, names[:] = names[:], []
        missing = run(("python", "-c", _CHECK, *wanted)).tail.strip() if wanted else ""
        return f"the plan names packages that are not here: {missing}" if missing else ""

    done = phase1_iterative_driver(ask, run, max_steps, folder=job.log_dir, check=check)
    seconds = time.monotonic() - began
    status = "ok" if done.is_ok else "failed"
    log = os.path.relpath(job.log_dir / "download.log", job.run_dir)
    outcome = PhaseOutcome("download", status, seconds, None, done.explanation, log)
    error = None if done.is_ok else NodeError("DownloadError", done.explanation)
    return JobResult((outcome,), error)


def planned_installs(node: Node) -> tuple[CommandText, ...]:
    """Return the commands that a node's plan has for the download phase."""
    return node.artifacts.download if isinstance(node.artifacts, PhasePlan) else ()


def has_installed(parent: Node, node: Node) -> bool:
    """Return whether a parent installed the same as a node plans, in the folder it takes over."""
    has_worked = any(one.name == "download" and not one.has_failed for one in parent.phases)
    planned = planned_installs(node)
    return has_worked and bool(planned) and planned_installs(parent) == planned


def without_installing(result: JobResult) -> JobResult:
    """Return a result whose download phase explains why nothing was installed."""
    message = "Its parent installed the same."
    phases = (
        replace(one, message=message) if one.name == "download" and not one.has_failed else one
        for one in result.phases
    )
    return replace(result, phases=tuple(phases))
