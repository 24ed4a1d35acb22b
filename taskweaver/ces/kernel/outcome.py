"""Outcome of a cell: from a kernel's reply and report to a result.

Code can forge everything its kernel sends, so each field of a report is a claim: of its type or
left out, bounded, and never a path or a name that is used as it is. Tracebacks are shown as an
author of cells reads them: frames of libraries are left out.
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Self

from taskweaver.ces.bounds.bound import explanations
from taskweaver.ces.bounds.guard import CellWatch
from taskweaver.ces.claims import items, rows, text
from taskweaver.ces.common import CellStatus, ExecutionArtifact, ExecutionResult, PluginCall
from taskweaver.ces.errors import KernelError
from taskweaver.ces.kernel.channel import KernelReply
from taskweaver.ces.kernel.paths import KernelPaths
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state_transfer import Origin
from taskweaver.tables.plans.plan import TableRead, reads_of
from taskweaver.utils.file_system.safe_fs import Folder

Reported = Mapping[str, Any]
"""Plain data that a kernel sent."""
_LINK = re.compile(
    r"(\n*(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\n+)"
)
_FRAME = re.compile(
    r"^  (?:File (?P<file>[^\n]+?):\d+(?: in [^\n]*)?|Cell [^\n]*)\n(?:    [^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
_PACKAGE = re.compile(r"/(?:site|dist)-packages/([^/]+)|([\w.]+)/[^\n]*\.(?:pyx|pxi)$")
_STANDARD = re.compile(r"/lib/python3\.\d+/|^<frozen ")
_CELL_FILE = re.compile(r"\S*ipykernel_\d+/\d+\.py:(\d+): ")
_TYPES = ("chart", "df", "file", "txt", "svg", "html", "image")
_MAX_ARTIFACTS = 200
_MAX_NAME_CHARS = 200
_MAX_PREVIEW_CHARS = 2_000
MAX_REPORT_CHARS = 16 << 20
_MAX_DEPTH = 64
_MAX_TRACE_CHARS = 1 << 20
_MAX_SECONDS = 1e7


def readable_trace(trace: str) -> str:
    """Return a traceback with the frames of libraries counted, not shown.

    Causes that never passed through a cell are left out. A traceback without any frame of a cell
    stays as it is.
    """
    if "  Cell " not in trace:
        return trace
    pieces = _LINK.split(trace)
    parts, links = pieces[::2], pieces[1::2]
    shown = parts[-1:]
    for part, link in zip(reversed(parts[:-1]), reversed(links), strict=True):
        if "  Cell " in part:
            shown = [part, link, *shown]
    return "".join(_shortened(part) if at % 2 == 0 else part for at, part in enumerate(shown))


def readable_warnings(text: str) -> str:
    """Return the warnings of a cell with the cell's line in place of a temporary file's name."""
    return _CELL_FILE.sub(r"Cell, line \1: ", text)


def _shortened(part: str) -> str:
    frames = list(_FRAME.finditer(part))
    if not frames:
        return part
    lines = []
    for package, run in groupby(frames, lambda frame: _package(frame["file"] or "")):
        kept = [frame[0] for frame in run]
        if package:
            noun = "frame" if len(kept) == 1 else "frames"
            kept = [f"  ... {len(kept)} {noun} inside {package}\n"]
        lines += kept
    return part[: frames[0].start()] + "".join(lines) + part[frames[-1].end() :]


def _package(file: str) -> str:
    """Return the package that a file belongs to, or "" for a cell and the user's own files."""
    match = _PACKAGE.search(file)
    if match:
        return (match[1] or match[2]).removesuffix(".py")
    return "Python's own library" if _STANDARD.search(file) else ""


