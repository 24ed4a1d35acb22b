"""What a prompt shows: order, budgets, provenance; a pure read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memories import Open
from sizes import examples

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.utils.text import estimate_tokens


def fill(memory: MemoryManager, branch: str = "root") -> None:
    memory.set_core(branch, "RESOURCE_INDEX", "index of resources", importance=5)
    memory.set_core(branch, "resource_digest", "abc", importance=5)
    for n in range(6):
        memory.set_core(branch, f"key{n}", "v" * 60, importance=1 + n % 4)
        memory.write_event(branch, "step", f"event {n} " + "e" * 60, ["OWN"])
        memory.write_archival(branch, f"record {n} about threads " + "r" * 60, ["T"])
    memory.write_archival(branch, "class: dataset, name: words", ["RESOURCE_ITEM"])


@pytest.fixture
def full(open_rooted: Open) -> MemoryManager:
    memory = open_rooted(retrieval_k=4)
    fill(memory)
    return memory


def test_sections_stand_in_their_order_with_ids(full: MemoryManager) -> None:
    result = full.render_for_prompt_with_log("root", task="threads")
    titles = [section.title for section in result.sections]
    assert titles == [
        "Resource Index", "Core Memory", "Recall Memory", "Archival Memory", "Resource Memory"
    ]  # fmt: skip
    assert "index of resources" in result.text
    assert "resource_digest" not in result.text
    assert "(tags: OWN)" in result.text
    archival = result.sections[3]
    assert len(archival.shown) == 4
    assert all(f"(#{id_}) record" in archival.text for id_ in archival.shown)
    assert "words" not in archival.text
    assert "words" in result.sections[4].text


def test_what_a_prompt_says_elsewhere_is_left_out(full: MemoryManager) -> None:
    full.apply_llm_memory_updates("root", {"archival": [{"text": "own threads", "tags": ["T"]}]})
    full.write_event("root", "other", "shown")
    result = full.render_for_prompt_with_log(
        "root", task="threads", leave_out={"key1", "step", "T"}
    )
    assert "key1" not in result.text
    assert "key2" in result.text
    assert "[step]" not in result.text
    assert "[other] shown" in result.text
    assert "record" not in result.sections[3].text
    assert "own threads" in result.sections[3].text
    assert "words" in result.sections[4].text


def test_rendering_writes_nothing_and_can_be_done_again(full: MemoryManager) -> None:
    first = full.render_for_prompt_with_log("root", "draft", task="threads")
    assert full.seq == first.seq
    full.set_core("root", "key0", "changed")
    full.write_event("root", "step", "later")
    again = full.render_for_prompt_with_log("root", "draft", task="threads", at=first.seq)
    assert again.text == first.text
    assert full.render_for_prompt("root", "draft", task="threads") != first.text


def test_what_is_least_important_is_left_out_first_and_named(full: MemoryManager) -> None:
    result = full.render_for_prompt_with_log("root", budget_chars=700)
    assert len(result.text) <= 700
    sections = {section.title: section for section in result.sections}
    core, recall = sections["Core Memory"], sections["Recall Memory"]
    importance = {key: entry.importance for key, entry in full["root"].core.entries().items()}
    left_out = [importance[str(key)] for key in core.dropped]
    assert max(left_out) <= min(importance[str(key)] for key in core.shown)
    assert max(int(id_) for id_ in recall.dropped) < min(int(id_) for id_ in recall.shown)


def test_no_limit_and_task_budgets(full: MemoryManager) -> None:
    full.set_core("root", "long", "x" * 9000)
    tasks = "metrics_extraction plotting_code plot_selection vlm_analysis node_summary"
    for task in tasks.split():
        assert len(full.render_for_prompt("root", task)) <= 4000
    assert len(full.render_for_prompt("root", "draft")) > 9000
    everything = full.render_for_prompt_with_log("root", budget_chars=10, no_limit=True)
    assert not any(section.dropped for section in everything.sections)
    assert MemoryConfig().budget("draft") == MemoryConfig().memory_budget_chars


def test_archival_is_looked_up_by_task_goal_and_last_error(open_rooted: Open) -> None:
    memory = open_rooted(retrieval_k=1)
    memory.write_archival("root", "segfault in the quux solver: align the buffer")
    for n in range(10):
        memory.write_archival("root", f"unrelated {n}")
    assert "(recent, no match)" in memory.render_for_prompt("root", "draft", task="zebra")
    memory.write_event("root", "run_failed", "quux died with a segfault")
    assert "align the buffer" in memory.render_for_prompt("root", "draft")


@pytest.mark.parametrize("words", ["plain words ", "全部都是汉字"])
@pytest.mark.parametrize("tokens", [30, 200, 2000])
def test_a_budget_may_be_in_tokens(open_rooted: Open, words: str, tokens: int) -> None:
    memory = open_rooted()
    for n in range(20):
        memory.set_core("root", f"key{n}", words * 20)
    text = memory.render_for_prompt_with_log("root", budget_tokens=tokens).text
    assert estimate_tokens(text) <= tokens
    if tokens > 100:
        assert estimate_tokens(text) > tokens / 2


@settings(max_examples=examples(30))
@given(budget=st.integers(1, 4000))
def test_a_budget_is_kept(tmp_path_factory: pytest.TempPathFactory, budget: int) -> None:
    path = tmp_path_factory.getbasetemp() / "budget.sqlite"
    with MemoryManager(path) as memory:
        if memory.root_branch_id is None:
            memory.create_branch(None, branch_id="root")
            fill(memory)
        assert len(memory.render_for_prompt("root", budget_chars=budget, task="threads")) <= budget


def test_configured_numbers_of_events_and_records(open_memory: Open, open_rooted: Open) -> None:
    memory = open_rooted(recall_max_events=2, retrieval_k=3)
    for n in range(9):
        memory.write_archival("root", f"solver {n}")
    for n in range(3):
        memory.write_event("root", "step", f"event {n}.")
    text = memory.render_for_prompt("root", task="solver")
    assert sum(f"event {n}." in text for n in range(3)) == 2
    assert sum(f"solver {n}" in text for n in range(9)) == 3
    budgets = {**MemoryConfig().section_budgets, "archival_snippet": 30}
    short = open_memory("short.sqlite", section_budgets=budgets)
    short.create("root").remember("solver " * 50)
    assert ("solver " * 8).strip() not in short.render_for_prompt("root", task="solver")
