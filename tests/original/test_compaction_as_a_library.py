"""The compactor as programs of the original TaskWeaver use it: with parts of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from patience import PATIENCE_S

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, ModelServices
from taskweaver.memory import (
    CompactedMessage,
    CompactorConfig,
    ContextCompactor,
    Memory,
    Post,
    Round,
)

RULE = CompactorConfig(threshold=3, retain_recent=1)


@dataclass
class PlainPost:
    send_from: str
    send_to: str
    message: str


@dataclass
class PlainRound:
    user_query: str
    post_list: list[PlainPost] = field(default_factory=list)


def plain_rounds(count: int, start: int = 1) -> list[PlainRound]:
    rounds = []
    for number in range(start, start + count):
        asked = PlainPost("User", "Planner", f"please, question {number}")
        answer = PlainPost("Planner", "User", f"answer {number}")
        rounds.append(PlainRound(f"question {number}", [asked, answer]))
    return rounds


class Model:
    """A model with the one method the original's compactor calls."""

    def __init__(self, answer: object = None) -> None:
        self.answer = answer
        self.calls: list[dict[str, object]] = []

    def chat_completion(self, messages: object, **options: object) -> object:
        self.calls.append({"messages": messages, **options})
        if isinstance(self.answer, Exception):
            raise self.answer
        content = self.answer if self.answer is not None else f"summary {len(self.calls)}"
        return {"role": "assistant", "content": content}

    @property
    def text(self) -> str:
        return str(self.calls[-1]["messages"])


def settle() -> None:
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def started(
    model: object,
    rounds: list[PlainRound],
    logger: Callable[[str], object] | None = None,
    config: CompactorConfig = RULE,
    **options: str,
) -> ContextCompactor:
    compactor = ContextCompactor(
        config=config,
        llm_api=model,  # type: ignore[arg-type]
        rounds_getter=lambda: rounds,  # type: ignore[arg-type,return-value]
        logger=logger,
        **options,
    )
    compactor.start()
    compactor.notify_rounds_changed()
    settle()
    return compactor


def test_the_model_is_asked_by_chat_completion() -> None:
    model = Model()
    compactor = started(model, plain_rounds(5))
    found = compactor.get_compaction()
    assert found is not None
    assert (found.start_index, found.end_index, found.summary) == (1, 4, "summary 1")
    assert "Rounds 1-4" in found.to_system_message()
    assert "answer 4" in model.text
    assert "question 5" not in model.text
    assert [message["role"] for message in model.calls[0]["messages"]] == ["system", "user"]  # type: ignore[attr-defined]
    assert "llm_alias" not in model.calls[0]


def test_the_alias_goes_along() -> None:
    model = Model()
    started(model, plain_rounds(5), llm_alias="small")
    assert model.calls[0]["llm_alias"] == "small"


def test_rounds_without_ids_are_added_to_the_summary_by_their_place() -> None:
    model = Model()
    rounds = plain_rounds(5)
    compactor = started(model, rounds)
    rounds.extend(plain_rounds(5, start=6))
    compactor.notify_rounds_changed()
    settle()
    found = compactor.get_compaction()
    assert found is not None
    assert (found.end_index, found.summary) == (9, "summary 2")
    assert "summary 1" in model.text
    assert "answer 4" not in model.text
    assert "answer 9" in model.text


def test_a_stand_in_with_every_attribute_is_a_model() -> None:
    model = MagicMock()
    model.chat_completion.return_value = {"content": "Test summary"}
    found = started(model, plain_rounds(5)).get_compaction()
    assert found is not None
    assert found.summary == "Test summary"
    model.summarize.assert_not_called()


def test_llm_api_is_a_model(tmp_path: Path) -> None:
    src = AppConfigSource(None, {"llm.api_type": "function"}, tmp_path)
    with ModelServices(src, function=lambda _: "of the function") as services:
        found = started(LLMApi(services), plain_rounds(5)).get_compaction()
    assert found is not None
    assert found.summary == "of the function"


@pytest.mark.parametrize("answer", ["", "  ", 5, ["text"], ConnectionError("no model")])
def test_a_failure_is_a_line_of_the_function_and_changes_nothing(answer: object) -> None:
    lines: list[str] = []
    compactor = started(Model(answer), plain_rounds(5), lines.append)
    assert compactor.get_compaction() is None
    assert len(lines) == 1
    assert "failed" in lines[0]
    if isinstance(answer, Exception):
        assert "ConnectionError: no model" in lines[0]


def test_passed_parts_are_attributes() -> None:
    lines: list[str] = []
    model, config = MagicMock(), CompactorConfig()
    compactor = ContextCompactor(config, model, list, logger=lines.append)
    compactor.logger("a line")  # type: ignore[operator]
    assert lines == ["a line"]
    assert compactor.config is config
    assert compactor.llm_api is model


def test_the_defaults_are_those_of_the_original() -> None:
    config = CompactorConfig()
    assert (config.threshold, config.retain_recent, config.enabled) == (10, 3, True)
    assert config.prompt_template_path == ""


def test_a_prompt_file_is_named_by_text(tmp_path: Path) -> None:
    file = tmp_path / "prompt.yaml"
    file.write_text("version: 0.1\ncontent: 'Old: {PREVIOUS_SUMMARY} New: {content}'\n")
    model = Model()
    config = CompactorConfig(threshold=3, retain_recent=1, prompt_template_path=str(file))
    started(model, plain_rounds(5), config=config)
    assert "Old: None New: " in model.text


def test_a_compactor_that_is_switched_off_does_nothing() -> None:
    lines: list[str] = []
    model = Model()
    config = CompactorConfig(threshold=3, retain_recent=1, enabled=False)
    compactor = started(model, plain_rounds(9), lines.append, config)
    assert compactor.get_compaction() is None
    assert (model.calls, lines) == ([], [])


def test_start_and_stop_may_be_called_again() -> None:
    model = Model()
    compactor = started(model, plain_rounds(5))
    compactor.start()
    compactor.stop()
    compactor.stop()
    assert len(model.calls) == 1
    assert compactor.get_compaction() is not None


class OwnProvider:
    """A provider with the methods of the original's protocol."""

    def __init__(self) -> None:
        self.notes = 0

    def get_compaction(self) -> CompactedMessage:
        return CompactedMessage(start_index=1, end_index=2, summary="of two")

    def notify_rounds_changed(self) -> None:
        self.notes += 1


def test_a_provider_of_the_programs_own_serves_a_role() -> None:
    memory, provider = Memory("s"), OwnProvider()
    memory.register_compaction_provider("Planner", provider, lambda: [])  # type: ignore[arg-type]
    for number in range(3):
        round_: Round = memory.create_round(f"question {number}")
        memory.add_post(round_, Post.create("hello", "User", "Planner"))
    rounds, summary = memory.get_role_rounds_with_compaction("Planner")
    assert [r.user_query for r in rounds] == ["question 2"]
    assert summary is not None
    assert summary.summary == "of two"
    assert provider.notes >= 3
