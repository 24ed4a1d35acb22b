"""Limits of a run's phases, and of its questions to models."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ces.command_process import CommandLimits

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
class RoleModels:
    """Models of a search by their work, as aliases of ``ext_llms``; empty for the main model.

    Attributes:
        code: Plans, attempts, commands and programs that draw plots.
        feedback: Judgements of attempts that ran.
        vlm: Descriptions of plots; empty where none are wanted.
        summary: Lessons of attempts and stages, and the choice of the best.
    """

    code: str = ""
    feedback: str = ""
    vlm: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Limits of a question to a model.

    Attributes:
        attempts: Replies that may be unusable.
        read_rounds: Replies that may only ask for something of the memory.
    """

    attempts: int = 3
    read_rounds: int = 2
