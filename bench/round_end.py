"""The end of a round with 100 MB of frames, and resuming the session.

A round changes 100 MB; the next question comes at once, as its state is being stored. The baseline
is the same conversation in the same run with nothing stored (``session.state_limit_mb = 0``). Run
with ``python -m bench.round_end``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench.common import sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.session.session import Session

REPEATS, ROWS = sized((7, 1_250_000), (1, 1_000))
COLUMNS = 10
CHANGE = f"frame = pd.DataFrame(np.random.rand({ROWS}, {COLUMNS})); len(frame)"
LOOK = "len(frame)"


def run() -> dict[str, float]:
    """Return medians in seconds, sizes in bytes; see `show`."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder) / "xdg")
        figures: dict[str, list[float]] = {}
        for number in range(REPEATS):
            for limit_mb, kind in ((4096, "stored"), (0, "bare")):
                place = Path(folder) / f"{kind}{number}"
                for name, value in _measure(place, limit_mb).items():
                    figures.setdefault(f"{kind}_{name}", []).append(value)
        found = {name: statistics.median(values) for name, values in figures.items()}
    return found | {
        "answer_delay": found["stored_answer"] - found["bare_answer"],
        "next_cell_delay": found["stored_next_cell"] - found["bare_next_cell"],
    }


def _measure(place: Path, limit_mb: int) -> dict[str, float]:
    figures = {}
    with _opened(place, limit_mb) as app:
        session = app.get_session()
        session.run_code(CHANGE)  # imports pandas
        session.wait_until_stored()
        figures["answer"] = _timed(session, CHANGE)
        since = perf_counter()
        figures["next_cell"] = _timed(session, LOOK)
        session.wait_until_stored()
        figures["until_stored"] = perf_counter() - since
        session.run_code(LOOK)
        session.wait_until_stored()
        before = _inodes(session.workspace)
        session.run_code(LOOK)
        session.wait_until_stored()
        figures["written_unchanged"] = float(len(_inodes(session.workspace) - before))
        session_id = session.session_id
    with _opened(place, limit_mb) as app:
        since = perf_counter()
        session = app.resume_session(session_id)
        figures["resume"] = perf_counter() - since
        figures["first_cell"] = _timed(session, LOOK if limit_mb else "1")
    return figures


@contextmanager
def _opened(place: Path, limit_mb: int) -> Iterator[TaskWeaverApp]:
    place.mkdir(exist_ok=True)
    (place / "taskweaver_config.json").write_text("{}")
    config = {"session.state_limit_mb": limit_mb}
    with TaskWeaverApp(place, model=lambda _: "", config=config) as app:
        # The warm process is there, as after a moment of reading the screen.
        app.get_session().run_code("pd.DataFrame()")
        yield app


def _timed(session: Session, code: str) -> float:
    since = perf_counter()
    session.run_code(code)
    return perf_counter() - since


def _inodes(folder: Path) -> set[int]:
    return {path.stat().st_ino for path in (folder / "state").rglob("*") if path.is_file()}


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    rows = (
        ("answer is later by", "answer_delay", 1e3, "ms  goal <= 20 ms"),
        ("next cell is later by", "next_cell_delay", 1e3, "ms  goal <= 20 ms"),
        ("on disk after", "stored_until_stored", 1.0, "s"),
        ("files written when nothing changed", "stored_written_unchanged", 1.0, "   goal 0"),
        ("resume to prompt", "stored_resume", 1e3, "ms  goal <= 500 ms"),
        ("first cell of a resumed session", "stored_first_cell", 1.0, "s   goal <= 1 s"),
        ("  with nothing to read back", "bare_first_cell", 1.0, "s"),
    )
    for label, name, factor, unit in rows:
        print(f"{label:<36} {figures[name] * factor:8.2f} {unit}")


if __name__ == "__main__":
    show(run())
