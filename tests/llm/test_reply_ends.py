"""How replies end, in every dialect: whole, cut, refused or broken; numbers are rows of cases."""

from __future__ import annotations

import json
from typing import NamedTuple

import claude_replies as claude
import ollama_server as ollama
import pytest
import response_events as responses
from fake_endpoint import DONE, USAGE_EVENT, Call
from scripted_server import calls, delta, ending, outcome, piece, play

from taskweaver.llm.dialects.switch import DialectName
from taskweaver.llm.parsing.reply import MAX_TEXT_CHARS

CODE = '{"code": "print(1)"}'
CUT = '{"code": "x = (1,'
MIB = "x" * (1 << 20)
ENDLESS = MAX_TEXT_CHARS // (1 << 20) + 1
RUN = calls(piece(CODE, index=0, id="a", name="run_python"))
CREATED = responses.created()
ITEM = responses.call_item(1, CODE)
FUNCTION = [CREATED, *responses.function_call(0, ITEM)]


class End(NamedTuple):
    """A reply, and what its caller gets."""

    dialect: DialectName
    blocks: list[bytes]
    error: str = ""
    finish: str = "stop"
    text: str = ""
    arguments: tuple[str, ...] = ()
    detail: str = ""


def failed(words: str, **error: object) -> bytes:
    return b"data: " + json.dumps({"error": {"message": words, **error}}).encode() + b"\n\n"


def growing(block: claude.Block, **change: object) -> list[bytes]:
    """Return the events of a block of Anthropic that grows without end."""
    start = claude.event("content_block_start", index=0, content_block=block)
    more = claude.event("content_block_delta", index=0, delta=change)
    return [claude.begin(), start, *[more] * 12]


def incomplete(reason: str) -> bytes:
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return responses.event("response.incomplete", response={**end, "usage": responses.USAGE})


