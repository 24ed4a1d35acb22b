"""The asking loop, and the questions of roles, whose corrections are posts to their author."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from taskweaver.errors import TaskWeaverError
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.fitting import Shortener
from taskweaver.llm.types import ChatMessage, Chunk, Form, format_chat_message
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.memory.views import PastOutcomes
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.compacting import CompactingRoleConfig, RoleCompaction
from taskweaver.role.experiences import RoleExperiences
from taskweaver.role.forms.actions import ModelReply, ReplyReading
from taskweaver.role.forms.fences import Asked, told
from taskweaver.role.forms.kept_replies import keep, refused_reply
from taskweaver.role.forms.labels import repeats_itself
from taskweaver.role.forms.memory_calls import FactOperation
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.forms.reading import last_words, read_reply
from taskweaver.role.forms.values import EMPTY_REPLY
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.role.role import AnswerReview

_GO_ON = "You were cut off at the length limit. Go on exactly where you ended; repeat nothing."
_MOST_NUMBERS = 20
_SHOWN_CHARS = 160

Reply = TypeVar("Reply")
Answer = TypeVar("Answer")
ComposePrompt = Callable[[], list[ChatMessage]]


class Again(Enum):
    """Sign of a reader that a question is asked again; None may be an answer."""

    AGAIN = "again"


def ask(
    send: Callable[[], Reply],
    read: Callable[[Reply], Answer | Again],
    refuse: Callable[[Exception, Reply, int], Answer | Again],
) -> Answer:
    """Ask a model until a reply can be used.

    Searches and roles with a conversation of their own ask through this loop. A role whose
    corrections are posts (`RoleModel`) asks once: the turn of the session is its loop.

    Args:
        send: Composes the prompt, and returns the reply.
        read: Returns the answer of a valid reply, or `AGAIN` after one that asks for more. A
            TaskWeaverError or ValueError makes a reply unusable; other errors are passed on.
        refuse: Decides after an unusable reply, given the error, the reply and the number of
            unusable replies. To ask again at once, notes the problem for the next prompt and
            returns `AGAIN`. To end, returns an answer or raises.
    """
    failed = 0
    while True:
        reply = send()
        try:
            answer = read(reply)
        except (TaskWeaverError, ValueError) as error:
            failed += 1
            answer = refuse(error, reply, failed)
        if not isinstance(answer, Again):
            return answer


class RefusedReply(Exception):
    """A reply that its author is asked to correct.

    Attributes:
        unsupported: Numbers of an answer that stand in no outcome, if these are the reason.
    """

    def __init__(self, problem: str, unsupported: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.unsupported = unsupported


class View(NamedTuple):
    """The rounds that a prompt shows, and the summary of those before them."""

    rounds: list[Round]
    summary: CompactedMessage | None


@dataclass(frozen=True, slots=True)
class RoleQuestion:
    """A question of a role to its model.

    Attributes:
        alias: The role.
        status: Status of its post meanwhile.
        compose: Returns the prompt in a form.
        schema: JSON schema of a reply in JSON.
        offer: Actions of any reply to the question.
        allowed: Actions of this reply.
        request: The newest request.
        told: The newest posts before.
        has_outcome: Whether there is an outcome, so that an answer is as likely as a cell.
        may_call: Whether calls are expected, not an answer in words.
        failed: Number of unusable replies before.
        attempts: Most unusable replies.
        revise: Returns the request to correct a reply in a form, given the problem.
        revise_answer: Returns the request to correct numbers of an answer.
        take: Returns the posts of a reply that was read, given the post and its writer, or raises
            `RefusedReply`.
        end: Returns or raises the outcome of the last attempt, given its post and problem.
        carry_out: Does an operation on long-term memory, and returns the result; None where none
            is offered.
        is_last: Whether words are taken for the answer where all else in a reply is unusable.
        nudge: Sentence after the problem of an empty reply.
    """

    alias: str
    status: str
    compose: Callable[[Form], list[ChatMessage]]
    schema: Mapping[str, object]
    offer: ActionOffer
    allowed: ActionOffer
    request: str
    told: Sequence[Post]
    has_outcome: bool
    may_call: bool
    failed: int
    attempts: int
    revise: Callable[[Form, str], str]
    revise_answer: Callable[[str], str]
    take: Callable[[PostEventProxy, ReplyWriter, ReplyReading], list[Post]]
    end: Callable[[PostEventProxy, str], list[Post]]
    carry_out: Callable[[FactOperation], str] | None = None
    is_last: bool = False
    nudge: str = ""


class RoleModel:
    """The model of a role, with the summaries and experiences in its prompts.

    Attributes:
        llm_api: The models.
        llm_alias: Alias of the role's model; empty for the main one.
        logger: The log.
        experiences: Experiences for the prompts.
        only_form: The only form of replies that the texts of prompts describe; None for all.
    """

    def __init__(
        self,
        config: CompactingRoleConfig,
        logger: TelemetryLogger,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
    ) -> None:
        self.llm_api = llm_api
        self.logger = logger
        self.only_form: Form | None = None
        self.llm_alias = config.llm_alias
        self._emitter = event_emitter
        self._compaction = RoleCompaction(config, llm_api, logger)
        self.experiences = RoleExperiences(config, llm_api, logger)
        self._outcomes = PastOutcomes()

    def view(self, memory: Memory, alias: str) -> View:
        """Return the rounds `alias` sees; the last one is being answered."""
        self._compaction.attach(memory, alias)
        rounds, summary = memory.get_prompt_rounds(alias)
        return View(self._outcomes.shortened(rounds, self.llm_api.window(self.llm_alias)), summary)

    @property
    def form(self) -> Form:
        """The form of the model's replies that is in force."""
        return self.only_form or self.llm_api.form(self.llm_alias)

    def takes(self, kind: Literal["tools", "images"]) -> bool:
        """Return whether the model is known to receive the tools or images that it is given."""
        return self.llm_api.takes(kind, self.llm_alias)

    def ask(self, q: RoleQuestion) -> list[Post]:
        """Return the posts that a reply stands for.

        A model that refuses the form of replies is asked in a lower form. An unusable reply
        becomes a post to its author. The session hands such a post back to the role, which asks
        again, so that the posts are the count of attempts.

        Raises:
            ModelError: If the model cannot be reached.
            Exception: That of the question's `end`.
        """
        form = self.form
        try:
            with self._emitter.post(q.alias) as proxy:
                proxy.update_status(q.status)
                is_answer = q.has_outcome or (form == "tools" and self.takes("tools"))
                asked = Asked(form, q.request, is_answer, told(q.told))
                writer = ReplyWriter(self._emitter, proxy, q.offer, q.carry_out)
                reply = writer.read(self._chunks(q, form, proxy))
                try:
                    return q.take(proxy, writer, self._reading(q, asked, reply))
                except RefusedReply as error:
                    return self._sent_back(q, form, proxy, reply, error)
        except ModelError as error:
            if error.kind != "form" or self.form == form:
                raise
        return self.ask(q)

    def _reading(self, q: RoleQuestion, asked: Asked, reply: ModelReply) -> ReplyReading:
        reading = read_reply(reply, q.allowed, asked)
        if reading.problem and q.is_last:
            reading = last_words(reply) or reading
        if asked.form != "fences" and reading.ignores_form:  # the second lowers it to fences
            self.llm_api.note_ignored_tools(self.llm_alias)
        return reading

    def _sent_back(
        self,
        q: RoleQuestion,
        form: Form,
        proxy: PostEventProxy,
        reply: ModelReply,
        error: RefusedReply,
    ) -> list[Post]:
        """Return the request to correct a reply, or the end that follows the last attempt."""
        problem, numbers = str(error), list(error.unsupported)
        if problem:
            self.logger.warning(f"{q.alias}'s reply cannot be used: {problem}")
        if q.failed + 1 >= q.attempts:
            return q.end(proxy, _with_beginning(problem, reply.raw))
        nudged = f"{problem} {q.nudge}".rstrip() if problem == EMPTY_REPLY else problem
        revise = q.revise_answer(_listed(numbers)) if numbers else q.revise(form, nudged)
        post = _note_to_self(proxy, reply.raw, revise, numbers)
        kept = None if numbers else refused_reply(reply.calls, reply.record, revise)
        if kept is not None:
            keep(post, kept)
        return [post]

    def _chunks(self, q: RoleQuestion, form: Form, proxy: PostEventProxy) -> Iterator[Chunk]:
        """Yield the model's reply, piece by piece; words cut off at the length limit go on, once.

        Words whose continuation fails stay, as words that were cut off.

        Raises:
            ModelError: If the model cannot be reached; of kind ``form`` if it refuses the form.
        """
        compose = partial(q.compose, form)
        tools = q.offer.tools() if form == "tools" else []
        call = partial(
            self.llm_api.stream_chunks,
            llm_alias=self.llm_alias,
            tools=tools,
            on_status=proxy.update_status,
        )
        text = ""
        for chunk in call(
            compose(),
            tool_choice="auto" if q.may_call or not tools else "none",
            json_schema=q.schema if form == "json" else None,
            shortener=self._shortener(compose, proxy),
        ):
            text = chunk.text if chunk.begins_again else text + chunk.text
            if chunk.finish != "length" or chunk.calls or not _goes_on(text):
                yield chunk
                continue
            yield replace(chunk, finish=None)
            longer = partial(_continued, compose, text)
            choice: Literal["auto", "none"] = "none" if tools else "auto"
            shortener = self._shortener(longer, proxy)
            try:
                for piece in call(longer(), tool_choice=choice, shortener=shortener):
                    kept = text if piece.begins_again else ""
                    yield replace(piece, text=kept + piece.text, record={})
            except ModelError as error:
                self.logger.warning(f"A reply that was cut off does not go on: {error}")
                yield Chunk(finish="length")

    def _shortener(self, compose: ComposePrompt, proxy: PostEventProxy) -> Shortener:
        def shorter() -> list[ChatMessage] | None:
            proxy.update_status("summarising the conversation")
            return compose() if self._compaction.compact() else None

        return Shortener(shorter, self._emitter.warn)

    def review(self, review: AnswerReview | None, post: Post) -> None:
        """Check the numbers of an answer, unless the model takes no corrections.

        `review` checks the answer; None for no check.

        Raises:
            RefusedReply: If some stand in no outcome.
        """
        if review is None or not self.llm_api.takes_corrections(self.llm_alias):
            return
        doubts = review.doubts(post)
        if doubts:
            raise RefusedReply("", doubts)

    def close(self) -> None:
        """Stop the summaries."""
        self._compaction.stop()


