"""Search finds what a branch sees, and nothing else, on random trees."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memories import put_empty
from naive_model import Line, Model, Row
from sizes import examples

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.tiers import search

WORDS = ("alpha", "beta", "b1", "größe", "straight_up", "tagged")
PICK = st.integers(0, 1000)
TEXT = st.lists(st.sampled_from(WORDS[:-1]), min_size=1, max_size=3).map(" ".join)
FORK = st.tuples(st.just("fork"), PICK, st.integers(0, 12), st.booleans())
KEEP = st.tuples(st.just("keep"), PICK, TEXT, st.booleans())
OVERLAY = st.tuples(st.just("overlay"), PICK, PICK, TEXT)
DELETE = st.tuples(st.just("delete"), PICK, PICK)
STEPS = st.lists(st.one_of(FORK, KEEP, KEEP, OVERLAY, DELETE), min_size=5, max_size=40)
QUERY = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@pytest.fixture(params=["few words are common", "most words are common", "no index"])
def use_fts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Switch the index on or off, and bring its limits into the reach of a small tree."""
    if request.param == "most words are common":
        limits = {"_COMMON": 2, "_MOST_ROWS": 3, "_AT_LEAST": 1, "_FIRST_COMMON": 1, "_MORE": 1}
        limits |= {"_TOGETHER": 1, "_MOST_TOGETHER": 2, "_MANY": 2, "_MATCHES_PER_BRANCH": 3}
        for name, value in limits.items():
            monkeypatch.setattr(search, name, value)
    return "off" if request.param == "no index" else "on"


class Tree:
    """A memory and its naive model, grown together."""

    def __init__(self, memory: MemoryManager, *, live: bool) -> None:
        self.memory = memory
        self.model = Model()
        memory.create_branch(None, branch_id="b0", live=live)
        self.model.lines["b0"] = Line(None, 0, live)
        self.tags: dict[int, tuple[str, ...]] = {}
        self.past = [("b0", 0)]

    def take(self, step: tuple[Any, ...]) -> None:
        name, pick, *rest = step
        names = list(self.model.lines)
        branch = names[-1] if name == "fork" and pick % 3 else names[pick % len(names)]
        getattr(self, f"_{name}")(branch, *rest)
        self.past.append((branch, self.memory.seq))

    def _fork(self, parent: str, back: int, live: bool) -> None:
        now, name = self.memory.seq, f"b{len(self.model.lines)}"
        at = None if back > 6 else max(0, now - back)
        self.memory.fork(parent, name, at=at, live=live)
        self.model.lines[name] = Line(parent, now if at is None else at, live)

    def _keep(self, branch: str, text: str, is_tagged: bool) -> None:
        before, tags = self.memory.seq, ("tagged", "T") if is_tagged else ()
        id_ = int(self.memory.mem_archival_write(text, tags=tags, branch_id=branch))
        self.tags[id_] = tags
        if self.memory.seq > before:
            self._note(branch, id_, text)

    def _overlay(self, branch: str, which: int, text: str) -> None:
        if seen := sorted(self.model.archival(branch, self.memory.seq)):
            id_ = seen[which % len(seen)]
            self.memory.mem_archival_update(id_, text=text, branch_id=branch)
            self._note(branch, id_, text)

    def _delete(self, branch: str, which: int) -> None:
        if seen := sorted(self.model.archival(branch, self.memory.seq)):
            id_ = seen[which % len(seen)]
            self.memory[branch].forget(id_)
            self._note(branch, id_, None)

    def _note(self, branch: str, id_: int, text: str | None) -> None:
        self.model.rows.append(Row(self.memory.seq, branch, "archival", id_, text, 0.0))

    def expected(
        self, branch: str, at: int, query: str, tags: tuple[str, ...]
    ) -> tuple[set[tuple[int, str]], str]:
        """Return what a search must find, and whether that answers the query."""
        view, words = self.model.archival(branch, at).items(), set(query.split())
        seen = {(id_, text) for id_, text in view if set(tags) <= set(self.tags[id_])}
        hits = {item for item in seen if {*item[1].split(), *self.tags[item[0]]} & words}
        return (hits, "query") if hits else (seen, "recency")


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, query=QUERY, live=st.booleans(), tags=st.sampled_from([(), ("T",)]))
def test_search_finds_what_a_branch_sees_and_nothing_else(
    use_fts: str, steps: list[Any], query: str, live: bool, tags: tuple[str, ...]
) -> None:
    config = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL", use_fts=use_fts)
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryManager(put_empty(Path(folder) / "m.sqlite", use_fts), config) as memory,
    ):
        tree = Tree(memory, live=live)
        for step in steps:
            tree.take(step)
        now = [(branch, None) for branch in tree.model.lines]
        for branch, at in (*now, *tree.past[::4]):
            found = memory[branch].search(query, 100, tags=tags, at=at)
            ids = [(item.id, item.text) for item in found]
            wanted, match = tree.expected(branch, memory.seq if at is None else at, query, tags)
            assert sorted(ids) == sorted(wanted)
            assert {item.match for item in found} <= {match}
            assert ids[:2] == [
                (item.id, item.text) for item in memory[branch].search(query, 2, tags=tags, at=at)
            ]
        assert memory.verify().is_sound
