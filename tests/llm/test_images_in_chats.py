"""Images in requests of chat completions; numbers are rows of the list of endpoints' quirks."""

from __future__ import annotations

from typing import Any

import pytest
from fake_endpoint import Call
from scripted_server import delta, ending, outcome

from taskweaver.llm.providers.abilities import takes_images
from taskweaver.llm.types import ChatMessage, image_part

URL = "data:image/png;base64,AAAA"
PLAIN = {"type": "image_url", "image_url": {"url": URL}}


def result(number: int, *names: str) -> ChatMessage:
    images = [image_part(URL, name=name, instead="") for name in names]
    text: dict[str, Any] = {"type": "text", "text": f"outcome {number}"}
    content = [text, *images] if images else f"outcome {number}"
    return {"role": "tool", "content": content, "tool_call_id": f"call{number}"}


def reply(count: int) -> ChatMessage:
    calls = [
        {"id": f"call{n}", "type": "function", "function": {"name": "run_python", "arguments": ""}}
        for n in range(count)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


CHAT: list[ChatMessage] = [
    {"role": "user", "content": "draw"},
    reply(3),
    result(0, "a.png"),
    result(1),
    result(2, 'b "q".png', "c.png"),
]


def answered(call: Call) -> None:
    call.stream([delta(content="x"), *ending("stop")])


def test_54_images_of_results_are_one_user_message_after_all_results() -> None:
    (body,) = outcome(answered, messages=CHAT).bodies
    *_, first, second, third, seen = body["messages"]
    assert [m["content"] for m in (first, second, third)] == ["outcome 0", "outcome 1", "outcome 2"]
    assert seen["role"] == "user"
    text, *images = seen["content"]
    assert images == [PLAIN] * 3
    assert text["text"].endswith(
        'result 1 of 3, "a.png"; result 3 of 3, "b \\"q\\".png"; result 3 of 3, "c.png"'
    )


@pytest.mark.parametrize("status", [400, 404, 415, 422, 500])
def test_55_a_refused_image_becomes_its_text_at_once(status: int) -> None:
    def script(call: Call) -> None:
        if "image_url" in str(call.body):
            call.refuse(status, "image input is not supported by this model")
        else:
            answered(call)

    seen = outcome(script, messages=CHAT)
    assert (seen.error, seen.text, len(seen.bodies)) == (None, "x", 2)
    assert seen.bodies[1]["messages"][2:] == [
        {**m, "content": f"outcome {n}"} for n, m in enumerate(CHAT[2:])
    ]


TAKING = (
    "gpt-4o-mini gpt-4.1 gpt-5.2 o3 o4-mini o1 claude-sonnet-4-5 claude-3-haiku-20240307"
    " models/gemini-2.5-flash gemma3:12b llama3.2-vision:11b llama-4-maverick llava:7b"
    " qwen2.5vl:7b qwen/qwen3-vl-8b pixtral-12b-2409 mistral-small3.2 mistral-medium-latest"
    " ministral-3:8b grok-4 z-ai/glm-4.5v kimi-k2.5 minicpm-v:8b amazon/nova-pro-v1"
)
BLIND = (
    "gpt-3.5-turbo gpt-4 gpt-4-0613 gpt-oss:20b o1-mini o3-mini claude-2.1 gemma3:1b gemma2:9b"
    " llama3.1:8b qwen2.5-coder:7b qwen3:8b mistral-large-2411 mistral-7b deepseek-chat"
    " deepseek-reasoner phi4 codestral kimi-k2 glm-4.6 granite4 m function/answer"
)


def test_names_of_models_tell_whether_they_take_images() -> None:
    assert [name for name in TAKING.split() if not takes_images(name)] == []
    assert [name for name in BLIND.split() if takes_images(name)] == []
