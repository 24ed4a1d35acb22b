"""Odd values through every public name: kept as they are, or refused with an error of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memories import Open

from taskweaver.memory.branched import BranchedMemoryError, InvalidUpdate, MemoryManager
from taskweaver.memory.branched.values import MOST_CHARS


def deep(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(depth):
        made = {"d": made}
    return made


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, 10**30, float("nan"), float("inf"), b"x", object(), "", " ",
    "\0", "a\0b", "\ud800", "\udfffx", "\u202eabc", "٣", "数据分析", "שלום", "नमस्ते",
    "a\nb", 10**5000,
    "\x1b[31m", "'; DROP TABLE archival; --", '"', "%", "*", "../../etc", "x" * 300,
    [], [None], [[]], ["a", 5], ["\0"], {"a"}, {}, {"a": {1}}, {"a": float("nan")}, {5: "a"},
    {"a": b"x"}, CYCLE, deep(10_000), (), range(3), {"value": "\ud800"}, Exception("x"),
)  # fmt: skip

CALLS: dict[str, Callable[[MemoryManager, Any], Any]] = {
    "branch": lambda m, odd: m[odd],
    "create": lambda m, odd: m.create_branch("a", branch_id=odd),
    "node uid": lambda m, odd: m.create_branch("a", node_uid=odd),
    "fork": lambda m, odd: m.fork("a", odd),
    "fork at": lambda m, odd: m.fork("a", at=odd),
    "core key": lambda m, odd: m["a"].core.set(odd, "v"),
    "core value": lambda m, odd: m["a"].core.set("k", odd),
    "importance": lambda m, odd: m["a"].core.set("k", "v", importance=odd),
    "ttl": lambda m, odd: m["a"].core.set("k", "v", ttl=odd),
    "core delete": lambda m, odd: m["a"].core.delete(odd),
    "event": lambda m, odd: m["a"].append(odd),
    "event kind": lambda m, odd: m["a"].append({"kind": odd, "content": "c"}),
    "event text": lambda m, odd: m["a"].append({"kind": "k", "content": odd}),
    "event tags": lambda m, odd: m["a"].append({"content": "c", "tags": odd}),
    "record": lambda m, odd: m["a"].remember(odd),
    "meta value": lambda m, odd: m["a"].remember("t", meta={"v": odd}),
    "update": lambda m, odd: m["a"].update(odd, text="x"),
    "occurrences": lambda m, odd: m["a"].occurrences(odd),
    "search": lambda m, odd: m["a"].search(odd),
    "search k": lambda m, odd: m["a"].search("t", odd),
    "find events": lambda m, odd: m["a"].find_events(odd),
    "records at": lambda m, odd: m["a"].records(at=odd),
    "render at": lambda m, odd: m["a"].render(at=odd),
    "block": lambda m, odd: m["a"].apply(odd),
    "block value": lambda m, odd: m["a"].apply({"core": {"k": odd}}),
    "block meta": lambda m, odd: m["a"].apply({"archival": [{"text": "t", "meta": odd}]}),
    "block event": lambda m, odd: m["a"].apply({"recall": {"content": "c", "x": odd}}),
    "promote": lambda m, odd: m["a"].promote(odd, "b"),
    "diff": lambda m, odd: m.diff("a", odd),
    "policy": lambda m, odd: m.merge("a", "b", odd),
    "live": lambda m, odd: m["a"].fork(live=odd),
    "attempt": lambda m, odd: m["a"].apply({"core": {"goal": "x"}}, attempt=odd),
    "node": lambda m, odd: m["a"].apply({"core": {"goal": "x"}}, odd, attempt="1"),
    "task": lambda m, odd: m["a"].render(task=odd),
    "left out": lambda m, odd: m["a"].render(leave_out=odd),
    "keys": lambda m, odd: m.mem_core_get(odd, branch_id="a"),
}


@pytest.mark.parametrize("name", CALLS)
def test_odd_values_through_a_call(open_memory: Open, open_rooted: Open, name: str) -> None:
    memory = open_rooted(memory_log_enabled=True, synchronous="NORMAL")
    memory.set_core("root", "goal", "a faster solver")
    for branch in ("a", "b"):
        memory.fork("root", branch)
    for odd in ODD:
        before = memory.seq
        try:
            CALLS[name](memory, odd)
        except BranchedMemoryError as error:
            assert memory.seq == before
            str(error).encode()
    assert memory.verify().is_sound
    memory["a"].render()
    memory.close()
    with open_memory() as again:
        assert again.get_core("root", "goal") == "a faster solver"


def test_the_longest_values_are_kept_and_longer_ones_refused(open_memory: Open) -> None:
    most = MOST_CHARS
    memory = open_memory(memory_log_enabled=True, archival_max_chars=most, synchronous="NORMAL")
    memory.create_branch(None, branch_id="a")
    handle, long = memory["a"], "x" * (most - 1) + "ß"
    record = handle.remember(long)
    assert handle.get(record).text == long
    handle.append({"content": long})
    assert handle.events()[0].text == long
    before = memory.seq
    for refused in (
        lambda: handle.remember(long + "x"),
        lambda: handle.append({"content": long + "x"}),
        lambda: handle.core.set("k", long + "x"),
        lambda: handle.remember("t", meta={"v": long}),
        lambda: handle.apply({"archival": [{"text": long + "x"}]}),
    ):
        with pytest.raises(InvalidUpdate, match="characters long"):
            refused()
    assert memory.seq == before
    assert memory.verify().is_sound
