"""A write costs what its own rows cost, and what the writer remembers is never wrong."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable

import pytest
from memories import Clock, Open
from patience import PATIENCE_S

from taskweaver.memory.branched import BranchSealed, InvalidUpdate, MemoryManager, UnknownBranch
from taskweaver.memory.branched.storage.database import Writer


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


def test_a_memory_that_is_only_read_has_one_connection(
    memory: MemoryManager, open_memory: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.close()
    made: list[object] = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: made.append(args) or connect(*args, **options)
    )

    memory = open_memory()
    memory.render_for_prompt("a")
    assert len(made) == 1
    memory.write_event("a", "step", "the first write")

    assert len(made) == 2
    assert _texts(memory, "a") == ["the first write"]


def test_the_thread_that_writes_and_others_read_only_what_is_committed(
    memory: MemoryManager,
) -> None:
    seen: list[list[str]] = []

    def write(writer: Writer) -> None:
        memory._parts.recall.append(writer, "a", {"content": "not committed yet"})
        seen.append(_texts(memory, "a"))
        other = threading.Thread(target=lambda: seen.append(_texts(memory, "a")))
        other.start()
        other.join(PATIENCE_S)

    memory._parts.database.write(write)

    assert seen == [[], []]
    assert _texts(memory, "a") == ["not committed yet"]


@pytest.mark.parametrize("events", [3, 300])
def test_an_append_is_one_transaction_of_few_statements_however_much_is_in_view(
    open_memory: Open, events: int
) -> None:
    memory = open_memory(recall_max_events=1000)
    name = memory.create_branch(None, branch_id="d0")
    for n in range(events):
        name = memory.fork(name, f"d{n + 1}")
        memory.write_event(name, "step", f"event {n}")
    memory.write_event(name, "step", "the first that is counted from here")

    branch = memory[name]
    event = {"kind": "step", "content": "one more"}
    statements = _statements(memory, lambda: branch.append(event))

    kinds = [statement.split()[0] for statement in statements]
    assert kinds == ["BEGIN", "PRAGMA", "INSERT", "UPDATE", "COMMIT"]


@pytest.mark.parametrize("depth", [3, 300])
def test_a_fork_is_one_transaction_of_few_statements_at_any_depth(
    open_memory: Open, depth: int
) -> None:
    memory = open_memory()
    name = memory.create_branch(None, branch_id="d0")
    for n in range(depth):
        name = memory.fork(name, f"d{n + 1}")

    branch = memory[name]
    statements = _statements(memory, lambda: branch.fork("one-more"))

    kinds = [statement.split()[0] for statement in statements]
    assert kinds == ["BEGIN", "PRAGMA", "INSERT", "COMMIT"]


def test_a_level_of_a_long_line_takes_as_many_statements_as_one_of_a_short_line(
    open_memory: Open,
) -> None:
    memory = open_memory()
    branches = [memory.create("root")]

    def grow() -> None:
        for _ in range(10):
            branches.append(branches[-1].fork())
            for n in range(3):
                branches[-1].append({"kind": "step", "content": f"event {n}"})

    for _ in range(5):
        grow()
    early = _statements(memory, grow)
    for _ in range(15):
        grow()
    late = _statements(memory, grow)

    assert len(late) == len(early)


def test_a_core_key_that_is_written_often_is_not_read_again_with_each_value(
    memory: MemoryManager,
) -> None:
    for n in range(50):
        memory.mem_core_set("best", f"value {n}", branch_id="a")

    core = memory["a"].core
    statements = _statements(memory, lambda: core.set("best", "51"))

    assert not [statement for statement in statements if "SELECT" in statement]
    assert memory.mem_core_get(["best"], branch_id="a") == {"best": "51"}


def test_the_events_in_view_stay_within_their_window_after_every_append(
    open_memory: Open,
) -> None:
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


@pytest.mark.parametrize("is_block", [True, False])
def test_a_block_and_the_summary_it_makes_due_are_one_transaction(
    open_memory: Open, *, is_block: bool
) -> None:
    memory = open_memory(recall_max_events=4, recall_consolidation_threshold=1)
    branch = memory[memory.create_branch(None, branch_id="root")]
    for n in range(4):
        branch.append({"kind": "step", "content": f"event {n}"})
    event = {"kind": "step", "content": "one too many"}

    def write() -> None:
        if is_block:
            branch.apply({"recall": event})
        else:
            branch.write(event=event)

    statements = _statements(memory, write)

    assert branch.digest() is not None
    assert sum(statement.startswith("BEGIN IMMEDIATE") for statement in statements) == 1


def test_the_window_holds_after_another_process_consolidated(open_memory: Open) -> None:
    options = {"recall_max_events": 6, "recall_consolidation_threshold": 1.5}
    one = open_memory("shared.sqlite", **options)
    one.create_branch(None, branch_id="root")
    two = open_memory("shared.sqlite", **options)
    for n in range(8):
        one.write_event("root", "step", f"event {n}")
    assert two.consolidate_recall_events("root") == 2

    for n in range(8, 40):
        one.write_event("root", "step", f"event {n}")
        assert one.check_memory_pressure("root").events <= 9

    digest = one["root"].digest()
    assert digest is not None
    assert digest.count + one.check_memory_pressure("root").events == 40


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


def test_a_branch_that_was_collected_takes_no_writes(open_memory: Open) -> None:
    one = open_memory("shared.sqlite")
    one.create_branch(None, branch_id="root")
    for name in ("a", "b"):
        one.fork("root", name)
        one.write_event(name, "step", f"on {name}")
    two = open_memory("shared.sqlite")

    one.prune("a")
    one.collect_garbage()
    two.prune("b")
    two.collect_garbage()

    for name in ("a", "b"):
        with pytest.raises(UnknownBranch):
            one.write_event(name, "step", "after")


def test_a_fork_that_was_rolled_back_is_unknown(memory: MemoryManager) -> None:
    parts = memory._parts

    def fork_and_fail(writer: object) -> None:
        parts.branches.add(writer, "root", "gone")  # type: ignore[arg-type]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parts.database.write(fork_and_fail)

    with pytest.raises(UnknownBranch):
        memory.write_event("gone", "step", "nowhere to go")
    assert "gone" not in [branch.id for branch in memory.branches()]


def test_the_number_of_an_undone_fork_counts_the_events_of_its_next_owner(
    open_memory: Open,
) -> None:
    options = {"recall_max_events": 6, "recall_consolidation_threshold": 1.5}
    one = open_memory("shared.sqlite", **options)
    one.create_branch(None, branch_id="root")
    two = open_memory("shared.sqlite", **options)
    two.create_branch(None, branch_id="full")
    for n in range(9):
        two.write_event("full", "step", f"event {n}")

    def fork_and_fail(writer: Writer) -> None:
        one._parts.branches.add(writer, "root", "gone")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        one._parts.database.write(fork_and_fail)
    two.fork("full", "next")

    for n in range(4):
        one.write_event("next", "step", f"more {n}")
        assert one.check_memory_pressure("next").events <= 9


def test_repetitions_are_counted_across_processes(open_memory: Open) -> None:
    one = open_memory("shared.sqlite")
    one.create_branch(None, branch_id="root")
    two = open_memory("shared.sqlite")
    one.write_event("root", "step", "the same")
    two.write_event("root", "step", "the same")
    one.write_event("root", "step", "the same")

    (event,) = one["root"].events()

    assert (event.text, event.count) == ("the same", 3)


def test_an_event_is_new_again_after_many_others_of_another_process(open_memory: Open) -> None:
    one = open_memory("shared.sqlite", auto_consolidate=False)
    one.create_branch(None, branch_id="root")
    two = open_memory("shared.sqlite", auto_consolidate=False)
    one.write_event("root", "step", "the same")
    for n in range(20):
        two.write_event("root", "step", f"other {n}")
    one.write_event("root", "step", "the same")

    assert _texts(one, "root").count("the same") == 2


def test_a_write_waits_for_the_transaction_of_another_program(memory: MemoryManager) -> None:
    other = sqlite3.connect(memory.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    started, done = threading.Event(), threading.Event()

    def write() -> None:
        started.set()
        memory.write_event("a", "step", "written in turn")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    started.wait(PATIENCE_S)
    assert not done.wait(0.3)
    other.execute("COMMIT")
    writer.join(PATIENCE_S)
    other.close()

    assert done.is_set()
    assert _texts(memory, "a") == ["written in turn"]


def test_one_failing_write_among_many_takes_nothing_of_the_others(memory: MemoryManager) -> None:
    """Eight threads write at once, so their writes share transactions."""
    errors: list[Exception] = []
    barrier = threading.Barrier(8)

    def write(number: int) -> None:
        barrier.wait(PATIENCE_S)
        for n in range(20):
            try:
                name = "nowhere" if number == 0 else "a"
                memory.write_event(name, "step", f"event {n} of {number}")
            except UnknownBranch as error:
                errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert len(errors) == 20
    assert len(set(_texts(memory, "a"))) == 140
    assert memory.verify().is_sound


def test_writes_together_are_one_transaction_and_the_summary_they_make_due_comes_after(
    open_memory: Open,
) -> None:
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


def test_writes_together_of_many_threads_stay_whole(memory: MemoryManager) -> None:
    barrier = threading.Barrier(6)

    def write(number: int) -> None:
        barrier.wait(PATIENCE_S)
        for n in range(10):
            memory.together(
                lambda n=n: [
                    memory["a"].append({"kind": "step", "content": f"{part} of {n} of {number}"})
                    for part in ("first", "second")
                ]
            )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    texts = _texts(memory, "a")[::-1]
    assert len(texts) == 120
    for first, second in zip(texts[::2], texts[1::2], strict=True):
        assert first.replace("first", "second") == second
    assert memory.verify().is_sound


def test_writes_together_cut_long_texts_and_ask_no_model(open_memory: Open) -> None:
    asked: list[str] = []
    memory = open_memory(archival_max_chars=40, llm=lambda text: asked.append(text) or "short")
    branch = memory[memory.create_branch(None, branch_id="root")]
    memory.together(lambda: branch.write(records=[{"text": "a long text " * 20, "tags": ["X"]}]))
    assert not asked
    (record,) = branch.records(tags=["X"])
    assert record.text.endswith("...")
