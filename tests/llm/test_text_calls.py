"""Calls of tools that a model wrote into its text: rows 87 and 88 of the scripted server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.llm.parsing.text_calls import text_calls

TOOLS = ("run_python", "set_plan")
CODE = "x = 1\nprint(x)"
GIVEN = json.dumps({"code": CODE})
BARE = json.dumps({"name": "run_python", "arguments": {"code": CODE}})
QWEN = f"<function=run_python>\n<parameter=code>\n{CODE}\n</parameter>\n</function>"
BAR = "\N{FULLWIDTH VERTICAL LINE}"
DEEPSEEK = f"<{BAR}tool\u2581calls\u2581begin{BAR}><{BAR}tool\u2581call\u2581begin{BAR}>"
DEEPSEEK_END = f"<{BAR}tool\u2581call\u2581end{BAR}><{BAR}tool\u2581calls\u2581end{BAR}>"
SEP = f"<{BAR}tool\u2581sep{BAR}>"
INVOKE = f'<invoke name="run_python">\n<parameter name="code">{CODE}</parameter>\n</invoke>'
ARG = f"<arg_key>code</arg_key>\n<arg_value>{CODE}</arg_value>"
HARMONY = "<|channel|>commentary to=functions.run_python <|constrain|>json<|message|>"
FORMS = {
    "bare": BARE,
    "parameters": BARE.replace("arguments", "parameters"),
    "list": f"[{BARE}]",
    "fence": f"I run it.\n```json\n{BARE}\n```",
    "tagged": f"I run it.\n<tool_call>\n{BARE}\n</tool_call>",
    "tagged-open": f"<tool_call>{BARE}",
    "text-arguments": json.dumps({"name": "run_python", "arguments": json.dumps({"code": CODE})}),
    "openai": json.dumps({"tool_calls": [{"function": json.loads(BARE)}]}),
    "qwen3-coder": QWEN,
    "qwen3-tagged": f"<tool_call>\n{QWEN}\n</tool_call>",
    "pythonic": f"[run_python(code={CODE!r})]",
    "mistral": f"[TOOL_CALLS]run_python[ARGS]{GIVEN}",
    "mistral-list": f"[TOOL_CALLS][{BARE}]",
    "kimi": f"functions.run_python:0{GIVEN}",
    "llama-tag": f"<|python_tag|>{CODE}<|eom_id|>",
    "deepseek": f"{DEEPSEEK}function{SEP}run_python\n```json\n{GIVEN}\n```{DEEPSEEK_END}",
    "deepseek-3.1": f"I run it.{DEEPSEEK}run_python{SEP}{GIVEN}{DEEPSEEK_END}",
    "kimi-tokens": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.run_python:0"
        f"<|tool_call_argument_begin|>{GIVEN}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "minimax": f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>",
    "minimax-m1": f"<tool_calls>\n{BARE}\n</tool_calls>",
    "function-calls": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "glm": f"<tool_call>run_python\n{ARG}\n</tool_call>",
    "gemma": f"```tool_code\nprint(default_api.run_python(code={CODE!r}))\n```",
    "gemma-code": f"I run it.\n```tool_code\n{CODE}\n```",
    "llama": f"<function=run_python>{GIVEN}</function>",
    "granite": f"<|tool_call|>[{BARE}]",
    "harmony-end": f"{HARMONY}{GIVEN}<|call|>",
    "harmony": f"{HARMONY}{GIVEN}",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_row_87_a_call_in_the_text_is_read(text: str) -> None:
    found = text_calls(text, TOOLS, "run_python")
    assert found is not None
    (call,) = found.calls
    assert call.name == "run_python"
    assert json.loads(call.arguments)["code"] == CODE
    assert found.words in ("", "I run it.")
    assert not found.is_followed


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_row_88_the_same_text_is_text_where_the_tool_is_not_offered(text: str) -> None:
    assert text_calls(text, ("ask",)) is None
    assert text_calls(text, ()) is None


@pytest.mark.parametrize(
    "text",
    [
        "A call looks like `run_python(code=...)` in Python.",
        "The name is run_python, its arguments are code.",
        '{"response": {"send_to": "User", "message": "hi"}}', '{"name": "Ada", "arguments": {}}',
        "[1, 2, 3]", "run_python(open('x'))", "",
    ],
)  # fmt: skip
def test_text_that_calls_nothing_is_text(text: str) -> None:
    assert text_calls(text, TOOLS, "run_python") is None


_PIECES = st.sampled_from(
    [*FORMS.values(), "<tool_call>", "<function=run_python>", "[TOOL_CALLS]", "{", "[", "```json\n"]
)


@given(st.lists(_PIECES | st.text(max_size=9), max_size=8).map("".join))
def test_any_text_is_read(text: str) -> None:
    found = text_calls(text, TOOLS, "run_python")
    assert found is None or all(call.name in TOOLS for call in found.calls)


def test_long_text_of_brackets_is_read_in_time() -> None:
    for text in ("[" * 100_000, "<tool_call>" * 20_000, '{"a":' * 50_000, "run_python(" * 20_000):
        assert text_calls(text, TOOLS, "run_python") is None
