"""The questions of roles: a reply streamed into a post, and fed back as a post to its author."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Protocol, TypeVar

from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.types import ChatMessage, Chunk, Form, ModelTool, format_chat_message
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.memory.views import PastOutcomes
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.answering import AnswerReview, as_list
from taskweaver.role.compacting import CompactingRoleConfig, RoleCompaction, RoundShortener
from taskweaver.role.correction import send_back, with_beginning
from taskweaver.role.experiences import RoleExperiences
from taskweaver.role.forms.actions import ReplyReading
from taskweaver.role.forms.kept_replies import KeptReply, keep
from taskweaver.role.forms.labels import repeats_itself
from taskweaver.role.translator import PostTranslator
from taskweaver.utils.asking import Asking

_GO_ON = "You were cut off at the length limit. Go on exactly where you ended; repeat nothing."

T = TypeVar("T")
ComposePrompt = Callable[[], list[ChatMessage]]


class RefusedReply(Exception):
    """A reply that its author is asked to correct.

    Attributes:
        revise: The correction that is asked for.
        unsupported: Numbers of an answer that stand in no outcome, if these are the reason.
        reply: The reply as it goes back, with the correction as its result; None for as text.
    """

    def __init__(
        self,
        problem: str,
        revise: str,
        unsupported: Sequence[str] = (),
        reply: KeptReply | None = None,
    ) -> None:
        super().__init__(problem)
        self.revise = revise
        self.unsupported = unsupported
        self.reply = reply


class View(NamedTuple):
    """The rounds that a prompt shows, and the summary of those before them."""

    rounds: list[Round]
    summary: CompactedMessage | None


class RoleModel:
    """The model of a role, with the summaries and experiences in its prompts.

    Attributes:
        llm_api: The models.
        llm_alias: Alias of the role's model; empty for the main one.
        logger: The log.
        translator: Writes replies into posts, and posts as replies.
    """

    def __init__(
        self,
        config: CompactingRoleConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
    ) -> None:
        self.llm_api = llm_api
        self.logger = logger
        self.translator = PostTranslator(logger, tracing, event_emitter)
        self.llm_alias = config.llm_alias
        self._emitter = event_emitter
        self._compaction = RoleCompaction(config.compaction, llm_api, logger, config.llm_alias)
        self._experiences = RoleExperiences(config, llm_api, logger)
        self._outcomes = PastOutcomes()

    def view(self, memory: Memory, alias: str) -> View:
        """Return the rounds `alias` sees; the last one is being answered."""
        self._compaction.attach(memory, alias)
        rounds, summary = memory.get_prompt_rounds(alias)
        return View(self._outcomes.shortened(rounds, self.llm_api.window(self.llm_alias)), summary)

    def with_experiences(self, messages: list[ChatMessage], memory: Memory) -> list[ChatMessage]:
        """Return a prompt with the experiences that suit the newest request."""
        return self._experiences.added_to(messages, memory)

    @property
    def form(self) -> Form:
        """The form of the model's replies that is in force."""
        return self.llm_api.form(self.llm_alias)

    def takes(self, kind: Literal["tools", "images"]) -> bool:
        """Return whether the model is known to receive the tools or images that it is given."""
        return self.llm_api.takes(kind, self.llm_alias)

    def note_form(self, form: Form, reading: ReplyReading) -> None:
        """Note a reply in another form than `form`; the second of a session lowers it to fences."""
        if form != "fences" and reading.ignores_form:
            self.llm_api.note_ignored_tools(self.llm_alias)

    def chunks(
        self,
        compose: ComposePrompt,
        tools: Sequence[ModelTool],
        schema: Mapping[str, object] | None,
        proxy: PostEventProxy,
        *,
        may_call: bool = True,
    ) -> Iterator[Chunk]:
        """Yield the model's reply, piece by piece; words cut off at the length limit go on, once.

        Words whose continuation fails stay, as words that were cut off.

        Args:
            compose: Returns the prompt; called again after rounds of it were summarised.
            tools: Actions that the model may call.
            schema: JSON schema of the reply; None for none.
            proxy: The post that is written.
            may_call: Whether calls are expected, not an answer in words.

        Raises:
            ModelError: If the model cannot be reached; of kind ``form`` if it refuses the form.
        """
        ask = partial(
            self.llm_api.stream_chunks,
            llm_alias=self.llm_alias,
            tools=tools,
            on_status=proxy.update_status,
        )
        text = ""
        for chunk in ask(
            compose(),
            tool_choice="auto" if may_call or not tools else "none",
            json_schema=schema,
            shortener=self._shortener(compose, proxy),
        ):
            text = chunk.text if chunk.begins_again else text + chunk.text
            if chunk.finish != "length" or chunk.calls or not _goes_on(text):
                yield chunk
                continue
            yield replace(chunk, finish=None)
            longer = partial(_continued, compose, text)
            choice: Literal["auto", "none"] = "none" if tools else "auto"
            more = ask(longer(), tool_choice=choice, shortener=self._shortener(longer, proxy))
            try:
                for piece in more:
                    kept = text if piece.begins_again else ""
                    yield replace(piece, text=kept + piece.text, record={})
            except ModelError as error:
                self.logger.warning(f"A reply that was cut off does not go on: {error}")
                yield Chunk(finish="length")

    def _shortener(self, compose: ComposePrompt, proxy: PostEventProxy) -> RoundShortener:
        return RoundShortener(self._compaction, compose, proxy, self._emitter)

    def review(self, review: AnswerReview | None, post: Post, revise: Callable[[str], str]) -> None:
        """Check the numbers of an answer, unless the model takes no corrections.

        Args:
            review: Checks the answer; None for no check.
            post: The answer.
            revise: Returns the request to correct numbers.

        Raises:
            RefusedReply: If some stand in no outcome.
        """
        if review is None or not self.llm_api.takes_corrections(self.llm_alias):
            return
        doubts = review.doubts(post)
        if doubts:
            raise RefusedReply("", revise(as_list(doubts)), doubts)

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


