"""The test question of a model: its tool, and the verdict on the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ModelTool, ToolCall, Usage, format_chat_message
from taskweaver.utils.redact import redact
from taskweaver.utils.text import counted

TestState = Literal["works", "no-tools", "wrong", "failed", "cancelled"]

_EXPECTED = "42"
_QUESTION = "What is 6 times 7? Use a tool if you have one, then answer with the number alone."
_NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
_MULTIPLY = ModelTool(
    "multiply",
    "Multiply two numbers.",
    {"type": "object", "properties": _NUMBERS, "required": ["a", "b"]},
)


@dataclass(frozen=True, slots=True)
class ModelTest:
    """Result of a test question.

    Attributes:
        state: Its verdict.
        detail: The verdict as a sentence.
        seconds: Duration.
        usage: Tokens and cost.
        answer: The beginning of the answer.
    """

    state: TestState
    detail: str
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    answer: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether the model answered rightly."""
        return self.state in ("works", "no-tools")


def ask_test_question(api: LLMApi, *, is_free: bool) -> ModelTest:
    """Ask a model the test question, with a tool.

    Args:
        api: The model.
        is_free: Whether no token has a price.
    """
    since = monotonic()
    try:
        answer, has_called = _ask(api)
    except ModelError as error:
        is_cancelled = error.kind == "cancelled"
        detail = "Cancelled. Nothing was saved." if is_cancelled else redact(str(error))
        state: TestState = "cancelled" if is_cancelled else "failed"
        return ModelTest(state, detail, monotonic() - since, api.usage)
    seconds, usage, answer = monotonic() - since, api.usage, redact(answer)
    if _EXPECTED not in answer:
        said = " ".join(answer.split())[:40] or "nothing"
        state = "wrong"
        detail = f"Wrong answer: {said} instead of 42. Small models often fail like this."
    elif not has_called:
        state = "no-tools"
        detail = "Right answer, but no tool calls: it writes code as text, which works less often."
    else:
        state = "works"
        cost = "no cost" if is_free else "less than 1 cent"
        cost = cost if usage.cost is None else f"cost {usage.cost:.4f}"
        about = "about " if usage.is_estimated else ""
        tokens = f"{about}{counted(usage.total_tokens, 'token')}"
        detail = f"Right answer in {seconds:.1f} s, tool calls work, {tokens}, {cost}."
    return ModelTest(state, detail, seconds, usage, answer[:80])


def _ask(api: LLMApi) -> tuple[str, bool]:
    """Return the answer to the test question, and whether the tool was called for it."""
    messages: list[Any] = [format_chat_message("user", _QUESTION)]
    tools = [_MULTIPLY] if api.form() == "tools" else []
    try:
        text, calls = _reply(api, messages, tools)
    except ModelError as error:
        if error.kind != "form":
            raise
        text, calls = _reply(api, messages, [])
    if not any({"6", "7"} <= {*call.arguments} for call in calls):
        return text, False
    listed = [call.to_dict() for call in calls]
    asked = {"role": "assistant", "content": text or None, "tool_calls": listed}
    results = [{"role": "tool", "content": _EXPECTED, "tool_call_id": call.id} for call in calls]
    return _reply(api, [*messages, asked, *results], tools)[0], True


def _reply(
    api: LLMApi, messages: list[Any], tools: list[ModelTool]
) -> tuple[str, tuple[ToolCall, ...]]:
    text, calls = "", tuple[ToolCall, ...]()
    for chunk in api.stream_chunks(messages, tools=tools):
        text = chunk.text if chunk.begins_again else text + chunk.text
        calls += chunk.calls
    return text.strip(), calls
