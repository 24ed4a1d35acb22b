"""Thousands of damaged blocks: each is refused with an error of its own, or applied whole."""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

from memories import Open

from taskweaver.memory.branched import InvalidUpdate, MemoryManager, RecordNotVisible, read_reply
from taskweaver.memory.branched.errors import MemoryUpdateError
from taskweaver.memory.branched.protocol.protocol import check_updates

BLOCKS = int(os.environ.get("BLOCKS", "300"))
"""How many blocks are tried; `make long` tries 4,000."""

ONE_FILE = 50

ODD = [
    None, True, False, 0, -1, 2**63, 10**30, 1.5, float("nan"), float("inf"), "", " ", "7", "#7",
    "\0", "\ud800", "\u202e", "☃" * 300, "8 Fäden", [], [None], [[]], {}, {"value": None},
    {"key": "k", "value": "v"}, {"id": 1}, ["T", 5], "7d", "true",
]  # fmt: skip
PIECES = [
    "<memory_update>", "</memory_update>", "<\\/memory_update>", "<memory_update", "/>", "```",
    '"core":', "{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "\0", "\ud800", "null", "NaN", "//",
    "<memory_results>", "</memory_results>", "\n", "'", "\ufeff", "{" * 2000,
]  # fmt: skip


def block(ids: tuple[int, int], step: int) -> dict[str, Any]:
    """Return a block with most operations, that is right as it is."""
    record, event = ids
    return {
        "core": {f"k{step % 5}": f"v{step}", "n": {"value": step, "importance": 2, "ttl": "1h"}},
        "core_delete": ["gone"],
        "archival": [{"text": f"record {step}", "tags": ["T"]}, {"text": f"more {step}"}],
        "archival_update": [{"id": record, "text": f"changed {step}"}],
        "recall": [{"kind": "note", "content": f"event {step}"}],
        "recall_delete": [event],
        "core_get": ["n"],
        "archival_search": {"query": "record", "k": 3},
    }


def odd_value(value: Any, random: Random) -> Any:
    """Replace, drop, rename or repeat something somewhere inside a value."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        changed, key = dict(value), random.choice(list(value))
        fate = random.random()
        if fate < 0.6:
            changed[key] = odd_value(value[key], random)
        elif fate < 0.75:
            del changed[key]
        else:
            name = random.choice([f"mem_{key}", f"{key}s", "value", "", key.upper(), "id", "key"])
            changed[name] = changed.pop(key)
        return changed
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        return [*value[:place], odd_value(value[place], random), *value[place:]]
    return random.choice(ODD)


def odd_text(text: str, random: Random) -> str:
    """Cut, repeat or insert something somewhere in a text."""
    start, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
    fate = random.random()
    if fate < 0.3:
        return text[:start] + text[min(end, start + 6) :]
    if fate < 0.4:
        return text[:start]
    if fate < 0.5:
        return text[:end] + text[start:end] + text[end:]
    return text[:start] + random.choice(PIECES) + text[start:]


def mutated(step: int, ids: tuple[int, int], random: Random) -> str:
    updates: Any = block(ids, step)
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        updates = odd_value(updates, random)
    written = json.dumps(updates, ensure_ascii=random.random() < 0.5)
    if random.random() < 0.1:
        written = f'{{"core": {{"twice": "{step}"}}, {written[1:]}'
    text = f"Here.\n<memory_update>\n{written}\n</memory_update>\nDone."
    for _ in range(random.choice([0, 0, 1, 2])):
        text = odd_text(text, random)
    return text


def state(memory: MemoryManager) -> tuple[Any, ...]:
    handle = memory["a"]
    return memory.seq, handle.core.entries(), handle.records(), handle.events()


def is_applied(memory: MemoryManager, step: int, random: Random) -> bool:
    """Return whether a damaged block was applied; one that was refused changed nothing."""
    record = int(memory.write_archival("a", f"to change {step}"))
    ids = record, memory.write_event("a", "k", f"to delete {step}")
    text, before = mutated(step, ids, random), state(memory)
    try:
        updates = read_reply(text, random.choice(["required", "optional"])).updates
        results = memory.apply_llm_memory_updates("a", updates or {})
    except (MemoryUpdateError, InvalidUpdate, RecordNotVisible):
        assert state(memory) == before, text
        return False
    is_whole(memory, updates or {}, results)
    return True


def is_whole(memory: MemoryManager, updates: dict[str, Any], results: dict[str, Any]) -> None:
    """Every operation of a block that was applied has its result, and its effect is in view."""
    checked, handle = check_updates(updates), memory["a"]
    nothing = {name for name, value in checked.items() if value in ([], False)}
    assert set(checked) - {"core", "core_delete", "archival"} <= set(results) | nothing
    deleted = set(checked.get("core_delete", ()))
    for entry in checked.get("core", ()):
        if entry["key"] not in deleted and entry["ttl"] != 0:
            assert handle.core[entry["key"]] == entry["value"]
    texts = {record.id: record.text for record in handle.records()}
    gone = set(checked.get("archival_delete", ()))
    assert not gone & set(texts)
    changed = {item["id"] for item in checked.get("archival_update", ())}
    records = zip(checked.get("archival", ()), results.get("archival", ()), strict=True)
    for item, id_ in records:
        if int(id_) not in changed | gone:
            assert texts[int(id_)] == item["text"]


def test_a_damaged_block_is_refused_or_applied_whole(open_memory: Open) -> None:
    random, applied, refused = Random(17), 0, 0
    for first in range(0, BLOCKS, ONE_FILE):
        with open_memory(f"{first}.sqlite", synchronous="NORMAL", auto_consolidate=False) as memory:
            memory.create_branch(None, branch_id="a")
            for step in range(first, min(first + ONE_FILE, BLOCKS)):
                was_applied = is_applied(memory, step, random)
                applied += was_applied
                refused += not was_applied
            assert memory.verify().is_sound
    assert min(applied, refused) > BLOCKS / 10
