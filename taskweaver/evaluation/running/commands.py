"""Commands that a case of the original runs first (``pre_command``)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from taskweaver.evaluation.errors import CaseFailed

_SHOWN_CHARS = 300
_NOT_FOUND = 127


def run_commands(case: str, commands: tuple[str, ...], folder: Path, limit_s: float) -> None:
    """Run commands one after another in a shell, with the user's rights.

    Args:
        case: Name of the case, for errors.
        commands: The commands.
        folder: Folder that they run in.
        limit_s: Longest time of each.

    Raises:
        CaseFailed: If one cannot be run, fails, or takes too long.
    """
    for command in commands:
        try:
            status, output = _run(command, folder, limit_s)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise CaseFailed(case, f"{command!r} cannot be run: {error}") from error
        if status:
            end = "cannot be run" if status == _NOT_FOUND else f"ended with {status}"
            raise CaseFailed(case, f"{command!r} {end}: {output[-_SHOWN_CHARS:]}")


def _run(command: str, folder: Path, limit_s: float) -> tuple[int, str]:
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # the shell alone would leave its programs
            raise
    return process.returncode, output.decode("utf-8", "replace").strip()
