"""Values that end: in the present, in the past, and where they hide an inherited value."""

from __future__ import annotations

import pytest
from memories import Clock, Open

from taskweaver.memory.branched import MemoryManager


@pytest.fixture
def child(memory: MemoryManager) -> MemoryManager:
    """A branch `c` whose own value of `goal` ends after ten seconds."""
    memory.fork("a", "c")
    memory.mem_core_set("goal", "for now", ttl="10s", branch_id="c")
    return memory


def test_a_past_state_is_the_same_after_the_time_of_a_value_is_over(
    memory: MemoryManager, clock: Clock
) -> None:
    memory.mem_core_set("hint", "soon over", ttl=60, branch_id="a")
    seq = memory.seq
    text = memory.render_for_prompt("a")
    assert "soon over" in text
    clock.now += 61
    assert memory.render_for_prompt("a", at=seq) == text
    assert "hint" not in memory["a"].core.entries()
    memory.mem_core_set("later", "1", branch_id="b")
    assert "hint" in memory["a"].core.entries(at=seq)
    assert "hint" not in memory["a"].core.entries(at=memory.seq)


@pytest.mark.parametrize("tier", ["event", "record", "round", "branch b"])
def test_expiry_in_the_past_is_judged_at_the_newest_row_of_any_table(
    memory: MemoryManager, clock: Clock, tier: str
) -> None:
    memory.mem_core_set("hint", "soon over", ttl=60, branch_id="a")
    clock.now += 61
    if tier == "event":
        memory.write_event("a", "k", "happened")
    elif tier == "record":
        memory.write_archival("a", "kept")
    elif tier == "round":
        memory["a"].note_injection(memory["a"].render(), None)
    else:
        memory.set_core("b", "other", "1")
    assert "hint" not in memory["a"].core.entries(at=memory.seq)
    assert "hint" in memory["a"].core.entries(at=memory.seq - 1)


def test_an_expired_override_lets_the_inherited_value_through(
    child: MemoryManager, clock: Clock
) -> None:
    seq = child.seq
    child.fork("c", "d")
    assert child.get_core("d", "goal") == "for now"
    clock.now += 10
    for branch in ("c", "d", "a"):
        assert child.get_core(branch, "goal") == "a faster solver"
    assert child["c"].core.entries(at=seq)["goal"].value == "for now"
    assert child["d"].core.entries(at=seq)["goal"].value == "for now"


def test_overrides_end_one_after_another(child: MemoryManager, clock: Clock) -> None:
    child.fork("c", "d")
    child.mem_core_set("goal", "longer", ttl=20, branch_id="d")
    child.fork("d", "e")
    seen = []
    for _ in range(3):
        seen.append([child.get_core(branch, "goal") for branch in ("e", "d", "c")])
        clock.now += 10
    base = "a faster solver"
    assert seen == [["longer", "longer", "for now"], ["longer", "longer", base], [base] * 3]


def test_a_delete_hides_the_inherited_value_for_good(child: MemoryManager, clock: Clock) -> None:
    assert child.mem_core_del("goal", branch_id="c")
    clock.now += 11
    assert child.get_core("c", "goal") is None


def test_an_expired_value_that_hid_a_delete_leaves_the_key_away(
    child: MemoryManager, clock: Clock
) -> None:
    child.mem_core_del("goal", branch_id="a")
    child.fork("a", "c2")
    child.mem_core_set("goal", "again", ttl=10, branch_id="c2")
    clock.now += 10
    assert child.get_core("c2", "goal") is None
    assert child.mem_core_del("goal", branch_id="c2") is False


def test_a_value_that_the_branch_itself_replaced_does_not_come_back(
    memory: MemoryManager, clock: Clock
) -> None:
    memory.mem_core_set("mode", "first", branch_id="a")
    memory.mem_core_set("mode", "second", ttl=5, branch_id="a")
    clock.now += 5
    assert memory.get_core("a", "mode") is None


def test_a_new_process_sees_the_inherited_value_too(
    child: MemoryManager, open_memory: Open, clock: Clock
) -> None:
    clock.now += 10
    with open_memory() as second:
        assert second.get_core("c", "goal") == "a faster solver"


def test_budget_pressure_diff_promote_and_merge_follow_the_view(
    open_memory: Open, clock: Clock
) -> None:
    memory = open_memory(core_max_chars=100)
    memory.create_branch(None, branch_id="root")
    memory.set_core("root", "text", "i" * 60)
    memory.fork("root", "a")
    memory.fork("root", "b")
    memory.mem_core_set("text", "short", ttl=10, importance=2, branch_id="a")
    assert memory.diff("a", "b").core == {"text": ("short", "i" * 60)}
    assert memory.check_memory_pressure("a").core_chars < 20
    clock.now += 10
    assert memory.diff("a", "b").core == {}
    assert memory.check_memory_pressure("a").core_chars > 60
    assert memory.merge("a", "b", "theirs").taken == []
    memory.fork("root", "c")
    memory.promote("text", "c", branch_id="a")
    assert memory.get_core("c", "text") == "i" * 60
    memory.mem_core_set("more", "m" * 60, importance=4, branch_id="a")
    assert list(memory["a"].core.entries()) == ["more"]
    assert "i" * 60 in memory["a"].records(tags=["core_key:text"])[0].text
