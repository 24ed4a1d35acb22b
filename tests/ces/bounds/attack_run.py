"""Run attacks on the bounds of one session in a process of its own; print what came of each.

``python attack_run.py TIER GROUPS LIMITS FOLDER``: GROUPS is ``groups`` or ``watched``, for no
control groups; LIMITS is ``on`` or ``off``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds import cgroup
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.session.round_states import Snapshots

OFF = replace(
    KernelLimits.default(), cell_timeout_s=40.0, memory_limit_bytes=0, process_limit=0,
    file_limit_bytes=0, open_file_limit=0, folder_limit_bytes=0, log_limit_bytes=0,
)  # fmt: skip
ON = replace(
    OFF, memory_limit_bytes=300 << 20, process_limit=60, file_limit_bytes=8 << 20,
    open_file_limit=200, folder_limit_bytes=24 << 20, log_limit_bytes=1 << 20,
)  # fmt: skip
# Bounds that are watched are measured every quarter of a second, later on a busy machine. Until
# then an attack holds what it has; without bounds nobody has to see it.
HOLD = "import time; time.sleep(HOLD_S)"
EAT = f"x = b'1' * (450 << 20); {HOLD}"
MANY = (
    "import subprocess\nps = []\n"
    "try:\n"
    "    for _ in range(150): ps.append(subprocess.Popen(['sleep', '60']))\n"
    f"    {HOLD}\n"
    "finally:\n"
    "    alive = sum(p.poll() is None for p in ps)\n"
    "    for p in ps: p.kill()\n"
    "    for p in ps: p.wait()\n"
    "alive"
)
ATTACKS = {
    "memory": f"{EAT}; size = len(x) >> 20; del x; size",
    "memory of a child": (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {EAT!r} + '; print(450)'],"
        " stdout=subprocess.PIPE).stdout.decode().strip()"
    ),
    "memory in files": (
        "import os\nfs = [os.memfd_create('x') for _ in range(80)]\n"
        "for f in fs: os.write(f, b'1' * (6 << 20))\n"
        f"{HOLD}; [os.close(f) for f in fs]; len(fs) * 6"
    ),
    "processes": MANY,
    "threads": (
        "import threading\ngo = threading.Event()\n"
        "ts = [threading.Thread(target=go.wait) for _ in range(150)]\n"
        f"try:\n    for t in ts: t.start()\n    {HOLD}\nfinally:\n    go.set()\n"
        "len(ts)"
    ),
    "open files": "fs = [open('/dev/null') for _ in range(400)]; len(fs)",
    "one file": "open('large', 'wb').write(b'1' * (16 << 20)) >> 20",
    "working folder": (
        "import os\nos.makedirs('a/b', exist_ok=True)\n"
        "for n in range(10): open(f'a/b/{n}', 'wb').write(b'1' * (6 << 20))\n60"
    ),
    "deleted files": (
        "import os\nfs = []\n"
        "for n in range(10):\n"
        "    f = open(f'{n}', 'wb', buffering=0); os.remove(f'{n}'); fs.append(f)\n"
        "    f.write(b'1' * (6 << 20))\n"
        f"{HOLD}; [f.close() for f in fs]; 60"
    ),
    "kernel.log": (
        "import os, sys\nfd = sys.stdout._original_stdstream_copy\n"
        "sum(os.write(fd, b'x' * (1 << 20)) for _ in range(6)) >> 20"
    ),
    "left behind": (
        "import subprocess\n"
        "left = [subprocess.Popen(['sleep', '60'], start_new_session=n > 0) for n in range(2)]"
    ),
}
REMOVE = (
    "import shutil, os; shutil.rmtree('a', ignore_errors=True)\n"
    "'large' in os.listdir() and os.remove('large')"
)


def _shared(client: Kernel) -> dict[str, Any]:
    """Run a harmless cell while a snapshot shares much of the kernel's memory."""
    client.execute_code("large", "import numpy as np; large = np.ones(15 << 20)")
    snapshot = client.snapshot()
    result = client.execute_code("harmless", "import time; time.sleep(0.6); large.nbytes >> 20")
    snapshot.close()
    client.execute_code("tidy", "del large")
    return {"output": result.output, "error": result.error}


def _deleted(client: Kernel) -> dict[str, Any]:
    """Run a harmless cell after many snapshots of a table that the kernel has deleted since."""
    client.execute_code("table", "table = np.ones(6 << 20)")
    snapshots = [client.snapshot() for _ in range(8)]
    client.execute_code("delete", "del table")
    sizes = [snapshot.footprint.resident_bytes for snapshot in snapshots]
    code = "y = np.ones(6 << 20); import time; time.sleep(0.6); y.nbytes >> 20"
    result = client.execute_code("harmless", code)
    for snapshot in snapshots:
        snapshot.close()
    client.execute_code("tidy", "del y")
    return {"output": result.output, "error": result.error, "seen": min(sizes) >= 48 << 20}


def _kept(client: Kernel) -> list[int]:
    """Return how many snapshots are kept: the first of two comes to hold more than the budget."""
    snapshots, counts = Snapshots(32 << 20), []
    for name, code in [("table", "table = np.ones(6 << 20)"), ("delete", "del table")]:
        client.execute_code(name, code)
        snapshots.take("main", name, client)
        counts.append(len(snapshots))
    snapshots.close()
    return counts


def main() -> None:
    """Run all attacks one after another; each finds the session as it should be."""
    tier, groups, limits, folder = sys.argv[1:]
    if groups == "watched":
        cgroup.parents = lambda _: iter(())  # type: ignore[assignment]
    policy = None if tier == "none" else SandboxPolicy(tier=tier)  # type: ignore[arg-type]
    chosen = ON if limits == "on" else OFF
    manager = code_execution_service_factory(
        Path(folder) / "env", limits=chosen, sandbox=policy, is_warm=True
    )
    results: dict[str, Any] = {}
    try:
        client = manager.get_session_client("s", session_dir=Path(folder) / "s")
        results["shared"] = _shared(client)
        results["deleted"] = _deleted(client)
        results["kept"] = _kept(client)
        for name, code in ATTACKS.items():
            hold_s = "20" if limits == "on" else "0"
            result = client.execute_code(name, code.replace("HOLD_S", hold_s))
            said = "\n".join([result.error or "", *(text for _, _, text in result.log)])
            after = client.execute_code("after", f"{REMOVE}\n20 + 1")
            told = {"output": result.output, "status": result.status, "said": said}
            results[name] = told | {"after": after.output}
        results["log bytes"] = (Path(folder) / "s" / "kernel.log").stat().st_size
        results["left"] = client.left_behind()
        results["bounds"] = [asdict(bound) for bound in client.bounds()]
    finally:
        manager.clean_up()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
