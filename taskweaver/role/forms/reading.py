"""From a model's reply, in whichever form it came, to the actions in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskweaver.llm.parsing.call_pieces import is_object
from taskweaver.llm.parsing.text_calls import holds_call, text_calls
from taskweaver.llm.types import ToolCall
from taskweaver.memory.suggestions import Suggestions
from taskweaver.role.forms.actions import (
    Action,
    Alternatives,
    Meaning,
    ModelReply,
    Order,
    ReplyReading,
    RunCell,
    Say,
)
from taskweaver.role.forms.alternatives import ALTERNATIVES, alternatives_of
from taskweaver.role.forms.fences import IN_DOUBT, Asked, Fence, fences_in, forbids_running, verdict
from taskweaver.role.forms.kept_replies import KeptCall
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
    is_empty,
    is_filler,
    is_prose,
    is_yes,
    only_text,
    plan_field,
    plan_text,
    receiver,
    text_of,
    words_of,
)
from taskweaver.utils.text import fenced, fill

MOST_CALLS = 8
"""Most cells and orders of one reply that are carried out."""

_RUN_NAMES = {
    "python", "execute", "execute_code", "execute_python", "code", "code_interpreter", "run",
    "run_code", "python_interpreter",
}  # fmt: skip
_ANSWER_NAMES = {"final_answer", "answer", "finish", "respond"}
_CALL = re.compile(
    r"^\s*(?:<[\w:]*(?:tool|function)_calls?>|<function=|<invoke|\[TOOL_CALLS\]|<\|python_tag)",
    re.MULTILINE,
)
_CODE_FIELDS = ("code", "reply_content")
_ACTING_FIELDS = ("message", "answer", ALTERNATIVES, *_CODE_FIELDS)
_MAY_BE_UNUSED = {"plan", "send_to", "reply_type", ALTERNATIVES, *OPERATIONS, *_CODE_FIELDS}
_REPLY_TYPES = {"text"}
_OWN_MARKS = {"send_to", "thought", "reply_type", "reply_content"}
_CALL_IN_DOUBT = (
    "The text holds a call, and nothing ran. Call the tool, with no words behind; what is only"
    " shown stands in a ```text block."
)
_CUT_OFF = "(The answer is cut off here: the model reached its length limit.)"
_CODE_FOR_USER = (
    'send_to is "User", and there is code. To run it, send it to the role that runs code; to show'
    " it, put it into message and leave code empty."
)


def read_reply(reply: ModelReply, offer: ActionOffer, asked: Asked) -> ReplyReading:
    """Return the content of a reply; never raises.

    Where JSON was not asked for, an object among words is no reply. Where the request forbids to
    run code, only a native call runs any, in every form.
    """
    found = _read(reply, offer, asked)
    if reply.is_cut and repeats_itself(reply.text):
        return ReplyReading(problem="The reply repeats the same words without end.")
    if reply.is_cut and _is_answer(found):
        found = replace(found, actions=tuple(map(_cut, found.actions)))
    elif reply.is_cut and not found.problem:
        return ReplyReading(
            problem="The reply ended at the length limit, in the middle of an action."
        )
    if not reply.calls and forbids_running(asked.request):
        found = replace(found, actions=tuple(_shown(one, offer) for one in found.actions))
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


def _cut(action: Action) -> Action:
    """Return an answer with the note that it is not whole."""
    return Say(f"{action.text}\n\n{_CUT_OFF}") if isinstance(action, Say) else action


def _shown(action: Action, offer: ActionOffer) -> Action:
    """Return an action, a cell as an answer that shows it."""
    if not isinstance(action, RunCell):
        return action
    return Say(_joined([action.intent, fenced(action.code, offer.language)]))


def _read(reply: ModelReply, offer: ActionOffer, asked: Asked) -> ReplyReading:
    text = without_labels(reply.text.strip(), offer.language)
    if reply.calls:
        return _of_calls(reply.calls, text, offer)
    if not text:
        return ReplyReading(problem=EMPTY_REPLY)
    calls = _written(text, offer, asked)
    if calls is not None:
        return calls
    parsed = read_fields(text, is_cut=reply.is_cut)
    names = FIELDS.union(offer.fields) if asked.form == "json" else _OWN_MARKS
    if parsed.problem is None and names & parsed.fields.keys() and is_reply(text, asked.form):
        return _of_fields(parsed.fields, offer, has_outcome=asked.is_answer)
    problem = parsed.problem if looks_like_fields(text) else None
    tools = _tool_names(offer)
    if tools and (_CALL.search(text) or (not asked.is_answer and holds_call(text, tools))):
        problem = "The call in the text cannot be read."
    return ReplyReading(problem=problem) if problem else _of_text(text, offer, asked)


def _written(text: str, offer: ActionOffer, asked: Asked) -> ReplyReading | None:
    """Read the calls in a text, or the text that shows some; None for a text without any."""
    written = text_calls(text, _tool_names(offer), offer.run_tool)
    if written is None:
        return None
    is_shown = asked.is_answer and written.is_quoted
    if not written.is_followed and not (is_shown and written.words):
        return replace(_of_calls(written.calls, written.words, offer), ignores_form=True)
    return _of_text(text, offer, asked) if is_shown else ReplyReading(problem=_CALL_IN_DOUBT)


def _tool_names(offer: ActionOffer) -> list[str]:
    """Return the names of tools that mean something in a text, those of other agents too."""
    own = [tool.name for tool in offer.tools()]
    return [*own, *_ANSWER_NAMES, *(_RUN_NAMES if offer.run_tool else ())] if own else []


def _of_calls(calls: Sequence[ToolCall], text: str, offer: ActionOffer) -> ReplyReading:
    read: list[tuple[KeptCall, Meaning]] = []
    problems = []
    for call in calls:
        try:
            read.append(_of_call(call, offer))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        return ReplyReading(problem=" ".join(problems))
    return replace(_of_meanings([meaning for _, meaning in read], text), calls=tuple(read))


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


def _of_call(call: ToolCall, offer: ActionOffer) -> tuple[KeptCall, Meaning]:
    """Return a call with its meaning.

    Raises:
        ValueError: If it cannot be read, or no such tool is offered.
    """
    arguments = call_arguments(call)
    meaning = _meaning(call, arguments, offer)
    is_whole = is_object(call.arguments)
    text = call.arguments if is_whole else json.dumps(arguments, ensure_ascii=False)
    return KeptCall(_tool_name(call, meaning, offer), text), meaning


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
    fields = {name: text for name, text in fields.items() if not _is_filler(name, text)}
    thought = fields.get("thought", "").strip()
    plan = plan_field(fields.get("plan", "")) if offer.has_plan else ""
    memory = of_fields(fields) if offer.has_memory else ()
    acts = not all(is_empty(fields.get(name, "")) for name in _ACTING_FIELDS)
    if memory and not acts:
        return ReplyReading((), thought, plan, memory=memory)
    try:
        action = _of_object(fields, offer, has_outcome=has_outcome)
    except ValueError as error:
        return ReplyReading(problem=str(error))
    if not isinstance(action, Say):
        return ReplyReading((action,), thought, plan, memory=memory)
    memory = tuple(one for one in memory if not asks([one]))  # a look-up comes too late now
    suggestions = Suggestions.from_json(fields.get("suggestions", ""))
    return ReplyReading((action,), thought, plan, memory=memory, suggestions=suggestions)


def _is_filler(name: str, text: str) -> bool:
    """Return whether a text in a field says that the field is not used."""
    if name in OPERATIONS:
        return is_empty(text)
    is_value = name in _CODE_FIELDS and any(map(str.isdigit, text))
    return name in _MAY_BE_UNUSED and not is_value and is_filler(text)


def _of_object(fields: Mapping[str, str], offer: ActionOffer, *, has_outcome: bool) -> Action:
    if offer.has_branches and fields.get(ALTERNATIVES, "").strip():
        try:
            return alternatives_of(fields[ALTERNATIVES])
        except ValueError:
            if not any(fields.get(name) for name in ("message", "answer", *_CODE_FIELDS)):
                raise
    message = (fields.get("message") or fields.get("answer") or "").strip()
    code = fields.get("code") or fields.get("reply_content") or ""
    kind = fields.get("reply_type", "").strip().lower()
    is_for_user = bool(message) and folded(fields.get("send_to", "")) == "user"
    is_untyped = not kind and not fields.get("code")
    # Beside an answer to the user, code is that of the outcome before.
    is_words = kind in _REPLY_TYPES or (
        (has_outcome and (is_for_user or (is_untyped and is_prose(code))))
        or (is_for_user and not any(map(str.isalpha, code)))
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


def _of_text(text: str, offer: ActionOffer, asked: Asked) -> ReplyReading:
    """Read text with fences, those of operations on memory first."""
    has_memory = offer.has_memory and asked.form != "tools"
    words, memory = _operations(text) if has_memory else (text, ())
    found = _of_fences(words, offer, asked)
    if asks(memory) and _is_answer(found):
        return ReplyReading((), words.strip(), found.plan, memory=memory)
    return replace(found, memory=memory)


def _operations(text: str) -> tuple[str, tuple[FactOperation, ...]]:
    """Return a text without its fences of operations on memory, and the operations."""
    found, words, end = [], [], 0
    for fence in fences_in(text):
        if fence.kind in OPERATIONS:
            found += [FactOperation(fence.kind, fence.body.strip())] if fence.body.strip() else []
            words.append(text[end : fence.start])
            end = fence.end
    return "".join([*words, text[end:]]), tuple(found)


def _of_fences(text: str, offer: ActionOffer, asked: Asked) -> ReplyReading:
    """Read text with fences: code that is an order, else orders in words, else an answer."""
    fences = list(fences_in(text))
    code = [fence for fence in fences if fence.is_code(offer.language)]
    acting = fences if asked.form != "tools" else []
    plans = [fence for fence in acting if fence.kind == "plan" and offer.has_plan]
    plan = plans[-1].body.strip() if plans else ""
    meant = verdict(text, code, asked) if code else "shown"
    if meant == "doubt":
        problem = fill(IN_DOUBT[asked.form], TOOL=offer.run_tool, LANGUAGE=offer.language)
        return ReplyReading(problem=problem, ignores_form=asked.form != "fences")
    orders = code if meant == "run" else [one for one in acting if _is_order(one, offer)]
    taken = [*plans, *orders[:1]]
    answer = _without(text, taken, orders[0].start if orders else len(text))
    try:
        if meant == "run":
            cell = RunCell(
                cell_code(code[0].body), is_last=offer.is_order and code[0].rest == "last"
            )
            return ReplyReading((cell,), answer, plan, ignores_form=asked.form != "fences")
        found = tuple(_ordered(order, offer) for order in orders)
    except ValueError as error:
        return ReplyReading(problem=str(error))
    if found:
        return ReplyReading(found, answer, plan)
    return ReplyReading((Say(answer),) if answer else (), "", plan)


def _without(text: str, fences: Sequence[Fence], end: int) -> str:
    """Return the beginning of a text without some of its fences."""
    words, at = [], 0
    for fence in sorted(fences):
        words.append(text[at : min(fence.start, end)])
        at = fence.end
    return _joined([*words, text[at:end]])


def _is_order(fence: Fence, offer: ActionOffer) -> bool:
    return (fence.kind == "ask" and bool(offer.roles)) or _has_alternatives(fence.kind, offer)


def _has_alternatives(kind: str, offer: ActionOffer) -> bool:
    return offer.has_branches and kind in (ALTERNATIVES, BRANCH_TOOL)


def _ordered(fence: Fence, offer: ActionOffer) -> Action:
    """Return the order in a fence; raises ValueError where it cannot be read."""
    if _has_alternatives(fence.kind, offer):
        return alternatives_of(fence.body)
    return Order(receiver(fence.rest, offer), fence.body.strip())


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, (part.strip() for part in parts)))
