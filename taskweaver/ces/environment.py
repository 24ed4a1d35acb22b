"""The environment of a kernel: built from a list of what may pass, never copied."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_PACKAGE_ROOT = Path(__file__).parents[2]
_BRIDGE = Path(__file__).parent / "inkernel" / "bridge.py"
_PROXY_PORT = 3128  # of the sandbox's own loopback device, where nothing else listens
_PASSED = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV")
) | {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
# PLUGIN_ is how plugins are given their settings; COVERAGE_ lets kernels be measured.
_PASSED_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "PLUGIN_", "COVERAGE_")


def kernel_environment(kernel_id: str, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a kernel.

    Args:
        kernel_id: Marks every process the kernel starts, so that they can be found again.
        source: What passes are values of; None takes this process's own.
    """
    outer = os.environ if source is None else source
    passed = {
        name: value
        for name, value in outer.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    python_path = [str(_PACKAGE_ROOT), outer.get("PYTHONPATH", "")]
    return passed | {
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "PYTHONSAFEPATH": "1",
        "MPLBACKEND": "module://taskweaver.ces.inkernel.figures",
        "TASKWEAVER_KERNEL_ID": kernel_id,
        # Nothing in a kernel can answer a question, so nothing may ask one.
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "PAGER": "cat",
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8:replace",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # the debugger's advice helps nobody here
    }


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs this interpreter with the kernel's launcher."""
    return [sys.executable, "-m", "taskweaver.ces.inkernel.launcher", *arguments]


def bridged(command: list[str], proxy: str) -> list[str]:
    """Return the command that first starts the bridge to a proxy, see `inkernel.bridge`.

    Args:
        command: What is to run.
        proxy: Socket of the proxy, as it is called in the sandbox.
    """
    return [sys.executable, str(_BRIDGE), str(_PROXY_PORT), proxy, *command]


def bridge_environment() -> dict[str, str]:
    """Return the variables that lead programs to the bridge."""
    address, direct = f"http://127.0.0.1:{_PROXY_PORT}", "localhost,127.0.0.1"
    values = {"http_proxy": address, "https_proxy": address, "no_proxy": direct}
    return values | {name.upper(): value for name, value in values.items()}
