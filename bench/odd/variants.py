"""Odd forms of a reply: each a way of writing a cell, an answer, or both.

59 were measured with the first release: 24 that it read as they are, 31 that took a correction, a
loop, and three more. Ten came later: markup of calls, fillers, a fence inside of code. A model that
cannot be understood, or whose code is wrong each time, cannot be answered for ever; the others can.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Reply = str | dict[str, Any]
"""Text, or a message with ``content``, ``tool_calls`` or ``finish_reason``."""

FORMS = ("json", "fences", "tools")
CODE = """import math

with open("runs.txt", "a") as file:
    file.write("a run\\n")
total = sum(n * n for n in range(61))
print(f"total: {math.floor(total)}")
total"""
NUMBER = "73810"
_BAR = "\N{FULLWIDTH VERTICAL LINE}"
_INVOKE = (
    '<invoke name="run_python">\n<parameter name="intent">TEXT</parameter>\n'
    '<parameter name="code">CODE</parameter>\n</invoke>\n'
)
_MARKUPS = (
    ("tool_code", "```tool_code\nprint(run_python(intent='x', code=REPR))\n", "```"),
    (
        "tokens with wide bars",
        f"<{_BAR}tool\u2581calls\u2581begin{_BAR}><{_BAR}tool\u2581call\u2581begin{_BAR}>function"
        f"<{_BAR}tool\u2581sep{_BAR}>run_python\n```json\nGIVEN\n```",
        f"<{_BAR}tool\u2581call\u2581end{_BAR}><{_BAR}tool\u2581calls\u2581end{_BAR}>",
    ),
    (
        "tokens of a section",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.run_python:0"
        "<|tool_call_argument_begin|>GIVEN",
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    ("invoke in a name space", f"<minimax:tool_call>\n{_INVOKE}", "</minimax:tool_call>"),
    ("function_calls", f"<function_calls>\n{_INVOKE}", "</function_calls>"),
    (
        "arg_key",
        "<tool_call>run_python\n<arg_key>intent</arg_key>\n<arg_value>TEXT</arg_value>\n"
        "<arg_key>code</arg_key>\n<arg_value>CODE</arg_value>\n",
        "</tool_call>",
    ),
    ("an object in a function tag", "<function=run_python>GIVEN", "</function>"),
)
_FILLERS = ("None", "N/A", "-", "[]", "24")
_MADE_UP = {"send_to": "User", "message": "The total is 1."}


@dataclass(frozen=True, slots=True)
class Meant:
    """A reply as the model means it.

    Attributes:
        form: The form that it was asked to keep.
        text: The answer, or the purpose of the cell.
        code: The cell; empty for an answer.
    """

    form: str
    text: str
    code: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a JSON reply."""
        to = {"send_to": "CodeInterpreter" if self.code else "User", "message": self.text}
        return {"thought": "It is simple."} | to | ({"code": self.code} if self.code else {})

    @property
    def former(self) -> dict[str, str]:
        """The fields of a JSON reply of the original and the first release."""
        told = {"stop": "InProcess" if self.code else "Completed"} | self.fields
        told.pop("thought")
        return {
            "plan_reasoning": "It is simple.",
            "plan": "1. sum",
            "current_plan_step": "1",
        } | told

    @property
    def typed(self) -> dict[str, str]:
        """The fields of a JSON reply with a type of its content."""
        kind = "python" if self.code else "text"
        return {"thought": "It is simple.", "reply_type": kind, "reply_content": self.body}

    @property
    def body(self) -> str:
        """The code of a cell, the text of an answer."""
        return self.code or self.text

    @property
    def fence(self) -> str:
        """A fence of the code; an answer as it is."""
        return f"```python\n{self.code}\n```" if self.code else self.text


Way = Callable[[Meant], Reply]


def good(meant: Meant) -> Reply:
    """Write a reply in the form that was asked for."""
    if meant.form == "json":
        return wrapped(meant.fields)
    if meant.form == "fences" or not meant.code:
        return meant.fence
    arguments = json.dumps({"intent": meant.text, "code": meant.code})
    return {
        "tool_calls": [{"id": "c1", "function": {"name": "run_python", "arguments": arguments}}]
    }


