"""From a model's streamed reply to a post, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, nullcontext

from injector import inject

from taskweaver.llm.parsing.json_text import FieldDelta, ParsedReply, ReplyStream
from taskweaver.llm.types import ChatMessage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter

EarlyStop = Callable[[AttachmentType | str, str], bool]

_OWN = {AttachmentType.answer_check, AttachmentType.reply_record, AttachmentType.suggestions}
_KNOWN = {kind.value: kind for kind in AttachmentType if kind not in _OWN}
"""Attachments a model may write; the others are written by the program."""

_NEVER_SHOWN = {AttachmentType.shared_memory_entry, *_OWN}


class PostTranslator:
    """Writes the fields of a reply into a post while they arrive."""

    @inject
    def __init__(
        self, logger: TelemetryLogger, tracing: Tracing, event_emitter: SessionEventEmitter
    ) -> None:
        self.logger = logger
        self.tracing = tracing
        self.event_emitter = event_emitter

    def raw_text_to_post(
        self,
        llm_output: Iterable[ChatMessage],
        post_proxy: PostEventProxy,
        early_stop: EarlyStop | None = None,
        validation_func: Callable[[Post], None] | None = None,
        use_v2_parser: bool = True,  # noqa: ARG002, FBT001, FBT002 - kept signature
    ) -> ParsedReply:
        """Read a streamed reply into a post.

        ``message`` and ``send_to`` go to the post, fields named like an attachment type become
        attachments, others are left out. The stream is closed whatever happens.

        Args:
            llm_output: Pieces of the reply.
            post_proxy: The post to write.
            early_stop: Asked when a field is complete, with its type and text; True ends reading,
                and no later field is written.
            validation_func: Called with the finished post; raises when it is not good.
            use_v2_parser: Accepted for callers of the original, which had two parsers; without
                effect.

        Returns:
            The fields of the reply, and the problem of its form if there is one. After an early
            stop the fields that were written, without a problem.
        """
        stream = ReplyStream()
        writer = FieldWriter(post_proxy)
        is_stopped = False
        source = closing(llm_output) if isinstance(llm_output, Generator) else nullcontext()
        with source:
            for piece in llm_output:
                is_stopped = writer.write(stream.feed(str(piece["content"])), early_stop)
                if is_stopped:
                    break
        rest, reply = stream.finish()
        if is_stopped or writer.write(rest, early_stop):
            reply = ParsedReply(writer.texts, None, reply.raw)
        if validation_func is not None:
            validation_func(post_proxy.post)
        return reply

    @staticmethod
    def post_to_raw_text(
        post: Post,
        content_formatter: Callable[[Attachment], str] = lambda attachment: str(attachment.content),
        if_format_message: bool = True,  # noqa: FBT001, FBT002 - kept signature
        if_format_send_to: bool = True,  # noqa: FBT001, FBT002 - kept signature
        ignored_types: Iterable[AttachmentType] | None = None,
    ) -> str:
        """Return the JSON reply a post came from.

        Args:
            post: The post.
            content_formatter: Turns an attachment into text.
            if_format_message: Whether the message is included.
            if_format_send_to: Whether the receiver is included.
            ignored_types: Attachment types that are left out.
        """
        ignored = _NEVER_SHOWN | set(ignored_types or ())
        fields: dict[str, str] = {}
        for attachment in post.attachment_list:
            if attachment.type not in ignored:
                name, text = attachment.type.value, content_formatter(attachment)
                fields[name] = f"{fields[name]}\n{text}" if name in fields else text
        if if_format_send_to:
            fields["send_to"] = post.send_to
        if if_format_message:
            fields["message"] = post.message
        return json.dumps({"response": fields}, ensure_ascii=False)


class FieldWriter:
    """Puts field deltas where they belong on a post.

    Attributes:
        texts: The text of each field written so far.
    """

    def __init__(self, proxy: PostEventProxy) -> None:
        self._proxy = proxy
        self._open: tuple[str, str] | None = None
        self.texts: dict[str, str] = {}

    def write(self, deltas: Iterable[FieldDelta], early_stop: EarlyStop | None) -> bool:
        """Write deltas; return whether `early_stop` ended that, with the rest unwritten."""
        for delta in deltas:
            text = self.texts[delta.key] = self.texts.get(delta.key, "") + delta.text
            if delta.key == "message":
                self._proxy.update_message(delta.text, delta.is_end)
            elif delta.key in _KNOWN:
                self._write_attachment(delta)
            elif delta.key == "send_to" and delta.is_end:
                self._proxy.update_send_to(text.strip())
            if (
                delta.is_end
                and early_stop is not None
                and early_stop(_KNOWN.get(delta.key, delta.key), text)
            ):
                return True
        return False

    def _write_attachment(self, delta: FieldDelta) -> None:
        if self._open is not None and self._open[0] == delta.key:
            self._proxy.update_attachment(delta.text, id=self._open[1], is_end=delta.is_end)
        else:
            kind = _KNOWN[delta.key]
            attachment = self._proxy.update_attachment(delta.text, kind, is_end=delta.is_end)
            self._open = (delta.key, attachment.id)
        if delta.is_end:
            self._open = None
