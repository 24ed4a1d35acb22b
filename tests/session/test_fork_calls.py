"""The work of a fork."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from taskweaver import TaskWeaverApp

ROOT = Path(__file__).parents[2]
LOOKS = ("/ces/process/handles.py", "/ces/bounds/watcher.py", "/ces/bounds/guard.py")
"""Modules that look at the processes of a session: their calls grow with the processes there."""


def test_a_fork_reads_no_configuration_and_no_example_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "project", tmp_path / "project")
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    with TaskWeaverApp(str(tmp_path / "project"), config={"llm.api_type": "offline"}) as app:
        session = app.get_session()
        session.run_code("x = 1")
        sys.setprofile(count)
        try:
            session.fork("other")
        finally:
            sys.setprofile(None)
        assert not [file for file in calls if "/taskweaver/config/" in file or "yaml" in file]
        package = str(ROOT / "taskweaver")
        own = sum(n for file, n in calls.items() if file.startswith(package))
        own -= sum(n for file, n in calls.items() if file.endswith(LOOKS))
        assert own <= 400
        played = session.at("other").run_code("x + 1")
    assert played.state == "finished"


def test_the_kernel_of_a_fork_counts_before_the_branch_is_used(tmp_path: Path) -> None:
    (tmp_path / "taskweaver_config.json").write_text("{}")
    with TaskWeaverApp(str(tmp_path), config={"llm.api_type": "offline"}) as app:
        session = app.get_session()
        session.fork("empty")
        assert session.at("empty").kernel_state == "not started", "no code ran"
        session.run_code("x = 1")
        session.fork("idea")
        assert session.at("idea").kernel_state == "ready"
        session.release()
        assert session.at("idea").kernel_state == "not started"
        played = session.at("idea").run_code("x")
        assert "1" in played.post_list[-1].message, "from disk"
