"""From a model's reply, in whichever form it came, to the actions in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskweaver.llm.parsing.text_calls import text_calls
from taskweaver.llm.types import Form, ToolCall
from taskweaver.role.forms.actions import (
    Action,
    Alternatives,
    Meaning,
    ModelReply,
    Order,
    ReadCall,
    ReplyReading,
    RunCell,
    Say,
)
from taskweaver.role.forms.alternatives import ALTERNATIVES, alternatives_of
from taskweaver.role.forms.kept_replies import is_object
from taskweaver.role.forms.labels import repeats_itself, without_labels
from taskweaver.role.forms.memory_calls import (
    MOST_OPERATIONS,
    OPERATIONS,
    FactOperation,
    asks,
    of_fields,
)
from taskweaver.role.forms.odd_fields import FIELDS, is_reply, looks_like_fields, read_fields
from taskweaver.role.forms.offer import ASK_TOOL, BRANCH_TOOL, PLAN_TOOL, USER, ActionOffer
from taskweaver.role.forms.values import (
    EMPTY_REPLY,
    call_arguments,
    cell_code,
    folded,
    is_prose,
    is_yes,
    only_text,
    plan_field,
    plan_text,
    receiver,
    text_of,
    words_of,
)

MOST_CALLS = 8
"""Most cells and orders of one reply that are carried out."""

_FENCE = re.compile(
    r"^(?P<mark>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)(?:^(?P=mark)[ \t]*$|\Z)", re.M | re.S
)
_CODE_INFOS = {
    "python": {"python", "py", "python3", "ipython", "tool_code"},
    "bash": {"bash", "sh", "shell", "console"},
}
_RUN_NAMES = {
    "python", "execute", "execute_code", "execute_python", "code", "code_interpreter", "run",
    "run_code", "python_interpreter",
}  # fmt: skip
_ANSWER_NAMES = {"final_answer", "answer", "finish", "respond"}
_CALL = re.compile(r"^\s*(?:<tool_call>|<function=|\[TOOL_CALLS\])", re.MULTILINE)
_CODE_FIELDS = ("code", "reply_content")
_ACTING_FIELDS = ("message", "answer", ALTERNATIVES, *_CODE_FIELDS)
_REPLY_TYPES = {"text"}
_OWN_MARKS = {"send_to", "thought", "reply_type", "reply_content"}
_CODE_FOR_USER = (
    'send_to is "User", and there is code. To run it, send it to the role that runs code; to show'
    " it, put it into message and leave code empty."
)


def read_reply(
    reply: ModelReply, offer: ActionOffer, *, fences_run: bool, form: Form = "json"
) -> ReplyReading:
    """Return the content of a reply; never raises.

    Args:
        reply: The reply.
        offer: The actions that were offered.
        fences_run: Whether a fence of code in the text is a cell, or part of an answer.
        form: The form that was asked for; where it is not JSON, an object among words is no reply.
    """
    if form == "tools" and _is_explained(reply.text):
        fences_run = False  # code that is shown to the user, who may have asked not to run it
    found = _read(reply, offer, fences_run=fences_run, form=form)
    if reply.is_cut and repeats_itself(reply.text):
        return ReplyReading(problem="The reply repeats the same words without end.")
    if reply.is_cut and not found.problem and not _is_answer(found):
        return ReplyReading(
            problem="The reply ended at the length limit, in the middle of an action."
        )
    found = replace(found, memory=found.memory[:MOST_OPERATIONS])
    left_out = len(found.actions) - MOST_CALLS
    if left_out <= 0:
        return found
    note = f"({left_out} further actions were not carried out: at most {MOST_CALLS} at once.)"
    thought = "\n".join(filter(None, [found.thought, note]))
    return replace(found, actions=found.actions[:MOST_CALLS], thought=thought)


def last_words(reply: ModelReply) -> ReplyReading | None:
    """Return the words of a reply in which all else is unusable; None without any."""
    fields = read_fields(reply.text, is_cut=reply.is_cut).fields
    if reply.is_cut or any(fields.get(name, "").strip() for name in _CODE_FIELDS):
        return None
    words = next(filter(None, (fields.get(name) for name in ("message", "answer", "thought"))), "")
    return ReplyReading((Say(words.strip()),)) if words.strip() else None


def _is_answer(found: ReplyReading) -> bool:
    return all(isinstance(action, Say) for action in found.actions) and bool(found.actions)


def _read(reply: ModelReply, offer: ActionOffer, *, fences_run: bool, form: Form) -> ReplyReading:
    text = without_labels(reply.text.strip(), offer.language)
    if reply.calls:
        return _of_calls(reply.calls, text, offer)
    if not text:
        return ReplyReading(problem=EMPTY_REPLY)
    written = text_calls(text, _tool_names(offer), offer.run_tool)
    if written is not None and (fences_run or not written.is_shown):
        return replace(_of_calls(written.calls, written.words, offer), ignores_tools=True)
    parsed = read_fields(text, is_cut=reply.is_cut)
    names = FIELDS.union(offer.fields) if form == "json" else _OWN_MARKS
    if parsed.problem is None and names & parsed.fields.keys() and is_reply(text, form):
        return _of_fields(parsed.fields, offer, has_outcome=not fences_run)
    is_broken_call = bool(written is None and offer.run_tool and _CALL.search(text))
    if is_broken_call or (parsed.problem and looks_like_fields(text)):
        problem = parsed.problem if not is_broken_call else "The call in the text cannot be read."
        return ReplyReading(problem=problem or "")
    return _of_text(text, offer, fences_run=fences_run)


def _tool_names(offer: ActionOffer) -> list[str]:
    """Return the names of tools that mean something in a text, those of other agents too."""
    own = [tool.name for tool in offer.tools()]
    return [*own, *_ANSWER_NAMES, *(_RUN_NAMES if offer.run_tool else ())] if own else []


def _of_calls(calls: Sequence[ToolCall], text: str, offer: ActionOffer) -> ReplyReading:
    read: list[ReadCall] = []
    problems = []
    for call in calls:
        try:
            read.append(_of_call(call, offer))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        return ReplyReading(problem=" ".join(problems))
    return replace(_of_meanings([call.meaning for call in read], text), calls=tuple(read))


def _of_meanings(meanings: Sequence[Meaning], text: str) -> ReplyReading:
    actions = [one for one in meanings if isinstance(one, Action)]
    memory = [one for one in meanings if isinstance(one, FactOperation)]
    plan = next((one for one in reversed(meanings) if isinstance(one, str)), "")
    says = [action for action in actions if isinstance(action, Say)]
    others = tuple(action for action in actions if not isinstance(action, Say))
    done = tuple(memory)
    if asks(done):
        return ReplyReading(others, text, plan, memory=done)
    if not others and (plan or done) and text and not says:
        says = [Say(text)]
    if others or not says:
        return ReplyReading(others, text, plan, memory=done)
    return ReplyReading((says[-1],), "" if says[-1].text == text else text, plan, memory=done)


def _of_call(call: ToolCall, offer: ActionOffer) -> ReadCall:
    """Return a call with its meaning.

    Raises:
        ValueError: If it cannot be read, or no such tool is offered.
    """
    arguments = call_arguments(call)
    meaning = _meaning(call, arguments, offer)
    text = call.arguments if is_object(call) else json.dumps(arguments, ensure_ascii=False)
    return ReadCall(_tool_name(call, meaning, offer), text, meaning)


def _tool_name(call: ToolCall, meaning: Meaning, offer: ActionOffer) -> str:
    """Return the name of the offered tool that a call means, whatever it was called."""
    match meaning:
        case RunCell():
            return offer.run_tool
        case Order():
            return ASK_TOOL
        case Alternatives():
            return BRANCH_TOOL
        case FactOperation(name):
            return name
        case str():
            return PLAN_TOOL
    return call.name


def _meaning(call: ToolCall, arguments: Mapping[str, Any], offer: ActionOffer) -> Meaning:
    name = call.name.rpartition(".")[2].strip().lower().replace(" ", "_")
    if name == PLAN_TOOL and offer.has_plan:
        return plan_text(arguments.get("steps", arguments.get("plan", "")))
    if name == ASK_TOOL and offer.roles:
        return Order(receiver(str(arguments.get("role", "")), offer), text_of(arguments, "order"))
    if name == BRANCH_TOOL and offer.has_branches:
        return alternatives_of(arguments.get(ALTERNATIVES, arguments))
    if name in OPERATIONS and offer.has_memory:
        return FactOperation(name, words_of(arguments, OPERATIONS[name][0]))
    if name in _ANSWER_NAMES:
        return Say(only_text(arguments))
    if offer.run_tool and (name == offer.run_tool or name in _RUN_NAMES):
        code = arguments.get("code")
        code = code if isinstance(code, str) else only_text(arguments)
        is_last = offer.is_order and is_yes(arguments.get("is_last"))
        return RunCell(cell_code(code), str(arguments.get("intent", "")).strip(), is_last)
    names = ", ".join(tool.name for tool in offer.tools())
    raise ValueError(f"There is no tool {call.name!r}; there are: {names}.")


def _of_fields(fields: Mapping[str, str], offer: ActionOffer, *, has_outcome: bool) -> ReplyReading:
    thought = fields.get("thought", "").strip()
    plan = plan_field(fields.get("plan", "")) if offer.has_plan else ""
    memory = of_fields(fields) if offer.has_memory else ()
    acts = any(fields.get(name, "").strip() for name in _ACTING_FIELDS)
    if memory and not acts:
        return ReplyReading((), thought, plan, memory=memory)
    try:
        action = _of_object(fields, offer, has_outcome=has_outcome)
    except ValueError as error:
        return ReplyReading(problem=str(error))
    if asks(memory) and isinstance(action, Say):
        return ReplyReading((), thought or action.text, plan, memory=memory)
    return ReplyReading((action,), thought, plan, memory=memory)


def _of_object(fields: Mapping[str, str], offer: ActionOffer, *, has_outcome: bool) -> Action:
    if offer.has_branches and fields.get(ALTERNATIVES, "").strip():
        return alternatives_of(fields[ALTERNATIVES])
    message = (fields.get("message") or fields.get("answer") or "").strip()
    code = fields.get("code") or fields.get("reply_content") or ""
    kind = fields.get("reply_type", "").strip().lower()
    is_for_user = bool(message) and folded(fields.get("send_to", "")) == "user"
    is_untyped = not kind and not fields.get("code")
    # Beside an answer to the user, code is that of the outcome before.
    is_words = kind in _REPLY_TYPES or (
        has_outcome and (is_for_user or (is_untyped and is_prose(code)))
    )
    if offer.is_order and not is_words:
        _check_order(fields, offer, message)
    if code.strip() and offer.language and not is_words:
        if is_for_user and not offer.is_order:
            raise ValueError(_CODE_FOR_USER)
        return RunCell(cell_code(code), message, offer.is_order and _is_last(fields))
    message = message or code.strip()
    if not message:
        raise ValueError("message is empty.")
    workers = [name for name in offer.recipients if name != USER]
    name = fields.get("send_to", "").strip()
    if not name:
        is_open = fields.get("stop", "").strip() == "InProcess" and len(workers) == 1
        name = workers[0] if is_open else USER
    to = receiver(name, offer)
    return Say(message) if to == USER else Order(to, message)


def _check_order(fields: Mapping[str, str], offer: ActionOffer, message: str) -> None:
    """Raise `ValueError` for a cell in a language that is not offered, or where none may run."""
    kind = fields.get("reply_type", "").strip().lower()
    if offer.language and kind not in {"", offer.language}:
        raise ValueError(f'reply_type is {kind!r}, and must be "{offer.language}" or "text".')
    if not offer.language and not message:
        raise ValueError("No further cell runs, and message is empty.")


def _is_last(fields: Mapping[str, str]) -> bool:
    """Return whether a cell ends its order; in the original's form, each does."""
    return is_yes(fields["is_last"]) if "is_last" in fields else "reply_type" in fields


