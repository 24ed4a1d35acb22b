"""Signs that jobs of tests give: files they make, and programs they leave asleep."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil


def sleeping(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue  # gone
    return found


def appears(sign: Path) -> None:
    waiting = threading.Event()
    for _ in range(2000):
        if sign.exists():
            return
        waiting.wait(0.01)
    raise AssertionError(f"{sign} never came")


def vanishes(word: str) -> None:
    """Wait until no process has a word in its command."""
    waiting = threading.Event()
    for _ in range(2000):
        if not sleeping(word):
            return
        waiting.wait(0.01)
    raise AssertionError(f"{word} is still running")
