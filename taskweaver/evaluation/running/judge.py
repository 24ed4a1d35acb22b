"""The judge of statements that no program can check, and the model that plays a user."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from taskweaver.evaluation.checks.check import JudgeVerdict
from taskweaver.evaluation.errors import CaseFailed
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage, Usage, format_chat_message
from taskweaver.utils.files import read_yaml
from taskweaver.utils.text import fill, shorten

ALIAS = "judge"
"""Alias in ``ext_llms.llm_configs`` of the judge's model; without it the main model judges."""

_PROMPTS = Path(__file__).with_name("judge_prompt.yaml")
_DONE = "TASK_FINISHED"
_MOST_MESSAGES = 12
_TRIES = 2
_MOST_CHARS = 40_000
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "is_hit": {"type": "string", "enum": ["yes", "no"]},
    },
    "required": ["reason", "is_hit"],
    "additionalProperties": False,
}


class StatementJudge:
    """A model beside the one that is tried; its consumption is counted apart."""

    def __init__(self, services: ModelServices) -> None:
        self._api = LLMApi(services)
        self._alias = ALIAS if ALIAS in services.aliases else ""

    @property
    def usage(self) -> Usage:
        """Consumption of its calls."""
        return self._api.usage

    def close(self) -> None:
        """Give up a call under way, and refuse further ones."""
        self._api.close()

    def decide(self, task: str, turns: Sequence[tuple[str, str]], statement: str) -> JudgeVerdict:
        """Return whether a statement agrees with a conversation.

        Args:
            task: The task, or the first question.
            turns: Questions and answers.
            statement: The statement.

        Raises:
            ModelError: If the model cannot be asked.
            CaseFailed: If its replies cannot be read.
        """
        pairs = [{"user": question, "assistant": answer} for question, answer in turns]
        conversation = shorten(json.dumps(pairs, ensure_ascii=False), _MOST_CHARS)
        question = fill(
            _prompts()["question"], TASK=task, CONVERSATION=conversation, STATEMENT=statement
        )
        messages = [
            format_chat_message("system", _prompts()["judge"]),
            format_chat_message("user", question),
        ]
        for _ in range(_TRIES):
            verdict = _verdict(self._ask(messages, _SCHEMA))
            if verdict is not None:
                return verdict
        raise CaseFailed("the judge", f"gave {_TRIES} replies that are no verdict.")

    def play_user(self, task: str) -> Generator[str, str]:
        """Yield the messages of a user with a task; send each answer of the assistant back.

        Raises:
            ModelError: If the model cannot be asked.
        """
        brief = fill(_prompts()["user"], TASK=task, DONE=_DONE)
        messages = [
            format_chat_message("system", brief),
            format_chat_message("user", _prompts()["begin"]),
        ]
        for _ in range(_MOST_MESSAGES):
            text = self._ask(messages, None).strip()
            if _DONE in text or not text:
                return
            answer = yield text
            messages += [
                format_chat_message("assistant", text),
                format_chat_message("user", answer),
            ]

    def _ask(self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None) -> str:
        reply = self._api.chat_completion(messages, llm_alias=self._alias, json_schema=schema)
        return str(reply["content"])


def _verdict(text: str) -> JudgeVerdict | None:
    found = _OBJECT.search(text)
    try:
        data = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    hit = str(data.get("is_hit", "")).strip().lower()
    if hit not in ("yes", "no"):
        return None
    return JudgeVerdict(hit == "yes", str(data.get("reason", "")))


@cache
def _prompts() -> dict[str, str]:
    texts: dict[str, str] = read_yaml(_PROMPTS)
    return texts
