"""Tool calls as endpoints stream them; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from scripted_server import RUN, calls, delta, ending, outcome, piece, play

CODE = '{"code": "print(1)"}'
OTHER = '{"code": "print(2)"}'

READ: dict[str, tuple[list[bytes], list[tuple[str, str]]]] = {
    "1_pieces": (
        [
            calls(piece("", index=0, id="a", name="run_python")),
            *(calls(piece(CODE[at : at + 4], index=0)) for at in range(0, len(CODE), 4)),
        ],
        [("run_python", CODE)],
    ),
    "4_two_indexes": (
        [
            calls(piece(CODE, index=0, id="a", name="run_python")),
            calls(piece(OTHER, index=1, id="b", name="run_python")),
        ],
        [("run_python", CODE), ("run_python", OTHER)],
    ),
    "5_one_index_two_ids": (
        [
            calls(piece(CODE, index=0, id="a", name="run_python")),
            calls(piece(OTHER, index=0, id="b", name="run_python")),
        ],
        [("run_python", CODE), ("run_python", OTHER)],
    ),
    "5_one_index_no_ids": (
        [
            calls(piece(CODE, index=0, name="run_python")),
            calls(piece(OTHER, index=0, name="run_python")),
        ],
        [("run_python", CODE), ("run_python", OTHER)],
    ),
    "6_no_index_two_chunks": (
        [
            calls(piece(CODE, id="a", name="run_python")),
            calls(piece(OTHER, id="b", name="run_python")),
        ],
        [("run_python", CODE), ("run_python", OTHER)],
    ),
    "7_no_index_one_chunk": (
        [calls(piece(CODE, name="run_python"), piece(OTHER, name="run_python"))],
        [("run_python", CODE), ("run_python", OTHER)],
    ),
    "7_no_index_in_pieces": (
        [calls(piece(CODE[:5], name="run_python")), calls(piece(CODE[5:]))],
        [("run_python", CODE)],
    ),
    "10_object": (
        [calls(piece({"code": "print(1)"}, index=0, id="a", name="run_python"))],
        [("run_python", CODE)],
    ),
    "11_nothing": ([calls(piece("", index=0, id="a", name="stop"))], [("stop", "{}")]),
    "11_absent": ([calls(piece(index=0, id="a", name="stop"))], [("stop", "{}")]),
    "12_json_in_json": (
        [calls(piece(json.dumps(CODE), index=0, id="a", name="run_python"))],
        [("run_python", CODE)],
    ),
    "14_raw_line_break": (
        [calls(piece('{"code": "a\nb"}', index=0, id="a", name="run_python"))],
        [("run_python", '{"code": "a\\nb"}')],
    ),
    "15_name_later": (
        [calls(piece("", index=0, id="a")), calls(piece(CODE, index=0, name="run_python"))],
        [("run_python", CODE)],
    ),
    "16_no_name": ([calls(piece(CODE, index=0, id="a"))], [("", CODE)]),
    "18_other_name": ([calls(piece(CODE, index=0, id="a", name="python"))], [("python", CODE)]),
    "id_and_name_in_each_piece": (
        [
            calls(piece(CODE[:9], index=0, id="a", name="run_python")),
            calls(piece(CODE[9:], index=0, id="a", name="run_python")),
        ],
        [("run_python", CODE)],
    ),
    "repeated_whole": (
        [
            calls(piece(CODE[:9], index=0, id="a", name="run_python")),
            calls(piece(CODE[9:], index=0)),
            calls(piece(CODE, index=0, id="a", name="run_python")),
        ],
        [("run_python", CODE)],
    ),
}


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("row", READ)
def test_a_call_is_read_however_it_comes(row: str, in_bytes: bool) -> None:
    blocks, expected = READ[row]

    seen = play(*blocks, *ending(), in_bytes=in_bytes)

    assert seen.error is None
    assert [(call.name, call.arguments) for call in seen.calls] == expected
    assert len({call.id for call in seen.calls}) == len(expected)
    assert seen.finish == "tool_calls"
    assert seen.text == ""
    assert seen.chunks[-1].usage is not None


def test_1_code_is_handed_on_while_it_arrives() -> None:
    blocks, _ = READ["1_pieces"]

    seen = play(*blocks, *ending())

    assert seen.streamed(0) == CODE
    assert len([chunk for chunk in seen.chunks if chunk.call]) > 3


@pytest.mark.parametrize("id", [None, "", "null"])
def test_8_9_a_missing_id_is_made_and_stays_the_same(id: str | None) -> None:
    blocks = [calls(piece(CODE, index=0, id=id, name="run_python")), *ending()]

    first, second = play(*blocks), play(*blocks)

    assert re.fullmatch("[a-zA-Z0-9]{9}", first.calls[0].id)
    assert first.calls == second.calls


THINKING: dict[str, list[bytes]] = {
    "43": [delta(reasoning_content='{"response": 1}'), delta(content="The answer is 42.")],
    "44": [delta(reasoning='{"response": 1}'), delta(content="The answer is 42.")],
    "44_both": [
        delta(reasoning='{"response": 1}', reasoning_content='{"response": 1}'),
        delta(content="The answer is 42."),
    ],
    "45": [delta(content='<think>{"response": 1}</think>The answer is 42.')],
    "45_pieces": [
        delta(content=part) for part in '<think>{"response": 1}</think>The answer is 42.'
    ],
    "46": [delta(content='{"response": 1}</think>\n\nThe answer is 42.')],
    "46_pieces": [delta(content=part) for part in '{"response": 1}</think>\nThe answer is 42.'],
    "mistral": [
        delta(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": '{"response": 1}'}]}
            ]
        ),
        delta(content=[{"type": "text", "text": "The answer is 42."}]),
    ],
}


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("row", THINKING)
def test_43_to_46_reasoning_is_no_part_of_the_text(row: str, in_bytes: bool) -> None:
    seen = play(*THINKING[row], *ending("stop"), in_bytes=in_bytes)

    assert seen.text == "The answer is 42."
    assert '{"response": 1}'.endswith(seen.reasoning) or seen.reasoning == '{"response": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "Write `</think>` at the end.",
        "Between <think> and </think> it thinks.",
        "a < b and 1 </ 2 <",
        "<thin ice>",
    ],
)
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
    more: dict[str, Any] = {"extra": {"response_format": {"type": "json_object"}}}

    (body,) = play(delta(content="x"), *ending("stop"), schema=schema, **more).bodies

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
    seen = outcome(
        lambda call: call.refuse(
            400, "Failed to call a function.", code="tool_use_failed", failed_generation="<f>1"
        )
    )

    assert (seen.error, seen.text, seen.finish) == (None, "<f>1", "stop")
