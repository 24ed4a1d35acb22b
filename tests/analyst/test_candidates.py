"""A request that names no file is read against the files with columns that it names."""

from __future__ import annotations

from dataclasses import replace

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings.reading import NeedsLook, NotUnderstood, Understood
from taskweaver.tables.files.profile import ColumnProfile, TableId, TableProfile
from taskweaver.tables.files.world import FileInfo, PartInfo, World

FLIGHTS = FileInfo("flights.csv", (PartInfo("", ("carrier", "dep_delay"), 300),))
WEATHER = FileInfo("weather.csv", (PartInfo("", ("station", "wind speed"), 90),))
PROSE = FileInfo("minutes.txt")
WORLD = World((FLIGHTS, WEATHER, PROSE))
DELAYS = TableProfile(
    TableId("flights.csv"),
    300,
    (
        ColumnProfile("carrier", "text", 2, values=("Delta", "United")),
        ColumnProfile("dep_delay", "number", 80, low="-9", high="300"),
    ),
)


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


def test_a_word_of_a_long_name_counts() -> None:
    _, outcome = Dialogue().say("highest wind?", WORLD)
    assert outcome == NeedsLook(("weather.csv",))


def test_all_tables_are_looked_at_where_no_column_is_named() -> None:
    _, outcome = Dialogue().say("how many are from Delta?", WORLD)
    assert outcome == NeedsLook(("flights.csv", "weather.csv"))


def test_a_reading_with_unknown_words_looks_at_the_other_tables_too() -> None:
    world = replace(WORLD, tables={DELAYS.id: DELAYS})
    _, outcome = Dialogue().say("mean dep_delay for Oslo", world)
    assert outcome == NeedsLook(("weather.csv",))


def test_a_file_without_a_table_is_passed_by() -> None:
    world = replace(WORLD, tables={DELAYS.id: DELAYS}, unreadable=frozenset({"weather.csv"}))
    _, outcome = Dialogue().say("mean dep_delay for Oslo", world)
    assert isinstance(outcome, NotUnderstood)
    _, outcome = Dialogue().say("how many are from Delta?", world)
    assert isinstance(outcome, Understood)


def test_a_follow_up_stays_with_its_table() -> None:
    world = replace(WORLD, tables={DELAYS.id: DELAYS})
    dialogue, _ = Dialogue().say("mean dep_delay", world)
    _, outcome = dialogue.say("only Delta", world)
    assert isinstance(outcome, Understood)
