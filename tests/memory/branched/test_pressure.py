"""Consolidation, pressure and compression: with a model, without one, with a bad one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memories import Open

from taskweaver.memory.branched import InvalidUpdate, MemoryManager

LONG = ", told at length" * 30


class Model:
    """A model that answers by what it is asked for, and keeps the prompts."""

    def __init__(self, **answers: str | Callable[[str], str]) -> None:
        self.answers = answers
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        kinds = {"Shorten": "compress", "Below are events": "digest", "You decide": "weigh"}
        kind = next(kind for start, kind in kinds.items() if prompt.startswith(start))
        answer = self.answers.get(kind)
        if answer is None:
            raise RuntimeError("the model is down")
        return answer if isinstance(answer, str) else answer(prompt)


def events(memory: MemoryManager, branch: str, count: int, start: int = 0, more: str = "") -> None:
    for n in range(start, start + count):
        memory.write_event(branch, "run_failed" if n % 3 == 0 else "step", f"event {n}{more}")


def test_old_events_become_a_digest_that_descendants_inherit(open_rooted: Open) -> None:
    model = Model(digest=lambda prompt: f"digest of {prompt.count('event ')}")
    memory = open_rooted(recall_max_events=4, llm=model)
    events(memory, "root", 7, more=LONG)
    digest = memory["root"].digest()
    assert digest is not None
    assert digest.count == 3
    assert len(model.prompts) == 1
    memory.fork("root", "a")
    memory.fork("root", "b")
    memory.fork("a", "a2")
    assert memory["a2"].digest() == digest
    rendered = memory.render_for_prompt("a2")
    assert "- [summary of 3 earlier events]" in rendered
    assert "event 2" not in rendered
    assert "event 3" in rendered
    events(memory, "a2", 3, start=10, more=LONG)
    assert len(model.prompts) == 2
    assert "digest of" in model.prompts[1]
    assert "event 1" not in model.prompts[1].replace("event 10", "").replace("event 12", "")
    assert memory["b"].digest() == digest
    assert len(memory["a2"].events()) == 10
    assert [found["summary"] for found in memory.mem_recall_search("event 0", branch_id="a2", k=99)]


def test_only_inherited_events_can_be_summed_up(open_rooted: Open) -> None:
    memory = open_rooted(auto_consolidate=False, recall_max_events=2)
    events(memory, "root", 5)
    memory.fork("root", "a")
    events(memory, "a", 4, start=5)
    assert memory["a"].relieve_if_needed() is None
    assert memory.consolidate_inherited_memory("a") == 3
    rendered = memory.render_for_prompt("a")
    assert memory.check_memory_pressure("a").events == 6
    assert "summary of 3 earlier" in rendered
    assert memory.consolidate_inherited_memory("a") == 0
    assert memory.consolidate_recall_events("a") == 4
    assert memory["root"].digest() is None


@pytest.mark.parametrize(
    ("share", "level"), [(0.3, "low"), (0.5, "medium"), (0.7, "high"), (0.92, "critical")]
)
def test_the_level_follows_the_fuller_part(open_rooted: Open, share: float, level: str) -> None:
    limits = {"medium": 0.4, "high": 0.6, "critical": 0.9}
    keys = {"pressure_thresholds": limits, "consolidation_trigger": "critical"}
    memory = open_rooted(core_max_chars=1000, **keys)
    memory.set_core("root", "k", "x" * int(1000 * share))
    pressure = memory.check_memory_pressure("root")
    assert pressure.level == level
    assert ("evict_core" in pressure.recommendations) == (level in {"high", "critical"})
    assert (memory["root"].relieve_if_needed() is not None) == (level == "critical")


def weights(prompt: str) -> str:
    keys = [item["key"] for item in json.loads(prompt[prompt.index("[") : prompt.index("]\n") + 1])]
    scored = [{"key": key, "score": 1 if "junk" in key else 4, "reason": "r"} for key in keys]
    return f"Sure:\n```json\n{json.dumps(scored)}\n```"


def test_high_pressure_archives_what_the_model_finds_unimportant(open_rooted: Open) -> None:
    memory = open_rooted(core_max_chars=1000, llm=Model(weigh=weights))
    memory.set_core("root", "pinned_junk", "p" * 200, importance=5)
    memory.set_core("root", "junk", "j" * 300)
    memory.set_core("root", "useful", "u" * 370)
    relief = memory["root"].relieve_if_needed("improve")
    assert relief is not None
    assert (relief.level, relief.new_level, relief.evicted) == ("high", "low", 1)
    assert set(memory["root"].core.entries()) == {"pinned_junk", "useful"}
    assert memory["root"].core.entries()["pinned_junk"].importance == 5
    assert memory["root"].core.entries()["useful"].importance == 4
    assert "reason" in memory["root"].records(tags=["CORE_EVICT"])[0].meta


@pytest.mark.parametrize("llm", [None, Model(), Model(weigh="no list")])
def test_importances_stay_without_a_usable_model(open_rooted: Open, llm: Model | None) -> None:
    memory = open_rooted(core_max_chars=1000, llm=llm)
    memory.set_core("root", "k", "x" * 900, importance=4)
    memory.auto_consolidate_memory("root", "medium")
    assert memory["root"].core.entries()["k"].importance == 4
    assert memory.evaluate_importance_with_llm([{"key": "k"}]) == [("k", 3, "")]


def test_critical_pressure_folds_the_core_into_a_digest(open_rooted: Open) -> None:
    memory = open_rooted(core_max_chars=1000)
    memory.set_core("root", "pinned", "p" * 100, importance=5)
    memory.set_core("root", "one", "1" * 420)
    memory.set_core("root", "two", "2" * 440)
    with pytest.raises(InvalidUpdate, match="pressure_level"):
        memory.auto_consolidate_memory("root", "extreme")
    relief = memory.auto_consolidate_memory("root", "critical")
    assert set(memory["root"].core.entries()) == {"pinned", "CoreDigest"}
    assert relief.new_level == "low"
    (snapshot,) = memory["root"].records(tags=["CORE_SNAPSHOT"])
    assert "two: " + "2" * 440 in snapshot.text
    assert f"(ref: {snapshot.id})" in memory["root"].core.entries()["CoreDigest"].value


def test_a_long_record_is_shortened_by_the_model_once(open_rooted: Open) -> None:
    model = Model(compress=lambda _prompt: f"```\n{'short ' * (20 - len(model.prompts) * 5)}\n```")
    memory = open_rooted(archival_max_chars=100, llm=model)
    memory.write_archival("root", "long " * 100)
    assert len(model.prompts) == 1
    text = memory["root"].records()[0].text
    assert text.startswith("short")
    assert len(text) <= 100
    memory.fork("root", "a")
    memory.write_archival("a", "long " * 100)
    assert len(model.prompts) == 1


def test_what_the_work_is_about_helps_to_shorten(open_rooted: Open) -> None:
    model = Model(compress="brief")
    memory = open_rooted(archival_max_chars=100, llm=model)
    memory.set_core("root", "idea_md_summary", "cache blocking")
    memory.write_archival("root", "long " * 100)
    assert "Research goal: cache blocking" in model.prompts[0]
    record = memory.write_archival("root", "short")
    block = {"archival_update": [{"id": f"#{record}", "text": "longer " * 100}]}
    memory.apply_llm_memory_updates("root", block)
    assert memory.mem_archival_get(record)["text"] == "brief"


@pytest.mark.parametrize("llm", [None, Model(), Model(compress="x" * 9999), Model(compress=" ")])
def test_what_no_model_shortens_is_cut(open_rooted: Open, llm: Model | None) -> None:
    memory = open_rooted(archival_max_chars=100, llm=llm)
    memory.write_archival("root", "long " * 100)
    text = memory["root"].records()[0].text
    assert text.startswith("long")
    assert text.endswith("...")
    assert len(text) <= 100


def test_a_model_sums_up_no_events_that_a_program_writes(open_rooted: Open) -> None:
    model = Model(digest="summed up")
    plain = frozenset({"run_complete"})
    memory = open_rooted(recall_max_events=2, plain_kinds=plain, llm=model, auto_consolidate=False)
    for number in range(6):
        memory.write_event("root", "run_complete", f"run {number}{LONG}")
    assert memory.consolidate_recall_events("root") == 4
    assert model.prompts == []
    digest = memory["root"].digest()
    assert digest is not None
    assert digest.text == "4 events: run_complete 4"  # prompts show them elsewhere
    for size in (32, 64, 128):
        memory.write_event("root", "discovery", f"tiles of {size} are faster{LONG}")
    for number in range(3):
        memory.write_event("root", "run_complete", f"later {number}")
    memory.consolidate_recall_events("root")
    (prompt,) = model.prompts
    assert "tiles of 32" in prompt
    assert "later" not in prompt


def test_events_of_a_live_root_are_summed_up_there_alone(open_memory: Open) -> None:
    """Each of many siblings would ask the same."""
    model = Model(digest="summed up")
    memory = open_memory(recall_max_events=2, llm=model, auto_consolidate=False)
    memory.create_branch(None, branch_id="root", live=True)
    events(memory, "root", 5, more=LONG)
    for name in ("a", "b", "c"):
        memory.fork("root", name)
        memory.write_event(name, "step", "its own")
        memory.consolidate_recall_events(name)
    assert model.prompts == []
    memory.consolidate_recall_events("root")
    assert len(model.prompts) == 1


@pytest.mark.parametrize(("is_on", "most", "calls"), [(True, 1, 1), (True, 3, 3), (False, 3, 0)])
def test_a_model_shortens_as_often_as_configured(
    open_memory: Open, tmp_path: Path, is_on: bool, most: int, calls: int
) -> None:
    (tmp_path / "compression.txt").write_text('Shorten {text} to {max_chars}: {"keep": "{x}"}')
    model = Model(compress=lambda _: "y" * (300 - len(model.prompts)))  # still too much
    keys = {"use_llm_compression": is_on, "max_compression_iterations": most}
    memory = open_memory(archival_max_chars=100, llm=model, prompt_dir=tmp_path, **keys)
    memory.create("root").remember("long " * 100)
    assert len(model.prompts) == calls
    assert all(prompt.endswith('to 100: {"keep": "{x}"}') for prompt in model.prompts)


@pytest.mark.parametrize(
    ("keys", "has_digest"),
    [({}, True), ({"auto_consolidate": False}, False),
     ({"recall_consolidation_threshold": 4}, False)],
)  # fmt: skip
def test_when_events_are_summed(open_rooted: Open, keys: dict[str, Any], has_digest: bool) -> None:
    memory = open_rooted(recall_max_events=2, **keys)
    events(memory, "root", 6)
    assert (memory["root"].digest() is not None) is has_digest
