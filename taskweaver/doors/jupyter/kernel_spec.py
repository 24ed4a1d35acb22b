"""The kernel specification that makes Jupyter start kernels by the provisioner."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

SPEC_NAME = "taskweaver"
_PROVISIONER = "taskweaver-provisioner"


def install_spec(prefix: str | None) -> Path:
    """Write the specification where Jupyter looks for them; return its folder.

    Args:
        prefix: Prefix of an environment; None takes the folder of the user.

    Raises:
        OSError: If it cannot be written.
    """
    from jupyter_client.kernelspec import KernelSpecManager

    spec = {
        # Without this package in the environment of the Jupyter server, it refuses the kernel.
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python (TaskWeaver, sandboxed)",
        "language": "python",
        "interrupt_mode": "signal",
        "metadata": {"kernel_provisioner": {"provisioner_name": _PROVISIONER}},
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        manager = KernelSpecManager()
        place = manager.install_kernel_spec(folder, SPEC_NAME, user=prefix is None, prefix=prefix)
    return Path(place)
