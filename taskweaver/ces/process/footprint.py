"""The memory of a process, and the part shared with related processes.

The system sums it up in ``/proc/PID/smaps_rollup``. An ordinary user may not open that file of a
template in a sandbox: the template's memory is closed to the code beside it, and so to its owner.
The right is checked when the file is opened, so each forked process opens its own file and hands it
to its owner with its announcement. Code in the sandbox can announce a process with another file:
only the file of that very process is kept.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from taskweaver.utils.system.platform import HAS_LIVE_FORKS

_PROC_MAGIC = 0x9FA0
_STATFS_BYTES = 256  # more than any system's `struct statfs`
_FILE_BYTES = 1 << 14
_LINE = re.compile(r"(\w+): +(\d+) kB")
_SLACK_BYTES = 32 << 20
_SLACK_SHARE = 8

_lock = threading.Lock()
_kept: dict[int, int] = {}
"""Files that processes handed over, by process id."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of a process.

    Attributes:
        resident_bytes: All of it that is in memory.
        shared_bytes: The part that other processes use too: kernels share it until one writes.
    """

    resident_bytes: int = 0
    shared_bytes: int = 0


def footprint(pid: int) -> Footprint:
    """Return the memory of a process, from ``/proc/PID/smaps_rollup``, or zeros after the end.

    Where there is no file of this kind, as on macOS, no part of it counts as shared.
    """
    if not HAS_LIVE_FORKS:
        try:
            return Footprint(psutil.Process(pid).memory_info().rss)
        except psutil.Error:
            return Footprint()
    sizes = read_rollup(pid)
    shared = sizes.get("Shared_Clean", 0) + sizes.get("Shared_Dirty", 0)
    return Footprint(sizes.get("Rss", 0), shared)


def read_rollup(pid: int) -> dict[str, int]:
    """Map the system's names to sums of a process's memory in bytes, if not hidden."""
    try:
        return _sizes(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except OSError:
        return _read_kept(pid)


def keep(pid: int, file: int) -> None:
    """Take charge of the file that a process handed over, and close a superfluous file.

    The process is known to have sent it; the file is closed at once, or by `forget`.
    """
    if _can_open(pid) or not _is_rollup_of(pid, file):
        os.close(file)
        return
    with _lock:
        before, _kept[pid] = _kept.get(pid), file
    if before is not None:
        os.close(before)


def forget(pid: int) -> None:
    """Close the file of a process, if one is kept."""
    with _lock:
        file = _kept.pop(pid, None)
    if file is not None:
        os.close(file)


def _read_kept(pid: int) -> dict[str, int]:
    """Return the sums in a kept file, unless the file is certainly of another process.

    A process can replace its program after it handed the file over. The file then describes memory
    that is not the process's any more, and its size differs from the one the system shows to all.
    """
    try:
        with _lock:  # or the number could be another file's
            file = os.dup(_kept[pid]) if pid in _kept else -1
        if file < 0:
            return {}
        try:
            sizes = _sizes(os.pread(file, _FILE_BYTES, 0))
        finally:
            os.close(file)
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except OSError:
        return {}  # it has ended
    wanted = pages * os.sysconf("SC_PAGE_SIZE")
    difference = abs(sizes.get("Rss", 0) - wanted)
    return sizes if difference <= _SLACK_BYTES + wanted // _SLACK_SHARE else {}


def _sizes(data: bytes) -> dict[str, int]:
    return {name: int(size) << 10 for name, size in _LINE.findall(data.decode("ascii", "replace"))}


def _can_open(pid: int) -> bool:
    with suppress(OSError):
        os.close(os.open(f"/proc/{pid}/smaps_rollup", os.O_RDONLY | os.O_CLOEXEC))
        return True
    return False


def _is_rollup_of(pid: int, file: int) -> bool:
    """Return whether a file is ``smaps_rollup`` of a process, by the process's own view."""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode) or _file_system(file) != _PROC_MAGIC:
            return False
        folder, name = Path(f"/proc/self/fd/{file}").readlink().parts[-2:]
        facts = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except (OSError, ValueError):  # it has ended, or the path has fewer parts
        return False
    ids = re.search(r"^NSpid:\s.*?(\d+)$", facts, re.MULTILINE)
    return name == "smaps_rollup" and ids is not None and folder == ids[1]


def _file_system(file: int) -> int:
    """Return the kind of file system that holds a file, see ``statfs(2)``."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fstatfs(file, buffer) != 0:
        raise OSError(ctypes.get_errno(), "fstatfs")
    return ctypes.c_long.from_buffer(buffer).value
