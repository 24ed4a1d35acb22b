"""A host that runs share: their turns at it, and what other programs use meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE_S
from phase_plans import with_code
from search_lab import Climber, lab, search
from search_story import node

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.execution import host_load
from taskweaver.treesearch.execution.executors.host_turn import host_turn
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import USED_BY_OTHERS, Measurement, Objective
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.record.run_statistics import certainty

FEW_S = 0.3
FOREVER = "print(flush=True)\nwhile True: pass"


@contextmanager
def burning() -> Iterator[None]:
    """Have another program use a processor until the end."""
    command = [sys.executable, "-c", FOREVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that temporary files of this test alone go to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for worker processes, too
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def lock_file(place: Path) -> Path:
    with host_turn():
        (file,) = place.glob("*.lock")
    return file


def test_one_has_the_turn_at_a_time(place: Path) -> None:
    has_it, ended = threading.Event(), threading.Event()

    def wait() -> None:
        with host_turn(threading.Event()):
            has_it.set()
        ended.set()

    with host_turn():
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not has_it.wait(0.5)
    assert ended.wait(PATIENCE_S)
    waiting.join()
    cut_off = threading.Event()
    cut_off.set()
    with host_turn(), host_turn(cut_off):  # a wait that is cut off ends
        pass


def test_a_turn_that_cannot_be_had_ends_a_timed_search_at_its_start(place: Path) -> None:
    file = lock_file(place)
    file.unlink()
    file.symlink_to("elsewhere")
    project = lab(place, goal="seconds (minimize)")
    with pytest.raises(SearchError, match="cannot be opened") as caught:
        search(project, Climber(), steps=1, timed="always")
    assert "Remove it" in str(caught.value)
    assert search(project, Climber(), name="other", steps=1, timed="never").state.journal.good


def test_a_timed_result_tells_what_other_processes_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_load, "_FEWEST_S", FEW_S)  # else the attempt has to take longer
    details = {"n": 3, USED_BY_OTHERS: "none, says the attempt"}
    result = json.dumps({"metric": 1.5, "details": details})
    burn = f"import time\nwhile time.process_time() < {FEW_S}: pass\n"
    plan = PhasePlan.from_dict(
        with_code(f"{burn}open('working/result.json', 'w').write({result!r})")
    )
    job = Job(tmp_path, "n", tmp_path / "w", tmp_path / "logs", plan, is_timed=True)
    with burning():
        timed = run_job(job)
    untimed = run_job(replace(job, is_timed=False))
    assert timed.result is not None
    assert untimed.result is not None
    told = timed.result["details"]
    assert told.pop(USED_BY_OTHERS) > 0
    assert told == untimed.result["details"] == {"n": 3}


def test_a_report_tells_how_busy_the_host_was() -> None:
    journal = Journal(Objective("speed", unit="MFLOPS"))
    for step, used in ((1, {}), (2, {USED_BY_OTHERS: 1.7})):
        done = node(step, NodeKind.DRAFT, 5.0 + step)
        journal.put(replace(done, metric=Measurement({"": 5.0 + step}, used)))
    told = certainty(journal)
    assert "Beside 1 of 2 timed runs other processes" in told
    assert "used up to 1.7 CPUs" in told
