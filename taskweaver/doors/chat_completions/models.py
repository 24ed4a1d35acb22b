"""Bodies and answers of the chat completions API, as far as they are used here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from taskweaver.server.errors import RequestRefused

MODEL = "taskweaver"
"""Name of the one model; others are taken as well, and mean the same."""


class ContentPart(BaseModel):
    """A part of a message."""

    type: str
    text: str = ""


class CompletionMessage(BaseModel):
    """A message of a chat; further fields are not used."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Its text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""

    @property
    def has_only_text(self) -> bool:
        """Whether it has no picture or other data."""
        parts = self.content if isinstance(self.content, list) else []
        return all(part.type == "text" for part in parts)


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


def require_text_form(form: dict[str, Any] | None) -> None:
    """Check that the answer is wanted as text; raises RequestRefused."""
    if form is not None and form.get("type") != "text":
        detail = "Answers are text: another form is not promised. Ask for it in the question."
        raise RequestRefused(422, "invalid-body", detail)


class CompletionRequest(BaseModel):
    """A request for a completion; options of sampling and limits of tokens are not used."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    messages: list[CompletionMessage] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = 1
    response_format: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class CompletionUsage(BaseModel):
    """Tokens of a completion: those of all calls of its round."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionAnswer(BaseModel):
    """A completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: CompletionUsage


class OfferedModel(BaseModel):
    """A model that can be asked."""

    id: str = MODEL
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = MODEL


class OfferedModels(BaseModel):
    """The models that can be asked."""

    object: Literal["list"] = "list"
    data: list[OfferedModel]
