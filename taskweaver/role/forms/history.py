"""From the posts a role wrote and received to the messages of its model, in the form in force."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from taskweaver.llm.types import ChatMessage, Form, format_chat_message, image_part
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import carried_code, has_failed, order_of
from taskweaver.memory.post import Post
from taskweaver.role.files import CellPicture, PicturesOf, no_pictures
from taskweaver.role.forms.alternatives import (
    ALTERNATIVES,
    as_arguments,
    as_text,
    kept_alternatives,
)
from taskweaver.role.forms.kept_replies import KeptCall, KeptReply, kept_reply
from taskweaver.role.forms.memory_calls import RECALL, kept
from taskweaver.role.forms.offer import (
    ASK_TOOL,
    BRANCH_TOOL,
    PLAN_SHOWN,
    PLAN_TOOL,
    RUN_TOOLS,
    USER,
)
from taskweaver.utils.markup.quoting import quoted
from taskweaver.utils.text import fenced, fill, paragraphs, remove_temporal_delimiters

_NOT_RUN = "Interrupted, not run."
_NOT_ENDED = "Interrupted, not run to its end: it may have been done in part."
_NO_TEXT = "(no text)"
_NOT_SHOWN = "(A picture that you are not shown.)"

Part = dict[str, Any]


class OrderTexts(Protocol):
    """Texts of a role that carries out orders by cells of its own."""

    def order(self, post: Post) -> str:
        """Return the text of an order."""
        ...

    def outcome(self, post: Post) -> str:
        """Return the outcome of the cell of one of its own posts; empty if it has none."""
        ...


@dataclass(slots=True)
class _OpenCall:
    """A call whose result is not written yet.

    Attributes:
        id: Its id.
        post: Id of the post that carries it out; empty where its result is known.
        result: The result; None until there is one.
        role: The role that answers, once its post was seen.
        images: Images of the result.
        has_failed: Whether the result is a failure.
    """

    id: str
    post: str
    result: str | None
    role: str = ""
    images: Sequence[Part] = ()
    has_failed: bool = False


@dataclass(slots=True)
class History:
    """Writer of past posts as messages.

    Attributes:
        alias: The role whose model reads them.
        form: The form of its replies.
        incoming: Text of a message of another role, with the places ``SENDER`` and ``MESSAGE``.
        language: Language of the cells in the role's own orders.
        pictures: Returns the pictures that are shown beside reports.
        news: Sections that end reports, by the ids of their posts.
        orders: Texts of a role that carries out orders; None for a role that gives them.
    """

    alias: str
    form: Form
    incoming: str
    language: str = "python"
    pictures: PicturesOf = no_pictures
    news: Mapping[str, str] = field(default_factory=dict)
    orders: OrderTexts | None = None
    _open: list[_OpenCall] = field(default_factory=list)

    def messages(self, posts: Sequence[Post]) -> list[ChatMessage]:
        """Return the messages of a round."""
        self._open = []
        found: list[ChatMessage] = []
        for post in posts:
            found += self._own(post) if post.send_from == self.alias else self._received(post)
        return [*found, *self._results_of_calls()]

    def _own(self, post: Post) -> Iterator[ChatMessage]:
        if self.form == "tools":
            yield from self._called(post)
        elif post.get_attachment(AttachmentType.revise_message):
            yield from correction(post)
        else:
            text = _as_json(post) if self.form == "json" else _as_fences(post, self.language)
            yield format_chat_message("assistant", text)
            goes_on = post.send_to == self.alias  # else only what was asked for is shown
            results = [one.result for one in kept(post) if goes_on or one.name == RECALL]
            if results or goes_on:
                yield format_chat_message("user", "\n".join(results) or PLAN_SHOWN)

    def _called(self, post: Post) -> Iterator[ChatMessage]:
        """Yield the reply that a post begins; a further post of a reply yields nothing."""
        known = next((call for call in self._open if call.post == post.id), None)
        if known is not None:
            known.role = post.send_to
            self._take_own_outcome(known, post)
            return
        yield from self._results_of_calls()
        reply = kept_reply(post)
        is_note = bool(post.get_attachment(AttachmentType.revise_message))
        if reply is None and is_note and not self._own_outcome(post):
            yield from correction(post)
        else:
            yield self._reply(post, reply or self._as_reply(post))

    def _reply(self, post: Post, reply: KeptReply) -> ChatMessage:
        """Return a reply as one message, with all its calls."""
        is_answer = post.send_to == USER and not self._own_outcome(post)
        words = post.message if is_answer else post.text(AttachmentType.thought)
        message = format_chat_message("assistant", answer_in_words(post) or words)
        calls = [_call(post, number, call) for number, call in enumerate(reply.calls)]
        if calls:
            message["tool_calls"] = calls
        if reply.record:
            message["record"] = reply.record
        for made, call in zip(calls, reply.calls, strict=True):
            is_own = call.post == post.id
            role = post.send_to if is_own else ""
            result = None if call.post else call.result
            self._open.append(_OpenCall(made["id"], call.post, result, role))
            if is_own:
                self._take_own_outcome(self._open[-1], post)
        return message

    def _as_reply(self, post: Post) -> KeptReply:
        """Return a post of which no reply is kept as a reply of its own."""
        calls = [KeptCall(one.name, _json(one.arguments), result=one.result) for one in kept(post)]
        plan, code = post.text(AttachmentType.plan), carried_code(post)
        if self.orders is not None:
            code = cell_in(post)
        if plan:
            steps = _json({"steps": plan.splitlines()})
            calls.append(KeptCall(PLAN_TOOL, steps, result=PLAN_SHOWN))
        if code:
            intent = post.message if self.orders is None else post.text(AttachmentType.thought)
            arguments = _json({"intent": intent, "code": code})
            calls.append(KeptCall(RUN_TOOLS[self.language], arguments, post.id))
        elif alternatives := kept_alternatives(post):
            calls.append(KeptCall(BRANCH_TOOL, _json(as_arguments(alternatives)), post.id))
        elif post.send_to not in (USER, self.alias) and self.orders is None:
            arguments = _json({"role": post.send_to, "order": post.message})
            calls.append(KeptCall(ASK_TOOL, arguments, post.id))
        return KeptReply(tuple(calls))

    def _received(self, post: Post) -> Iterator[ChatMessage]:
        text = remove_temporal_delimiters(post.message)
        answered = self._answered(post)
        if answered is not None:
            answered.result = with_news(text or _NO_TEXT, post, self.news)
            answered.images = image_parts(post, self.pictures)
            answered.has_failed = has_failed(post)
            return
        yield from self._results_of_calls()
        shown = text if self.orders is None else self.orders.order(post)
        if self.orders is None and (self.form != "tools" or post.send_from != USER):
            shown = fill(self.incoming, SENDER=post.send_from, MESSAGE=quoted(text))
        message = format_chat_message("user", with_news(shown, post, self.news))
        yield with_images(message, image_parts(post, self.pictures))

    def _own_outcome(self, post: Post) -> str | None:
        """Return the outcome of the cell that a post of the role itself ran; None for none."""
        return (self.orders.outcome(post) or None) if self.orders is not None else None

    def _take_own_outcome(self, call: _OpenCall, post: Post) -> None:
        """Answer a call of the role with the outcome of the cell that it ran itself."""
        call.result = self._own_outcome(post)
        if call.result is not None:
            call.images = image_parts(post, self.pictures)
            call.has_failed = has_failed(post)

    def _answered(self, post: Post) -> _OpenCall | None:
        """Return the call that a post answers: the one it names, else its sender's first."""
        waiting = [call for call in self._open if call.result is None and call.role]
        named = [call for call in waiting if call.post == order_of(post)]
        others = [call for call in waiting if call.role == post.send_from]
        return next(iter([*named, *others]), None)

    def _results_of_calls(self) -> Iterator[ChatMessage]:
        """Yield a result for each open call, in order; endpoints refuse a call that lacks one."""
        for call in self._open:
            unanswered = _NOT_ENDED if call.role else _NOT_RUN
            text = unanswered if call.result is None else call.result
            result: ChatMessage = {"role": "tool", "content": text, "tool_call_id": call.id}
            if call.has_failed:
                result["is_error"] = True
            yield with_images(result, call.images)
        self._open = []


