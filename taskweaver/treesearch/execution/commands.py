"""The commands of a phase, run one after the other into a log, and messages about failures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from taskweaver.ces.command import CommandResult, run_command
from taskweaver.ces.command_process import Command

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


def run_commands_with_logging(commands: Sequence[Command], log_path: Path) -> list[CommandResult]:
    """Run commands in order, up to the first that fails; return the results of those started.

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
