"""Records of replies go back to their origin only."""

from __future__ import annotations

from taskweaver.llm.records import reply_record, restored
from taskweaver.llm.types import ChatMessage


def _call(id_: str) -> dict[str, object]:
    return {"id": id_, "type": "function", "function": {"name": "run_python", "arguments": "{}"}}


def _chat() -> list[ChatMessage]:
    record = reply_record("d http://a m", [{"type": "thinking", "signature": "s"}], ["one", "two"])
    return [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "t", "tool_calls": [_call("a"), _call("b")],
         "record": record},
        {"role": "tool", "content": "1", "tool_call_id": "a"},
        {"role": "tool", "content": "2", "tool_call_id": "b"},
    ]  # fmt: skip


def test_the_origin_gets_its_reply_back_with_its_ids() -> None:
    _, reply, first, second = restored(_chat(), "d http://a m")
    assert reply["record"]["items"] == [{"type": "thinking", "signature": "s"}]
    assert [call["id"] for call in reply["tool_calls"]] == ["one", "two"]
    assert [first["tool_call_id"], second["tool_call_id"]] == ["one", "two"]


def test_another_origin_gets_the_calls_alone() -> None:
    chat = _chat()
    assert restored(chat, "d http://a other") == [
        {key: item for key, item in message.items() if key != "record"} for message in chat
    ]
    assert "record" in chat[1]


def test_a_record_of_other_calls_is_left_out() -> None:
    chat = _chat()
    chat[1]["tool_calls"] = [_call("a")]
    assert "record" not in restored(chat, "d http://a m")[1]
