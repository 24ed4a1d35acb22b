"""The commands of a phase: variables of the host for them, their log, and their failures."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from taskweaver.ces.command.command import Command, CommandResult, run_command

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
_FILES = frozenset(
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO CONDARC PIP_CERT"
    " NODE_EXTRA_CA_CERTS PIP_CLIENT_CERT PIP_CONFIG_FILE PIP_FIND_LINKS UV_CONFIG_FILE".split()
)
"""Variables of certificates and configurations, whose files downloads may read."""
_FETCHING = ("HF_ENDPOINT", "PIP_*", "UV_*", *_FILES)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_OWN_WAYS = frozenset(
    "PIP_TARGET PIP_PREFIX PIP_USER PIP_ROOT PIP_UPGRADE PIP_CACHE_DIR UV_CACHE_DIR PIP_LOG".split()
)
"""Variables of the places pip writes to, which the search decides."""


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
    paths = (Path(value) for name, value in variables.items() if name in _FILES)
    return tuple(path for path in paths if path.is_absolute() and path.exists())


def _pip_file() -> Path | None:
    """Return the configuration file of pip that this user has; commands have another home."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = (settings / "pip/pip.conf", Path.home() / ".pip/pip.conf")
    return next((file for file in files if file.is_file()), None)
