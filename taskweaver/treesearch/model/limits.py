"""Limits of a run's phases, and of its questions to a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PhaseLimits:
    """Limits of the phases of a node; 0 sets no limit.

    Attributes:
        download_s: Longest time of a download command.
        compile_s: Longest time of a compile command.
        run_s: Longest time of a run command.
        memory_bytes: Resident memory of all processes of a command together.
        process_limit: Processes and threads.
        file_bytes: Largest file that is written.
        open_files: Open files of each process.
        folder_bytes: Size of the workspace.
        output_bytes: Output of a command that is kept in its log; the rest is counted.
    """

    download_s: float = 600.0
    compile_s: float = 300.0
    run_s: float = 3600.0
    memory_bytes: int = 0
    process_limit: int = 512
    file_bytes: int = 2 << 30
    open_files: int = 4096
    folder_bytes: int = 10 << 30
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Limits of a question to a model.

    Attributes:
        attempts: Replies that may be unusable.
        read_rounds: Replies that may only ask for something of the memory.
    """

    attempts: int = 3
    read_rounds: int = 2
