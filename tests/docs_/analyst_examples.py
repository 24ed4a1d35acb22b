"""The page docs/analyst-examples.md, made of real conversations with the offline analyst.

``python tests/docs_/analyst_examples.py > docs/analyst-examples.md`` writes it anew.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.utils.text import fenced

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "analyst-examples.md"
DATA = ROOT / "bench" / "questions" / "data"
CONFIG = {"llm.api_type": "offline", "execution.sandbox": "none", "session.state_limit_mb": 0}
_INTRO = """\
# Conversations with the offline analyst

These are real answers of the [offline analyst](models.md#the-offline-analyst); each block is a
session of its own. `iris.csv`, `wine.csv` and `diabetes.csv` are data sets of scikit-learn, written
with `load_iris(as_frame=True).frame` and its like; the others are in `bench/questions/data`. A test
asks the questions again and compares the answers."""

CONVERSATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gapminder.csv", ("mean lifeExp in Germany", "and in France?")),
    ("gapminder.csv", ("mean lifeExp by continent in 2007", "which country has the highest pop?")),
    ("penguins.csv", ("how many penguins are there per species?", "only on Dream")),
    ("penguins.csv", ("correlation of body mass and flipper length",)),
    ("seattle-weather.csv", ("total precipitation per month in 2014",)),
    ("seattle-weather.csv", ("how many rows have rain and a wind above 8?",)),
    ("iowa-electricity.csv", ("share of net_generation per source", "and since 2010?")),
    ("iris.csv", ("mean petal length (cm) per target", "and the largest?")),
    ("wine.csv", ("top 3 alcohol", "median hue where the alcohol is above 13.5")),
    ("diabetes.csv", ("how many rows are there?", "mean bmi where the mood is blue")),
)
"""A file, and the requests of a session about it."""


def page(conversations: Sequence[tuple[str, Sequence[str]]] = CONVERSATIONS) -> str:
    """Return the page, or its first conversations, with answers of now."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "taskweaver_config.json").write_text("{}")
        parts = [_INTRO]
        with TaskWeaverApp(folder, config=CONFIG) as app:
            for file, requests in conversations:
                parts.append(f"## {file}: {requests[0]}")
                parts.append(_conversation(app, folder / "data", file, requests))
    return "\n\n".join(parts) + "\n"


def _conversation(app: TaskWeaverApp, data: Path, file: str, requests: Sequence[str]) -> str:
    """Return a session about the one file of the data folder."""
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    _place(file, data)
    with app.get_session() as session:
        turns = [
            f"> {request}\n\n{session.send_message(request).post_list[-1].message}"
            for request in requests
        ]
    return fenced("\n\n".join(turns), "text")


def _place(file: str, folder: Path) -> None:
    if (DATA / file).is_file():
        shutil.copy(DATA / file, folder)
        return
    from sklearn import datasets

    load = getattr(datasets, f"load_{Path(file).stem}")
    load(as_frame=True).frame.to_csv(folder / file, index=False)


if __name__ == "__main__":
    sys.stdout.write(page())
