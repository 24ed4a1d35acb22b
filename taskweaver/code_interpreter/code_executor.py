"""Runs cells for a session: starts the kernel, loads plugins, words the result."""

from __future__ import annotations

import json
import pprint
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from taskweaver.ces.common import (
    Client,
    ExecutionResult,
    OutputHandler,
    PluginCode,
    TakesFunctions,
)
from taskweaver.code_interpreter.code_verification.policy_check import kinds_of
from taskweaver.code_interpreter.scope import SCRIPT
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.spans import ARGUMENTS, RESULT, Span, tool
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.session_tools import SessionTools
from taskweaver.memory.cells import ExecutedCell, Ran, RecordedCell
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.markup.quoting import indented
from taskweaver.utils.redact import MASK_ADVICE, has_mask
from taskweaver.utils.text import fenced, shorten

_RESULT_CHARS = 8_000
_OUTPUT_CHARS = 4_000
_ERROR_CHARS = 3_000
_PREVIEW_CHARS = 700
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
"""Earlier states of a line that a progress bar writes again and again.

Without the anchor each character of a long line would be tried as the first one.
"""


def sections(result: ExecutionResult, *, level: int = 2, code: str | None = None) -> str:
    """Describe a run in sections: code, execution, result, output, error, artifacts.

    Without `code` that section is left out.
    """
    output, warned = (_OVERWRITTEN.sub("", "".join(one)) for one in (result.stdout, result.stderr))
    error = "\n".join(filter(None, [result.error or "", warned]))
    logs = "\n".join(f"{level_}: {tag}: {message}" for level_, tag, message in result.log)
    parts = [
        ("Code", fenced(code, "python") if code else ""),
        ("Execution", _verdict(result)),
        ("Result", _bounded(_value_text(result.output), _RESULT_CHARS)),
        ("Output", _bounded(output, _OUTPUT_CHARS)),
        ("Plugin log", _bounded(logs, _OUTPUT_CHARS)),
        ("Warnings" if result.is_success else "Error", _bounded(error, _ERROR_CHARS)),
        ("Artifacts", "\n".join(_artifact_lines(result))),
    ]
    heading = "#" * level
    return "\n\n".join(f"{heading} {title}\n{text}" for title, text in parts if text)


def _verdict(result: ExecutionResult) -> str:
    text = "The code ran to its end." if result.is_success else "The code failed."
    shown = (_value_text(result.output), *result.stdout, *result.artifact, *result.log)
    if result.is_success and not any(shown):
        text += " It has no value and printed nothing."
    if result.is_state_lost:
        text += " The Python session was restarted."
    if result.is_truncated:
        text += " Some of its output was left out because there was too much."
    return text


def _value_text(value: Any) -> str:
    """Return the value of a cell as text. Plain data is laid out over lines."""
    return value if isinstance(value, str) else pprint.pformat(value, width=100, sort_dicts=False)


def _bounded(text: str, limit_chars: int) -> str:
    return fenced(shorten(text, limit_chars)) if text.strip() else ""


def _artifact_lines(result: ExecutionResult) -> Iterable[str]:
    for artifact in result.artifact:
        place = artifact.file_name or artifact.original_name or artifact.name
        note = f" ({shorten(artifact.preview, _PREVIEW_CHARS)})" if artifact.preview else ""
        yield f"- {indented(f'{artifact.type}: {place}{note}')}"


_EXCEPTION = re.compile(r"(?:\w+\.)*([A-Z]\w{2,60})(?::|$)")
"""Name of the exception in the last line of a traceback."""


@contextmanager
def cell_span(tracing: Tracing, exec_id: str, code: str) -> Iterator[Span]:
    """Record the block as the run of a cell."""
    language = "bash" if code.startswith(SCRIPT) else "python"
    operation = tool(language, "extension", {"gen_ai.tool.call.id": exec_id})
    with tracing.running(operation) as span:
        span.content(ARGUMENTS, lambda: json.dumps({"code": code}, ensure_ascii=False))
        yield span


