"""A write costs what its own rows cost, and what the writer remembers is never wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from memories import Clock, Open

from taskweaver.memory.branched import BranchSealed, InvalidUpdate, MemoryManager


def _statements(memory: MemoryManager, action: Callable[[], object]) -> list[str]:
    """Return the statements that SQLite runs for an action, reads and writes."""
    database = memory._parts.database
    found: list[str] = []
    connections = [database.reading]
    database.write(lambda writer: connections.append(writer.connection))
    for connection in connections:
        connection.set_trace_callback(found.append)
    action()
    for connection in connections:
        connection.set_trace_callback(None)
    return found


def _texts(memory: MemoryManager, branch: str) -> list[str]:
    return [event.text for event in memory[branch].events()]


@pytest.mark.parametrize("depth", [3, 300])
def test_a_write_is_one_transaction_at_any_depth(open_memory: Open, depth: int) -> None:
    memory = open_memory(recall_max_events=1000)
    branch = memory.create("d0")
    for n in range(depth):
        branch = branch.fork(f"d{n + 1}")
        branch.append({"kind": "step", "content": f"event {n}"})
    branch.append({"kind": "step", "content": "the first that is counted from here"})
    branch.core.set("best", "1")
    event = {"kind": "step", "content": "one more"}
    for write, expected in (
        (lambda: branch.append(event), "BEGIN PRAGMA INSERT UPDATE COMMIT"),
        (lambda: branch.core.set("best", "2"), "BEGIN PRAGMA INSERT UPDATE COMMIT"),
        (lambda: branch.fork("one-more"), "BEGIN PRAGMA INSERT COMMIT"),
    ):
        kinds = [statement.split()[0] for statement in _statements(memory, write)]
        assert kinds == expected.split()


def test_the_events_in_view_stay_within_their_window_after_every_append(open_memory: Open) -> None:
    memory = open_memory(recall_max_events=6, recall_consolidation_threshold=1.5)
    rng = random.Random(17)
    names = [memory.create_branch(None, branch_id="root", live=True)]
    for n in range(400):
        name = rng.choice(names[-6:] + names[:1])
        match rng.randrange(12):
            case 0:
                names.append(memory.fork(name, f"b{n}"))
            case 1:
                names.append(memory.fork(name, f"b{n}", at=rng.randrange(memory.seq + 1)))
            case 2:
                memory.apply_llm_memory_updates(name, {"recall_evict": {"oldest": 2}})
            case 3 if name != "root":
                memory.merge("root", name, "theirs")
            case _:
                memory.write_event(name, "step", f"event {rng.randrange(n + 1)}")
                assert memory.check_memory_pressure(name).events <= 9


def test_core_memory_fits_after_every_write(open_memory: Open, clock: Clock) -> None:
    memory = open_memory(core_max_chars=200)
    rng = random.Random(18)
    names = [memory.create_branch(None, branch_id="root", live=True)]
    names += [memory.fork("root", "a"), memory.fork("root", "b")]
    for n in range(300):
        name = rng.choice(names)
        match rng.randrange(8):
            case 0:
                clock.now += 40
            case 1:
                memory.mem_core_del(f"key{rng.randrange(8)}", branch_id=name)
            case 2 if n < 150:
                names.append(memory.fork(name, f"b{n}"))
            case _:
                memory.mem_core_set(
                    f"key{rng.randrange(8)}", "x" * rng.randrange(60), branch_id=name,
                    ttl=rng.choice([None, None, 30]), importance=rng.randrange(1, 5),
                )  # fmt: skip
                view = memory.mem_core_get(branch_id=name)
                assert sum(len(key) + len(value) + 3 for key, value in view.items()) <= 201


def test_a_branch_that_another_process_sealed_takes_no_writes(open_memory: Open) -> None:
    one = open_memory("shared.sqlite")
    one.create_branch(None, branch_id="root")
    one.fork("root", "a")
    one.write_event("a", "step", "before")
    two = open_memory("shared.sqlite")
    two.seal("a")
    with pytest.raises(BranchSealed):
        one.write_event("a", "step", "after")
    assert _texts(one, "a") == ["before"]


def test_writes_together_are_one_transaction_before_a_summary(open_memory: Open) -> None:
    memory = open_memory(
        recall_max_events=4, recall_consolidation_threshold=1, llm=lambda _: "summed up"
    )
    branch = memory[memory.create_branch(None, branch_id="root")]
    seen: list[int] = []

    def write() -> str:
        for n in range(7):
            branch.write(event={"kind": "step", "content": f"event {n} " + "told " * 120})
        number = memory.turns.start_round("root", "r1", "a question")
        memory.turns.add_post("root", number, "{}")
        seen.append(len(branch.events()))
        return "done"

    statements = _statements(memory, lambda: seen.append(len(memory.together(write))))
    assert seen == [0, 4]
    assert len(branch.events()) == 7
    assert memory.turns.load("root")[0].posts == ["{}"]
    digest = branch.digest()
    assert digest is not None
    assert digest.text == "summed up"
    # The second one is that of the digest.
    assert sum(statement.startswith("BEGIN IMMEDIATE") for statement in statements) == 2


def test_of_writes_together_none_stays_if_one_is_refused(memory: MemoryManager) -> None:
    branch = memory["a"]

    def write() -> None:
        branch.append({"kind": "step", "content": "good"})
        branch.remember("a record to be found")
        branch.write(event={"kind": "step"}, records=[{"text": 3}])

    with pytest.raises(InvalidUpdate):
        memory.together(write)
    assert _texts(memory, "a") == []
    assert branch.search("record") == []
    branch.append({"kind": "step", "content": "later"})
    assert _texts(memory, "a") == ["later"]
    assert memory.verify().is_sound


def test_writes_together_cut_long_texts_and_ask_no_model(open_memory: Open) -> None:
    asked: list[str] = []
    memory = open_memory(archival_max_chars=40, llm=lambda text: asked.append(text) or "short")
    branch = memory[memory.create_branch(None, branch_id="root")]
    memory.together(lambda: branch.write(records=[{"text": "a long text " * 20, "tags": ["X"]}]))
    assert not asked
    (record,) = branch.records(tags=["X"])
    assert record.text.endswith("...")
