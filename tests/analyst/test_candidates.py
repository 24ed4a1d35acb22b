"""A request that names no file is read against the files with columns that it names."""

from __future__ import annotations

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings.reading import NeedsLook
from taskweaver.tables.files.world import FileInfo, PartInfo, World

FLIGHTS = FileInfo("flights.csv", (PartInfo("", ("carrier", "dep_delay"), 300),))
WEATHER = FileInfo("weather.csv", (PartInfo("", ("station", "wind speed"), 90),))
PROSE = FileInfo("minutes.txt")
WORLD = World((FLIGHTS, WEATHER, PROSE))


def test_only_the_file_with_a_named_column_is_looked_at() -> None:
    _, outcome = Dialogue().say("mean dep_delay per carrier", WORLD)
    assert outcome == NeedsLook(("flights.csv",))


def test_a_file_is_found_by_its_column_however_many_files_precede_it() -> None:
    others = [
        FileInfo(f"a{number:02}.csv", (PartInfo("", ("station", "wind"), 9),))
        for number in range(14)
    ]
    _, outcome = Dialogue().say("mean dep_delay per carrier", World((*others, FLIGHTS)))
    assert outcome == NeedsLook(("flights.csv",))
