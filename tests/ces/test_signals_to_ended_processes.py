"""A signal to a process that ends just before it arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from patience import PATIENCE_S

from taskweaver.ces.process import handles


@pytest.mark.skipif(not handles.HAS_HANDLES, reason="processes have no handles on this system")
def test_a_signal_to_a_process_that_was_reaped_does_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    handle = os.pidfd_open(process.pid)
    try:
        process.wait(PATIENCE_S)
        handles.send_signal(process.pid, handle, signal.SIGKILL)
    finally:
        os.close(handle)
