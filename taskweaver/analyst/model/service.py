"""The offline analyst as a completion service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskweaver.analyst.dialogue import first_questions
from taskweaver.analyst.model.refusals import HELP, ONLY_PYTHON
from taskweaver.analyst.model.replies import (
    REMEMBER,
    as_code_writer,
    as_planner,
    named_image,
    summary,
)
from taskweaver.analyst.model.tool_chats import reply_with_tools
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import Chunk, FinishReason, ModelRequest, Usage
from taskweaver.memory.forms.suggestions import Suggestion
from taskweaver.tables.files.profile import TableProfile
from taskweaver.tables.files.world import FileInfo, World

_PIECE = re.compile(r"\S+\s*|\s+")
_WORDS_PER_CHUNK = 6
_MOST_TABLES = 20


class OfflineService:
    """Answers by rules, from the prompt alone."""

    model = "builtin/offline"
    takes_corrections = False

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request a few words at a time.

        Raises:
            ModelError: Of kind ``cancelled``; of ``bad_request`` when there are images to look at.
        """
        if any(isinstance(message["content"], list) for message in request.messages):
            detail = "the built-in offline analyst reads texts, and sees no images."
            raise ModelError("bad_request", detail, self.model, "Use a real model.")
        if request.tools:
            text, calls = reply_with_tools(request) or (ONLY_PYTHON, ())
        else:
            text, calls = _reply(request), ()
        words = _PIECE.findall(text)
        for at in range(0, len(words), _WORDS_PER_CHUNK):
            if request.cancel.cancelled:
                raise ModelError("cancelled", "the call was given up", self.model)
            yield Chunk("".join(words[at : at + _WORDS_PER_CHUNK]))
        finish: FinishReason = "tool_calls" if calls else "stop"
        # There is no model that reads tokens.
        yield Chunk(finish=finish, usage=Usage(calls=1), calls=calls)

    def first_questions(
        self, tables: Sequence[TableProfile], others: Sequence[str] = ()
    ) -> tuple[Suggestion, ...]:
        """Return questions about the first tables of a file that stands beside `others`."""
        names = (tables[0].id.file, *others)
        world = World(tuple(map(FileInfo, names)), {table.id: table for table in tables})
        telling = max(tables[:_MOST_TABLES], key=lambda table: min(table.rows, 2))
        return first_questions(telling.id, world)

    def close(self) -> None:
        """Release nothing: there is nothing."""


def _reply(request: ModelRequest) -> str:
    properties = _properties(request.schema)
    if "plan" in properties:
        recipients = properties.get("send_to", {}).get("enum", ["User"])
        fields = as_planner(request.messages, recipients, keeps_facts=REMEMBER in properties)
        return json.dumps({"response": fields}, ensure_ascii=False)
    cell = properties.get("code", {}).get("description", "python")
    if cell != "python" or "python" not in properties.get("reply_type", {}).get("enum", ["python"]):
        fields = {"thought": "", "reply_type": "text", "reply_content": ONLY_PYTHON}
        return json.dumps({"response": fields})
    if "reply_type" in properties or "code" in properties:
        return json.dumps({"response": as_code_writer(request.messages)}, ensure_ascii=False)
    if "image_url" in properties:
        name = named_image(str(request.messages[-1]["content"]))
        return json.dumps({"response": {"image_url": name}}, ensure_ascii=False)
    if len(request.messages) > 1 and request.messages[0]["role"] == "system":
        return summary(str(request.messages[-1]["content"]))
    return HELP


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    response = (schema or {}).get("properties", {}).get("response", {})
    properties: Mapping[str, Any] = response.get("properties", {})
    return properties