def accept(
    reported: Iterable[Reported], cwd: Path, limit_bytes: int
) -> tuple[list[ExecutionArtifact], list[str]]:
    """Return the first 200 reported artifacts that are files in the working directory.

    Returns:
        The artifacts, and a sentence for each file that is too large.
    """
    artifacts, too_large = [], []
    for item in islice(reported, _MAX_ARTIFACTS):
        found = contained(cwd, text(item.get("file_name")))
        if found is None:
            continue
        name, size_bytes = found
        if size_bytes > limit_bytes:
            too_large.append(_too_large(name, _line(item.get("origin")), size_bytes, limit_bytes))
            continue
        artifacts.append(
            ExecutionArtifact(
                name=_line(item.get("name")),
                type=kind if (kind := item.get("type")) in _TYPES else "file",
                mime_type=mimetypes.guess_type(name)[0] or "",
                original_name=_line(item.get("original_name")),
                file_name=name,
                preview=text(item.get("preview"), _MAX_PREVIEW_CHARS),
            )
        )
    return artifacts, too_large


def _too_large(name: str, origin: str, size_bytes: int, limit_bytes: int) -> str:
    by = f" of {origin}" if origin else ""
    return (
        f"{name}{by} is left out of the artifacts: it has {size_bytes / (1 << 20):,.1f} MiB, and "
        f"execution.artifact_limit_mb allows {limit_bytes / (1 << 20):g}."
    )


def contained(cwd: Path, file_name: str) -> tuple[str, int] | None:
    """Return a file's name relative to `cwd`, and the size in bytes, or None.

    None if it is elsewhere, is reached by a link, is no ordinary file, or has a name that would not
    stay in one line.
    """
    name = os.path.relpath(os.path.normpath(cwd / file_name), cwd)
    if not name.isprintable():
        return None
    try:
        with Folder.at(cwd) as folder:
            facts = folder.stat(name)
    except OSError:
        return None
    return (name, facts.st_size) if facts and stat.S_ISREG(facts.st_mode) else None


def _line(value: Any) -> str:
    return " ".join(text(value, _MAX_NAME_CHARS).split())


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a cell.

    Attributes:
        output: Value of its last expression.
        variables: Visible variables: name, short rendering.
        log: Plugin log lines: level, tag, message.
        artifacts: The artifacts it lists.
        is_truncated: Whether the kernel left output out.
        calls: Calls of plugins.
        tables: Calls of `read_table`.
        table: Value of its last expression as a table; empty for none.
    """

    output: Any = ""
    variables: list[tuple[str, str]] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    artifacts: list[Reported] = field(default_factory=list)
    is_truncated: bool = False
    calls: list[PluginCall] = field(default_factory=list)
    tables: list[TableRead] = field(default_factory=list)
    table: object = ""


def fields(reply: Reported) -> dict[str, Any]:
    """Return the fields, if any, that the kernel's own side put into a reply."""
    expressions = reply.get("user_expressions")
    text = expressions.get("taskweaver") if isinstance(expressions, dict) else None
    if not isinstance(text, str):
        return {}
    if len(text) > MAX_REPORT_CHARS:
        return {"output": f"<the report of this cell is too large: {len(text):,} characters>"}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def answer(operation: str, reply: Reported) -> dict[str, Any]:
    """Return the fields in the reply to an operation.

    Raises:
        KernelError: If it failed in the kernel, which goes on.
    """
    if reply.get("status") == "error":
        reason = trace(reply).rpartition("\n")[2]
        raise KernelError(f"The kernel could not do `{operation}`: {reason}")
    return fields(reply)


def report_of(found: Reported) -> Report:
    """Return the report on a cell, from the fields."""
    output = found.get("output", "")
    dropped = found.get("dropped_chars")
    return Report(
        output if _is_shallow(output) else "<a value that is nested too deeply>",
        [(row[0], row[1]) for row in rows(found.get("variables"), 2)],
        [(row[0], row[1], row[2]) for row in rows(found.get("log"), 3)],
        [item for item in items(found.get("artifacts")) if isinstance(item, dict)],
        isinstance(dropped, int) and dropped > 0,
        [call for row in items(found.get("calls")) if (call := _call(row))],
        reads_of(found.get("tables")),
        found.get("table", ""),
    )


