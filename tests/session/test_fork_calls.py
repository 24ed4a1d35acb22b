"""The work of a fork."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from taskweaver import TaskWeaverApp

ROOT = Path(__file__).parents[2]


def test_a_fork_reads_no_configuration_and_no_example_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "project", tmp_path / "project")
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    with TaskWeaverApp(str(tmp_path / "project"), config={"llm.api_type": "offline"}) as app:
        session = app.get_session()
        sys.setprofile(count)
        try:
            session.fork("other")
        finally:
            sys.setprofile(None)
        assert not [file for file in calls if "/config/" in file or "yaml" in file]
        own = sum(n for file, n in calls.items() if file.startswith(str(ROOT / "taskweaver")))
        assert own <= 400
        played = session.at("other").run_code("1 + 1")
    assert played.state == "finished"
