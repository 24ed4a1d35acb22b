"""Sandboxes: how a command is run in one, and whether this machine can have one."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.inkernel.sandbox import confine, probe
from taskweaver.ces.policy import HARDWARE, SandboxPolicy, Tier
from taskweaver.ces.process.homes import temporary_folder
from taskweaver.ces.sandbox.bwrap import bwrap_command, code_folders, system_files
from taskweaver.ces.sandbox.seccomp import system_call_filter
from taskweaver.utils.system.platform import SYSTEM, system_name

_TEST_TIMEOUT_S = 10.0
_READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "ptmx", "pts")
_WAITING = [sys.executable, "-I", "-S", "-c", "input()"]  # until it is killed
_NAMES = {"bwrap": "bubblewrap", "landlock": "Landlock"}
# What only namespaces prevent.
_BEYOND_LANDLOCK = frozenset(f"share the {name} namespace" for name in probe.NAMESPACES) | {
    "see the machine's devices", "outlive its owner", "hold capabilities",
    "share the owner's terminal session", "change its own program",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Confined:
    """A command in a sandbox."""

    command: list[str]
    pass_fds: list[int]


@contextmanager
def confined(
    policy: SandboxPolicy,
    writable: Iterable[Path],
    command: list[str],
    copies: Iterable[tuple[Path, str]] = (),
    aliases: Iterable[tuple[Path, str]] = (),
) -> Iterator[Confined]:
    """Give the command line that runs a command in a sandbox, to be started inside the ``with``.

    With bubblewrap only, `copies` pairs files and folders to read with their places inside, and
    `aliases` folders to write with their further places.

    Raises:
        SandboxUnavailable: If there is no filter of system calls for this processor.
    """
    if policy.tier == "landlock":
        yield Confined([*_landlock_command(policy, writable), *command], [])
        return
    file = os.memfd_create("filter")
    try:
        os.write(file, system_call_filter())
        os.lseek(file, 0, os.SEEK_SET)
        yield Confined([*bwrap_command(policy, writable, file, copies, aliases), *command], [file])
    finally:
        os.close(file)


def confinement(policy: SandboxPolicy, writable: Iterable[Path]) -> confine.Confinement:
    """Return the policy in the form for a process that gives up rights by itself.

    Raises:
        SandboxUnavailable: If there is no filter of system calls for this processor.
    """
    if policy.tier == "bwrap":
        steps = base64.b64encode(system_call_filter()).decode()
        return confine.Confinement(None, [], has_network=policy.has_network, filter=steps)
    devices = [f"/dev/{name}" for name in _DEVICES]
    steps = base64.b64encode(system_call_filter(has_datagrams=policy.has_network)).decode()
    return confine.Confinement(
        readable=[
            *_READABLE,
            *system_files(policy),
            *map(str, (*code_folders(), *policy.read_only)),
            *map(str, HARDWARE if policy.devices else ()),
        ],
        writable=[*devices, *map(str, (*policy.devices, *writable, *policy.writable))],
        has_network=policy.has_network,
        filter=steps,
    )


def _landlock_command(policy: SandboxPolicy, writable: Iterable[Path]) -> list[str]:
    left = confinement(policy, writable)
    program = str(Path(confine.__file__))
    return [sys.executable, "-I", "-S", program, json.dumps(asdict(left))]


@cache
def require(tier: Tier) -> None:
    """Try a sandbox by attempts of actions that must fail inside.

    Raises:
        SandboxUnavailable: If it does not run here, or does not hold.
    """
    if SYSTEM != "linux":
        raise SandboxUnavailable(f"{_NAMES[tier]} needs Linux, and this is {system_name()}")
    if tier == "bwrap" and shutil.which("bwrap") is None:
        raise SandboxUnavailable("bubblewrap is not installed (Debian: apt install bubblewrap)")
    try:
        with temporary_folder(Path(tempfile.gettempdir())) as folder:
            done = _attempt(tier, folder)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{_NAMES[tier]} cannot be tried here: {error}") from error
    refuse_escapes(tier, done)


def refuse_escapes(tier: Tier, done: Iterable[str]) -> None:
    """Refuse a sandbox that failed to prevent an action.

    Raises:
        SandboxUnavailable: If anything of this kind could be done.
    """
    beyond = _BEYOND_LANDLOCK if tier == "landlock" else frozenset()
    escapes = [name for name in done if name not in beyond]
    if escapes:
        raise SandboxUnavailable(
            f"{_NAMES[tier]} does not hold: inside one can {', '.join(escapes)}"
        )


def _attempt(tier: Tier, folder: Path) -> list[str]:
    """Return the actions that are possible in a sandbox.

    Raises:
        SandboxUnavailable: If it does not run.
        OSError: If it cannot be tried.
    """
    inside = folder / "inside"
    inside.mkdir()
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    with facts_of_outside(folder) as facts:
        told = json.dumps(facts | {"is_entered": False})
        program = [sys.executable, "-I", "-S", str(Path(probe.__file__)), told]
        with confined(SandboxPolicy(tier=tier), [inside], program) as run:
            done = subprocess.run(
                run.command, cwd=inside, env=environment, pass_fds=run.pass_fds,
                timeout=_TEST_TIMEOUT_S, capture_output=True, text=True, check=False,
            )  # fmt: skip
    outcome = inside / "here"
    if not outcome.exists():
        reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise SandboxUnavailable(f"{_NAMES[tier]} does not run: {reason}")
    found: list[str] = json.loads(outcome.read_text())
    return found


@contextmanager
def facts_of_outside(folder: Path) -> Iterator[dict[str, object]]:
    """Set up things outside of a sandbox that must not be reached, as facts for `probe`."""
    canary = folder / "canary"
    canary.write_text("outside")
    name = f"\0{folder.name}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as hidden,
        subprocess.Popen(_WAITING, stdin=subprocess.PIPE, env={"PATH": os.defpath}) as other,
    ):
        hidden.bind(name)
        hidden.listen()
        links = [os.readlink(f"/proc/self/ns/{kind}") for kind in probe.NAMESPACES]  # noqa: PTH115
        facts: dict[str, object] = {
            "canary": str(canary), "port": tcp.getsockname()[1], "abstract": name,
            "pid": other.pid, "session": os.getsid(0), "ns": links,
        }  # fmt: skip
        try:
            yield facts
        finally:
            other.kill()


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """Choice of a sandbox for kernels.

    Attributes:
        policy: Their policy and tier; None for no sandbox.
        warning: Why it is not the one that would be wanted; else empty.
    """

    policy: SandboxPolicy | None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """The sandbox that a configuration asks for, on whatever machine.

    Attributes:
        wanted: ``bwrap`` or ``landlock``: this, or not at all. ``auto``: the first of them that
            works, or none. ``none``: without.
        policy: Policy for the code in it, of any tier.
    """

    wanted: str
    policy: SandboxPolicy

    def choose(self) -> SandboxChoice:
        """Return whether kernels run in a sandbox on this machine, and in which.

        Raises:
            SandboxUnavailable: If the one that is wanted does not work here.
        """
        if self.wanted == "none":
            return SandboxChoice(None)
        tiers: tuple[Tier, ...] = ("bwrap", "landlock")
        reasons = []
        for tier in tiers:
            if self.wanted not in {"auto", tier}:
                continue
            try:
                require(tier)
            except SandboxUnavailable as error:
                if self.wanted != "auto":
                    raise
                reasons.append(error.reason)
            else:
                return _chosen(replace(self.policy, tier=tier), reasons)
        why = "; ".join(reasons) if SYSTEM == "linux" else f"there is none for {system_name()}"
        return SandboxChoice(None, f"Code runs with your rights, without a sandbox: {why}.")


def is_confined(wanted: str) -> bool:
    """Return whether code runs in a sandbox here, or not at all."""
    try:
        return SandboxRequest(wanted, SandboxPolicy()).choose().policy is not None
    except SandboxUnavailable:
        return True


def _chosen(policy: SandboxPolicy, reasons: list[str]) -> SandboxChoice:
    warnings = []
    if reasons:
        warnings.append(
            f"Code runs in a weaker sandbox (Landlock: files and TCP, not processes): {reasons[0]}."
        )
    if policy.tier == "landlock" and policy.allowed_hosts:
        warnings.append("execution.allowed_hosts needs bubblewrap: code has no network.")
        policy = replace(policy, allowed_hosts=())
    return SandboxChoice(policy, " ".join(warnings))
