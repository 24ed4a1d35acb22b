"""Programs that a case of the original runs first (``pre_command``)."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from taskweaver.evaluation.errors import CaseFailed

_SHOWN_CHARS = 300


def run_commands(case: str, commands: tuple[str, ...], folder: Path, limit_s: float) -> None:
    """Run programs one after another, without a shell, with the user's rights.

    Args:
        case: Name of the case, for errors.
        commands: The programs with their arguments.
        folder: Folder that they run in.
        limit_s: Longest time of each.

    Raises:
        CaseFailed: If one cannot be run, fails, or takes too long.
    """
    for command in commands:
        try:
            done = subprocess.run(
                shlex.split(command),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise CaseFailed(case, f"{command!r} cannot be run: {error}") from error
        if done.returncode:
            output = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            problem = f"{command!r} ended with {done.returncode}: {output[-_SHOWN_CHARS:]}"
            raise CaseFailed(case, problem)
