"""Images in chats: sent where a model takes images, else replaced by texts that describe them.

An image part is written by `taskweaver.llm.types.image_part`. It may stand in a user's message, or
in the message of a tool's result; only some protocols take images there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from taskweaver.llm.types import ChatMessage

_HEADING = "Pictures that the results above made, as data, in this order:"


def has_described_images(messages: Sequence[ChatMessage]) -> bool:
    """Return whether a chat holds images that a text can stand for."""
    return any("instead" in part for message in messages for part in _parts(message))


def has_images(messages: Sequence[ChatMessage]) -> bool:
    """Return whether a chat holds images."""
    return any(is_image(part) for message in messages for part in _parts(message))


def without_images(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a chat in which each image that a text can stand for is that text.

    An image without such a text stays: the question is about it.
    """
    return [
        _described(message) if has_described_images([message]) else message for message in messages
    ]


def plain_parts(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a chat whose image parts have no fields of this package, results included."""
    return [
        _with(message, [_plain(part) for part in _parts(message)]) if _parts(message) else message
        for message in messages
    ]


def after_results(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a chat for a protocol whose results are texts.

    The images of a block of results follow the block, in one message of the user's that names the
    result of each.
    """
    if not any(map(_parts, messages)):
        return list(messages)
    found: list[ChatMessage] = []
    results: list[Sequence[Mapping[str, Any]]] = []
    for message in [*messages, None]:
        if message is not None and message["role"] == "tool":
            parts = _parts(message)
            results.append([part for part in parts if is_image(part)])
            texts = [part for part in parts if not is_image(part)]
            found.append(_with(message, texts) if parts else message)
            continue
        found += _following(results)
        results = []
        if message is not None:
            found.append(message)
    return plain_parts(found)


def is_image(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a content is an image."""
    return part.get("type") == "image_url"


def _following(results: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[ChatMessage]:
    """Yield the message with the images of a block of results, if there are images."""
    images = [(number, image) for number, some in enumerate(results, 1) for image in some]
    if images:
        named = "; ".join(
            f"result {number} of {len(results)}, {_name(image)}" for number, image in images
        )
        text: dict[str, Any] = {"type": "text", "text": f"{_HEADING} {named}"}
        yield {"role": "user", "content": [text, *(dict(image) for _, image in images)]}


def _name(image: Mapping[str, Any]) -> str:
    return json.dumps(str(image.get("name", "")), ensure_ascii=False)


def _parts(message: ChatMessage) -> Sequence[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else ()


def _described(message: ChatMessage) -> ChatMessage:
    shown = [
        {"type": "text", "text": part["instead"]} if "instead" in part else part
        for part in _parts(message)
        if part.get("instead") != ""
    ]
    return _with(message, shown)


def _with(message: ChatMessage, parts: Sequence[dict[str, Any]]) -> ChatMessage:
    """Return a message with other parts, as text if all parts are texts."""
    if any(map(is_image, parts)):
        return {**message, "content": list(parts)}
    text = "\n".join(str(part.get("text", "")) for part in parts)
    return cast("ChatMessage", {**message, "content": text})


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": part["type"], "image_url": part["image_url"]} if is_image(part) else part
