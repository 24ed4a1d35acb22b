"""Profiles of tables that requests are read against, and short forms of readings."""

from __future__ import annotations

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import Outcome, Reading, TableSource, Understood
from taskweaver.tables.files.profile import (
    ColumnProfile,
    FileInfo,
    Kind,
    PartInfo,
    TableId,
    TableProfile,
    World,
)


def column(name: str, kind: Kind, *values: str, low: str = "", high: str = "") -> ColumnProfile:
    """Return the profile of a column; texts without values have many."""
    distinct = len(values) or 300
    return ColumnProfile(name, kind, distinct, 0, low, high, values or None)


def number(name: str, high: str = "900") -> ColumnProfile:
    """Return the profile of a column of numbers."""
    return column(name, "number", low="0", high=high)


def table(file: str, *columns: ColumnProfile, rows: int = 400) -> TableProfile:
    """Return the profile of a file with one table."""
    return TableProfile(TableId(file), rows, columns)


FLIGHTS = table(
    "flights.csv",
    column("date", "time", low="2023-01-01", high="2024-02-04"),
    column("carrier", "text", "Delta", "United", "JetBlue"),
    column("origin", "text", "JFK", "LGA"),
    column("destination", "text", "Boston", "Los Angeles", "Japan"),
    number("dep_delay"),
    number("arr_delay"),
    number("distance"),
    column("discount", "number", low="0", high="0.4"),
    column("cancelled", "flag", "True", "False"),
)
NATIONS = table(
    "nations.csv",
    column("country", "text", *(f"Land{n}" for n in range(97)), "Germany", "France", "Japan"),
    column("continent", "text", "Africa", "Europe"),
    column("year", "integer", *map(str, range(1990, 2010)), low="1990", high="2009"),
    number("lifeExp"),
    number("pop"),
    number("gdpPercap"),
    rows=2000,
)
CLIENTS = table(
    "clients.csv",
    ColumnProfile("client_id", "integer", 20, 0, "1", "20"),
    column("name", "text", "Mia", "Tom"),
    column("city", "text", "Boston", "Newark"),
    rows=20,
)
PURCHASES = table(
    "purchases.csv",
    ColumnProfile("purchase_id", "integer", 400, 0, "1", "400"),
    ColumnProfile("client_id", "integer", 20, 0, "1", "20"),
    column("status", "text", "open", "paid", "returned"),
    number("quantity"),
    number("unit_price"),
)
ODD = table(
    "odd.csv",
    column("topic", "text", "age", "income", "not", "other", "'); DROP TABLE x; --"),
    number("age"),
    number("count"),
    number("mean"),
    number("Net Income (EUR)"),
    column("size", "text", "A", "B"),
)
ALL = (FLIGHTS, NATIONS, CLIENTS, PURCHASES, ODD)


def world(*tables: TableProfile) -> World:
    """Return the world of some tables."""
    files = tuple(
        FileInfo(t.id.file, (PartInfo("", tuple(c.name for c in t.columns), t.rows),))
        for t in tables
    )
    return World(files, {t.id: t for t in tables})


def source(*tables: TableProfile, on: str = "") -> TableSource:
    """Return the source of a reading."""
    return TableSource(tuple(t.id for t in tables), ((on,),) if on else ())


def outcome_of(text: str, *tables: TableProfile) -> Outcome:
    """Return the outcome of the first message of a conversation."""
    return Dialogue().say(text, world(*tables))[1]


def reading_of(text: str, *tables: TableProfile) -> Reading:
    """Return the reading of the first message of a conversation."""
    outcome = outcome_of(text, *tables)
    assert isinstance(outcome, Understood), outcome
    return outcome.reading


def replies(world_: World, *texts: str) -> list[Outcome]:
    """Return the outcomes of the messages of a conversation."""
    dialogue, found = Dialogue(), list[Outcome]()
    for text in texts:
        dialogue, outcome = dialogue.say(text, world_)
        found.append(outcome)
    return found
