"""Keys under ``memory.``, read from a configuration, in a memory that obeys them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.memory.branched import MemoryManager, StoreUnwritable
from taskweaver.memory.branched.protocol.updates import format_results
from taskweaver.memory.branched.rounds import MemoryTurn
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched_config import read_memory_config

Make = Callable[..., MemoryManager]
TASKS = ("metrics_extraction", "plotting_code", "plot_selection", "vlm_analysis", "node_summary")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Open a memory as configured; keys by name, without ``memory.``, ``_`` for a further dot."""
    opened: list[MemoryManager] = []

    def open_(llm: Any = None, **keys: Any) -> MemoryManager:
        values = {"memory.memory_log_enabled": False}
        values |= {f"memory.{name.replace('__', '.')}": value for name, value in keys.items()}
        config = read_memory_config(AppConfigSource(None, values, tmp_path))
        memory = MemoryManager(tmp_path / f"m{len(opened)}.sqlite", config, llm=llm)
        opened.append(memory)
        memory.bind(memory.create_branch(None, branch_id="root"))
        return memory

    yield open_
    for memory in opened:
        memory.close()


def recorded(memory: MemoryManager, count: int, text: str = "solver {}") -> MemoryManager:
    for number in range(count):
        memory.write_archival("root", text.format(number))
    return memory


def happened(memory: MemoryManager, count: int) -> MemoryManager:
    for number in range(count):
        memory.write_event("root", "step", f"event {number}.")
    return memory


def test_core_memory_keeps_to_its_size(make: Make) -> None:
    memory = make(core_max_chars=120)
    for number in range(5):
        memory.set_core("root", f"key{number}", "x" * 50)
    assert sum(len(entry.value) for entry in memory["root"].core.entries().values()) <= 120


def test_a_prompt_shows_as_many_events_and_records_as_configured(make: Make) -> None:
    memory = recorded(happened(make(recall_max_events=2, retrieval_k=3), 3), 9)
    text = memory.render_for_prompt("root", task="solver")
    assert sum(f"event {n}." in text for n in range(3)) == 2
    assert sum(f"solver {n}" in text for n in range(9)) == 3


@pytest.mark.parametrize("choice", ["auto", "off"])
def test_full_text_search_is_used_unless_it_is_off(make: Make, choice: str, tmp_path: Path) -> None:
    recorded(make(use_fts=choice), 1).close()
    with sqlite3.connect(tmp_path / "m0.sqlite") as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%fts5%'"
        ).fetchone()
    connection.close()
    assert (count > 0) is (choice == "auto")


def test_without_fts5_records_are_found_and_a_memory_that_needs_it_is_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_SEARCH", schema._SEARCH.replace("fts5", "not_there"))
    memory = recorded(make(use_fts="auto"), 2)
    assert [found.text for found in memory["root"].search("solver 1", k=1)] == ["solver 1"]
    with pytest.raises(StoreUnwritable, match="no FTS5"):
        make(use_fts="on")


@pytest.mark.parametrize(("choice", "level"), [("FULL", 2), ("NORMAL", 1)])
def test_writes_are_as_durable_as_configured(make: Make, choice: str, level: int) -> None:
    memory = make(synchronous=choice)
    assert memory._parts.database._writing.execute("PRAGMA synchronous").fetchone()[0] == level


def test_a_long_record_is_cut(make: Make) -> None:
    memory = recorded(make(archival_max_chars=150), 1, "long " * 100)
    assert len(memory["root"].records()[0].text) <= 150


def test_a_prompt_shows_as_much_memory_as_configured(make: Make) -> None:
    memory = make(memory_budget_chars=300)
    memory.set_core("root", "goal", "g" * 2000)
    assert len(memory.render_for_prompt("root")) <= 300


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_a_budget_of_its_own(make: Make, task: str) -> None:
    memory = make(**{f"{task}_budget_chars": 200})
    memory.set_core("root", "goal", "g" * 2000)
    assert len(memory.render_for_prompt("root", task)) <= 200
    assert len(memory.render_for_prompt("root")) > 2000


def test_sections_have_budgets(make: Make, tmp_path: Path) -> None:
    memory = make(
        section_budgets__archival_snippet=30,
        section_budgets__idea_summary=200,
        section_budgets__idea_section_limit=40,
        section_budgets__phase0_summary=50,
    )
    recorded(memory, 1, "solver " * 50)
    assert ("solver " * 8).strip() not in memory.render_for_prompt("root", task="solver")
    (tmp_path / "idea.md").write_text(
        "# Title\n\n" + "".join(f"- {'words ' * 40}\n" for _ in "abcdef")
    )
    memory.ingest_idea_md(tmp_path / "idea.md", branch_id="root")
    summary = memory["root"].core.entries()["idea_md_summary"].value
    assert len(summary) <= 200
    assert max(len(line) for line in summary.splitlines()) <= 45
    memory.ingest_phase0_internal_info({"plan": "x" * 500}, branch_id="root")
    assert len(memory["root"].core.entries()["phase0_summary"].value) <= 50


