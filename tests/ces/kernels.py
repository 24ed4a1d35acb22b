"""What the tests of kernels share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.ces.manager import KernelManager, code_execution_service_factory, default_limits

LIMITS = replace(default_limits(), cell_timeout_s=20.0, output_limit_bytes=100_000)


def limited(tmp_path: Path, **limits: float | int) -> KernelManager:
    manager = code_execution_service_factory(tmp_path, limits=replace(LIMITS, **limits))  # type: ignore[arg-type]
    assert isinstance(manager, KernelManager)
    return manager


def run(client: Client, code: str) -> ExecutionResult:
    return client.execute_code("x", code)


def answers(client: Client) -> bool:
    return run(client, "20 + 1").output == 21
