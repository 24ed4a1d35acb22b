"""Profiles of tables that requests are read against, and their outcomes in words."""

from __future__ import annotations

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import Help, NotUnderstood, Outcome, TableSource, Understood
from taskweaver.analyst.wording.requests import in_words
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
    "flights.csv", column("date", "time", low="2023-01-01", high="2024-02-04"),
    column("carrier", "text", "Delta", "United", "JetBlue"), column("origin", "text", "JFK", "LGA"),
    column("destination", "text", "Boston", "Los Angeles", "Japan"), number("dep_delay"),
    number("arr_delay"), number("distance"), column("discount", "number", low="0", high="0.4"),
    column("cancelled", "flag", "True", "False"),
)  # fmt: skip
NATIONS = table(
    "nations.csv",
    column("country", "text", *(f"Land{n}" for n in range(97)), "Germany", "France", "Japan"),
    column("continent", "text", "Africa", "Europe"),
    column("year", "integer", *map(str, range(1990, 2010)), low="1990", high="2009"),
    number("lifeExp"), number("pop"), number("gdpPercap"), rows=2000,
)  # fmt: skip
CLIENTS = table(
    "clients.csv", ColumnProfile("client_id", "integer", 20, 0, "1", "20"),
    column("name", "text", "Mia", "Tom"), column("city", "text", "Boston", "Newark"), rows=20,
)  # fmt: skip
PURCHASES = table(
    "purchases.csv", ColumnProfile("purchase_id", "integer", 400, 0, "1", "400"),
    ColumnProfile("client_id", "integer", 20, 0, "1", "20"),
    column("status", "text", "open", "paid", "returned"), number("quantity"), number("unit_price"),
)  # fmt: skip
ODD = table(
    "odd.csv", column("topic", "text", "age", "income", "not", "other", "'); DROP TABLE x; --"),
    number("age"), number("count"), number("mean"), number("Net Income (EUR)"),
    column("size", "text", "A", "B"),
)  # fmt: skip
ALL = (FLIGHTS, NATIONS, CLIENTS, PURCHASES, ODD)
VOYAGES = table(
    "voyage.csv", column("name", "text", *(f"P{n}" for n in range(300))),
    column("sex", "text", "female", "male"), number("age", high="80"),
    column("passengerClass", "text", "A1", "B2", "C3"), column("port", "text", "Oslo", "Bergen"),
    column("survived", "text", "yes", "no"), column("recommend", "text", "Yes", "No", "Maybe"),
    number("fare", high="500"), rows=300,
)  # fmt: skip
DEPARTURES = table(
    "flights.csv", column("month", "integer", *map(str, range(1, 13)), low="1", high="12"),
    ColumnProfile("flight", "integer", 350, 0, "1", "4000"), column("carrier", "text", "UA", "DL"),
    column("origin", "text", "JFK", "LGA"), column("dest", "text", "BOS", "LAX"),
    number("dep_delay"), column("time_hour", "time", low="2013-01-01", high="2013-12-31"), rows=400,
)  # fmt: skip
DEATHS = table(
    "riots.csv", column("race", "text", "Black", "White"),
    column("type", "text", "Death", "Homicide"), column("county", "text", "OHIO", "KNOX"),
    column("state", "text", "OH", "IL"), column("species", "text", "Human", "Droid"),
    column("death_date", "time", low="1992-04-29", high="1992-05-12"), number("percent"),
)  # fmt: skip
STORMS = table(
    "storms.csv", column("name", "text", "Ana", "Bob"),
    column("year", "integer", *map(str, range(1985, 2015)), low="1985", high="2014"),
    column("status", "text", "hurricane", "tropical storm"), number("wind", high="150"),
    ColumnProfile("hurricane_force_diameter", "number", 9, 20, "10", "60"),
)  # fmt: skip
MEAT = table(
    "meat.csv", ColumnProfile("date", "time", 330, 0, "1985-01-01", "2012-12-01"),
    number("beef", high="1500"), number("pork", high="1500"),
    ColumnProfile("part_id", "integer", 330, 0, "1", "330"), rows=330,
)  # fmt: skip
TALLIES = table(
    "ships.csv", column("class", "text", "1st", "Crew"), column("survived", "text", "Yes", "No"),
    ColumnProfile("freq", "integer", 30, 0, "1", "40"), rows=32,
)  # fmt: skip
BILLS = table(
    "bills.csv", column("day", "text", "Sat", "Sun"), column("sex", "text", "Male", "Female"),
    number("tip"), ColumnProfile("size", "integer", 6, 0, "1", "6"), rows=200,
)  # fmt: skip
WINDS = table(
    "winds.csv", ColumnProfile("month", "integer", 5, 0, "5", "9", ("5", "6", "7", "8", "9")),
    ColumnProfile("day", "integer", 31, 0, "1", "31"), number("wind"), rows=150,
)  # fmt: skip
PRICES = table(
    "stocks.csv", column("symbol", "text", "AAPL", "MSFT"),
    ColumnProfile("date", "time", 120, 0, "2000-01-01", "2010-01-01"), number("price"), rows=560,
)  # fmt: skip
INHABITANTS = table(
    "land.csv", column("land", "text", "Germany", "Japan"),
    ColumnProfile("year", "integer", 20, 0, "1990", "2009", tuple(map(str, range(1990, 2010)))),
    ColumnProfile("pop", "integer", 900, 0, "9", "90000"), rows=1000,
)  # fmt: skip
RACES = table(
    "races.csv", column("runner", "text", "Ann", "Bo"), number("time"), number("hour")
)  # fmt: skip
FILMS = table(
    "movies.json", column("Title", "text", "Made", "Titanic"),
    column("Director", "text", "Cameron", "Nolan"),
    column("Source", "text", "Musical Group Movie", "Based on Short Film"), number("Gross"),
    rows=3000,
)  # fmt: skip
ARRESTS = table(
    "rossi.csv", ColumnProfile("week", "integer", 49, 0, "1", "52"),
    ColumnProfile("arrest", "integer", 2, 0, "0", "1", ("0", "1")),
    ColumnProfile("age", "integer", 28, 0, "17", "44"), rows=432,
)  # fmt: skip
SHIP = table(
    "ship.csv", column("pclass", "text", "1st", "2nd", "3rd"),
    column("sex", "text", "male", "female"), column("region", "text", "North", "South"),
    *map(number, "age fare delay gas height_m".split()),
)  # fmt: skip


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


def replies(world_: World, *texts: str) -> list[Outcome]:
    """Return the outcomes of the messages of a conversation."""
    dialogue, found = Dialogue(), list[Outcome]()
    for text in texts:
        dialogue, outcome = dialogue.say(text, world_)
        found.append(outcome)
    return found


def said(world_: World, *texts: str) -> str:
    """Return the last outcome in words: a reading, or ``?`` with the offer of a refusal."""
    last = replies(world_, *texts)[-1]
    if isinstance(last, Understood):
        is_help = isinstance(last.reading, Help)
        return last.reading.topic if is_help else in_words(last.reading)
    offer = last.nearest if isinstance(last, NotUnderstood) else None
    return f"? {offer.text}" if offer else "?"
