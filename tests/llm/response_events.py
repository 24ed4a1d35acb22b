"""Events of Responses, as OpenAI's endpoint streams them."""

from __future__ import annotations

import json
from typing import Any

USAGE = {
    "input_tokens": 90,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 120,
}
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "I look at the table and multiply both numbers."}],
    "encrypted_content": "gAAAAsk-0123456789abcdefghij",
}


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def created() -> bytes:
    """Return the event that begins a response."""
    return event("response.created", response={"id": "resp_1", "model": "m1-2026", "status": ""})


def completed(*output: dict[str, Any], **fields: Any) -> bytes:
    """Return the event that ends a whole response."""
    response = {"status": "completed", "model": "m1-2026", "output": output, "usage": USAGE}
    return event("response.completed", response=response | fields)


def reasoning(place: int = 0, item: dict[str, Any] = REASONING) -> list[bytes]:
    begun = {**item, "summary": [], "encrypted_content": None}
    text = item["summary"][0]["text"]
    name = "response.reasoning_summary_text"
    more = {"item_id": item["id"], "output_index": place, "summary_index": 0}
    return [
        event("response.output_item.added", output_index=place, item=begun),
        event("response.reasoning_summary_part.added", part={"text": ""}, **more),
        *(event(f"{name}.delta", delta=part, **more) for part in (text[:4], text[4:])),
        event(f"{name}.done", text=text, **more),
        event("response.output_item.done", output_index=place, item=item),
    ]


def call_item(number: int, arguments: str, name: str = "run_python") -> dict[str, Any]:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
    return {"type": "function_call", **ids, "name": name, "arguments": arguments}


def function_call(place: int, item: dict[str, Any], *, pieces: int = 4) -> list[bytes]:
    text = item["arguments"]
    size = max(len(text) // pieces, 1)
    more = {"item_id": item["id"], "output_index": place}
    name = "response.function_call_arguments"
    return [
        event("response.output_item.added", output_index=place, item={**item, "arguments": ""}),
        *(
            event(f"{name}.delta", delta=text[at : at + size], **more)
            for at in range(0, len(text), size)
        ),
        event(f"{name}.done", arguments=text, **more),
        event("response.output_item.done", output_index=place, item=item),
    ]


def message_item(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content, **more}


def message(place: int, *texts: str, **more: Any) -> list[bytes]:
    item = message_item("".join(texts), **more)
    at = {"item_id": "msg_1", "output_index": place, "content_index": 0}
    return [
        event("response.output_item.added", output_index=place, item={**item, "content": []}),
        *(event("response.output_text.delta", delta=text, **at) for text in texts),
        event("response.output_text.done", text="".join(texts), **at),
        event("response.output_item.done", output_index=place, item=item),
    ]