def test_operations_are_logged_where_and_as_long_as_configured(make: Make, tmp_path: Path) -> None:
    off = make(memory_log_dir=str(tmp_path / "off"))
    off.close()
    assert not (tmp_path / "off").exists()
    memory = make(
        memory_log_enabled=True, memory_log_dir=str(tmp_path / "notes"), memory_log_max_chars=30
    )
    memory.mem_core_set("k", "x" * 100)
    memory.close()
    lines = (tmp_path / "notes" / "memory_calls.jsonl").read_text().splitlines()
    (found,) = [line for line in map(json.loads, lines) if line["op"] == "mem_core_set"]
    assert len(found["details"]["value_preview"]) == 30


class Shortener:
    """A model that always leaves a little too much."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return "y" * (300 - len(self.prompts))


@pytest.mark.parametrize(("is_on", "most", "calls"), [(True, 1, 1), (True, 3, 3), (False, 3, 0)])
def test_a_model_shortens_as_often_as_configured(
    make: Make, is_on: bool, most: int, calls: int
) -> None:
    model = Shortener()
    memory = make(
        model, archival_max_chars=100, use_llm_compression=is_on, max_compression_iterations=most
    )
    recorded(memory, 1, "long " * 100)
    assert len(model.prompts) == calls


def test_texts_for_models_are_those_of_the_folder(make: Make, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "compression.txt").write_text("MINE {text} {max_chars}")
    model = Shortener()
    recorded(
        make(model, archival_max_chars=100, prompt_dir=str(tmp_path / "mine")), 1, "long " * 99
    )
    assert model.prompts[0].startswith("MINE")


@pytest.mark.parametrize(
    ("keys", "has_digest"),
    [
        ({}, True),
        ({"auto_consolidate": False}, False),
        ({"recall_consolidation_threshold": 4}, False),
    ],
)
def test_old_events_are_summed_up_as_configured(
    make: Make, keys: dict[str, Any], has_digest: bool
) -> None:
    memory = happened(make(recall_max_events=2, **keys), 6)
    assert (memory["root"].digest() is not None) is has_digest


@pytest.mark.parametrize(("trigger", "acts"), [("medium", True), ("critical", False)])
def test_pressure_is_relieved_from_the_configured_level(
    make: Make, trigger: str, acts: bool
) -> None:
    memory = make(core_max_chars=1000, consolidation_trigger=trigger)
    memory.set_core("root", "goal", "x" * 780)
    assert (memory["root"].relieve_if_needed() is not None) is acts


@pytest.mark.parametrize("level", ["medium", "high", "critical"])
def test_the_level_of_pressure_begins_where_configured(make: Make, level: str) -> None:
    limits = {"medium": 0.1, "high": 0.99, "critical": 0.995}
    if level != "medium":
        limits["high"] = 0.2
    if level == "critical":
        limits["critical"] = 0.3
    memory = make(
        core_max_chars=1000,
        **{f"pressure_thresholds__{name}": value for name, value in limits.items()},
    )
    memory.set_core("root", "goal", "x" * 450)
    assert memory.check_memory_pressure("root").level == level


@pytest.mark.parametrize("is_on", [True, False])
def test_a_run_ends_with_its_final_memory_under_its_names(
    make: Make, tmp_path: Path, is_on: bool
) -> None:
    memory = make(
        final_memory_enabled=is_on,
        final_memory_filename_md="end.md",
        final_memory_filename_json="end.json",
    )
    memory.generate_final_memory_for_paper(tmp_path / "run", "root", "root")
    made = {path.name for path in (tmp_path / "run").rglob("end.*")}
    assert made == ({"end.md", "end.json"} if is_on else set())


def test_results_of_reads_are_bounded(make: Make) -> None:
    memory = recorded(make(section_budgets__results=120), 3, "solver " * 60)
    turn = MemoryTurn(memory["root"], None)
    block = '<memory_update>{"archival_search": {"query": "solver"}}</memory_update>'
    reply, _ = turn.look(block, "required")
    most = memory.config.section_budgets["results"]
    results = format_results(turn.adopt(reply), max_chars=most)
    assert 0 < len(results) < 300
