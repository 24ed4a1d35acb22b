"""Files that make Jupyter start kernels by the provisioner, and Jupyter servers fork them."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from taskweaver.utils.files import write_text

SPEC_NAME = "taskweaver"
_PROVISIONER = "taskweaver-provisioner"
_EXTENSION = "taskweaver.doors.jupyter.fork_api"


def install_spec(prefix: str | None) -> Path:
    """Write the kernel specification, and enable the server extension; return the first's folder.

    Args:
        prefix: Prefix of an environment; None takes the folder of the user.

    Raises:
        OSError: If it cannot be written.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_core.paths import jupyter_config_dir

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
    config = Path(jupyter_config_dir()) if prefix is None else Path(prefix, "etc", "jupyter")
    enabled = {"ServerApp": {"jpserver_extensions": {_EXTENSION: True}}}
    write_text(config / "jupyter_server_config.d/taskweaver.json", json.dumps(enabled) + "\n")
    return Path(place)