def note_result(span: Span, result: ExecutionResult, plugins: Container[str]) -> None:
    """Record the end of a cell, and the called plugins.

    Calls of others than `plugins` are tools, which have spans of their own.
    """
    span.set("taskweaver.cell.status", result.status)
    outcome = {
        "output": result.output,
        "stdout": "".join(result.stdout),
        "stderr": "".join(result.stderr),
        "error": result.error or "",
    }
    span.content(RESULT, lambda: json.dumps(outcome, ensure_ascii=False, default=str))
    for call in result.calls:
        if call.name in plugins:
            span.child(tool(call.name, "function"), call.began_s, call.duration_s, call.error)
    if not result.is_success:
        # Not with its text, which may quote data: that is a content.
        name = _EXCEPTION.match(result.reason) if result.status == "error" else None
        span.fail(name[1] if name else result.status)


_Tried = dict[str, tuple[PluginEntry, PluginCode | None]]


class CodeExecutor:
    """The kernel of a session, with all plugins.

    Attributes:
        broken: Plugins and tools that did not load into the kernel, and why.
    """

    def __init__(
        self,
        client: Client,
        plugin_registry: PluginRegistry | None,
        logger: TelemetryLogger,
        code_prefix: str = "",
        tools: SessionTools | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """Take a kernel.

        `code_prefix` runs at the start of every cell; `tools` are functions outside the kernel that
        cells may call.
        """
        self._tracing = tracing or Tracing()
        self._client = client
        self._code_prefix = code_prefix
        self._registry = plugin_registry
        self._logger = logger
        self._tools = tools
        self._tried: _Tried = {}
        self._unreadable: set[str] | None = None
        self.broken: dict[str, str] = {}

    def in_kernel(self, client: Client) -> CodeExecutor:
        """Return an executor with the same plugins and tools for another kernel."""
        registry, prefix = self._registry, self._code_prefix
        return CodeExecutor(client, registry, self._logger, prefix, self._tools)

    @property
    def plugins(self) -> list[PluginEntry]:
        """The plugins that can be used, by name."""
        entries = sorted(self.entries.items())
        return [entry for name, entry in entries if name not in self.broken]

    @property
    def tools(self) -> list[PluginEntry]:
        """Functions outside the kernel. Waits for servers that are still starting."""
        return [entry for entry in self.wait_for_tools() if entry.name not in self.broken]

    @property
    def entries(self) -> Mapping[str, PluginEntry]:
        """All plugins by name, the broken ones too."""
        return self._registry.plugins if self._registry else {}

    def new_problems(self) -> list[str]:
        """Return, once each, a sentence for each tool that cannot be used."""
        return [] if self._tools is None else self._tools.new_problems(self.entries)

    def begin_tools(self) -> None:
        """Start the servers of the tools in the background."""
        if self._tools is not None:
            self._tools.begin()

    def wait_for_tools(self) -> list[PluginEntry]:
        """Return all tools, once their servers have started."""
        return [] if self._tools is None else self._tools.entries(self.entries)

    def load_plugins(self) -> list[str]:
        """Load the current plugin files and the tools into the kernel.

        New ones are loaded, changed ones again, and those whose file is gone are removed; broken
        ones are noted and left out until their file changes.

        Returns:
            A sentence for each plugin that turned out to be broken now, and one for what changed
            since the last time.

        Raises:
            KernelError: If the kernel cannot be started.
        """
        entries = {**self.entries, **{entry.name: entry for entry in self.wait_for_tools()}}
        changed, problems = self._changed(entries)
        codes = [code for _, code in changed.values() if code is not None]
        gone = sorted(self._tried.keys() - entries.keys())
        is_first = self._unreadable is None
        before = self._tried.keys() - self.broken.keys()
        if codes or gone:
            problems |= self._client.load_plugins(codes, gone)
        self._tried |= changed
        for name in (*gone, *changed):
            self.broken.pop(name, None)
        for name in gone:
            del self._tried[name]
        for name, problem in problems.items():
            is_tool = name not in self.entries
            subject = f"Tool {name!r}" if is_tool else f"Plugin {name!r} ({entries[name].path})"
            self.broken[name] = f"{subject}: {problem}"
        notes = [f"{self.broken[name]} (left out)" for name in problems]
        notes += self._unreadable_now()
        loaded = [code.name for code in codes if code.name not in problems]
        notes += [] if is_first else _changes(loaded, gone, before)
        for line in notes:
            self._logger.warning(line)
        return notes

    def _changed(self, entries: Mapping[str, PluginEntry]) -> tuple[_Tried, dict[str, str]]:
        """Return the changes of plugins and tools, and the problems of unreadable files."""
        changed: _Tried = {}
        problems = {}
        for name, entry in sorted(entries.items()):
            entry_before, code_before = self._tried.get(name, (None, None))
            if entry is entry_before:
                continue
            code = None
            try:
                source = entry.source()
            except (OSError, ValueError) as error:
                problems[name] = str(error)
            else:
                # The file of a tool is generated: what lies beside it is not for cells to import.
                file = str(entry.path) if name in self.entries else ""
                about = entry.format_prompt()
                code = PluginCode(name, source, entry.config, file, entry.helpers, about)
            if code is None or code != code_before:
                changed[name] = (entry, code)
        return changed, problems

    def _unreadable_now(self) -> list[str]:
        """Return the files that became unreadable to the registry since the last time."""
        broken = self._registry.broken.values() if self._registry is not None else ()
        now = {str(error) for error in broken}
        before, self._unreadable = self._unreadable, now
        return [] if before is None else [f"{line} (left out)" for line in sorted(now - before)]

    def execute_code(
        self,
        exec_id: str,
        code: str,
        on_output: OutputHandler | None = None,
        *,
        is_repeated: bool = False,
    ) -> ExecutionResult:
        """Run a cell. The error of a cell that calls plugins names the plugin files.

        A cell that holds a mask is a copy for readers: it is refused, whoever brings it.

        Tools ask before they change something again for a cell that `is_repeated`.

        Raises:
            KernelError: If the kernel cannot be started or was stopped.
        """
        if has_mask(code):
            return ExecutionResult(exec_id, code, error=MASK_ADVICE, status="refused")
        if self._tools is not None and isinstance(self._client, TakesFunctions):
            self._tools.post_id = "" if is_repeated else exec_id
            self._tools.is_rebuilding = is_repeated
            self._client.offer(self._tools)
        has_prefix = self._code_prefix and not code.lstrip().startswith("%%")  # those come first
        whole = f"{self._code_prefix}\n{code}" if has_prefix else code
        with cell_span(self._tracing, exec_id, code) as span:
            result = self._client.execute_code(exec_id, whole, on_output)
            note_result(span, result, self.entries)
        result.code = code
        if not result.is_success:
            result.error = "\n".join(filter(None, [self._plugins_in(code), result.error]))
        return result

    def repeat(self, cell: RecordedCell | ExecutedCell) -> Ran:
        """Run a recorded cell again; raises as `execute_code`."""
        result = self.execute_code(cell.post_id, cell.code, is_repeated=True)
        return Ran(sections(result, level=3), result.reason, dict(result.variables))

    def _plugins_in(self, code: str) -> str:
        entries = {f"plugin {entry.name}": entry for entry in self.plugins}
        kinds = kinds_of(code, [entry.name for entry in entries.values()])
        called = [
            f"{entries[kind].name} ({entries[kind].path})"
            for kind in sorted(kinds & entries.keys())
        ]
        return f"Plugins in this cell: {', '.join(called)}." if called else ""


def _changes(loaded: list[str], gone: list[str], before: set[str]) -> list[str]:
    """Return one sentence on the changes, if any."""
    groups = {
        "loaded again": [name for name in loaded if name in before],
        "new": [name for name in loaded if name not in before],
        "gone": [name for name in gone if name in before],
    }
    parts = [f"{title}: {', '.join(names)}" for title, names in groups.items() if names]
    return [f"Plugins have changed; {'; '.join(parts)}."] if parts else []
