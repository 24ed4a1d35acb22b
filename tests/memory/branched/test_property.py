"""Random operations on random trees, against a plain list of rows that is looked through whole."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager

KEYS = st.sampled_from(["goal", "lr", "größe"])
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SAID = st.sampled_from(["ran", "failed at step", "naïve ☃", "x'; DROP TABLE events; --"])
PICK = st.integers(0, 10_000)


@dataclass
class Row:
    seq: int
    branch: str
    tier: str
    key: str | int
    value: str | None


@dataclass
class Line:
    parent: str | None
    fork_seq: int
    live: bool


class Model:
    """The same memory, the slow way: every question looks at every row."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.lines: dict[str, Line] = {}

    def seen(self, branch: str, tier: str, at: int) -> list[tuple[int, Row]]:
        """Return the rows a branch sees at a number, with how far away they were written."""
        found, end, name, distance = [], at, branch, 0
        while True:
            line = self.lines[name]
            is_open = line.live and tier != "hidden"
            upper = at if is_open and distance else end
            found += [
                (distance, row)
                for row in self.rows
                if row.branch == name and row.tier == tier and row.seq <= upper
            ]
            if line.parent is None:
                return found
            end, name, distance = min(end, line.fork_seq), line.parent, distance + 1

    def _nearest(self, branch: str, tier: str, at: int) -> dict[str | int, Row]:
        best: dict[str | int, tuple[int, int, Row]] = {}
        for distance, row in self.seen(branch, tier, at):
            rank = (distance, -row.seq, row)
            if row.key not in best or rank[:2] < best[row.key][:2]:
                best[row.key] = rank
        return {key: row for key, (_, _, row) in best.items()}

    def core(self, branch: str, at: int) -> dict[str, str]:
        newest = self._nearest(branch, "core", at)
        return {str(key): row.value for key, row in newest.items() if row.value is not None}

    def archival(self, branch: str, at: int) -> dict[int, str]:
        newest = self._nearest(branch, "archival", at)
        return {int(key): row.value for key, row in newest.items() if row.value is not None}

    def events(self, branch: str, at: int) -> dict[str, int]:
        """Return what is seen, and how often, of events that are not hidden."""
        hidden: dict[int, int] = {}
        for _, row in self.seen(branch, "hidden", at):
            hidden[int(row.key)] = max(row.seq, hidden.get(int(row.key), 0))
        counts: dict[str, int] = {}
        for _, row in self.seen(branch, "event", at):
            if row.seq > hidden.get(int(row.key), 0):
                counts[str(row.value)] = counts.get(str(row.value), 0) + 1
        return counts


class MemoryMachine(RuleBasedStateMachine):
    @initialize(live=st.booleans(), consolidates=st.booleans())
    def open(self, live: bool, consolidates: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "m.sqlite"
        self.config = MemoryConfig(
            auto_consolidate=consolidates,
            recall_max_events=3,
            memory_log_enabled=False,
            synchronous="NORMAL",
        )
        self.memory = MemoryManager(self.path, self.config)
        self.model = Model()
        self.memory.create_branch(None, branch_id="b0", live=live)
        self.model.lines["b0"] = Line(None, 0, live)
        self.past: list[tuple[str, int]] = []
        self.turn = 0

    def branch(self, pick: int) -> str:
        names = list(self.model.lines)
        return names[pick % len(names)]

    def note(self, branch: str, tier: str, key: str | int, value: str | None) -> None:
        self.model.rows.append(Row(self.memory.seq, branch, tier, key, value))

    @rule(pick=PICK, back=st.integers(0, 12), live=st.booleans())
    def fork(self, pick: int, back: int, live: bool) -> None:
        if len(self.model.lines) >= 8:
            return
        parent, name = self.branch(pick), f"b{len(self.model.lines)}"
        now = self.memory.seq
        at = None if back > 8 else max(0, now - back)
        self.memory.fork(parent, name, at=at, live=live)
        self.model.lines[name] = Line(parent, now if at is None else at, live)

    @rule(pick=PICK, key=KEYS, value=VALUES)
    def set_key(self, pick: int, key: str, value: str) -> None:
        branch = self.branch(pick)
        self.memory.mem_core_set(key, value, branch_id=branch)
        self.note(branch, "core", key, value)

    @rule(pick=PICK, key=KEYS)
    def delete_key(self, pick: int, key: str) -> None:
        branch = self.branch(pick)
        was = key in self.model.core(branch, self.memory.seq)
        assert self.memory.mem_core_del(key, branch_id=branch) is was
        if was:
            self.note(branch, "core", key, None)

    @rule(pick=PICK, said=SAID)
    def append(self, pick: int, said: str) -> None:
        branch = self.branch(pick)
        seq = self.memory.mem_recall_append({"kind": "k", "content": said}, branch_id=branch)
        # How a repetition is told apart is the store's affair; what counts is what is seen.
        self.model.rows.append(Row(seq, branch, "event", self.origin(seq), said))

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
        result = self.memory.apply_llm_memory_updates(
            branch, {"recall_evict": {"ids": [event.seq]}}
        )
        assert result["recall_evict"]["evicted_count"] == 1
        self.note(branch, "hidden", origin, None)
        record = max(self.memory[branch].records(), key=lambda item: item.seq)
        if record.seq > before:  # the same text is kept once
            self.model.rows.append(Row(record.seq, branch, "archival", record.id, record.text))

    @rule(pick=PICK, text=st.sampled_from(["alpha beta", "gamma", "delta epsilon"]))
    def keep(self, pick: int, text: str) -> None:
        branch, before = self.branch(pick), self.memory.seq
        id_ = int(self.memory.mem_archival_write(text, tags=["T"], branch_id=branch))
        if id_ > before:
            self.note(branch, "archival", id_, text)

    @rule(pick=PICK, which=PICK, text=st.sampled_from(["beta two", "gamma two"]))
    def overlay(self, pick: int, which: int, text: str) -> None:
        branch = self.branch(pick)
        records = self.memory[branch].records()
        if records:
            record = records[which % len(records)]
            self.memory.mem_archival_update(record.id, text=text, branch_id=branch)
            self.note(branch, "archival", record.id, text)
            assert self.memory.mem_archival_get(record.id, branch_id=branch)["tags"] == list(
                record.tags
            )

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

    @precondition(lambda self: len(self.model.rows) > 5)
    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = MemoryManager(self.path, self.config)

    @invariant()
    def a_branch_sees_what_the_model_sees(self) -> None:
        if not hasattr(self, "model"):
            return
        self.turn += 1
        self.compare(self.branch(self.turn), self.memory.seq, None)
        if self.past:
            branch, at = self.past[self.turn % len(self.past)]
            self.compare(branch, at, at)

    def compare(self, branch: str, seq: int, at: int | None) -> None:
        memory, model = self.memory, self.model
        core = {key: entry.value for key, entry in memory[branch].core.entries(at=at).items()}
        assert core == model.core(branch, seq)
        records = {item.id: item.text for item in memory[branch].records(at=at)}
        assert records == model.archival(branch, seq)
        seqs = [event.seq for event in memory[branch].events(at=at)]
        assert seqs == sorted(seqs, reverse=True)
        newest = [event.seq for event in memory[branch].events(limit=2, at=at)]
        assert newest == seqs[:2]
        counts: dict[str, int] = {}
        for event in memory[branch].events(at=at):
            counts[event.text] = counts.get(event.text, 0) + event.count
        assert counts == model.events(branch, seq)

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        health = self.memory.verify()
        self.memory.close()
        self.folder.cleanup()
        assert health.is_sound, health.problems


MemoryMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMemory = MemoryMachine.TestCase