@dataclass(frozen=True, slots=True)
class Variant:
    """An odd form.

    Attributes:
        name: Its name.
        cell: Writes the cell.
        answer: Writes the answer.
        forms: The forms that a model was asked to keep when it replies so.
        runs: Most runs of the cell when each reply is odd.
        is_answerable: Whether a model that always replies so can be answered.
    """

    name: str
    cell: Way
    answer: Way
    forms: tuple[str, ...] = ("json",)
    runs: int = 1
    is_answerable: bool = True


@dataclass(slots=True)
class _Table:
    found: list[Variant] = field(default_factory=list)

    def both(self, name: str, way: Way, **more: Any) -> None:
        self.found.append(Variant(name, way, way, **more))

    def cell(self, name: str, way: Way, **more: Any) -> None:
        self.found.append(Variant(name, way, good, **more))

    def answer(self, name: str, way: Way, **more: Any) -> None:
        self.found.append(Variant(name, good, way, **more))


def wrapped(fields: dict[str, Any]) -> str:
    """Return a JSON reply."""
    return json.dumps({"response": fields}, ensure_ascii=False)


def _json(meant: Meant) -> str:
    return wrapped(meant.fields)


def _without(meant: Meant, *names: str) -> str:
    return wrapped({key: text for key, text in meant.former.items() if key not in names})


def _with(meant: Meant, **fields: Any) -> str:
    return wrapped(meant.fields | fields)


def _called(meant: Meant) -> dict[str, Any]:
    if meant.code:
        return {"name": "run_python", "arguments": {"intent": meant.text, "code": meant.code}}
    return {"name": "final_answer", "arguments": {"answer": meant.text}}


def _thinking(meant: Meant) -> Reply:
    draft = f"<think>Perhaps {wrapped(_MADE_UP)}?</think>\n"
    reply = good(meant)
    return {**reply, "content": draft} if isinstance(reply, dict) else draft + reply


def _read_as_they_are(table: _Table) -> None:
    table.both("a fence around the object", lambda m: f"```json\n{_json(m)}\n```")
    table.both("a fence without a name around it", lambda m: f"```\n{_json(m)}\n```")
    table.both("words before", lambda m: f"Sure, here is my reply:\n\n{_json(m)}")
    table.both("words after", lambda m: f"{_json(m)}\n\nTell me if it helps!")
    table.both("a draft in the reasoning", _thinking, forms=FORMS)
    table.both("no wrapper", lambda m: json.dumps(m.fields))
    table.both("another order", lambda m: wrapped(dict(reversed(m.fields.items()))))
    table.both("a Python dictionary", lambda m: repr({"response": m.fields}))
    table.both("a trailing comma", lambda m: _json(m)[:-2] + ",},}")
    table.both("raw line breaks", lambda m: re.sub(r"(?<!\\)\\n", "\n", _json(m)))
    table.both("a second object", lambda m: _json(m) + "\n" + wrapped(_MADE_UP))
    table.both("no thought", lambda m: wrapped({"send_to": "User"} | m.fields | {"thought": ""}))
    table.both("no stop", lambda m: _without(m, "stop"))
    table.both("no reasoning", lambda m: _without(m, "plan_reasoning", "current_plan_step"))
    table.both("an unknown stop", lambda m: wrapped(m.former | {"stop": "Continue"}))
    table.both("a plan as a list", lambda m: wrapped(m.former | {"plan": ["1. sum"]}))
    table.both("names in lower case", lambda m: _with(m, send_to=m.fields["send_to"].lower()))
    table.cell("Completed, to a worker", lambda m: wrapped(m.former | {"stop": "Completed"}))
    table.answer("InProcess, to the user", lambda m: wrapped(m.former | {"stop": "InProcess"}))
    table.both("an init_plan", lambda m: wrapped({"init_plan": "1. sum"} | m.former))
    table.cell("a fence inside code", lambda m: _with(m, code=m.fence))
    table.cell("Python as the type", lambda m: wrapped(m.typed | {"reply_type": "Python"}))
    last = "total = sum(n * n for n in range(61))"
    code = CODE.partition("total =")[0]
    table.cell("a bare assignment", lambda m: good(Meant(m.form, m.text, code + last)), forms=FORMS)
    shown = CODE.removesuffix("\ntotal")
    table.cell("print alone", lambda m: good(Meant(m.form, m.text, shown)), forms=FORMS)