def numbered(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of a prompt with ids of calls that depend on their places alone.

    So the same chat has the same prompt in each session, for caches and recordings.
    """
    ids: dict[str, str] = {}
    numbers = count()
    found: list[ChatMessage] = []
    for message in messages:
        if calls := message.get("tool_calls"):
            # Nine letters and digits: some endpoints take no other id.
            ids |= {call["id"]: f"call{next(numbers):05}" for call in calls}
            message = message | {"tool_calls": [{**call, "id": ids[call["id"]]} for call in calls]}
        if call_id := message.get("tool_call_id"):
            message = message | {"tool_call_id": ids[call_id]}
        found.append(message)
    return found


def cell_in(post: Post) -> str:
    """Return the cell that a role wrote into its own post, whether it ran or not."""
    return "" if answer_in_words(post) else post.text(AttachmentType.reply_content)


def answer_in_words(post: Post) -> str:
    """Return the words in the post of a role that answers an order in words; else nothing."""
    kinds = post.text(AttachmentType.reply_type).strip().lower()
    return post.text(AttachmentType.reply_content) if kinds == "text" else ""


def correction(post: Post) -> Iterator[ChatMessage]:
    """Yield an unusable reply as text, and the request to correct it."""
    yield format_chat_message("assistant", post.text(AttachmentType.invalid_response) or _NO_TEXT)
    yield format_chat_message("user", post.text(AttachmentType.revise_message))


def _call(post: Post, number: int, call: KeptCall) -> dict[str, Any]:
    """Return a call with an id of its own; see `numbered`."""
    id_ = f"{post.id}-{number}"
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": id_, "type": "function", "function": function}


def _json(arguments: Mapping[str, object]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def with_news(text: str, post: Post, news: Mapping[str, str]) -> str:
    """Return the text of a report with the section that ends it, if there is one."""
    section = news.get(post.id)
    return f"{text}\n\n{section}" if section else text


def with_images(message: ChatMessage, parts: Sequence[Part]) -> ChatMessage:
    """Return a message with parts after its text; the message itself without any."""
    if not parts:
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}, *parts]}


def image_parts(post: Post, pictures: PicturesOf) -> list[Part]:
    """Return the images of a post: those it names, and the pictures that its cell made.

    Args:
        post: The post.
        pictures: Returns the pictures that are shown; `no_pictures` for a past round, where the
            words of the report stand for its images.
    """
    if pictures is no_pictures:
        return []
    named = [
        image_part(
            str((item.extra or {}).get("image_url", item.content)),
            name=str(item.content),
            instead=_NOT_SHOWN,
        )
        for item in post.get_attachment(AttachmentType.image_url)
    ]
    drawn = pictures(post.id) if post.get_attachment(AttachmentType.artifact_paths) else ()
    return [*named, *map(_shown, drawn)]


def _shown(picture: CellPicture) -> Part:
    if picture.url:
        return image_part(picture.url, name=picture.name, instead="")
    name = json.dumps(picture.name, ensure_ascii=False)
    return {"type": "text", "text": f"({name} is not shown: {picture.problem}.)"}


def _as_json(post: Post) -> str:
    fields = {
        "thought": post.text(AttachmentType.thought),
        "plan": post.text(AttachmentType.plan),
        "send_to": post.send_to,
        "message": post.message,
        "code": carried_code(post),
    }
    if alternatives := kept_alternatives(post):
        fields |= {"message": "", ALTERNATIVES: as_text(alternatives)}
    fields |= {one.name: one.text for one in kept(post)}
    used = {name: text for name, text in fields.items() if text}
    return json.dumps({"response": used}, ensure_ascii=False)


def _as_fences(post: Post, language: str) -> str:
    code, plan = carried_code(post), post.text(AttachmentType.plan)
    parts = [post.text(AttachmentType.thought)]
    parts += [fenced(plan, "plan")] if plan else []
    parts += [fenced(one.text, one.name) for one in kept(post)]
    if code:
        parts.append(fenced(code, language))
    elif post.send_to == USER:
        parts.append(post.message)
    elif alternatives := kept_alternatives(post):
        parts.append(fenced(as_text(alternatives), ALTERNATIVES))
    else:
        parts.append(fenced(post.message, f"ask {post.send_to}"))
    return paragraphs(*parts)
