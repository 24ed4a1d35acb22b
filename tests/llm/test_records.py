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


def test_a_record_of_other_calls_is_left_out() -> None:
    chat = _chat()
    chat[1]["tool_calls"] = [_call("a")]
    assert "record" not in restored(chat, "d http://a m")[1]
