"""Random operations on random trees, against a plain list of rows that is looked through whole."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from memories import Clock, put_empty
from naive_model import Line, Model, Row

from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager

KEYS = st.sampled_from(["goal", "lr", "größe"])
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SAID = st.sampled_from(["ran", "failed at step", "naïve ☃", "x'; DROP TABLE events; --"])
TEXTS = st.sampled_from(["alpha beta", "gamma", "delta epsilon", "gamma two"])
PICK = st.integers(0, 10_000)
MOST_BRANCHES = 8
EXAMPLES = int(os.environ.get("TREES", "25"))
"""How many trees are grown; `make long` grows more."""


def counted(events: list[Any]) -> Counter[str]:
    """Count how often each text is seen."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.text] += event.count
    return counts


class MemoryMachine(RuleBasedStateMachine):
    @initialize(live=st.booleans(), consolidates=st.booleans())
    def open(self, live: bool, consolidates: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = put_empty(Path(self.folder.name) / "m.sqlite")
        logs = {"memory_log_enabled": False, "synchronous": "NORMAL"}
        self.config = MemoryConfig(auto_consolidate=consolidates, recall_max_events=3, **logs)  # type: ignore[arg-type]
        self.clock = Clock()
        self.memory = MemoryManager(self.path, self.config, clock=self.clock)
        self.model = Model()
        self.memory.create_branch(None, branch_id="b0", live=live)
        self.model.lines["b0"] = Line(None, 0, live)
        self.past: list[tuple[str, int]] = []
        self.turn = self.forks = self.travels = self.secrets = 0

    def branch(self, pick: int) -> str:
        names = list(self.model.lines)
        return names[pick % len(names)]

    def note(
        self, branch: str, tier: str, key: str | int, value: str | None, ttl: float | None = None
    ) -> None:
        now = self.clock.now
        ends = None if ttl is None else now + ttl
        self.model.rows.append(Row(self.memory.seq, branch, tier, key, value, now, ends))

    @rule(pick=PICK, back=st.integers(0, 12), live=st.booleans())
    def fork(self, pick: int, back: int, live: bool) -> None:
        if len(self.model.lines) >= MOST_BRANCHES:
            return
        self.forks += 1
        parent, name = self.branch(pick), f"b{self.forks}"
        now = self.memory.seq
        at = None if back > 8 else max(0, now - back)
        self.memory.fork(parent, name, at=at, live=live)
        self.model.lines[name] = Line(parent, now if at is None else at, live)

    @rule(seconds=st.integers(1, 4))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(pick=PICK, key=KEYS, value=VALUES, ttl=st.sampled_from([None, None, 2, 5]))
    def set_key(self, pick: int, key: str, value: str, ttl: float | None) -> None:
        branch = self.branch(pick)
        self.memory.mem_core_set(key, value, ttl=ttl, branch_id=branch)
        self.note(branch, "core", key, value, ttl)

    @rule(pick=PICK, key=KEYS)
    def delete_key(self, pick: int, key: str) -> None:
        branch = self.branch(pick)
        was = key in self.model.core(branch, self.memory.seq, self.clock.now)
        assert self.memory.mem_core_del(key, branch_id=branch) is was
        if was:
            self.note(branch, "core", key, None)

    @rule(pick=PICK, said=SAID)
    def append(self, pick: int, said: str) -> None:
        branch = self.branch(pick)
        seq = self.memory.mem_recall_append({"kind": "k", "content": said}, branch_id=branch)
        # How a repetition is told apart is the store's affair; what counts is what is seen.
        origin = self.origin(seq)
        self.model.rows.append(Row(seq, branch, "event", origin, said, self.clock.now))

    def origin(self, seq: int) -> int:
        row = self.memory._parts.database.reading.execute(
            "SELECT coalesce(repeats, seq) FROM events WHERE seq = ?", (seq,)
        ).fetchone()
        return int(row[0])

    @rule(pick=PICK, which=PICK)
    def hide(self, pick: int, which: int) -> None:
        branch = self.branch(pick)
        events = self.memory[branch].events()
        if not events:
            return
        event = events[which % len(events)]
        origin, before = self.origin(event.seq), self.memory.seq
        assert len(self.memory[branch].occurrences(event.seq)) == event.count
        block = {"recall_evict": {"ids": [event.seq]}}
        result = self.memory.apply_llm_memory_updates(branch, block)
        assert result["recall_evict"]["evicted_count"] == 1
        self.note(branch, "hidden", origin, None)
        records = self.memory[branch].records()
        assert any(event.text in record.text for record in records)
        record = max(records, key=lambda item: item.seq)
        if record.seq > before:  # the same text is kept once
            row = Row(record.seq, branch, "archival", record.id, record.text, self.clock.now)
            self.model.rows.append(row)

    @rule(pick=PICK, text=TEXTS, is_block=st.booleans())
    def keep(self, pick: int, text: str, is_block: bool) -> None:
        branch, before = self.branch(pick), self.memory.seq
        if is_block:
            block = {"archival": [{"text": text, "tags": ["T"]}]}
            (id_,) = self.memory.apply_llm_memory_updates(branch, block)["archival"]
        else:
            id_ = self.memory.mem_archival_write(text, tags=["T"], branch_id=branch)
        if self.memory.seq > before:
            assert int(id_) > before
            self.note(branch, "archival", int(id_), text)
        self.is_kept(branch, id_, text)

    def is_kept(self, branch: str, id_: str, text: str) -> None:
        """A write that was acknowledged is in view, whatever was written before."""
        assert self.model.archival(branch, self.memory.seq)[int(id_)] == text
        assert self.memory.mem_archival_get(id_, branch_id=branch)["text"] == text

    @rule(pick=PICK, which=PICK, text=st.sampled_from(["beta two", "gamma two", "gamma"]))
    def overlay(self, pick: int, which: int, text: str) -> None:
        branch = self.branch(pick)
        records = self.memory[branch].records()
        if records:
            record = records[which % len(records)]
            self.memory.mem_archival_update(record.id, text=text, branch_id=branch)
            self.note(branch, "archival", record.id, text)
            kept = self.memory.mem_archival_get(record.id, branch_id=branch)
            assert kept["tags"] == list(record.tags)

    @rule(pick=PICK, other=PICK, which=PICK)
    def promote(self, pick: int, other: int, which: int) -> None:
        branch, target, before = self.branch(pick), self.branch(other), self.memory.seq
        records = self.memory[branch].records()
        if records:
            record = records[which % len(records)]
            copy = self.memory.promote(record.id, target, branch_id=branch)
            if self.memory.seq > before:
                self.note(target, "archival", int(copy), record.text)
            self.is_kept(target, copy, record.text)

    @rule(pick=PICK, which=PICK)
    def delete_record(self, pick: int, which: int) -> None:
        branch = self.branch(pick)
        records = self.memory[branch].records()
        if records:
            record = records[which % len(records)]
            self.memory.apply_llm_memory_updates(branch, {"archival_delete": [record.id]})
            self.note(branch, "archival", record.id, None)

    @rule(pick=PICK, which=PICK)
    def delete_event(self, pick: int, which: int) -> None:
        branch = self.branch(pick)
        events = self.memory[branch].events()
        if events:
            event = events[which % len(events)]
            self.memory.apply_llm_memory_updates(branch, {"recall_delete": [event.seq]})
            self.note(branch, "hidden", self.origin(event.seq), None)

    @rule(text=st.sampled_from(["alpha beta", "gamma", "failed at step", "naïve ☃"]))
    def erase_text(self, text: str) -> None:
        self.memory.erase(text=text)
        self.model.erase(text)
        assert text.encode() not in self.path.read_bytes()

    @rule(pick=PICK, other=PICK)
    def erase_record(self, pick: int, other: int) -> None:
        """A record that is erased with its versions and copies leaves every view as it was.

        Rows date the past, so a look back at a key with an end may differ without them.
        """
        if any(row.expires is not None for row in self.model.rows):
            return
        branch, target = self.branch(pick), self.branch(other)
        self.secrets += 1
        texts = [f"{word} secret number {self.secrets} of mine" for word in ("first", "later")]
        record = self.memory[branch].remember(texts[0], tags=["S"])
        self.memory[branch].update(record, text=texts[1])
        self.memory.promote(record, target, branch_id=branch)
        assert self.memory.erase(record_id=record).is_complete
        files = [self.path, self.path.with_name("m.sqlite-wal")]
        content = b"".join(file.read_bytes() for file in files if file.exists())
        assert not any(text.encode() in content for text in texts)

    @rule(pick=PICK, key=KEYS)
    def refuse_half_a_block(self, pick: int, key: str) -> None:
        before = self.memory.seq
        block = {"core": {key: "never"}, "archival_search": {"query": "x", "k": "many"}}
        try:
            self.memory.apply_llm_memory_updates(self.branch(pick), block)
        except InvalidUpdate:
            assert self.memory.seq == before
        else:
            raise AssertionError("a malformed block was applied")

    @rule(pick=PICK)
    def remember_the_moment(self, pick: int) -> None:
        self.past.append((self.branch(pick), self.memory.seq))

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = MemoryManager(self.path, self.config, clock=self.clock)

    @rule(pick=PICK)
    def collect(self, pick: int) -> None:
        """Give a branch up with all below it, and remove what nobody sees."""
        names = list(self.model.lines)[1:]
        if len(names) < 3:
            return
        gone = self.model.below(names[pick % len(names)])
        assert set(self.memory.prune(names[pick % len(names)])) == gone
        assert set(self.memory.collect_garbage().branches) == gone
        self.model.drop(gone)
        self.past = [(branch, at) for branch, at in self.past if branch not in gone]

    @rule()
    def travel(self) -> None:
        """Another file that takes an export in shows the same on every branch."""
        if len(self.model.rows) < 6 or self.travels > 1:
            return
        self.travels += 1
        file = self.path.with_name(f"{self.travels}.jsonl")
        self.memory.export(file, is_private=True)
        path = put_empty(self.path.with_name(f"{self.travels}.sqlite"))
        now, at = self.clock.now, self.memory.seq
        with MemoryManager(path, self.config, clock=self.clock) as other:
            assert set(other.import_(file)) == set(self.model.lines)
            for branch in self.model.lines:
                there = other[branch]
                assert dict(there.core) == self.model.core(branch, at, now)
                texts = sorted(record.text for record in there.records())
                assert texts == sorted(self.model.archival(branch, at).values())
                assert counted(there.events()) == self.model.events(branch, at)
            assert other.verify().is_sound

    @invariant()
    def a_branch_sees_what_the_model_sees(self) -> None:
        if not hasattr(self, "model"):
            return
        self.turn += 1
        self.compare(self.branch(self.turn), None)
        if self.past:
            self.compare(*self.past[self.turn % len(self.past)])

    def compare(self, branch: str, at: int | None) -> None:
        memory, model = self.memory[branch], self.model
        seq = self.memory.seq if at is None else at
        now = self.clock.now if at is None else model.time_of(at)
        core = {key: entry.value for key, entry in memory.core.entries(at=at).items()}
        assert core == model.core(branch, seq, now)
        records = {item.id: item.text for item in memory.records(at=at)}
        assert records == model.archival(branch, seq)
        seqs = [event.seq for event in memory.events(at=at)]
        assert seqs == sorted(seqs, reverse=True)
        newest = [event.seq for event in memory.events(limit=2, at=at)]
        assert newest == seqs[:2]
        assert counted(memory.events(at=at)) == model.events(branch, seq)

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        try:
            for at in range(self.memory.seq + 1):  # every past row, of one branch
                self.compare(self.branch(self.turn), at)
            health = self.memory.verify()
            assert health.is_sound, health.problems
        finally:
            self.memory.close()
            self.folder.cleanup()


MemoryMachine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=40)
TestMemory = MemoryMachine.TestCase
