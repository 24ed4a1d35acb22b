"""Conversations: requests that change the last one, and answers to questions."""

from __future__ import annotations

from dataclasses import replace

from reading_worlds import FLIGHTS, NATIONS, replies, source, world

from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.readings import (
    And,
    Column,
    Comparison,
    GroupKey,
    Measure,
    NeedsLook,
    NotUnderstood,
    Rank,
    Share,
    Summary,
    Unclear,
    Understood,
)
from taskweaver.tables.files.profile import FileInfo, PartInfo, World

_FIRST = Summary(source(FLIGHTS), (Measure("mean", Column("dep_delay")),))


def _readings(*texts: str) -> list[object]:
    found = replies(world(FLIGHTS), *texts)
    return [outcome.reading if isinstance(outcome, Understood) else outcome for outcome in found]


def _where(name: str, value: object) -> Comparison:
    return Comparison(Column(name), "==", value)  # type: ignore[arg-type]


def test_a_condition_is_replaced_added_and_kept() -> None:
    texts = ("mean dep_delay of Delta", "and of United?", "only from JFK", "per destination")
    united = _where("carrier", "United")
    both = And((united, _where("origin", "JFK")))
    assert _readings(*texts) == [
        replace(_FIRST, where=_where("carrier", "Delta")),
        replace(_FIRST, where=united),
        replace(_FIRST, where=both),
        replace(_FIRST, where=both, keys=(GroupKey("destination"),)),
    ]


def test_order_share_and_picture_are_added() -> None:
    total = Summary(source(FLIGHTS), (Measure("sum", Column("distance")),), (GroupKey("carrier"),))
    texts = ("total distance per carrier", "sort that descending", "plot that as a bar chart")
    assert _readings(*texts)[1:] == [
        replace(total, rank=Rank()),
        replace(total, rank=Rank(), chart="bar"),
    ]
    assert _readings("total distance per carrier", "in percent")[1] == replace(total, then=Share())


def test_rows_of_the_last_answer_are_counted() -> None:
    readings = _readings("how many flights are from JFK", "how many of them are of Delta")
    both = And((_where("origin", "JFK"), _where("carrier", "Delta")))
    assert readings[1] == Summary(source(FLIGHTS), (Measure("count"),), where=both)


def test_the_winner_at_the_other_end() -> None:
    readings = _readings("which carrier has the most flights", "and the fewest?")
    assert isinstance(readings[1], Summary)
    assert readings[1].rank == Rank(ascending=True, count=1)


def test_the_same_question_is_not_asked_twice() -> None:
    first, second, third = replies(world(FLIGHTS), "mean delay", "mean delay", "the first one")
    assert isinstance(first, Unclear)
    assert isinstance(second, NotUnderstood)
    assert isinstance(third, Understood)


def test_a_file_is_chosen() -> None:
    found = replies(world(FLIGHTS, NATIONS), "how many rows are there", "the nations one")
    assert found[1] == Understood(Summary(source(NATIONS), (Measure("count"),)))


def test_a_follow_up_looks_at_no_other_file() -> None:
    files = (FileInfo("flights.csv"), FileInfo("nations.csv"))
    known = World(files, {FLIGHTS.id: FLIGHTS})
    dialogue, _ = Dialogue().say("mean dep_delay of Delta in flights.csv", known)
    _, outcome = dialogue.say("and of United?", known)
    assert outcome == Understood(replace(_FIRST, where=_where("carrier", "United")))
    text = "mean pop in Germany"
    assert dialogue.say(text, known)[1] == NeedsLook(("nations.csv",), text)


def test_a_file_is_found_by_its_column_however_many_files_precede_it() -> None:
    others = [FileInfo(f"a{n}.csv", (PartInfo("", ("station", "wind"), 9),)) for n in range(14)]
    last = FileInfo("flights.csv", (PartInfo("", ("carrier", "dep_delay"), 300),))
    text = "mean dep_delay per carrier"
    _, outcome = Dialogue().say(text, World((*others, last)))
    assert outcome == NeedsLook(("flights.csv",), text)