def _call(row: object) -> PluginCall | None:
    match row:
        case [str(name), int() | float() as began_s, int() | float() as took_s, str(error)]:
            if 0 <= began_s < _MAX_SECONDS and 0 <= took_s < _MAX_SECONDS:
                kind = error if error.isidentifier() or not error else "error"
                return PluginCall(text(name, 200), began_s, took_s, text(kind, 200))
    return None


def trace(reply: Reported) -> str:
    """Return the traceback in a reply, or ""."""
    lines = reply.get("traceback")
    parts = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return readable_trace(text("".join(parts), _MAX_TRACE_CHARS).strip())


def _is_shallow(value: Any) -> bool:
    """Return whether plain data is nested so little that every walk comes to an end."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a kernel's process.

    Attributes:
        how: How it ended.
        restored_round: Number of the round as of which its variables come back; None if they are
            not stored.
    """

    how: str
    restored_round: int | None

    @classmethod
    def of(cls, process: KernelProcess | None, origin: Origin, *, has_died: bool) -> Self | None:
        """Return the end of a process, or None while running. `origin` has the variables."""
        if process is not None and process.is_alive and not has_died:
            return None
        state = origin()
        how = "stopped" if process is None else process.exit_text()
        return cls(how, None if state is None else state.round_number)

    @property
    def text(self) -> str:
        """Consequence for the variables, in a sentence."""
        if self.restored_round is None:
            return "The Python session was restarted: all variables are gone."
        return (
            "The Python session was restarted: the variables are those of the end of round"
            f" {self.restored_round}; later changes are gone."
        )


def result_of(
    exec_id: str,
    code: str,
    outcome: tuple[CellStatus, KernelReply],
    *,
    place: KernelPaths,
    watch: CellWatch,
    ended: Ended | None,
) -> ExecutionResult:
    """Return the result of a cell."""
    (status, exchange), limits = outcome, place.guard.limits
    if any(breach.stops for breach in watch.breaches) and status in {"ok", "interrupted"}:
        status = "error" if ended is None else "died"  # no person has interrupted it
    report = Report() if ended is not None else report_of(fields(exchange.reply))
    place.tables.add(exec_id, report.table)
    artifacts, refused = accept(report.artifacts, place.cwd, limits.artifact_limit_bytes)
    breaches = [*watch.late, *watch.breaches]
    texts = list(dict.fromkeys(breach.text for breach in breaches))
    error = None
    if status != "ok":
        error = _error(status, exchange, limits, ended)
        exceeded = {breach.name for breach in breaches}
        others = [bound for bound in place.guard.bounds if bound.name not in exceeded]
        error = "\n".join(filter(None, [error, *texts, *explanations(error, others)]))
        texts = []
    return ExecutionResult(
        exec_id,
        code,
        is_success=status == "ok",
        error=error,
        output=report.output,
        stdout=exchange.stdout,
        stderr=[readable_warnings(piece) for piece in exchange.stderr],
        log=[
            *report.log,
            *(("warning", "artifacts", line) for line in refused),
            *(("warning", "limits", line) for line in texts),
            *(("warning", "processes", line) for line in [watch.left] if line),
        ],
        artifact=artifacts,
        variables=report.variables,
        status=status,
        is_state_lost=ended is not None,
        is_truncated=report.is_truncated or exchange.is_cut,
        calls=report.calls,
        tables=report.tables,
    )


def _error(
    status: CellStatus, exchange: KernelReply, limits: KernelLimits, ended: Ended | None
) -> str:
    limit_s = limits.cell_timeout_s
    reasons = {
        "timeout": f"The cell was stopped after {limit_s:g} s (execution.cell_timeout_s).",
        "interrupted": "The cell was interrupted.",
        "died": f"The kernel died while the cell ran ({ended.how if ended else 'stopped'}).",
    }
    lost = ended.text if ended is not None else ""
    return "\n".join(filter(None, [trace(exchange.reply), reasons.get(status, ""), lost]))
