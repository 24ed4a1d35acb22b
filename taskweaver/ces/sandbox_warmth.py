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

from taskweaver.ces.box_start import BoxPlan, BoxStart
from taskweaver.ces.cgroup import ControlGroup
from taskweaver.ces.environment import KERNEL_MARK
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process import owned_mark, private_folder
from taskweaver.ces.sandbox import facts_of_outside, refuse_escapes
from taskweaver.ces.template import Expectation, Template, warm_template

_END_WAIT_S = 5.0


def sandbox_template(plan: BoxPlan, log_path: Path, is_wanted: Callable[[], bool]) -> Template:
    """Start a warm process, and try a sandbox that one of its children enters.

    Args:
        plan: How sandboxes are made.
        log_path: File for its output.
        is_wanted: Tells whether to wait for it on.

    Raises:
        ForkRefused: If it does not come up.
        SandboxUnavailable: If what enters a sandbox can do more than it may.
        OSError: If a process cannot be started.
    """
    folder = private_folder()
    # Below `/tmp`, which every sandbox has one of its own: matplotlib remembers the path.
    settings = private_folder(Path("/tmp"))
    try:
        for path in plan.font_lists():
            shutil.copy(path, settings)
        start = _trial(plan, folder)
        with ExitStack() as stack, (folder / "trial.log").open("ab") as log:
            anchor = start.anchor(log, is_wanted)
            if anchor is not None:
                stack.callback(anchor.close)
            program = Path(sys.executable).resolve()
            template = warm_template(
                plan.limits, log_path, is_wanted,
                executable=None if anchor is None else anchor.path(program),
                environment=_environment(settings),
            )  # fmt: skip
            try:
                with facts_of_outside(folder) as facts, Expectation(start.homes) as expected:
                    facts = facts | {"is_entered": True}
                    entry = start.entry(expected.path, folder / "homes" / "log", anchor, facts)
                    arrival = template.enter(entry, anchor, expected, is_wanted)
                    stack.callback(arrival.handle.close)
                    stack.callback(arrival.connection.close)
                refuse_escapes(plan.policy.tier, json.loads((start.cwd / "here").read_text()))
                if anchor is not None:
                    anchor.close()
                    if not arrival.handle.has_ended(_END_WAIT_S):
                        refuse_escapes(plan.policy.tier, ["outlive its owner"])
            except BaseException:
                template.close()
                raise
            return template
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(settings, ignore_errors=True)


def _trial(plan: BoxPlan, folder: Path) -> BoxStart:
    """Return the start of a sandbox that grants nothing."""
    inside, homes, calls = (folder / name for name in ("inside", "homes", "calls"))
    for path in (inside, homes, calls):
        path.mkdir()
    bare = replace(plan, policy=SandboxPolicy(tier=plan.policy.tier))
    return BoxStart(bare, owned_mark(), [inside, homes], inside, homes, calls, ControlGroup(0))


def _environment(settings: Path) -> dict[str, str]:
    """Return the variables that lead to no place of this user: code inside can read them."""
    mark = {KERNEL_MARK: owned_mark()}  # a sandbox's mark takes its place
    return {"HOME": "/", "TMPDIR": "/tmp", "MPLCONFIGDIR": str(settings), **mark}
