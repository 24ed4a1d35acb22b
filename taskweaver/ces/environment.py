"""The environment of a kernel: built from a list of allowed variables, never copied."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE_ROOT = Path(__file__).parents[2]
_BRIDGE = Path(__file__).parent / "inkernel" / "sandbox" / "bridge.py"
_PROXY_PORT = 3128  # of the sandbox's own loopback device, where nothing else listens
_PASSED = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV")
) | {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
# PLUGIN_ is how plugins are given their settings; COVERAGE_ lets kernels be measured.
_NUMERIC_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_")
_PASSED_PREFIXES = (*_NUMERIC_PREFIXES, "PLUGIN_", "COVERAGE_")
# Nothing that is started here can answer a question, so nothing may ask one.
_SILENT = {
    "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "PYTHONUNBUFFERED": "1",
}  # fmt: skip
KERNEL_MARK = "TASKWEAVER_KERNEL_ID"
"""Variable that every process of a kernel or a command carries."""
WORKER_MARK = "TASKWEAVER_WORKER_ID"
"""Variable that a worker process, and every process of its commands, carries."""


def kernel_environment(kernel_id: str) -> dict[str, str]:
    """Return the environment of a kernel.

    `kernel_id` marks every process the kernel starts, so that they can be found again.
    """
    python_path = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    return _passed(_PASSED_PREFIXES) | {
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "PYTHONSAFEPATH": "1",
        "MPLBACKEND": "module://taskweaver.ces.inkernel.cell.figures",
        KERNEL_MARK: kernel_id,
        **_SILENT,
        "PYTHONIOENCODING": "utf-8:replace",
        "PYTHONBREAKPOINT": "0",  # nobody could answer a debugger
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # nor take its advice
    }


def command_environment(command_id: str, home: Path, tmp: Path) -> dict[str, str]:
    """Return the environment of a command outside of kernels.

    `command_id` marks every process the command starts, so that they can be found again.
    """
    passed = _passed(_NUMERIC_PREFIXES)
    owner = os.environ.get(WORKER_MARK)
    return passed | {
        # This interpreter and its libraries before the system's.
        "PATH": os.pathsep.join([f"{sys.prefix}/bin", passed.get("PATH", os.defpath)]),
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": f"{tmp}/.matplotlib",
        KERNEL_MARK: command_id,
        **({WORKER_MARK: owner} if owner else {}),
        **_SILENT,
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "DEBIAN_FRONTEND": "noninteractive",
    }


def _passed(prefixes: tuple[str, ...]) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(prefixes)
    }


def bridged(command: list[str], proxy: str) -> list[str]:
    """Return the command that first starts the bridge to a proxy, see `inkernel.sandbox.bridge`.

    `proxy` is the path of its socket in the sandbox.
    """
    return [sys.executable, str(_BRIDGE), str(_PROXY_PORT), proxy, *command]


def bridge_environment() -> dict[str, str]:
    """Return the variables that lead programs to the bridge."""
    address, direct = f"http://127.0.0.1:{_PROXY_PORT}", "localhost,127.0.0.1"
    values = {"http_proxy": address, "https_proxy": address, "no_proxy": direct}
    return values | {name.upper(): value for name, value in values.items()}