def _corrected(table: _Table) -> None:
    table.both("cut off", _cut, forms=FORMS, is_answerable=False)
    table.both("empty", lambda _: "", forms=FORMS, is_answerable=False)
    table.both("smart quotes", lambda m: _json(m).replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}"))
    table.both("addressed to itself", lambda m: _with(m, send_to="Planner"))
    table.both("an unknown role", lambda m: _with(m, send_to="Assistant"))
    table.both("HTML entities", lambda m: html.escape(_json(m)))
    table.both("a call in JSON", lambda m: json.dumps(_called(m)), forms=FORMS)
    table.both("a call in XML", _in_xml, forms=FORMS)
    table.both("a list of elements", _listed)
    table.both("triple quotes", _triple)
    table.both("endless repetition", _endless, forms=FORMS, is_answerable=False)
    for name, line in {
        "input()": 'count = int(input("How many? "))\n',
        "a syntax error": "for n in range(61)\n    pass\n",
        "a name error": "total = totals + 1\n",
    }.items():
        table.cell(name, partial(_with_code, line + CODE), forms=FORMS, is_answerable=False)
    table.both("no closing brackets", lambda m: _json(m)[:-2])
    table.both("quotes that are not escaped", lambda m: _json(m).replace('\\"', '"'))
    table.both("names of fields in capitals", lambda m: wrapped(_capital(m.fields)))
    table.both("Thought, Action, Final Answer", _react, forms=FORMS)
    table.both("comments in the object", _commented)
    table.both("another wrapper", lambda m: json.dumps({"reply": m.fields}))
    tags = "code", "answer"
    table.both("tags", lambda m: "<{0}>\n{1}\n</{0}>".format(tags[not m.code], m.body), forms=FORMS)


def _with_code(code: str, meant: Meant) -> Reply:
    return good(Meant(meant.form, meant.text, code))


def _lost_when_repeated(table: _Table) -> None:
    table.answer("plain text", lambda m: m.text, forms=FORMS)
    table.cell("a fence alone", lambda m: m.fence, forms=FORMS)
    table.cell("words and a fence", lambda m: f"I add them up.\n\n{m.fence}\n", forms=FORMS)
    table.both("no type", lambda m: wrapped({"thought": "Easy.", "reply_content": m.body}))
    table.cell("code as the type", lambda m: wrapped(m.typed | {"reply_type": "code"}))
    table.cell("blanks in a name", lambda m: _with(m, send_to="Code Interpreter"))
    table.both("no plan", lambda m: _without(m, "plan"))
    table.both("no receiver", lambda m: _without(m, "send_to"))
    indented = "\n".join("    " + line for line in CODE.splitlines())
    table.cell("a uniform indent", lambda m: good(Meant(m.form, m.text, indented)), forms=FORMS)
    table.cell("escaped twice", lambda m: _with(m, code=json.dumps(m.code)[1:-1]))


def _others(table: _Table) -> None:
    again = Meant("json", "add again", CODE)
    table.answer(
        "the same cell again", lambda m: good(Meant(m.form, again.text, CODE)), forms=FORMS, runs=9
    )
    table.answer("text as the type", lambda m: wrapped(m.typed))
    table.answer("the answer as the thought", lambda m: wrapped({"thought": m.text}))
    table.both("action and action_input", _agent, forms=FORMS)


