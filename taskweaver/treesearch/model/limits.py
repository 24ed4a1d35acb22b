"""Limits of a run's phases, and of its questions to a model."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ces.command.command import CommandLimits

_USUAL = CommandLimits(
    process_limit=512, file_bytes=2 << 30, open_files=4096, folder_bytes=10 << 30
)


@dataclass(frozen=True, slots=True)
class PhaseLimits:
    """Limits of the phases of a node; 0 sets no limit.

    Attributes:
        download_s: Longest time of a download command.
        compile_s: Longest time of a compile command.
        run_s: Longest time of a run command.
        command: Limits of each command beside its time.
    """

    download_s: float = 600.0
    compile_s: float = 300.0
    run_s: float = 3600.0
    command: CommandLimits = _USUAL


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Limits of a question to a model.

    Attributes:
        attempts: Replies that may be unusable.
        read_rounds: Replies that may only ask for something of the memory.
    """

    attempts: int = 3
    read_rounds: int = 2
