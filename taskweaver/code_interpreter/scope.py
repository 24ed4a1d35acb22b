"""Scopes of code interpreters: any Python, only plugins, or only the shell.

A `Scope` is the whole difference between the three roles: the plugins they see, the language and
prompt of their model, the checks of a cell, and the kinds of code that a person confirms.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from taskweaver.code_interpreter.code_verification.plugin_calls import plugin_call_problems
from taskweaver.code_interpreter.code_verification.policy_check import (
    Policy,
    kinds_of,
    policy_text,
    verify,
)
from taskweaver.plugin.spec import PluginEntry

_HERE = Path(__file__).parent
_MAGIC = re.compile(r"\A\s*%%(?:bash|sh)[^\n]*\n")
_BANG = re.compile(r"\A\s*!(?=\S)(?=[^\n]*\s*\Z)")
SCRIPT = "%%bash\n"


class Scope:
    """The code that a code interpreter may run; a subclass overrides the parts that differ.

    Attributes:
        language: Language of its model's cells.
        prompt_files: Prompt files whose texts go before those of the packaged one, the last before
            all.
        rules: Limits of code in the prompt of every task; empty for none.
        is_checked: True if code is read before it runs.
    """

    language: Literal["python", "bash"] = "python"
    prompt_files: Sequence[Path] = ()
    rules = ""
    is_checked = False

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        """Return the plugins it may call, of those that there are."""
        return list(entries)

    def cell(self, code: str) -> str:
        """Return the cell that runs code of its model."""
        return code

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:  # noqa: ARG002 - for subclasses
        """Return the violations in a cell, a sentence each."""
        return []

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:
        """Return the kinds of a cell, for the person who confirms it; see `ConfirmationRequest`.

        They are ``code``, ``shell`` with commands in it, and ``plugin NAME``.
        """
        return kinds_of(code, plugins)


class AnyCode(Scope):
    """Any Python, or as much of it as a policy allows; who may run any may call any plugin."""

    def __init__(self, policy: Policy | None) -> None:
        self._policy = policy
        self.is_checked = policy is not None
        self.rules = policy_text(policy) if policy else ""

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:  # noqa: ARG002 - plugins are functions like others
        """Return the violations of the policy."""
        return verify(code, self._policy, earlier) if self._policy else []


class PluginCalls(Scope):
    """Calls of plugins, with plain values or earlier results, and nothing else."""

    is_checked = True

    def __init__(self, prompt_file: Path | None = None) -> None:
        own = [prompt_file] if prompt_file else []
        self.prompt_files = [_HERE / "plugin_only_prompt.yaml", *own]

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        """Return those marked ``plugin_only``; all of them where none is."""
        return [entry for entry in entries if entry.plugin_only] or list(entries)

    def problems(self, code: str, plugins: Collection[str], earlier: Sequence[str]) -> list[str]:
        """Return the statements that are no calls of plugins."""
        return plugin_call_problems(code, plugins, earlier)

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:
        """Return ``plugin NAME`` for each it calls; it is no code of its own."""
        return kinds_of(code, plugins) - {"code"} or frozenset({"code"})


class ShellScripts(Scope):
    """One shell command or script at a time, with no plugins; its effects cannot be read."""

    language = "bash"

    def __init__(self, prompt_file: Path | None = None) -> None:
        own = [prompt_file] if prompt_file else []
        self.prompt_files = [_HERE / "cli_only_prompt.yaml", *own]

    def plugins(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:  # noqa: ARG002 - a shell calls none
        """Return none."""
        return []

    def cell(self, code: str) -> str:
        """Return the script as a cell; a mark of one that the model wrote itself is replaced."""
        return SCRIPT + _BANG.sub("", _MAGIC.sub("", code))

    def kinds(self, code: str, plugins: Collection[str]) -> frozenset[str]:  # noqa: ARG002 - it is what it is
        """Return ``shell``."""
        return frozenset({"shell"})
