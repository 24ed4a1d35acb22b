"""What a kernel may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Limits of a kernel and of each cell.

    Attributes:
        start_timeout_s: Longest wait for the kernel to come up.
        cell_timeout_s: Longest time for one cell.
        memory_limit_bytes: Address space of the kernel; 0 sets no limit.
        output_limit_bytes: Output kept of one cell; the kernel itself drops the rest.
        artifact_limit_bytes: Largest file that is listed as an artifact.
        process_limit: Processes and threads in a sandbox; 0 sets no limit.
        file_limit_bytes: Largest file that can be written in a sandbox; 0 sets no limit.
        cpu_limit_s: Processor time of each process in a sandbox; 0 sets no limit.
    """

    start_timeout_s: float
    cell_timeout_s: float
    memory_limit_bytes: int
    output_limit_bytes: int
    artifact_limit_bytes: int
    process_limit: int = 0
    file_limit_bytes: int = 0
    cpu_limit_s: int = 0