def _continued(compose: ComposePrompt, text: str) -> list[ChatMessage]:
    more = [format_chat_message("assistant", text), format_chat_message("user", _GO_ON)]
    return [*compose(), *more]


def _goes_on(text: str) -> bool:
    """Return whether a text that was cut off is words, and no action or endless repetition."""
    is_action = text.lstrip().startswith(("{", "[", "<")) or text.count("```") % 2
    return bool(text.strip()) and not is_action and not repeats_itself(text)


def _with_beginning(problem: str, raw: str) -> str:
    """Return a problem of a reply, followed by the beginning of the reply in quotes, in a line."""
    text = " ".join(raw.split())
    if not text:
        return f"{problem} The reply was empty."
    shown = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS].rstrip()} ..."
    return f"{problem} The reply began: {json.dumps(shown, ensure_ascii=False)}"


def _note_to_self(proxy: PostEventProxy, invalid: str, revise: str, unsupported: list[str]) -> Post:
    """Finish a post as a note to its own author, and return it.

    `unsupported` are numbers of an answer that stand in no outcome, if these are the reason.
    """
    proxy.error(revise)
    proxy.update_attachment(invalid, AttachmentType.invalid_response)
    proxy.update_attachment(revise, AttachmentType.revise_message)
    if unsupported:
        finding = {"unsupported_numbers": unsupported}
        text = ", ".join(unsupported)
        proxy.update_attachment(text, AttachmentType.answer_check, extra=finding)
    proxy.update_send_to(proxy.post.send_from)
    return proxy.end()


def _listed(numbers: list[str]) -> str:
    """Return numbers as a prompt names them; of many the first."""
    left_out = len(numbers) - _MOST_NUMBERS
    more = f" and {left_out} more" if left_out > 0 else ""
    return ", ".join(numbers[:_MOST_NUMBERS]) + more
