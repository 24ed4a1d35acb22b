"""Truth over time: a diary of two weeks, asked at five dates, and facts that close each other."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memories import Clock, Open

from taskweaver.cli.main import commands
from taskweaver.memory.branched import InvalidUpdate, MemoryManager, RecordNotVisible
from taskweaver.memory.vectors.embedders import static_embedder


def noon(day: int) -> datetime:
    return datetime(2026, 4, 30, 12, tzinfo=UTC) + timedelta(days=day)


TRUTH = {
    1: {"The office is in Berlin", "Revenue is net of tax", "Anna leads sales", "cap: 10"},
    4: {"The office is in Munich", "Revenue is net of tax", "Anna leads sales", "cap: 10"},
    7: {"The office is in Munich", "Revenue includes tax", "cap: 12", "Offer of May: 5 %"},
    10: {"The office is in Munich", "Revenue is net of tax", "Bela leads sales"},
    14: {"The office is in Munich", "Revenue is net of tax", "Bela leads sales",
         "The office is closed on Fridays"},
}  # fmt: skip
"""What holds at noon of five days, core keys included."""


def write_diary(memory: MemoryManager, clock: Clock) -> None:
    """Write from the 1st to the 14th of May, each day at eight."""
    memory.create_branch(None, branch_id="diary")
    diary = memory["diary"]

    def morning(day: int) -> None:
        clock.now = noon(day).timestamp() - 4 * 3600

    morning(1)
    office = diary.remember("The office is in Berlin", tags=["fact"])
    tax = diary.remember("Revenue is net of tax", tags=["fact"])
    lead = diary.remember("Anna leads sales", tags=["fact"])
    diary.core["cap"] = "10"
    morning(3)
    diary.remember("The office is in Munich", tags=["fact"], replaces=[office])
    morning(5)
    wrong = diary.remember("Revenue includes tax", tags=["fact"], replaces=[tax])
    diary.remember("Offer of May: 5 %", tags=["fact"], valid_to="2026-05-09")
    morning(6)
    diary.core.set("cap", "12", ttl="3d")
    diary.forget(lead)
    morning(8)
    diary.remember("Revenue is net of tax", tags=["fact"], replaces=[wrong])
    diary.remember("Bela leads sales", tags=["fact"])
    diary.remember("The office is closed on Fridays", tags=["fact"], valid_from="2026-05-12")
    morning(14)
    diary.append({"content": "the last page"})


def facts(memory: MemoryManager, branch: str = "diary", at: Any = None) -> set[str]:
    return {record.text for record in memory[branch].records(tags=["fact"], at=at)}


@pytest.mark.parametrize("use_fts", ["on", "off"])
@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_diary_is_asked_at_five_dates(
    open_memory: Open, clock: Clock, use_fts: str, has_vectors: bool
) -> None:
    memory = open_memory(use_fts=use_fts, embedder=static_embedder() if has_vectors else None)
    write_diary(memory, clock)
    every = set().union(*TRUTH.values())
    for day, truth in TRUTH.items():
        at = noon(day)
        core = {f"{k}: {entry.value}" for k, entry in memory["diary"].core.entries(at=at).items()}
        assert facts(memory, at=at) | core == truth, day
        prompt = memory["diary"].render(task="office, revenue, sales, offer, cap", at=at).text
        assert {text for text in every if text in prompt} == truth, day
        for query in ("office", "revenue tax", "leads sales", "offer of May"):
            found = {record.text for record in memory["diary"].search(query, 9, at=at)}
            assert found <= truth, (day, query)
            words = set(query.split())
            assert {text for text in truth if words & set(text.lower().split())} <= found, day
    clock.now = noon(14).timestamp()
    assert facts(memory) == facts(memory, at=noon(14)) == facts(memory, at=memory.seq)
    assert memory.verify().is_sound


def test_a_corrected_fact_has_a_history(open_memory: Open, clock: Clock) -> None:
    memory = open_memory()
    write_diary(memory, clock)
    history = [(item.text, item.valid_from, item.valid_to) for item in memory["diary"].closed()]
    morning = [noon(day).timestamp() - 4 * 3600 for day in range(15)]
    assert history == [
        ("Offer of May: 5 %", None, morning[9] - 8 * 3600),
        ("Revenue includes tax", morning[5], morning[8]),
        ("Revenue is net of tax", morning[1], morning[5]),
        ("The office is in Berlin", morning[1], morning[3]),
    ]
    assert [item.text for item in memory["diary"].closed(at=noon(4))] == ["The office is in Berlin"]
    berlin = memory["diary"].closed()[-1]
    munich = memory["diary"].get(berlin.replaced_by)
    assert munich.text == "The office is in Munich"
    with pytest.raises(RecordNotVisible, match=f"record {munich.id} replaced it"):
        memory["diary"].get(berlin.id)
    ran = CliRunner().invoke(commands, ["memory", "show", str(memory.path), "--at", "2026-05-04"])
    assert "The office is in Berlin" in ran.output.partition("no longer true")[2]
    assert "Offer" not in ran.output
    assert "The office is in Munich" in ran.output.partition("no longer true")[0]


def test_no_row_and_no_clock_shows_a_contradiction(memory: MemoryManager, clock: Clock) -> None:
    root = memory["root"]
    root.remember("it is blue", replaces=[root.remember("it is red")])
    seen = [{item.text for item in root.records(at=at)} for at in range(memory.seq + 1)]
    assert {"it is red"} in seen
    assert {"it is red", "it is blue"} not in seen
    clock.now -= 1000
    assert [item.text for item in root.records()] == ["it is blue"]


def test_a_change_that_was_announced_comes_at_its_time(memory: MemoryManager, clock: Clock) -> None:
    root = memory["root"]
    old = root.remember("rent is 10")
    new = root.remember("rent is 12", replaces=[old], valid_from=clock.now + 100)
    assert [item.id for item in root.records()] == [old]
    clock.now += 100
    assert [item.id for item in root.records()] == [new]
    root.update(new, valid_to=clock.now + 50)
    assert [item.id for item in root.search("rent")] == [new]
    clock.now += 50
    assert root.search("rent") == root.records() == []


def test_a_fork_closes_for_itself(memory: MemoryManager) -> None:
    fact = memory["root"].remember("seeds are fixed", tags=["fact"])
    child = memory["root"].fork("child")
    child.remember("seeds are random", tags=["fact"], replaces=[fact])
    child.fork("grandchild")
    assert facts(memory, "root") == {"seeds are fixed"}
    assert facts(memory, "child") == facts(memory, "grandchild") == {"seeds are random"}
    for branch, text in (("root", "seeds are fixed"), ("grandchild", "seeds are random")):
        assert [item.text for item in memory[branch].search("seeds")] == [text]
    assert memory["root"].closed() == []
    promoted = memory["child"].promote(memory["child"].records()[0].id, "root")
    assert facts(memory, "root") == {"seeds are random"}
    assert str(memory["root"].closed()[0].replaced_by) == promoted


def test_a_merge_closes_what_the_source_closed(memory: MemoryManager) -> None:
    root = memory["root"]
    red, ten = root.remember("it is red", tags=["fact"]), root.remember("ten", tags=["fact"])
    for name in ("one", "two"):
        root.fork(name)
    blue = memory["one"].remember("it is blue", tags=["fact"], replaces=[red])
    memory["one"].remember("it is green", tags=["fact"], replaces=[blue])
    memory["one"].update(ten, valid_to=1.0)
    assert memory.merge("one", "root").applied
    assert facts(memory, "root") == {"it is green"}
    assert {item.text for item in root.closed()} == {"it is red", "ten"}
    assert facts(memory, "two") == {"it is red", "ten"}
    assert memory.merge("one", "root").taken == []
    assert memory.merge("root", "two").applied
    assert facts(memory, "two") == {"it is green"}


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("ours", "blue"), ("theirs", "green"), ("newest", "green"), ("importance", "blue")],
)
@pytest.mark.parametrize("is_changed", [True, False])
def test_two_replacements_of_one_fact_are_a_conflict(
    memory: MemoryManager, policy: str, kept: str, is_changed: bool
) -> None:
    red = memory["root"].remember("red", tags=["fact"])
    ours, theirs = memory["root"].fork("ours"), memory["root"].fork("theirs")
    if is_changed:
        ours.update(red, text="blue")
    else:
        ours.remember("blue", tags=["fact"], replaces=[red])
    theirs.remember("green", tags=["fact"], replaces=[red])
    name = f"record {red}"
    assert memory.merge_preview("theirs", "ours").conflicts == {name: ("red", "blue", "green")}
    undecided = memory.merge("theirs", "ours")
    assert (undecided.applied, undecided.conflicts) == (False, [name])
    memory.merge("theirs", "ours", "manual", {name: policy})
    assert facts(memory, "ours") == {kept}


def test_copies_keep_the_history(open_memory: Open, tmp_path: Path, clock: Clock) -> None:
    memory, other = open_memory(), open_memory("other.sqlite")
    write_diary(memory, clock)
    memory.export(tmp_path / "out.jsonl", "diary")
    other.create_branch(None, branch_id="root")
    other.write_archival("root", "takes the first numbers", tags=["fact"])
    other.import_(tmp_path / "out.jsonl")
    assert facts(other, "root", at=noon(4)) == set()
    assert facts(other, "root", at=noon(14)) == {"takes the first numbers"}
    memory.backup(tmp_path / "copy.sqlite")
    for copy in (other, open_memory("copy.sqlite")):
        assert facts(copy) == facts(memory)
        assert facts(copy, at=noon(4)) == facts(memory, at=noon(4))
        berlin = copy["diary"].closed()[-1]
        assert copy["diary"].get(berlin.replaced_by).text == "The office is in Munich"
        assert copy.verify().is_sound


def test_a_block_of_a_model_names_what_it_replaces(memory: MemoryManager) -> None:
    fact = memory["root"].remember("8 threads are best")
    block = {"archival": [{"text": "4 threads are best", "replaces": f"#{fact}"}]}
    memory["root"].apply(block)
    assert [item.text for item in memory["root"].records()] == ["4 threads are best"]
    with pytest.raises(RecordNotVisible, match=r"archival\[0\]\.replaces: .*replaced it"):
        memory["root"].apply({"archival": {"text": "2 threads are best", "replaces": [fact]}})
    later = {"text": "rest", "valid_from": "2999-01-01", "valid_to": "2999-01-02"}
    memory["root"].apply({"archival": later})
    assert len(memory["root"].records()) == 1
    for wrong in ({"valid_from": "soon"}, {"valid_to": [1]}, {"replaces": "it"}):
        with pytest.raises(InvalidUpdate):
            memory["root"].apply({"archival": {"text": "x", **wrong}})
    with pytest.raises(InvalidUpdate, match="later than valid_from"):
        memory["root"].remember("x", valid_from="2026-05-02", valid_to="2026-05-01")


def test_an_erased_fact_leaves_the_history(memory: MemoryManager) -> None:
    fact = memory["root"].remember("the code is 4711-0815")
    memory["root"].remember("there is no code", replaces=[fact])
    memory.erase(text="the code is 4711-0815")
    assert memory["root"].closed() == []
    assert b"4711-0815" not in memory.path.read_bytes()
    assert memory.verify().is_sound


def test_an_earlier_version_that_still_runs_hides_a_closed_fact(memory: MemoryManager) -> None:
    """Its queries know `is_deleted`, and its rows lack the new columns."""
    fact = memory["root"].remember("it is red", tags=["fact"])
    memory["root"].remember("it is blue", tags=["fact"], replaces=[fact])
    newest = (
        "SELECT text FROM archival a WHERE is_deleted = 0 AND seq ="
        " (SELECT max(seq) FROM archival WHERE record = a.record)"
    )
    with closing(sqlite3.connect(memory.path)) as earlier, earlier:
        assert earlier.execute(newest).fetchall() == [("it is blue",)]
        (seq,) = earlier.execute("UPDATE clock SET seq = seq + 1 RETURNING seq").fetchone()
        earlier.execute(
            "INSERT INTO archival (seq, branch_id, record, text, text_hash, tags, meta, created_at)"
            " VALUES (?, 1, ?, 'of an earlier version', 0, ?, '{}', 1.0)",
            (seq, seq, json.dumps(["fact"])),
        )
    assert facts(memory, "root") == {"it is blue", "of an earlier version"}
    assert memory["root"].search("earlier version")[0].id == seq
    assert memory.verify().is_sound
