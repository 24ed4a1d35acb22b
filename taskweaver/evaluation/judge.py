"""The judge of statements that no program can check, and the model that plays a user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from taskweaver.evaluation.checks import shown
from taskweaver.evaluation.forms import CaseFailed
from taskweaver.llm.api import LLMApi
from taskweaver.llm.parsing.json_text import required_object
from taskweaver.llm.services import ModelServices
from taskweaver.llm.types import ChatMessage, Usage, format_chat_message
from taskweaver.utils.files import read_yaml
from taskweaver.utils.text import fill, shorten

ALIAS = "judge"
"""Alias in ``ext_llms.llm_configs`` of the judge's model; without it the main model judges."""

Turns = list[tuple[str, str]]
"""Questions, and answers to them."""

_DONE = "TASK_FINISHED"
_MOST_MESSAGES, _TRIES, _MOST_CHARS = 12, 2, 40_000
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "is_hit": {"type": "string", "enum": ["yes", "no"]},
    },
    "required": ["reason", "is_hit"],
    "additionalProperties": False,
}
_NEEDED = {"required": ["is_hit"]}


class StatementJudge:
    """A model beside the tested model. The judge's consumption is counted apart."""

    def __init__(self, services: ModelServices) -> None:
        self._api = LLMApi(services)
        self._alias = ALIAS if ALIAS in services.aliases else ""

    @property
    def usage(self) -> Usage:
        """Consumption of the judge."""
        return self._api.usage

    def close(self) -> None:
        """Give up a call under way, and refuse further calls."""
        self._api.close()

    def decide(self, task: str, turns: Turns, statement: str) -> str:
        """Decide whether a statement agrees with a conversation about a task.

        Returns:
            The reason of a no; empty if the statement agrees.

        Raises:
            ModelError: If the model cannot be asked.
            CaseFailed: If its replies cannot be read.
        """
        pairs = [{"user": question, "assistant": answer} for question, answer in turns]
        talk = shorten(json.dumps(pairs, ensure_ascii=False), _MOST_CHARS)
        question = _text("question", TASK=task, CONVERSATION=talk, STATEMENT=statement)
        messages = _opening(_text("judge"), question)
        for _ in range(_TRIES):
            with suppress(ValueError):
                data = required_object(self._ask(messages, _SCHEMA), _SCHEMA | _NEEDED)
                hit = data["is_hit"].strip().lower()
                if hit in ("yes", "no"):
                    reason = str(data.get("reason", ""))
                    return "" if hit == "yes" else f"the judge: {shown(reason)}"
        raise CaseFailed("the judge", f"gave {_TRIES} replies that are no verdict.")

    def play_user(self, task: str, turns: Turns) -> Iterator[str]:
        """Yield the messages of a user with a task, whose turns have the answers so far.

        Raises:
            ModelError: If the model cannot be asked.
        """
        messages = _opening(_text("user", TASK=task, DONE=_DONE), _text("begin"))
        for _ in range(_MOST_MESSAGES):
            text = self._ask(messages, None).strip()
            if _DONE in text or not text:
                return
            yield text
            messages.append(format_chat_message("assistant", text))
            messages.append(format_chat_message("user", turns[-1][1]))

    def _ask(self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None) -> str:
        reply = self._api.chat_completion(messages, llm_alias=self._alias, json_schema=schema)
        return str(reply["content"])


def _opening(brief: str, message: str) -> list[ChatMessage]:
    return [format_chat_message("system", brief), format_chat_message("user", message)]


def _text(name: str, **values: str) -> str:
    """Return a text of the prompt file, filled in."""
    return fill(_prompts()[name], **values)


@cache
def _prompts() -> dict[str, str]:
    texts: dict[str, str] = read_yaml(Path(__file__).with_name("judge_prompt.yaml"))
    return texts
