"""Commands of the program: each a process of its own, or run in this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from taskweaver.cli.main import commands

_RUN_WITHIN_S = 300.0


class CommandLine:
    """Commands, started as a shell starts them.

    Attributes:
        program: What starts the program.
        script: What runs code that follows.
    """

    def __init__(self) -> None:
        self.program = [sys.executable, "-m", "taskweaver"]
        self.script = [sys.executable, "-c"]

    def run(
        self, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with a text, or the end of all input, at its input."""
        given: dict[str, Any] = {"input": text} if text else {"stdin": subprocess.DEVNULL}
        return subprocess.run(
            [*self.program, *arguments],
            env=dict(env),
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=_RUN_WITHIN_S,
            **given,
        )


def run_in(project: Path, *arguments: str, typed: str = "") -> Result:
    """Run a command on a project that its user trusts, in this process."""
    return CliRunner().invoke(commands, ["--trust", "-p", str(project), *arguments], input=typed)
