"""Tool calls as endpoints stream them; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from scripted_server import RUN, calls, delta, ending, outcome, piece, play

CODE = '{"code": "print(1)"}'
OTHER = '{"code": "print(2)"}'


def run(text: Any = CODE, **more: Any) -> dict[str, Any]:
    """Return a piece of a call of the tool."""
    return piece(text, name="run_python", **more)


READ: dict[str, tuple[list[bytes], list[str]]] = {
    "1_pieces": (
        [calls(run("", index=0, id="a")),
         *(calls(piece(CODE[at : at + 4], index=0)) for at in range(0, len(CODE), 4))],
        [CODE],
    ),
    "4_two_indexes": (
        [calls(run(index=0, id="a")), calls(run(OTHER, index=1, id="b"))], [CODE, OTHER]
    ),
    "5_one_index_two_ids": (
        [calls(run(index=0, id="a")), calls(run(OTHER, index=0, id="b"))], [CODE, OTHER]
    ),
    "5_one_index_no_ids": ([calls(run(index=0)), calls(run(OTHER, index=0))], [CODE, OTHER]),
    "6_no_index_two_chunks": ([calls(run(id="a")), calls(run(OTHER, id="b"))], [CODE, OTHER]),
    "7_no_index_one_chunk": ([calls(run(), run(OTHER))], [CODE, OTHER]),
    "7_no_index_in_pieces": ([calls(run(CODE[:5])), calls(piece(CODE[5:]))], [CODE]),
    "10_object": ([calls(run({"code": "print(1)"}, index=0, id="a"))], [CODE]),
    "11_nothing": ([calls(run("", index=0, id="a"))], ["{}"]),
    "11_absent": ([calls(run(None, index=0, id="a"))], ["{}"]),
    "12_json_in_json": ([calls(run(json.dumps(CODE), index=0, id="a"))], [CODE]),
    "14_raw_line_break": (
        [calls(run('{"code": "a\nb"}', index=0, id="a"))], ['{"code": "a\\nb"}']
    ),
    "15_name_later": ([calls(piece("", index=0, id="a")), calls(run(index=0))], [CODE]),
    "id_and_name_in_each_piece": (
        [calls(run(CODE[:9], index=0, id="a")), calls(run(CODE[9:], index=0, id="a"))], [CODE]
    ),
    "repeated_whole": (
        [calls(run(CODE[:9], index=0, id="a")), calls(piece(CODE[9:], index=0)),
         calls(run(index=0, id="a"))],
        [CODE],
    ),
}  # fmt: skip


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("row", READ)
def test_a_call_is_read_however_it_comes(row: str, in_bytes: bool) -> None:
    blocks, expected = READ[row]
    seen = play(*blocks, *ending(), in_bytes=in_bytes)
    assert seen.error is None
    assert [(call.name, call.arguments) for call in seen.calls] == [
        ("run_python", arguments) for arguments in expected
    ]
    assert len({call.id for call in seen.calls}) == len(expected)
    assert (seen.finish, seen.text) == ("tool_calls", "")
    assert seen.chunks[-1].usage is not None


@pytest.mark.parametrize("name", [None, "python"])
def test_16_18_a_call_without_a_name_or_with_another_is_handed_on(name: str | None) -> None:
    (call,) = play(calls(piece(CODE, index=0, id="a", name=name)), *ending()).calls
    assert (call.name, call.arguments) == (name or "", CODE)


def test_1_code_is_handed_on_while_it_arrives() -> None:
    seen = play(*READ["1_pieces"][0], *ending())
    assert seen.streamed(0) == CODE
    assert len([chunk for chunk in seen.chunks if chunk.call]) > 3


@pytest.mark.parametrize("id", [None, "", "null"])
def test_8_9_a_missing_id_is_made_and_stays_the_same(id: str | None) -> None:
    blocks = [calls(piece(CODE, index=0, id=id, name="run_python")), *ending()]
    first, second = play(*blocks), play(*blocks)
    assert re.fullmatch("[a-zA-Z0-9]{9}", first.calls[0].id)
    assert first.calls == second.calls


REASON = '{"response": 1}'
SAID = delta(content="The answer is 42.")
MISTRAL = [{"type": "thinking", "thinking": [{"type": "text", "text": REASON}]}]
THINKING: dict[str, list[bytes]] = {
    "43": [delta(reasoning_content=REASON), SAID],
    "44": [delta(reasoning=REASON), SAID],
    "44_both": [delta(reasoning=REASON, reasoning_content=REASON), SAID],
    "45": [delta(content=f"<think>{REASON}</think>The answer is 42.")],
    "45_pieces": [delta(content=part) for part in f"<think>{REASON}</think>The answer is 42."],
    "46": [delta(content=f"{REASON}</think>\n\nThe answer is 42.")],
    "46_pieces": [delta(content=part) for part in f"{REASON}</think>\nThe answer is 42."],
    "mistral": [
        delta(content=MISTRAL), delta(content=[{"type": "text", "text": "The answer is 42."}])
    ],
}  # fmt: skip


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("row", THINKING)
def test_43_to_46_reasoning_is_no_part_of_the_text(row: str, in_bytes: bool) -> None:
    seen = play(*THINKING[row], *ending("stop"), in_bytes=in_bytes)
    assert seen.text == "The answer is 42."
    assert REASON.endswith(seen.reasoning)


@pytest.mark.parametrize(
    "text",
    [
        "Write `</think>` at the end.", "Between <think> and </think> it thinks.",
        "a < b and 1 </ 2 <", "<thin ice>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
def test_text_that_speaks_of_the_tags_is_text(text: str, in_bytes: bool) -> None:
    assert play(delta(content=text), *ending("stop"), in_bytes=in_bytes).text == text


def test_49_data_of_the_provider_stays_with_its_call() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    item = piece(CODE, id="a", name="run_python", extra_content=extra)
    (call,) = play(calls(item), *ending()).calls
    assert call.to_dict()["extra_content"] == extra


def test_36_tools_and_a_schema_are_never_sent_together() -> None:
    schema = {"type": "object"}
    extra = {"response_format": {"type": "json_object"}}
    (body,) = play(delta(content="x"), *ending("stop"), schema=schema, extra=extra).bodies
    assert "response_format" not in body
    assert "tool_choice" not in body
    assert [tool["function"]["name"] for tool in body["tools"]] == [RUN.name]


REFUSED = {
    "28": (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "29": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
    "30": (500, "tools param requires --jinja flag"),
    "31": (404, "No endpoints found that support tool use."),
    "deepseek": (400, "deepseek-reasoner does not support Function Calling"),
    "o1": (400, "Unsupported parameter: 'tools' is not supported with this model."),
}


@pytest.mark.parametrize("row", REFUSED)
def test_28_to_31_refused_tools_lower_the_form_at_once(row: str) -> None:
    status, words = REFUSED[row]
    seen = outcome(lambda call: call.refuse(status, words))
    assert seen.error is not None
    assert (seen.error.kind, seen.form, len(seen.bodies)) == ("form", "json", 1)


def test_37_what_the_model_wrote_is_the_reply() -> None:
    failed = {"code": "tool_use_failed", "failed_generation": "<f>1"}
    seen = outcome(lambda call: call.refuse(400, "Failed to call a function.", **failed))
    assert (seen.error, seen.text, seen.finish) == (None, "<f>1", "stop")
