"""Trials of programs: one run, as an attempt of a search would run, before the search begins."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote

from pydantic import BaseModel, Field

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.command import CommandResult, run_command
from taskweaver.ces.sandbox.sandbox import SandboxRequest
from taskweaver.doors.agent_api.search_processes import write_all
from taskweaver.doors.agent_api.search_views import FileName
from taskweaver.server.operations import view
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.phases import command_of
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.system.cancel import CancelToken

LONGEST_S = 60.0
"""Longest time of a trial."""
_COMMANDS = {
    ".py": "python {}",
    ".sh": "bash {}",
    ".js": "node {}",
    ".r": "Rscript {}",
    ".jl": "julia {}",
    ".go": "go run {}",
    ".c": "cc -O2 {} -o program -lm && ./program",
    ".cc": "c++ -O2 {} -o program && ./program",
    ".cpp": "c++ -O2 {} -o program && ./program",
    ".f90": "gfortran -O2 {} -o program && ./program",
    ".rs": "rustc -O {} -o program && ./program",
    ".java": "java {}",
    ".pl": "perl {}",
    ".rb": "ruby {}",
    ".lua": "lua {}",
}


class NewTrial(BaseModel):
    """A program to run once: the name of its file, and the texts of all files it needs."""

    program: FileName
    files: dict[FileName, str] = Field(min_length=1, max_length=20)


class ProgramTrial(BaseModel):
    """Outcome of a trial: the end of what was printed, and why it failed, empty if it did not."""

    seconds: float
    output: str
    problem: str


class ProgramTrials:
    """Trials of a project, one at a time. Close them; used from one event loop."""

    def __init__(self, app: TaskWeaverApp) -> None:
        self._app = app
        self._cancel = CancelToken()
        self._lock = asyncio.Lock()

    async def run(self, wanted: NewTrial) -> ProgramTrial:
        """Run a program once, and return the outcome.

        Raises:
            SandboxUnavailable: If the sandbox that is wanted does not work here.
        """
        async with self._lock:
            done = await asyncio.to_thread(self._run, wanted.program, wanted.files)
        problem = "" if done.is_ok else f"It failed: {done.ending}."
        return view(ProgramTrial, done, output=redact_secrets(done.tail), problem=problem)

    def _run(self, program: str, files: Mapping[str, str]) -> CommandResult:
        """Run a program in a folder of its own, within the bounds of attempts."""
        config = SearchConfig(self._app.config)
        sandbox = self._app.app_injector.get(SandboxRequest).choose().policy
        with tempfile.TemporaryDirectory(prefix="taskweaver-trial-") as folder:
            place = Path(folder)
            write_all(place, files)
            if "working" not in files:
                (place / "working").mkdir()
            if "data" not in files:
                (place / "data").mkdir()  # there attempts find the data
                write_all(place / "data", files)
            how = _COMMANDS.get(Path(program).suffix.lower(), "chmod +x {} && ./{}")
            job = Job(
                place, "", place, place, PhasePlan(),
                seed=config.seed, limits=replace(config.limits, run_s=LONGEST_S),
                sandbox=sandbox, passed=config.passed,
            )  # fmt: skip
            command = command_of(job, "run", how.replace("{}", quote(program)), place)
            done = run_command(command, cancel=self._cancel)
            return replace(done, tail=done.tail.replace(f"{folder}/", ""))

    def close(self) -> None:
        """End the trial that runs; safe to call again."""
        self._cancel.cancel()
