"""A model that reads and writes its memory, with the slips models make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from taskweaver.memory.branched import (
    BranchedMemoryError,
    InvalidUpdate,
    MalformedMemoryUpdateError,
    MemoryManager,
    MissingMemoryUpdateError,
)
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.rounds import MemoryQuestion, ask_with_memory


class Model:
    def __init__(self, replies: Iterable[str]) -> None:
        self._replies = iter(replies)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return next(self._replies)


def block(**updates: object) -> str:
    return f"<memory_update>{json.dumps(updates)}</memory_update>"


def test_a_model_reads_is_told_and_answers(memory: MemoryManager, tmp_path: Path) -> None:
    memory.write_archival("a", "use -lblas when openblas is missing", ["ERROR"])
    model = Model(
        [
            block(archival_search={"query": "openblas"}, core={"seen": "1"}) + "\n{}",
            block(recall={"kind": "note", "content": "linked with -lblas"}) + '\n{"plan": "link"}',
        ]
    )
    question = MemoryQuestion("Link it.", "a", task_hint="debug", task="link openblas", node_id="n")
    answer = ask_with_memory(memory, model, question, log=MemoryPromptLog(tmp_path / "log"))
    assert answer.body == '{"plan": "link"}'
    assert answer.calls == 2
    assert "a faster solver" in model.prompts[0]
    assert '"archival_search"' in model.prompts[0]
    assert "<memory_results>" not in model.prompts[0]
    assert "] use -lblas when openblas is missing" in model.prompts[1]
    assert memory.get_core("a", "seen") == "1"
    assert memory["a"].events()[0].text == "linked with -lblas"
    assert [item.task_hint for item in memory["a"].injections()] == ["debug"]
    log = (tmp_path / "log" / "memory_operations.jsonl").read_text().splitlines()
    assert [json.loads(line)["has_read_results"] for line in log] == [True, False]


def test_endless_reading_is_cut_short(memory: MemoryManager) -> None:
    model = Model([f"{block(core_get=['goal'])} body {n}" for n in range(9)])
    answer = ask_with_memory(memory, model, MemoryQuestion("Go.", "a"))
    assert answer.calls == 1 + memory.config.max_memory_read_rounds
    assert answer.body == "body 3"


def test_slips_are_sent_back_with_the_reason(memory: MemoryManager) -> None:
    model = Model(
        [
            "Certainly! Here is the plan.",
            f"{block(core={'x': None})}",
            f"```xml\n{block(core={'x': 'y'})}\n```\nplan",
        ]
    )
    answer = ask_with_memory(memory, model, MemoryQuestion("Go.", "a", presence="required"))
    assert answer.body == "plan"
    assert "has no <memory_update> block" in model.prompts[1]
    assert "Certainly!" in model.prompts[1]
    assert "core.x: must not be null" in model.prompts[2]
    assert memory.get_core("a", "x") == "y"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("no block", MissingMemoryUpdateError),
        ("<memory_update>{", MalformedMemoryUpdateError),
        (block(bogus=1), InvalidUpdate),
    ],
)
def test_a_model_that_never_learns_ends_in_an_error(
    memory: MemoryManager, reply: str, error: type[Exception]
) -> None:
    before = {key: entry.value for key, entry in memory["a"].core.entries().items()}
    model = Model([reply] * 5)
    with pytest.raises(error):
        ask_with_memory(memory, model, MemoryQuestion("Go.", "a", presence="required"))
    assert len(model.prompts) == 3
    assert {key: entry.value for key, entry in memory["a"].core.entries().items()} == before


def test_a_reply_to_reads_needs_no_second_block(memory: MemoryManager) -> None:
    model = Model([block(core={"x": "1"}, core_get=["goal"]), "the plan"])
    answer = ask_with_memory(memory, model, MemoryQuestion("Go.", "a", presence="required"))
    assert (answer.body, answer.calls) == ("the plan", 2)
    assert memory.get_core("a", "x") == "1"


def test_results_of_reads_stay_in_the_prompt_after_an_unusable_reply(
    memory: MemoryManager,
) -> None:
    model = Model([block(core_get=["goal"]), "<memory_update>{", "the plan"])
    answer = ask_with_memory(memory, model, MemoryQuestion("Go.", "a"))
    assert answer.body == "the plan"
    for prompt in model.prompts[1:]:
        assert "<memory_results>" in prompt
        assert "- goal: a faster solver" in prompt
    assert "could not be used" in model.prompts[2]


def test_a_reply_may_have_to_do_without_a_block(memory: MemoryManager) -> None:
    model = Model(["plain"])
    assert (
        ask_with_memory(memory, model, MemoryQuestion("Go.", "a", presence="forbidden")).body
        == "plain"
    )
    assert "Memory operations" not in model.prompts[0]


def test_a_reply_that_is_no_text_ends_in_a_typed_error(memory: MemoryManager) -> None:
    replies: list[Any] = [None]
    with pytest.raises(BranchedMemoryError, match="must be a text, not NoneType"):
        ask_with_memory(memory, lambda _: replies[0], MemoryQuestion("Go.", "a"))
