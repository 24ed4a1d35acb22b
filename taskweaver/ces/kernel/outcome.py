"""Outcome of a cell: from a kernel's reply and report to a result.

Code can forge everything its kernel sends, so each field of a report is a claim: of its type or
left out, bounded, and never a path or a name that is used as it is. Tracebacks are shown as an
author of cells reads them: frames of libraries are left out.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds.bound import explanations
from taskweaver.ces.bounds.guard import CellWatch
from taskweaver.ces.claims import from_json, items, mapping, rows, text
from taskweaver.ces.common import (
    CellStatus,
    CellTables,
    ExecutionArtifact,
    ExecutionResult,
    PluginCall,
)
from taskweaver.ces.errors import KernelError
from taskweaver.ces.kernel.channel import Exchange
from taskweaver.ces.kernel.running import KernelPaths
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state_transfer import Origin
from taskweaver.tables.plans.plan import reads_of
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import counted

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
            kept = [f"  ... {counted(len(kept), 'frame')} inside {package}\n"]
        lines += kept
    return part[: frames[0].start()] + "".join(lines) + part[frames[-1].end() :]


def _package(file: str) -> str:
    """Return the package that a file belongs to, or "" for a cell and the user's own files."""
    match = _PACKAGE.search(file)
    if match:
        return (match[1] or match[2]).removesuffix(".py")
    return "Python's own library" if _STANDARD.search(file) else ""


def accept(reported: Any, cwd: Path, limit_bytes: int) -> tuple[list[ExecutionArtifact], list[str]]:
    """Return those of the first 200 reported artifacts that are files in the working directory.

    Returns:
        The artifacts, and a sentence for each file that is too large.
    """
    artifacts, too_large = [], []
    for item in map(mapping, items(reported)[:_MAX_ARTIFACTS]):
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


def fields(reply: Reported) -> dict[str, Any]:
    """Return the fields, if any, that the kernel's own side put into a reply."""
    expressions = reply.get("user_expressions")
    text = expressions.get("taskweaver") if isinstance(expressions, dict) else None
    if not isinstance(text, str):
        return {}
    if len(text) > MAX_REPORT_CHARS:
        return {"output": f"<the report of this cell is too large: {len(text):,} characters>"}
    return from_json(text)


def answer(operation: str, reply: Reported) -> dict[str, Any]:
    """Return the fields in the reply to an operation.

    Raises:
        KernelError: If it failed in the kernel, which goes on.
    """
    if reply.get("status") == "error":
        reason = trace(reply).rpartition("\n")[2]
        raise KernelError(f"The kernel could not do `{operation}`: {reason}")
    return fields(reply)


def reported(exec_id: str, code: str, found: Reported) -> ExecutionResult:
    """Return the outcome that the fields of a report claim, without what no report has."""
    output = found.get("output", "")
    dropped = found.get("dropped_chars")
    return ExecutionResult(
        exec_id,
        code,
        output=output if _is_shallow(output) else "<a value that is nested too deeply>",
        log=[(row[0], row[1], row[2]) for row in rows(found.get("log"), 3)],
        variables=[(row[0], row[1]) for row in rows(found.get("variables"), 2)],
        is_truncated=isinstance(dropped, int) and dropped > 0,
        calls=[call for row in items(found.get("calls")) if (call := _call(row))],
        tables=reads_of(found.get("tables")),
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


def outcome_of(
    exec_id: str,
    code: str,
    exchange: Exchange,
    cwd: Path,
    limit_bytes: int,
    tables: CellTables,
) -> ExecutionResult:
    """Return the outcome of a cell from the output and reply of its kernel, as a success.

    Args:
        exec_id: Id of the cell.
        code: Its code.
        exchange: The reply.
        cwd: Working directory, in which its artifacts are.
        limit_bytes: Size of the largest artifact.
        tables: Keeps the table that it ended with.
    """
    found = fields(exchange.reply)
    tables.add(exec_id, found.get("table", ""))
    outcome = reported(exec_id, code, found)
    outcome.artifact, refused = accept(found.get("artifacts"), cwd, limit_bytes)
    outcome.is_success, outcome.stdout, outcome.stderr = True, exchange.stdout, exchange.stderr
    outcome.log += [("warning", "artifacts", line) for line in refused]
    outcome.is_truncated |= exchange.is_cut
    return outcome


def end_of(process: KernelProcess | None, origin: Origin) -> tuple[str, str]:
    """Return how a process ended, and the consequence for the variables, which `origin` has."""
    how, state = "stopped" if process is None else process.exit_text(), origin()
    if state is None:
        return how, "The Python session was restarted: all variables are gone."
    return how, (
        "The Python session was restarted: the variables are those of the end of round"
        f" {state.round_number}; later changes are gone."
    )


def result_of(
    exec_id: str,
    code: str,
    exchange: Exchange,
    *,
    place: KernelPaths,
    watch: CellWatch,
    ended: tuple[str, str] | None,
) -> ExecutionResult:
    """Return the outcome of a cell whose kernel is watched; `ended` is the `end_of` its process."""
    status, limits = exchange.status, place.guard.limits
    if any(breach.stops for breach in watch.breaches) and status in {"ok", "interrupted"}:
        status = "died" if ended else "error"  # no person has interrupted it
    told = replace(exchange, reply={}) if ended else exchange
    limit_bytes = limits.artifact_limit_bytes
    outcome = outcome_of(exec_id, code, told, place.cwd, limit_bytes, place.tables)
    breaches = [*watch.late, *watch.breaches]
    texts = list(dict.fromkeys(breach.text for breach in breaches))
    if status != "ok":
        exceeded = {breach.name for breach in breaches}
        others = [bound for bound in place.guard.bounds if bound.name not in exceeded]
        error = _error(status, exchange, limits, *(ended or ("", "")))
        outcome.error = "\n".join(filter(None, [error, *texts, *explanations(error, others)]))
        texts = []
    outcome.is_success, outcome.status = status == "ok", status
    outcome.is_state_lost = ended is not None
    outcome.stderr = [readable_warnings(piece) for piece in exchange.stderr]
    outcome.log += [("warning", "limits", line) for line in texts]
    outcome.log += [("warning", "processes", watch.left)] if watch.left else []
    return outcome


def _error(
    status: CellStatus, exchange: Exchange, limits: KernelLimits, how: str, lost: str
) -> str:
    limit_s = limits.cell_timeout_s
    reasons = {
        "timeout": f"The cell was stopped after {limit_s:g} s (execution.cell_timeout_s).",
        "interrupted": "The cell was interrupted.",
        "died": f"The kernel died while the cell ran ({how or 'stopped'}).",
    }
    return "\n".join(filter(None, [trace(exchange.reply), reasons.get(status, ""), lost]))
