"""From the posts a role wrote and received to the messages of its model, in the form in force."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from taskweaver.llm.types import ChatMessage, Form, format_chat_message, image_part
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import carried_code
from taskweaver.role.files import CellPicture, PicturesOf, no_pictures
from taskweaver.role.forms.memory_calls import RECALL, kept
from taskweaver.role.forms.offer import ASK_TOOL, PLAN_TOOL, RUN_TOOLS, USER
from taskweaver.utils.markup.quoting import quoted
from taskweaver.utils.text import fenced, fill, remove_temporal_delimiters

_PLAN_SHOWN = "The user sees the plan. Go on."
_NOT_RUN = "Interrupted: it was not carried out."
_NO_TEXT = "(no text)"
_NOT_SHOWN = "(A picture that you are not shown.)"

Part = dict[str, Any]


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
    """

    alias: str
    form: Form
    incoming: str
    language: str = "python"
    pictures: PicturesOf = no_pictures
    news: Mapping[str, str] = field(default_factory=dict)
    _open: list[tuple[str, str]] = field(default_factory=list)

    def messages(self, posts: Sequence[Post]) -> list[ChatMessage]:
        """Return the messages of a round."""
        self._open = []
        found: list[ChatMessage] = []
        for post in posts:
            found += self._own(post) if post.send_from == self.alias else self._received(post)
        return [*found, *self._unanswered()]

    def _own(self, post: Post) -> Iterator[ChatMessage]:
        if post.get_attachment(AttachmentType.revise_message):
            yield from self._correction(post)
        elif self.form == "tools":
            yield from self._unanswered()
            yield from self._calls(post)
        else:
            text = _as_json(post) if self.form == "json" else _as_fences(post, self.language)
            yield format_chat_message("assistant", text)
            results = _results(post, has_all=post.send_to == self.alias)
            if results or post.send_to == self.alias:
                yield format_chat_message("user", results or _PLAN_SHOWN)

    def _correction(self, post: Post) -> Iterator[ChatMessage]:
        """Yield an unusable reply as text, and the request to correct it."""
        yield from self._unanswered()
        yield format_chat_message(
            "assistant", _text(post, AttachmentType.invalid_response) or _NO_TEXT
        )
        yield format_chat_message("user", _text(post, AttachmentType.revise_message))

    def _calls(self, post: Post) -> Iterator[ChatMessage]:
        """Yield a reply as it was made: words, with calls beside them."""
        plan = _text(post, AttachmentType.plan)
        done = list(enumerate(kept(post)))
        calls = [_call(post, one.name, one.arguments, number) for number, one in done]
        results = [(call["id"], one.result) for call, (_, one) in zip(calls, done, strict=True)]
        if plan:
            calls.append(_call(post, PLAN_TOOL, {"steps": plan.splitlines()}))
            results.append((calls[-1]["id"], _PLAN_SHOWN))
        code = carried_code(post)
        if code:
            arguments = {"intent": post.message, "code": code}
            calls.append(_call(post, RUN_TOOLS[self.language], arguments))
        elif post.send_to not in (USER, self.alias):
            arguments = {"role": post.send_to, "order": post.message}
            calls.append(_call(post, ASK_TOOL, arguments))
        is_answer = post.send_to == USER
        text = post.message if is_answer else _text(post, AttachmentType.thought)
        message = format_chat_message("assistant", text)
        if calls:
            message["tool_calls"] = calls
        yield message
        for id_, result in results:
            yield _result(id_, result)
        if code or post.send_to not in (USER, self.alias):
            self._open.append((post.send_to, calls[-1]["id"]))

    def _received(self, post: Post) -> Iterator[ChatMessage]:
        text = remove_temporal_delimiters(post.message)
        answered = next((one for one in self._open if one[0] == post.send_from), None)
        if answered is not None:
            self._open.remove(answered)
            result = _result(answered[1], with_news(text or _NO_TEXT, post, self.news))
            yield with_images(result, image_parts(post, self.pictures))
            return
        yield from self._unanswered()
        shown = text
        if self.form != "tools" or post.send_from != USER:
            shown = fill(self.incoming, SENDER=post.send_from, MESSAGE=quoted(text))
        message = format_chat_message("user", with_news(shown, post, self.news))
        yield with_images(message, image_parts(post, self.pictures))

    def _unanswered(self) -> Iterator[ChatMessage]:
        """Yield a result for each call without one: endpoints refuse a history that lacks it."""
        for _, id_ in self._open:
            yield _result(id_, _NOT_RUN)
        self._open = []


def _results(post: Post, *, has_all: bool) -> str:
    """Return the results of a post's operations on memory: all, or those that were asked for."""
    shown = [one.result for one in kept(post) if has_all or one.name == RECALL]
    return "\n".join(shown)


def _call(
    post: Post, name: str, arguments: Mapping[str, object], number: int = 0
) -> dict[str, Any]:
    """Return a call with an id that every endpoint takes, the same in each prompt."""
    id_ = blake2b(f"{post.id}{name}{number or ''}".encode(), digest_size=5).hexdigest()[:9]
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}


def _result(id_: object, text: str) -> ChatMessage:
    return {"role": "tool", "content": text, "tool_call_id": str(id_)}


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
        pictures: Returns the pictures that are shown.
    """
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
        "thought": _text(post, AttachmentType.thought),
        "plan": _text(post, AttachmentType.plan),
        "send_to": post.send_to,
        "message": post.message,
        "code": carried_code(post),
    }
    fields |= {one.name: one.text for one in kept(post)}
    used = {name: text for name, text in fields.items() if text}
    return json.dumps({"response": used}, ensure_ascii=False)


def _as_fences(post: Post, language: str) -> str:
    code, plan = carried_code(post), _text(post, AttachmentType.plan)
    parts = [_text(post, AttachmentType.thought)]
    parts += [fenced(plan, "plan")] if plan else []
    parts += [fenced(one.text, one.name) for one in kept(post)]
    if code:
        parts.append(fenced(code, language))
    elif post.send_to == USER:
        parts.append(post.message)
    else:
        parts.append(fenced(post.message, f"ask {post.send_to}"))
    return "\n\n".join(filter(None, parts))


def _text(post: Post, kind: AttachmentType) -> str:
    return "\n".join(str(item.content) for item in post.get_attachment(kind))
