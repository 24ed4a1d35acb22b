"""The prompts of version 1 of a Planner: replies in JSON, and orders in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

from taskweaver.llm.types import ChatMessage, Form, format_chat_message
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import CompactedMessage
from taskweaver.role.files import PicturesOf, no_pictures
from taskweaver.role.forms.history import image_parts, with_images, with_news
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.role.original_prompt import OriginalPrompt
from taskweaver.role.prompt import (
    ComposedRounds,
    example_messages,
    load_prompt,
    reply_schema,
    with_start,
)
from taskweaver.role.situation import Surroundings
from taskweaver.role.translator import PostTranslator
from taskweaver.utils.markup.quoting import quoted
from taskweaver.utils.text import fill, remove_temporal_delimiters

PROMPT_FILE = Path(__file__).with_name("planner_prompt_version_1.yaml")
_ORIGINAL = OriginalPrompt(
    PROMPT_FILE,
    {"instruction_template": "instruction_template"},
    {"environment_context": "- Today is {DATE}.", "worker_intro": "{WORKERS}"},
)
STOP_REASONS = (
    "InProcess",
    "Completed",
    "Clarification",
    "AdditionalInformation",
    "SecurityRisks",
    "TaskFailure",
)


class PlannerPrompt:
    """Composes the Planner's prompts.

    Attributes:
        offer: The actions that replies may hold.
        schema: JSON schema of its replies.
        only_form: The only form of replies that the texts describe.
    """

    only_form: Form | None = "json"

    def __init__(
        self,
        alias: str,
        workers: Mapping[str, Callable[[], str]],
        path: Path,
    ) -> None:
        """Read the texts.

        Args:
            alias: Alias of the Planner.
            workers: Functions that return the description of each worker, by alias.
            path: The prompt file.
        """
        names = ("instruction_template", "worker", "incoming", "shared_plan", "revise")
        packaged = load_prompt(PROMPT_FILE, ("revise_answer",))
        self._texts = load_prompt(path, names, packaged, _ORIGINAL)
        self._alias = alias
        self._workers = workers
        self._past = ComposedRounds()
        self.offer = ActionOffer(roles=tuple(workers), has_plan=True)
        self.schema = reply_schema(
            {
                "plan_reasoning": {},
                "plan": {},
                "current_plan_step": {},
                "stop": {"enum": list(STOP_REASONS)},
                "send_to": {"enum": list(self.offer.recipients)},
                "message": {},
            }
        )

    def compose(
        self,
        _form: Form,
        rounds: Sequence[Round],
        compaction: CompactedMessage | None,
        examples: Sequence[Conversation],
        around: Surroundings,
    ) -> list[ChatMessage]:
        """Return the whole prompt: instructions, examples, situation, rounds."""

        def composed(round_: Round, _previous: Round | None) -> list[ChatMessage]:
            pictures = around.pictures if round_ in rounds[-1:] else no_pictures
            posts = [self._post_messages(post, around, pictures) for post in round_.post_list]
            return [message for messages in posts for message in messages]

        live = self._past.messages(rounds, composed, around.heads)
        return [
            format_chat_message("system", self._instructions()),
            *example_messages(examples, composed),
            *with_start(live, compaction=compaction),
        ]

    def shared_plan(self, post: Post) -> str:
        """Return the plan for the workers, or an empty text."""
        if not post.get_attachment(AttachmentType.plan):
            return ""
        plan, step = post.text(AttachmentType.plan), post.text(AttachmentType.current_plan_step)
        return fill(self._texts["shared_plan"], PLAN=plan, STEP=step)

    def revise(self, _form: Form, problem: str) -> str:
        """Return the request to correct an unusable reply."""
        return fill(self._texts["revise"], PROBLEM=problem)

    def revise_answer(self, numbers: str) -> str:
        """Return the request to correct numbers of an answer that stand in no result."""
        return fill(self._texts["revise_answer"], NUMBERS=numbers)

    def _instructions(self) -> str:
        workers = [
            fill(self._texts["worker"], ALIAS=alias, INTRO=quoted(intro()))
            for alias, intro in self._workers.items()
        ]
        return fill(
            self._texts["instruction_template"],
            WORKERS="\n\n".join(workers),
            RECIPIENTS=", ".join(self.offer.recipients),
            DATE=date.today().isoformat(),  # noqa: DTZ011 - the user's own day is meant
        )

    def _post_messages(
        self, post: Post, around: Surroundings, pictures: PicturesOf
    ) -> list[ChatMessage]:
        if post.send_from != self._alias:
            message = quoted(remove_temporal_delimiters(post.message))
            text = fill(self._texts["incoming"], SENDER=post.send_from, MESSAGE=message)
            text = with_news(text, post, around.news)
            images = image_parts(post, pictures)
            return [with_images(format_chat_message("user", text), images)]
        if post.send_to == self._alias:
            invalid = post.text(AttachmentType.invalid_response)
            revise = quoted(post.text(AttachmentType.revise_message))
            note = fill(self._texts["incoming"], SENDER="User", MESSAGE=revise)
            return [format_chat_message("assistant", invalid), format_chat_message("user", note)]
        return [format_chat_message("assistant", PostTranslator.post_to_raw_text(post))]
