"""A streamed reply, written into posts while it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskweaver.llm.parsing.json_text import FieldDelta, ReplyStream
from taskweaver.llm.types import CallDelta, Chunk, ToolCall
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.forms.actions import (
    Action,
    Alternatives,
    ModelReply,
    Order,
    ReplyReading,
    RunCell,
    Say,
)
from taskweaver.role.forms.alternatives import as_arguments, as_text
from taskweaver.role.forms.kept_replies import KeptReply, keep
from taskweaver.role.forms.memory_calls import FactOperation, extra_of, kept
from taskweaver.role.forms.offer import PLAN_SHOWN, USER, ActionOffer
from taskweaver.role.forms.reasoning import ReasoningStatus
from taskweaver.role.translator import FieldWriter

_NOT_WORDS = tuple("{[<`")
_NOT_DONE = "Not done: too many calls at once, or an answer beside other calls."
_FENCE = "```"
_END_OF_FENCE = re.compile(r"\n*^`{3,}\s*\Z", re.MULTILINE)
_LINE_ENDS = re.compile(r"\n+\Z")
_PERHAPS_END = re.compile(r"\n*^`*\s*\Z", re.MULTILINE)
_FIELDS = {"code": "reply_content", "intent": "message", "order": "message", "role": "send_to"}
_SHOWN = {
    "thought", "plan", "plan_reasoning", "current_plan_step", "stop", "reply_content", "message",
}  # fmt: skip


class _UnfencedCode:
    """Code of a field while it arrives, without a fence and empty lines around it."""

    def __init__(self) -> None:
        self._held = ""
        self._mark: str | None = None

    def feed(self, text: str, *, is_end: bool) -> str:
        """Return the code that is certain after a further piece of the field."""
        self._held += text
        if self._mark is None and not self._has_begun(is_end=is_end):
            return ""
        ending = (_END_OF_FENCE if is_end else _PERHAPS_END) if self._mark else _LINE_ENDS
        match = ending.search(self._held)
        shown = self._held[: match.start()] if match else self._held
        self._held = self._held[len(shown) :]
        return shown

    def _has_begun(self, *, is_end: bool) -> bool:
        """Find the fence at the beginning, once there is enough text to know."""
        start = self._held.lstrip()
        if not is_end and (_FENCE.startswith(start[:3]) and "\n" not in start):
            return False
        self._mark = _FENCE if start.startswith(_FENCE) else ""
        self._held = start.partition("\n")[2] if self._mark else self._held.lstrip("\n")
        return True


class ReplyWriter:
    """Shows a reply on its first post while it arrives, and makes its posts at its end."""

    def __init__(
        self,
        emitter: SessionEventEmitter,
        proxy: PostEventProxy,
        offer: ActionOffer,
        carry_out: Callable[[FactOperation], str] | None = None,
    ) -> None:
        """Write into `proxy`; further posts are made with `emitter`.

        `carry_out` does an operation on long-term memory, and returns the result; None where none
        is offered.
        """
        self._shown_as = _FIELDS | ({"intent": "thought"} if offer.is_order else {})
        self._carry_out = carry_out
        self._emitter = emitter
        self._proxy = proxy
        self._offer = offer
        self._text = ""
        self._record: Mapping[str, Any] = {}
        self._fields: ReplyStream | None = None
        self._writer = FieldWriter(proxy)
        self._code = _UnfencedCode()

    def read(self, chunks: Iterable[Chunk]) -> ModelReply:
        """Show a reply until it ends, and return it.

        Raises:
            ModelError: If the model fails.
        """
        calls: tuple[ToolCall, ...] = ()
        record: Mapping[str, Any] = {}
        is_cut = False
        status = ReasoningStatus(self._proxy.update_status)
        for chunk in chunks:
            if chunk.begins_again:
                self._begin_again()
            if chunk.reasoning:
                status.add(chunk.reasoning)
            if chunk.text or chunk.call is not None:
                status.end()
            if chunk.call is not None:
                self._show_call(chunk.call)
            elif chunk.text:
                self._show_text(chunk.text)
            if chunk.finish is not None:
                calls, record = chunk.calls, chunk.record
                is_cut = chunk.finish == "length"
        if self._fields is not None:
            self._show_fields(self._fields.finish()[0])
        self._record = record
        return ModelReply(self._text, calls, is_cut, record)

    def posts(self, reading: ReplyReading) -> list[Post]:
        """Return the posts of a reply that can be used, each written to its end.

        The first has the record of the reply.
        """
        actions = reading.actions or (None,)
        found = []
        for number, action in enumerate(actions):
            is_first = number == 0
            proxy = (
                self._proxy
                if is_first
                else self._emitter.create_post_proxy(self._proxy.post.send_from)
            )
            self.fill(proxy, action, reading if is_first else ReplyReading())
            found.append(proxy.end())
        self.keep(reading, found)
        return found

    def keep(self, reading: ReplyReading, posts: Sequence[Post]) -> None:
        """Put the record of a reply on the first of its posts; actions without one were not run."""
        keep(posts[0], _kept(reading, posts, self._record))

    def _begin_again(self) -> None:
        """Forget the text so far: it was reasoning."""
        self._text = ""
        self._proxy.restart_message()

    def _show_text(self, text: str) -> None:
        self._text += text
        start = self._text.lstrip()
        if start.startswith("{") and self._fields is None:
            self._fields, text = ReplyStream(), start
        if self._fields is not None:
            self._show_fields(self._fields.feed(text))
        elif start and not start.startswith(_NOT_WORDS) and "```" not in self._text:
            if not self._proxy.post.message:
                self._proxy.update_send_to(self._offer.asker)
            self._proxy.update_message(text, is_end=False)

    def _show_call(self, delta: CallDelta) -> None:
        """Show the first call; the words before it become its thought."""
        if delta.position:
            return
        if self._fields is None:
            self._withdraw_draft()
            self._fields = ReplyStream()
        self._show_fields(self._fields.feed(delta.text))

    def _withdraw_draft(self) -> None:
        text = self._text.strip()
        self._proxy.restart_message()
        if text:
            self._proxy.update_attachment(text, AttachmentType.thought)

    def _show_fields(self, deltas: Iterable[FieldDelta]) -> None:
        for delta in deltas:
            key, text = self._shown_as.get(delta.key, delta.key), delta.text
            if key == "reply_content":
                text = self._code.feed(text, is_end=delta.is_end)
            if key in _SHOWN and (text or delta.is_end):
                self._writer.write([FieldDelta(key, text, delta.is_end)], None)

    def draft(self, reading: ReplyReading) -> Post | None:
        """Return the answer to the user that a reply is, before it is sent; None for no answer."""
        match reading.actions:
            case (Say(text), *_):
                post = self._proxy.post
                stops = post.get_attachment(AttachmentType.stop)
                return Post(post.id, post.send_from, USER, text, stops)
        return None

    def fill(self, proxy: PostEventProxy, action: Action | None, reading: ReplyReading) -> None:
        """Make a post say exactly an action, whatever was shown of it; it is not ended."""
        code = action.code if isinstance(action, RunCell) else ""
        thought, message = reading.thought, _message(action)
        if self._offer.is_order and code:
            thought, message = "\n".join(filter(None, [thought, message])), ""
        _set(proxy, AttachmentType.thought, thought)
        _set(proxy, AttachmentType.plan, reading.plan)
        _set(proxy, AttachmentType.reply_type, self._offer.language if code else "")
        _set(proxy, AttachmentType.reply_content, code)
        orders = action.orders if isinstance(action, Alternatives) else ()
        names = ", ".join(order.branch for order in orders)
        _set(proxy, AttachmentType.alternatives, names, as_arguments(orders))
        offers = reading.suggestions
        _set(proxy, AttachmentType.suggestions, str(offers), offers.extra())
        self._keep_operations(proxy, reading.memory)
        _set_message(proxy, message)
        proxy.update_send_to(self._receiver(proxy, action))

    def _keep_operations(self, proxy: PostEventProxy, operations: Iterable[FactOperation]) -> None:
        proxy.post.del_attachment([AttachmentType.function])
        if self._carry_out is None:
            return
        for operation in operations:
            done = replace(operation, result=self._carry_out(operation))
            proxy.update_attachment(done.line, AttachmentType.function, extra_of(done))

    def _receiver(self, proxy: PostEventProxy, action: Action | None) -> str:
        match action:
            case RunCell():
                return self._offer.runner or proxy.post.send_from
            case Alternatives():
                return self._offer.runner
            case Order(role):
                return role
            case Say():
                return self._offer.asker
        return proxy.post.send_from


def _kept(reading: ReplyReading, posts: Sequence[Post], record: Mapping[str, Any]) -> KeptReply:
    """Return a reply as it goes back; only an answer in words where it was called as a tool."""
    if reading.calls and all(isinstance(meaning, Say) for _, meaning in reading.calls):
        return KeptReply()
    ids = {id(action): post.id for action, post in zip(reading.actions, posts, strict=False)}
    done = zip(reading.memory, kept(posts[0]), strict=True)
    results = {id(operation): one.result for operation, one in done}
    calls = []
    for call, meaning in reading.calls:
        post, result = ids.get(id(meaning), ""), results.get(id(meaning), _NOT_DONE)
        result = PLAN_SHOWN if isinstance(meaning, str) else result
        calls.append(replace(call, post=post, result=result))
    return KeptReply(tuple(calls), record)


def _message(action: Action | None) -> str:
    match action:
        case RunCell(_, intent):
            return intent
        case Alternatives(orders):
            return as_text(orders)
        case Order(_, text) | Say(text):
            return text
    return ""


def _set_message(proxy: PostEventProxy, text: str) -> None:
    shown = proxy.post.message
    if not text.startswith(shown):
        proxy.restart_message()
        shown = ""
    if text[len(shown) :] or not text:
        proxy.update_message(text[len(shown) :])


def _set(
    proxy: PostEventProxy, kind: AttachmentType, text: str, extra: dict[str, Any] | None = None
) -> None:
    """Make a text with its data the only attachment of a type; an empty text leaves none."""
    if extra is not None or text != proxy.post.text(kind):
        proxy.post.del_attachment([kind])
        if text:
            proxy.update_attachment(text, kind, extra)