class RawReply(Protocol):
    """A reply with its text."""

    @property
    def raw(self) -> str:
        """The model's text."""
        ...


R = TypeVar("R", bound=RawReply)


@dataclass
class PostAsking(Asking[R, T | Post]):
    """A question of a role. An unusable reply becomes a post to its author, who is asked again.

    The session hands such a post back to the role, so that the posts are the count of attempts.

    Attributes:
        logger: The log.
        stream: Streams the model's reply into the post.
        proxy: The post that is written.
        author: Name of the author in the log.
        validate: Returns the answer in a reply, or raises `RefusedReply`.
        end: Returns or raises the outcome of the last attempt, given its problem and reply.
        failed: Number of unusable replies before this one.
        attempts: Most unusable replies.
    """

    logger: TelemetryLogger
    stream: Callable[[], R]
    proxy: PostEventProxy
    author: str
    validate: Callable[[R], T | Post]
    end: Callable[[str], T | Post]
    failed: int
    attempts: int

    refusals = (RefusedReply,)

    def call(self) -> R:
        """Stream the model's reply into the post."""
        return self.stream()

    def read(self, reply: R) -> T | Post:
        """Return the answer in a reply."""
        return self.validate(reply)

    def feed_back(self, error: Exception, reply: R) -> Post:
        """Return the post, with the problem, to its author."""
        assert isinstance(error, RefusedReply)
        if not error.unsupported:
            self._warn(error)
        post = send_back(self.proxy, reply.raw, error.revise, error.unsupported)
        if error.reply is not None:
            keep(post, error.reply)
        return post

    def give_up(self, error: Exception, reply: R) -> T | Post:
        """Return the outcome of the last attempt."""
        self._warn(error)
        return self.end(with_beginning(str(error), reply.raw))

    def _warn(self, error: Exception) -> None:
        self.logger.warning(f"{self.author}'s reply cannot be used: {error}")
