"""Bodies and answers of the responses API, as far as they are used here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from taskweaver.doors.chat_completions.models import MODEL, CompletionMessage

_TEXTS = frozenset({"input_text", "output_text", "text"})


class InputPart(BaseModel):
    """A part of a message."""

    type: str
    text: str = ""


class InputMessage(BaseModel):
    """A message of the input; further fields are not used."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputPart]

    def as_chat(self) -> CompletionMessage:
        """Return it as a message of a chat; parts that are no text keep their type there."""
        if isinstance(self.content, str):
            return CompletionMessage(role=self.role, content=self.content)
        parts: Any = [
            {"type": "text" if part.type in _TEXTS else part.type, "text": part.text}
            for part in self.content
        ]
        return CompletionMessage(role=self.role, content=parts)


class ReasoningItem(BaseModel):
    """Reasoning in an earlier response, as clients send it back; it is not used."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["reasoning"]


class ResponseText(BaseModel):
    """Options of the text of a response."""

    format: dict[str, Any] | None = None


class ResponseRequest(BaseModel):
    """A request for a response; options of sampling, limits of tokens and tools are not used."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    input: str | list[InputMessage | ReasoningItem] = Field(max_length=4_000_000)
    instructions: str | None = None
    previous_response_id: str | None = Field(default=None, max_length=128)
    stream: bool = False
    background: Literal[False] | None = None
    conversation: None = None
    text: ResponseText | None = None
    max_output_tokens: int | None = None

    def chat(self) -> list[CompletionMessage]:
        """Return the input as messages of a chat."""
        if isinstance(self.input, str):
            return [CompletionMessage(role="user", content=self.input)]
        return [item.as_chat() for item in self.input if isinstance(item, InputMessage)]


class InputDetails(BaseModel):
    """Details of the tokens that were read."""

    cached_tokens: int = 0


class OutputDetails(BaseModel):
    """Details of the tokens that were written."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """Tokens of a response: those of all calls of its round."""

    input_tokens: int
    input_tokens_details: InputDetails = InputDetails()
    output_tokens: int
    output_tokens_details: OutputDetails = OutputDetails()
    total_tokens: int


class ResponseAnswer(BaseModel):
    """A response: steps as reasoning, and the answer as a message."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    model: str = MODEL
    output: list[dict[str, Any]] = Field(default_factory=list)
    error: dict[str, str] | None = None
    incomplete_details: None = None
    instructions: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    parallel_tool_calls: bool = False
    previous_response_id: str | None = None
    temperature: float | None = None
    tool_choice: Literal["none"] = "none"
    tools: list[dict[str, Any]] = Field(default_factory=list)
    top_p: float | None = None
    usage: ResponseUsage | None = None