def _of_text(text: str, offer: ActionOffer, *, fences_run: bool) -> ReplyReading:
    """Read text with fences, those of operations on memory first."""
    words, memory = _operations(text) if offer.has_memory else (text, ())
    found = _of_fences(words, offer, fences_run=fences_run)
    if asks(memory) and _is_answer(found):
        return ReplyReading((), words.strip(), found.plan, memory=memory)
    return replace(found, memory=memory)


def _operations(text: str) -> tuple[str, tuple[FactOperation, ...]]:
    """Return a text without its fences of operations on memory, and the operations."""
    found, words, end = [], [], 0
    for match in _FENCE.finditer(text):
        name, body = match["info"].strip().lower(), match["body"].strip()
        if name in OPERATIONS:
            found += [FactOperation(name, body)] if body else []
            words.append(text[end : match.start()])
            end = match.end()
    return "".join([*words, text[end:]]), tuple(found)


def _of_fences(text: str, offer: ActionOffer, *, fences_run: bool) -> ReplyReading:
    """Read text with fences: those of code are one cell, one of a plan or an order is that."""
    words, code, plan, orders = [], [], "", []
    is_last, end = False, 0
    for match in _FENCE.finditer(text):
        info, body = match["info"].strip(), match["body"]
        kind, _, rest = info.partition(" ")
        if kind.lower() in _CODE_INFOS.get(offer.language, ()) and fences_run:
            code.append(body)
            is_last = offer.is_order and rest.strip().lower() == "last"
        elif kind.lower() == "plan" and offer.has_plan:
            plan = body.strip()
        elif (kind.lower() == "ask" and offer.roles) or _has_alternatives(kind, offer):
            orders.append((kind, rest, body))
        else:
            continue
        if not (code or orders) or len(code) + len(orders) == 1:
            words.append(text[end : match.start()])
        end = match.end()
    try:
        if code:
            cell = RunCell(cell_code("\n".join(code)), is_last=is_last)
            return ReplyReading((cell,), _joined(words), plan, ignores_tools=True)
        asked = tuple(_ordered(*order, offer) for order in orders)
    except ValueError as error:
        return ReplyReading(problem=str(error))
    if asked:
        return ReplyReading(asked, _joined(words), plan)
    answer = _joined([*words, text[end:]])
    return ReplyReading((Say(answer),) if answer else (), "", plan)


def _is_explained(text: str) -> bool:
    """Return whether words follow the last fence of a text."""
    fences = list(_FENCE.finditer(text))
    return bool(fences) and bool(text[fences[-1].end() :].strip())


def _has_alternatives(kind: str, offer: ActionOffer) -> bool:
    return offer.has_branches and kind.lower() in (ALTERNATIVES, BRANCH_TOOL)


def _ordered(kind: str, rest: str, body: str, offer: ActionOffer) -> Action:
    """Return the order in a fence; raises ValueError where it cannot be read."""
    if _has_alternatives(kind, offer):
        return alternatives_of(body)
    return Order(receiver(rest, offer), body.strip())


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, (part.strip() for part in parts)))
