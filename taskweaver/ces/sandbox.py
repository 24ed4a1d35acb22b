"""A box for code nobody has read: bubblewrap, with what a kernel needs and nothing else.

Inside there is a read-only system, the session's working directories, a private ``/tmp``, process
ids and shared memory of its own, no capabilities, and no network unless it is granted. The recipe
and the traps it avoids are listed in docs/security.md.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from taskweaver.ces.errors import SandboxUnavailable

_TMP_BYTES = 256 << 20
_TEST_TIMEOUT_S = 10.0
_PACKAGE_ROOT = Path(__file__).parents[2]
_SYSTEM_FILES = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "passwd", "group", "nsswitch.conf",
    "alternatives", "ssl/certs", "fonts",
)  # fmt: skip
_NETWORK_FILES = ("resolv.conf", "hosts")
# Each line must fail inside; the shell's exit status is the number of the first that did not.
_PROBES = (
    "test -w /usr",
    "test -w /etc/passwd",
    "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname",
    'test -d "$HOME/.ssh"',
    "kill -0 $OUTSIDE",
)


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What code may reach.

    Attributes:
        has_network: Whether it may use the network.
        read_only: Further paths it may read.
        writable: Further paths it may write.
        allowed_hosts: Hosts it may reach by a proxy when it may not use the network.
    """

    has_network: bool = False
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = ()


def bwrap_command(
    policy: SandboxPolicy,
    writable: Iterable[Path],
    filter_fd: int,
    copies: Iterable[tuple[Path, str]] = (),
) -> list[str]:
    """Return the command line that a command is appended to.

    Args:
        policy: What it may reach beside the system.
        writable: Paths of the session's own.
        filter_fd: File descriptor of `socket_filter`.
        copies: Files to read, and where they are inside.
    """
    options = [
        ["--die-with-parent", "--new-session", "--cap-drop", "ALL"],
        ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"],
        ["--unshare-cgroup-try", "--hostname", "sandbox"],
        [] if policy.has_network else ["--unshare-net"],
        ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"],
        ["--ro-bind", "/proc/sys", "/proc/sys"],  # root's own would be writable otherwise
        _tmpfs("/dev/shm"),
        _tmpfs("/tmp"),
        *_system(policy),
        *(["--ro-bind", str(path), str(path)] for path in _code()),
        *(["--ro-bind-try", str(path), str(path)] for path in policy.read_only),
        *(["--ro-bind", str(source), target] for source, target in copies),
        *(["--bind", str(path), str(path)] for path in (*writable, *policy.writable)),
        ["--remount-ro", "/", "--seccomp", str(filter_fd)],
    ]
    return ["bwrap", *(word for option in options for word in option), "--"]


def _tmpfs(path: str) -> list[str]:
    return ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", path]


def _system(policy: SandboxPolicy) -> Iterator[list[str]]:
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/") / name
        if path.is_symlink():
            yield ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            yield ["--ro-bind", str(path), str(path)]
    for name in _SYSTEM_FILES + (_NETWORK_FILES if policy.has_network else ()):
        yield ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]


def _code() -> list[Path]:
    """Return where Python, its libraries and this package are, outermost folders only."""
    entries = [Path(sys.prefix), Path(sys.base_prefix), _PACKAGE_ROOT / "taskweaver"]
    found = {*entries, *(entry.resolve() for entry in entries), Path("/usr")}
    inner = {path for path in found if not found.isdisjoint(path.parents)}
    return sorted(found - inner - {Path("/usr")})


def socket_filter() -> int:
    """Return the descriptor of a filter that lets a process make local and internet sockets only.

    A new network namespace does not stop ``AF_VSOCK``, a way from a virtual machine to its host.
    The program is for ``seccomp(2)``, in the form of `struct sock_filter`.

    Raises:
        SandboxUnavailable: If there is no filter for this processor.
    """
    machines = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
    if platform.machine() not in machines:
        raise SandboxUnavailable(f"there is no filter for {platform.machine()} yet")
    architecture, socket_call = machines[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | 97, 0x00050000 | 38  # EAFNOSUPPORT, ENOSYS
    program = [
        (load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, unknown),
        (load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, unknown),
        (equal, 1, 0, socket_call), (give, 0, 0, allow),
        (load, 0, 0, 16),
        (equal, 4, 0, 1), (equal, 3, 0, 2), (equal, 2, 0, 10), (equal, 1, 0, 16),
        (give, 0, 0, refuse), (give, 0, 0, allow),
    ]  # fmt: skip
    file = os.memfd_create("filter")
    os.write(file, b"".join(struct.pack("HBBI", *step) for step in program))
    os.lseek(file, 0, os.SEEK_SET)
    return file


@cache
def require_bwrap() -> None:
    """Try the sandbox: what it must prevent is tried in it.

    Raises:
        SandboxUnavailable: If it does not run here, or does not hold.
    """
    if shutil.which("bwrap") is None:
        raise SandboxUnavailable("bubblewrap is not installed (Debian: apt install bubblewrap)")
    lines = [f"{probe} && exit {n}" for n, probe in enumerate(_PROBES, start=1)]
    script = "; ".join([*lines, "touch here || exit 100", "exit 0"])
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "OUTSIDE": str(os.getpid())}
    with tempfile.TemporaryDirectory(prefix="tw-test-") as folder:
        file = socket_filter()
        try:
            done = subprocess.run(
                [*bwrap_command(SandboxPolicy(), [Path(folder)], file), "/bin/sh", "-c", script],
                cwd=folder, env=environment, pass_fds=[file], timeout=_TEST_TIMEOUT_S,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxUnavailable(f"bubblewrap does not run: {error}") from error
        finally:
            os.close(file)
        if done.returncode == 0 and (Path(folder) / "here").exists():
            return
    if 1 <= done.returncode <= len(_PROBES):
        raise SandboxUnavailable(f"it does not hold: `{_PROBES[done.returncode - 1]}` worked in it")
    raise SandboxUnavailable(f"bubblewrap does not run: {done.stderr.strip() or done.returncode}")


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """Whether kernels run in a sandbox.

    Attributes:
        policy: What they may reach; None for no sandbox.
        warning: Why there is none although one was wanted where it can be had; else empty.
    """

    policy: SandboxPolicy | None
    warning: str = ""


def choose(wanted: str, policy: SandboxPolicy) -> SandboxChoice:
    """Return whether kernels run in a sandbox.

    Args:
        wanted: ``auto``: where it works. ``bwrap``: or not at all. ``none``: without.
        policy: What code in it may reach.

    Raises:
        SandboxUnavailable: If ``bwrap`` is wanted, and does not work here.
    """
    if wanted == "none":
        return SandboxChoice(None)
    try:
        require_bwrap()
    except SandboxUnavailable as error:
        if wanted != "auto":
            raise
        return SandboxChoice(
            None, f"Code runs with your rights, without a sandbox: {error.reason}."
        )
    return SandboxChoice(policy)
