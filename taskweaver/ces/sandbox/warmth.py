"""The warm process of sandboxed kernels: started outside, and tried before it is used.

It has imported the usual libraries and runs no code of a session. Its program is opened on the
read-only mounts of a sandbox: a process that it forks could otherwise change the interpreter of
this machine through ``/proc/self/exe``, wherever it has moved since.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from taskweaver.ces.bounds.cgroup import ControlGroup
from taskweaver.ces.environment import KERNEL_MARK
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process.homes import Homes, temporary_folder
from taskweaver.ces.process.marked import kill_marked, owned_mark
from taskweaver.ces.sandbox.sandbox import facts_of_outside, refuse_escapes
from taskweaver.ces.sandbox.sandbox_start import SandboxPlan, SandboxStart
from taskweaver.ces.template.anchor import Anchor
from taskweaver.ces.template.template import Rendezvous, Template, warm_template

_END_WAIT_S = 5.0


def sandbox_template(plan: SandboxPlan, log_path: Path, is_wanted: Callable[[], bool]) -> Template:
    """Start a warm process, and try a sandbox that one of its children enters.

    Raises:
        ForkRefused: If it does not come up.
        SandboxUnavailable: If a process that enters a sandbox can do more than it may.
        OSError: If a process cannot be started.
    """
    # Below `/tmp`, of which every sandbox has its own: matplotlib remembers the path.
    with temporary_folder() as folder, temporary_folder(Path("/tmp")) as settings:
        for path in plan.font_lists():
            shutil.copy(path, settings)
        trial = _trial(plan, folder)
        with ExitStack() as stack, (folder / "trial.log").open("ab") as log:
            stack.callback(kill_marked, trial.mark)  # a sandbox that did not come up
            anchor = trial.anchor(log, is_wanted)
            program = None
            if anchor is not None:
                stack.callback(anchor.close)
                program = anchor.path(Path(sys.executable).resolve())
            own = _environment(settings)
            template = warm_template(
                plan.limits, log_path, is_wanted, executable=program, environment=own
            )
            try:
                _attempt(template, trial, anchor, is_wanted)
            except BaseException:
                template.close()
                raise
    return template


def _attempt(
    template: Template, trial: SandboxStart, anchor: Anchor | None, is_wanted: Callable[[], bool]
) -> None:
    """Have a fork enter a sandbox and attempt things there that must fail.

    Raises:
        SandboxUnavailable: If something can be done that the sandbox must prevent.
    """
    tier, log_path = trial.plan.policy.tier, trial.homes / "log"
    with (
        facts_of_outside(trial.homes.parent) as facts,
        Homes(trial.homes).new() as home,
        Rendezvous(home) as expected,
    ):
        entry = trial.entry(expected, log_path, anchor, facts | {"is_entered": True})
        arrival = template.enter(entry, anchor, expected, is_wanted)
    try:
        refuse_escapes(tier, json.loads((trial.cwd / "here").read_text()))
        if anchor is not None:
            anchor.close()
            if not arrival.handle.has_ended(_END_WAIT_S):
                refuse_escapes(tier, ["outlive its owner"])
    finally:
        arrival.handle.close()
        arrival.connection.close()


def _trial(plan: SandboxPlan, folder: Path) -> SandboxStart:
    """Return the start of a sandbox that grants nothing."""
    inside, homes, calls = (folder / name for name in ("inside", "homes", "calls"))
    for path in (inside, homes, calls):
        path.mkdir()
    bare = replace(plan, policy=SandboxPolicy(tier=plan.policy.tier))
    return SandboxStart(bare, owned_mark(), [inside, homes], inside, homes, calls, ControlGroup(0))


def _environment(settings: Path) -> dict[str, str]:
    """Return the variables that lead to no place of this user: code inside can read them."""
    mark = {KERNEL_MARK: owned_mark()}  # a sandbox's mark takes its place
    return {"HOME": "/", "TMPDIR": "/tmp", "MPLCONFIGDIR": str(settings), **mark}
