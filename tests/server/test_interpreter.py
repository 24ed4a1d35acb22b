"""Settings of Python for a process that serves."""

from __future__ import annotations

import gc
import sys

from taskweaver.server.interpreter import prompt_threads


def test_threads_are_prompt_while_a_server_runs() -> None:
    before = sys.getswitchinterval()
    with prompt_threads():
        assert sys.getswitchinterval() < before
        assert gc.get_freeze_count() > 0
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == 0