def _measured_later(table: _Table) -> None:
    for name, opening, closing in _MARKUPS:
        table.cell(name, partial(_marked, opening, closing), forms=FORMS)
    table.both("channels", _in_channels, forms=FORMS)
    table.both("fillers", _filled)
    fenced = CODE + '\nnote = """\n```\n"""\ntotal'
    table.cell(
        "a fence inside of a text",
        lambda m: good(Meant(m.form, m.text, fenced)),
        forms=("json", "fences"),
    )


def _marked(opening: str, closing: str, meant: Meant) -> str:
    given = json.dumps({"intent": meant.text, "code": meant.code})
    places = {"CODE": meant.code, "TEXT": meant.text, "GIVEN": given, "REPR": repr(meant.code)}
    return re.sub("CODE|TEXT|GIVEN|REPR", lambda found: places[found[0]], opening) + closing


def _in_channels(meant: Meant) -> str:
    thought = "<|channel|>analysis<|message|>It is simple.<|end|><|start|>assistant"
    if not meant.code:
        return f"{thought}<|channel|>final<|message|>{meant.text}<|return|>"
    given = json.dumps({"intent": meant.text, "code": meant.code})
    to = "<|channel|>commentary to=functions.run_python <|constrain|>json<|message|>"
    return f"{thought}{to}{given}<|call|>"


def _filled(meant: Meant) -> str:
    unused = dict(
        zip(("plan", "alternatives", "remember", "forget", "recall"), _FILLERS, strict=True)
    )
    return wrapped({"code": "None"} | unused | meant.fields)


def _cut(meant: Meant) -> Reply:
    reply = good(meant)
    if isinstance(reply, str):
        return {"content": reply[: len(reply) * 2 // 3], "finish_reason": "length"}
    (call,) = reply["tool_calls"]
    arguments = call["function"]["arguments"][:60]
    cut = {**call, "function": {"name": "run_python", "arguments": arguments}}
    return {"tool_calls": [cut], "finish_reason": "length"}


def _in_xml(meant: Meant) -> str:
    name, arguments = _called(meant)["name"], _called(meant)["arguments"]
    parameters = [f"<parameter={key}>\n{text}\n</parameter>" for key, text in arguments.items()]
    inside = "\n".join([f"<function={name}>", *parameters, "</function>"])
    return f"<tool_call>\n{inside}\n</tool_call>"


def _listed(meant: Meant) -> str:
    fields = meant.typed if meant.code else meant.fields
    items = [{"type": key, "content": text} for key, text in fields.items()]
    if meant.code:
        items = [items[0], {"type": "python", "content": meant.code}]
    return json.dumps({"response": items})


def _triple(meant: Meant) -> str:
    name = "code" if meant.code else "message"
    return _with(meant, **{name: "@"}).replace('"@"', f'"""{meant.body}"""')


def _endless(_: Meant) -> Reply:
    return {"content": "Let me think about the total. " * 2000, "finish_reason": "length"}


def _capital(fields: dict[str, str]) -> dict[str, str]:
    return {key.title(): text for key, text in fields.items()}


def _react(meant: Meant) -> str:
    if not meant.code:
        return f"Thought: I know it now.\nFinal Answer: {meant.text}"
    action = f"Action: run_python\nAction Input: {json.dumps({'code': meant.code})}"
    return f"Thought: I add.\n{action}\nObservation: 1\nThought: I know.\nFinal Answer: It is 1."


def _commented(meant: Meant) -> str:
    lines = json.dumps({"response": meant.fields}, indent=1).splitlines()
    return "\n".join([lines[0] + " // my reply", *lines[1:-2], "  /* the end */", *lines[-2:]])


def _agent(meant: Meant) -> str:
    if meant.code:
        return json.dumps({"action": "run_python", "action_input": {"code": meant.code}})
    return json.dumps({"action": "Final Answer", "action_input": meant.text})


def variants() -> list[Variant]:
    """Return the odd forms."""
    table = _Table()
    for add in (_read_as_they_are, _corrected, _lost_when_repeated, _others, _measured_later):
        add(table)
    return table.found