TOO_LONG = {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}
CRASHED = {"status": "failed", "error": {"code": "server_error", "message": "The model crashed."}}
REFUSAL = {"type": "refusal", "category": "cyber", "explanation": "This could harm."}
ENDS = {
    "2 text before a call": End("chat", [delta(content="I look."), RUN, *ending()],
                                finish="tool_calls", text="I look.", arguments=(CODE,)),
    "13 cut": End("chat", [calls(piece(CUT, index=0, id="a", name="run_python")),
                           *ending("length")], finish="length", arguments=(CUT,)),
    "19 calls without end": End("chat", [*(calls(piece(CODE, index=at, name="run_python"))
                                           for at in range(300)), *ending()],
                                finish="tool_calls", arguments=(CODE,) * 200),
    "21 calls count": End("chat", [RUN, *ending("stop")], finish="tool_calls", arguments=(CODE,)),
    "22 no calls": End("chat", [delta(content="hello"), *ending("tool_calls")], text="hello"),
    "23 error": End("chat", [delta(content="half"), *ending("error")], "truncated"),
    "23 malformed": End("chat", [delta(content="half"), *ending("MALFORMED_FUNCTION_CALL")],
                        "truncated"),
    "37 written": End("chat", [failed("Failed", code="tool_use_failed", failed_generation="<f>1")],
                      text="<f>1"),
    "40 broken": End("chat", [RUN, failed("oops", code=500)], "overloaded"),
    "47 reasoning alone": End("chat", [delta(content="<think>hm"), *ending("stop")]),
    "65 endless": End("chat", [calls(piece("", index=0, id="a", name="run_python")),
                               *[calls(piece(MIB, index=0))] * ENDLESS], "malformed"),
    "number": End("chat", [delta(content=42), *ending("stop")], text="42"),
    "no reason": End("chat", [delta(content="a")], "truncated"),
    "no reason but done": End("chat", [delta(content="a"), DONE], "truncated"),
    "usage alone": End("chat", [USAGE_EVENT], "truncated"),
    "named error": End("chat", [b'event: error\ndata: {"message": "no memory"}\n\n'], "overloaded",
                       detail="no memory"),
    "error in words": End("chat", [b"event: error\ndata: no memory\n\n"], "overloaded",
                          detail="no memory"),
    "no JSON": End("chat", [b"data: {oops\n\n"], "malformed"),
    "a list": End("chat", [b"data: [1, 2]\n\n"], "malformed"),
    "too deep": End("chat", [b"data: " + b'{"a":' * 99_999 + b"\n\n"], "malformed"),
    "claude cut": End("anthropic", [
        claude.begin(), *claude.streamed(0, claude.thinking("Hm.")),
        claude.event("content_block_start", index=1, content_block=claude.call()),
        claude.event("content_block_delta", index=1,
                     delta={"type": "input_json_delta", "partial_json": CUT}),
        claude.event("content_block_stop", index=1), *claude.ending("max_tokens"),
    ], finish="length", arguments=(CUT,)),
    "claude at once": End("anthropic", [
        claude.begin(),
        claude.event("content_block_start", index=0, content_block=claude.call(code="print(1)")),
        claude.event("content_block_stop", index=0), *claude.ending("tool_use"),
    ], finish="tool_calls", arguments=(CODE,)),
    "65 claude": End("anthropic", growing(claude.call(), type="input_json_delta", partial_json=MIB),
                     "malformed"),
    "claude signature": End("anthropic", growing(claude.thinking("", ""), type="signature_delta",
                                                 signature=MIB), "malformed"),
    "71": End("anthropic", claude.reply(claude.text("half"),
                                        reason="model_context_window_exceeded"),
              "context_overflow"),
    "72": End("anthropic", [claude.begin(), claude.failed("rate_limit_error", "No.")],
              "rate_limit"),
    "73 refusal": End("anthropic", [claude.begin(), *claude.streamed(0, claude.text("First")),
                                    *claude.ending("refusal", stop_details=REFUSAL)],
                      "refusal", detail="This could harm."),
    "73 endless pause": End("anthropic", claude.reply(claude.text("."), reason="pause_turn"),
                            "truncated"),
    "77": End("responses", [*FUNCTION, responses.completed(ITEM)], finish="tool_calls",
              arguments=(CODE,)),
    "80 cut": End("responses", [CREATED, *responses.function_call(0, responses.call_item(1, CUT)),
                                incomplete("max_output_tokens")],
                  finish="length", arguments=(CUT,)),
    "80 filtered": End("responses", [CREATED, incomplete("content_filter")],
                       finish="content_filter"),
    "80 failed": End("responses", [*FUNCTION, responses.event("response.failed", response=CRASHED)],
                     "overloaded"),
    "80 error": End("responses", [*FUNCTION, responses.event("error", error=CRASHED["error"])],
                    "overloaded"),
    "80 limit": End("responses", [*FUNCTION, responses.event(
        "error", code="rate_limit_exceeded", message="Too many tokens per minute.")], "rate_limit"),
    "80 too long": End("responses", [*FUNCTION, responses.event("error", **TOO_LONG)],
                       "context_overflow"),
    "80 cancelled": End("responses", [*FUNCTION, responses.event(
        "response.cancelled", response={"status": "cancelled"})], "truncated"),
    "80 no end": End("responses", FUNCTION, "truncated"),
    "responses refusal": End("responses", [CREATED, responses.event(
        "response.refusal.delta", output_index=0, content_index=0, delta="I must not."),
        responses.completed()], "refusal", detail="I must not."),
    "once": End("responses", [CREATED, *responses.message(0, "Hello"),
                              responses.completed(responses.message_item("Hello"))], text="Hello"),
    "at the end": End("responses", [CREATED, responses.completed(responses.message_item("Hello"))],
                      text="Hello"),
    "runner": End("ollama", [b'{"error": "the runner stopped"}\n'], "overloaded"),
    "memory": End("ollama", [ollama.line("1"), b'{"error": "out of memory"}'], "overloaded"),
    "half": End("ollama", [ollama.line(calls=[ollama.call_of("1")])], "truncated"),
    "page": End("ollama", [b"<html>a portal</html>"], "malformed"),
    "not JSON": End("ollama", [b'{"message": broken}\n'], "malformed"),
    "ollama cut": End("ollama", [ollama.line("half"), ollama.last("length")], finish="length",
                      text="half"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_a_reply_is_read(name: str) -> None:
    row = ENDS[name]
    seen = play(*row.blocks, dialect=row.dialect)
    if row.error:
        assert seen.error is not None
        assert (seen.error.kind, seen.calls) == (row.error, ())
        assert row.detail in seen.error.detail
    else:
        assert seen.error is None
        assert (seen.finish, seen.text) == (row.finish, row.text)
        assert tuple(call.arguments for call in seen.calls) == row.arguments
    assert len(seen.bodies) < 20


@pytest.mark.parametrize("text", [CODE[:8], CODE])
def test_41_42_a_broken_connection_hands_on_no_call(text: str) -> None:
    def script(call: Call) -> None:
        call.start()
        call.send(calls(piece(text, index=0, id="a", name="run_python")))
        call.hang_up()

    seen = outcome(script)
    assert seen.error is not None
    assert (seen.error.kind, seen.calls, len(seen.bodies)) == ("truncated", (), 1)
