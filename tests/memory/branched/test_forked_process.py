"""A memory that was opened before a fork of the process is refused in the new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

from taskweaver.memory.branched import BranchedMemory

_FORKED = """
import os, signal, sys
from taskweaver.memory.branched import BranchedMemory, StoreClosed

signal.alarm(20)
memory = BranchedMemory(sys.argv[1])
root = memory.create("root")
root.remember("of the parent")
ready, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    os.read(ready, 1)  # the parent has closed the memory
    refused = 0
    for act in (lambda: root.remember("lost"), root.records, lambda: memory.erase(text="lost")):
        try:
            act()
        except StoreClosed as error:
            refused += "forked" in str(error)
    memory.close()
    with BranchedMemory(sys.argv[1]) as own:
        own["root"].remember("of the child")
    os._exit(refused)
os.close(ready)
memory.close()
os.close(go)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_loses_no_write_and_opens_the_file_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FORKED, str(tmp_path / "m.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "3", done.stderr
    with BranchedMemory(tmp_path / "m.sqlite") as memory:
        assert [item.text for item in memory["root"].records()] == ["of the child", "of the parent"]
        assert memory.verify().problems == ()
    calls = (tmp_path / "logs" / "memory_calls.jsonl").read_text().splitlines()
    assert len(calls) == len(set(calls))
