"""The command line of bubblewrap: a kernel's needs, and nothing else.

Inside there is a read-only system, the session's working directories, a private ``/tmp``, process
ids and shared memory of its own, no capabilities, and no network unless it is granted. The recipe
and the traps it avoids are listed in docs/security.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from taskweaver.ces.policy import HARDWARE, SandboxPolicy

_TMP_BYTES = 256 << 20
_HELP_TIMEOUT_S = 10.0
_PACKAGE_ROOT = Path(__file__).parents[3]
_SYSTEM_FILES = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "passwd", "group", "nsswitch.conf",
    "alternatives", "ssl/certs", "fonts",
)  # fmt: skip
_NETWORK_FILES = ("resolv.conf", "hosts")
_WALLS = (
    "--die-with-parent --new-session --cap-drop ALL --unshare-user --unshare-ipc --unshare-pid"
    " --unshare-uts --hostname sandbox --unshare-cgroup-try"
)
# The settings of the system: root's own would be writable otherwise.
_SYSTEM = "--ro-bind /usr /usr --proc /proc --dev /dev --ro-bind /proc/sys /proc/sys"


def bwrap_command(
    policy: SandboxPolicy,
    writable: Iterable[Path],
    filter_fd: int,
    copies: Iterable[tuple[Path, str]] = (),
    aliases: Iterable[tuple[Path, str]] = (),
) -> list[str]:
    """Return the command line that a command is appended to.

    `copies` pairs files and folders to read with their places inside, `aliases` folders to write.
    """
    options = [
        _WALLS.split(),
        ["--disable-userns"] if _can_disable_namespaces() else [],
        [] if policy.has_network else ["--unshare-net"],
        _SYSTEM.split(),
        _tmpfs("/dev/shm"),
        _tmpfs("/tmp"),
        *_system(policy),
        *(["--ro-bind", str(path), str(path)] for path in code_folders()),
        *_granted(policy),
        *_devices(policy),
        *(["--ro-bind", str(source), target] for source, target in copies),
        *(["--bind", str(path), str(path)] for path in writable),
        *(["--bind", str(source), target] for source, target in aliases),
        ["--remount-ro", "/"],
        ["--seccomp", str(filter_fd)],
    ]
    return ["bwrap", *(word for option in options for word in option), "--"]


def _tmpfs(path: str) -> list[str]:
    return ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", path]


@cache
def _can_disable_namespaces() -> bool:
    """Return whether this bubblewrap has the option (0.8 and newer). The filter refuses too."""
    done = subprocess.run(
        ["bwrap", "--help"], capture_output=True, text=True, timeout=_HELP_TIMEOUT_S, check=False
    )
    return "--disable-userns" in done.stdout


def _system(policy: SandboxPolicy) -> Iterator[list[str]]:
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/") / name
        if path.is_symlink():
            yield ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            yield ["--ro-bind", str(path), str(path)]
    for file in system_files(policy):
        yield ["--ro-bind-try", file, file]


def _devices(policy: SandboxPolicy) -> Iterator[list[str]]:
    for path in policy.devices:
        yield ["--dev-bind-try", str(path), str(path)]
    for path in HARDWARE if policy.devices else ():
        yield ["--ro-bind-try", str(path), str(path)]


def _granted(policy: SandboxPolicy) -> list[list[str]]:
    """Return the paths of the policy, parents first, so that each path keeps its own rights."""
    granted = [
        *(("--ro-bind-try", path) for path in policy.read_only),
        *(("--bind-try", path) for path in policy.writable),
    ]
    granted.sort(key=lambda grant: len(grant[1].parts))
    return [[option, str(path), str(path)] for option, path in granted]


def system_files(policy: SandboxPolicy) -> list[str]:
    """Return the paths in ``/etc`` that programs need."""
    names = _SYSTEM_FILES + (_NETWORK_FILES if policy.has_network else ())
    return [f"/etc/{name}" for name in names]


def code_folders() -> list[Path]:
    """Return where Python, its libraries and this package are, outermost folders only."""
    entries = [Path(sys.prefix), Path(sys.base_prefix), _PACKAGE_ROOT / "taskweaver"]
    found = {*entries, *(entry.resolve() for entry in entries), Path("/usr")}
    inner = {path for path in found if not found.isdisjoint(path.parents)}
    return sorted(found - inner - {Path("/usr")})
