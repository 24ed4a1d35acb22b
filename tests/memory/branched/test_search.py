"""Search in archival memory, with and without the index."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memories import Open

from taskweaver.memory.branched import MemoryManager, StoreUnwritable
from taskweaver.memory.branched.storage import schema


@pytest.fixture(params=["on", "off"])
def memory(request: pytest.FixtureRequest, open_memory: Open) -> MemoryManager:
    made = open_memory(use_fts=request.param)
    made.bind(made.create_branch(None, branch_id="root"))
    for text, tags in (
        ("linker error: undefined reference to cblas_dgemm", ["ERROR", "COMPILE"]),
        ("eight threads give twice the speed of four", ["PERFORMANCE"]),
        ("the phase1_iterative step installs numpy", ["PHASE1_INSTALL"]),
        ("error in the error handler, error again", ["ERROR"]),
    ):
        made.mem_archival_write(text, tags=tags)
    return made


def texts(memory: MemoryManager, query: str, branch: str = "root", **options: object) -> list[str]:
    found = memory.mem_archival_search(query, branch_id=branch, **options)  # type: ignore[arg-type]
    return [item["text"] for item in found if item["match"] == "query"]


def test_tags_are_searched_and_filtered_before_the_limit(memory: MemoryManager) -> None:
    assert texts(memory, "PERFORMANCE") == ["eight threads give twice the speed of four"]
    for n in range(30):
        memory.mem_archival_write(f"error number {n}", tags=["OTHER"])
    found = texts(memory, "error", tags=["ERROR", "COMPILE"], k=1)
    assert found == ["linker error: undefined reference to cblas_dgemm"]


def test_without_a_hit_the_newest_are_given_and_marked(memory: MemoryManager) -> None:
    found = memory.mem_archival_search("zebra", k=2)
    assert [item["match"] for item in found] == ["recency", "recency"]
    assert found[0]["text"].startswith("error in the error handler")
    assert len(memory.mem_archival_search("", k=3)) == 3
    assert memory.mem_archival_search("error", k=0) == []
    assert memory.mem_archival_search("zebra", tags=["NONE"]) == []


def test_a_word_in_nearly_every_record_only_fills_up(memory: MemoryManager) -> None:
    for n in range(450):
        memory.mem_archival_write(f"run {n} of the sweep")
    memory.mem_archival_write("run that found the leak in the sweep")
    memory.fork("root", "a")
    for n in range(450):
        memory.mem_archival_write(f"later run {n} of the sweep")
    found = texts(memory, "leak run sweep", "a", k=3)
    assert found[0] == "run that found the leak in the sweep"
    assert found[1:] == ["run 449 of the sweep", "run 448 of the sweep"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(query=st.text(max_size=60))
def test_any_query_is_answered(memory: MemoryManager, query: str) -> None:
    assert 1 <= len(memory.mem_archival_search(query, k=3)) <= 3
    assert isinstance(memory.mem_recall_search(query.replace("\0", "")), list)


@pytest.mark.parametrize("word", ["İstanbul", "nai\u0308ve", "ᏣᎳᎩ", "🦊fox", "हिन्दी", "ไทยแลนด์"])
def test_a_record_is_found_by_a_word_written_in_it(memory: MemoryManager, word: str) -> None:
    text = f"a note on {word} and more"
    memory.mem_archival_write(text)
    assert text in texts(memory, word)
    assert text in texts(memory, f'"{word}", \ud800')


def test_sqlite_without_fts5(open_memory: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "word_table", lambda name: f"CREATE VIRTUAL TABLE {name} USING no5")
    memory = open_memory(is_new=True)
    root = memory.create("root")
    root.remember("solver 1")
    root.remember("another")
    assert [found.text for found in root.search("solver", k=1)] == ["solver 1"]
    with pytest.raises(StoreUnwritable, match="no FTS5"):
        open_memory("needed.sqlite", is_new=True, use_fts="on")
