"""Pictures: the kind that was asked for, of the values of the answer, saved under their words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from rendered_cells import SALES, run

from taskweaver.analyst.code.charts import MOST_BARS, picture_name
from taskweaver.analyst.readings import Column, GroupKey, Measure, Rows, Summary, TableSource
from taskweaver.tables.files.profile import TableId

SOURCE = TableSource((TableId("sales.csv"),))
AMOUNT, COUNT = Column("amount"), Column("count")
SUM = (Measure("sum", COUNT),)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder for pictures, which have fewer dots."""
    save = Figure.savefig

    def save_coarse(figure: Figure, file: str, *, dpi: int, **more: Any) -> None:
        save(figure, file, dpi=dpi // 3, **more)

    monkeypatch.setattr(Figure, "savefig", save_coarse)
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}):
        yield
    plt.close("all")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing in pictures of kinds that other tests draw: it takes longer than all else."""
    monkeypatch.setattr(Figure, "savefig", lambda _, file, **__: Path(file).write_bytes(b"drawn"))


def drawn(reading: Summary | Rows, frame: pd.DataFrame = SALES) -> tuple[Any, str]:
    """Return the axes of the picture that a reading draws, and its file."""
    before = set(plt.get_fignums())
    found = run(reading, {"sales.csv": frame})
    assert found.names <= {"sales", "result"}
    (new,) = set(plt.get_fignums()) - before
    (file,) = Path().glob("*.png")
    return plt.figure(new).axes[0], file.name


def test_bars_have_the_values_of_the_table() -> None:
    axes, file = drawn(Summary(SOURCE, SUM, (GroupKey("region"),), chart="bar"))
    assert [bar.get_height() for bar in axes.patches] == [11, 12, 7]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["East", "North", "South"]
    assert axes.get_title() == "Bar chart of sum of count per region"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("region", "sum of count")
    assert file == "bar_chart_of_sum_of_count_per_region.png"


@pytest.mark.usefixtures("undrawn")
def test_a_picture_has_at_most_thirty_bars_and_the_answer_says_so() -> None:
    frame = pd.DataFrame({"name": [f"n{at}" for at in range(100)], "count": range(100)})
    reading = Summary(SOURCE, SUM, (GroupKey("name"),), chart="bar")
    answer = run(reading, {"sales.csv": frame}).answer
    bars = plt.gcf().axes[0].patches
    assert sorted(bar.get_width() for bar in bars) == list(range(100 - MOST_BARS, 100))
    assert f"largest {MOST_BARS} of 100 bars" in answer


def test_a_box_for_each_group() -> None:
    axes, _ = drawn(Rows(SOURCE, ("count",), chart="box", split="region"))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["East", "North", "South"]


def test_names_of_pictures_are_short_and_plain() -> None:
    assert picture_name("Mean of `lifeExp`") == "mean_of_lifeexp.png"
    long, other = picture_name("a" * 200), picture_name("a" * 200 + "b")
    assert len(long) <= 60
    assert long != other
    assert picture_name("売上") != picture_name("名前")
    for words in ("売上", "../../etc/passwd", "a\x00b", "CON", "é" * 90, ""):
        name = picture_name(words)
        assert name.isascii()
        assert len(name) <= 60
        assert name.endswith(".png")
        assert "/" not in name
        assert not name.startswith(".")
