"""Time the offline analyst takes: to read a request, and to answer one over 100 MB of CSV.

Requests are the open ones of `bench/questions`; profiles of their files are made before, and the
better of three readings counts. The answer is that of a session, from the message to its end, with
the copy of the file into the session; pandas reads the file and sums up as a cell of a session.
Run with ``python -m bench analyst_speed``.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import numpy as np
import pandas as pd

from bench.common import sized
from bench.questions.asking import CONFIG
from bench.questions.files import place
from bench.questions.model import Question, load
from taskweaver.analyst.dialogue import Dialogue
from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.round import Round
from taskweaver.tables.errors import TableError
from taskweaver.tables.files.profile import FileInfo, PartInfo, TableProfile, World
from taskweaver.tables.files.profile_report import merged
from taskweaver.tables.session import profiles

FILE = "shipments.csv"
REQUEST = f"sum of amount per region in {FILE}"
BY_PANDAS = (
    "import pandas as pd\n"
    "pd.read_csv({path!r}, parse_dates=['date']).groupby('region')['amount'].sum()"
)
REGIONS = ("north", "east", "south", "west", "centre", "islands")
GOALS = {"reading_median_ms": 20.0, "reading_worst_ms": 20.0, "answer_ratio": 1.2}
_REPEATS = 3
_BLOCK_ROWS = 10_000


def run() -> dict[str, float]:
    """Return milliseconds of readings; seconds of the answers, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        times_ms = list(readings_ms(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        answers = answer_figures(Path(folder))
    return {
        "readings": float(len(times_ms)),
        "reading_median_ms": median(times_ms),
        "reading_99_percent_ms": quantiles(times_ms, n=100)[-1],
        "reading_worst_ms": max(times_ms),
    } | answers


def readings_ms(folder: Path) -> Iterator[float]:
    """Yield the time of the reading of each turn, at best of three, with profiles made before."""
    questions = sorted(load("open"), key=lambda question: question.files)
    can_be_asked = [question for question in questions if question.can_be_asked]
    chosen = sized(can_be_asked, [q for q in can_be_asked if q.files == ("penguins.csv",)][:3])
    with contextlib.chdir(folder):
        for files, group in groupby(chosen, key=lambda question: question.files):
            for file in files:
                place(file, folder)
            for question in group:
                yield from _turns_ms(question)
            for file in files:
                (folder / file).unlink()


def _turns_ms(question: Question) -> Iterator[float]:
    dialogue = Dialogue()
    for turn in question.turns:
        world = world_of(question.files, turn.ask)
        times, after = [], dialogue
        for _ in range(_REPEATS):
            began = perf_counter()
            after, _outcome = dialogue.say(turn.ask, world)
            times.append(perf_counter() - began)
        dialogue = after
        yield min(times) * 1000


def world_of(files: Sequence[str], request: str) -> World:
    """Return files of the working folder with their profiles, as a session has looked at them."""
    found = {file: _profiles(file, request) for file in files}
    tables = {table.id: table for profiles_ in found.values() for table in profiles_}
    infos = (FileInfo(file, tuple(_parts(profiles_))) for file, profiles_ in found.items())
    return World(tuple(infos), tables)


def _profiles(file: str, request: str) -> tuple[TableProfile, ...]:
    try:
        return tuple(merged({}, repr(profiles(file, request, matches_only=False))).values())
    except TableError:  # files that are empty or no tables
        return ()


def _parts(tables: Sequence[TableProfile]) -> Iterator[PartInfo]:
    for table in tables:
        columns = tuple(column.name for column in table.columns)
        yield PartInfo(table.id.part, columns, table.rows)


def answer_figures(folder: Path) -> dict[str, float]:
    """Return the seconds of the analyst and of pandas over one file, and whether they agree."""
    (folder / "taskweaver_config.json").write_text(json.dumps({}))
    (folder / "data").mkdir()
    sums, size_bytes = write_csv(folder / "data" / FILE, sized(100_000_000, 200_000))
    analyst, plain, is_right = [], [], True
    with TaskWeaverApp(folder, config=CONFIG) as app:
        for _ in range(sized(_REPEATS, 1)):
            session = app.get_session()
            session.run_code("1 + 1")
            plain.append(_timed(lambda: session.run_code(_pandas_code(folder)))[0])  # noqa: B023
            session.stop()
            session = app.get_session()
            session.run_code("1 + 1")
            seconds, round_ = _timed(lambda: session.send_message(REQUEST))  # noqa: B023
            session.stop()
            analyst.append(seconds)
            said = round_.answer.text.replace(",", "")
            is_right = is_right and all(str(value) in said for value in sums)
    return {
        "file_mb": size_bytes / 1e6,
        "answer_s": min(analyst),
        "pandas_s": min(plain),
        "answer_ratio": min(analyst) / min(plain),
        "answer_is_right": float(is_right),
    }


def _pandas_code(folder: Path) -> str:
    return BY_PANDAS.format(path=str(folder / "data" / FILE))


def _timed(call: Callable[[], Round]) -> tuple[float, Round]:
    began = perf_counter()
    outcome = call()
    return perf_counter() - began, outcome


def write_csv(path: Path, least_bytes: int) -> tuple[list[int], int]:
    """Write rows of shipments; return the sum of the amounts of each region, and the size."""
    random = np.random.default_rng(0)
    block = pd.DataFrame(
        {
            "order": random.integers(100_000, 999_999, _BLOCK_ROWS),
            "date": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(random.integers(0, 700, _BLOCK_ROWS), "D"),
            "region": random.choice(REGIONS, _BLOCK_ROWS),
            "price": random.uniform(1, 900, _BLOCK_ROWS).round(2),
            "amount": random.integers(1, 100, _BLOCK_ROWS),
        }
    )
    text = block.to_csv(index=False, header=False).encode()
    repeats = -(-least_bytes // len(text))
    with path.open("wb") as file:
        file.write((",".join(block.columns) + "\n").encode())
        for _ in range(repeats):
            file.write(text)
    sums = block.groupby("region")["amount"].sum() * repeats
    return [int(value) for value in sums], path.stat().st_size


def show(figures: dict[str, float]) -> None:
    """Print the figures with their goals."""
    print("time of the offline analyst")
    for name, value in figures.items():
        goal = f"   goal <= {GOALS[name]:g}" if name in GOALS else ""
        print(f"  {name:<24}{value:>12,.4g}{goal}")


if __name__ == "__main__":
    show(run())
