"""One query of the user and the posts that answered it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NotRequired, Self, TypedDict, get_args

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.forms.answer import RoundAnswer
from taskweaver.memory.forms.request_notes import split_notes
from taskweaver.memory.forms.suggestions import Suggestions
from taskweaver.memory.post import Post, PostDict
from taskweaver.memory.type_vars import RoundState
from taskweaver.utils.ids import create_id
from taskweaver.utils.text import RUN_THIS


class RoundDict(TypedDict):
    """Wire form; the keys are those of the YAML files."""

    id: NotRequired[str | None]
    user_query: str
    state: RoundState
    post_list: NotRequired[list[PostDict] | None]


@dataclass(slots=True)
class Round:
    """A user query, its state, and its posts.

    Attributes:
        id: Unique; kept when a round is loaded.
        user_query: Request as the roles read it: notes of the session, then the user's words.
        state: ``created`` while it runs, then ``finished`` or ``failed``.
        post_list: The posts, in order.
        reason: Why it failed, in a sentence; empty where it did not, and once it was stored.
    """

    id: str
    user_query: str
    state: RoundState = "created"
    post_list: list[Post] = field(default_factory=list)
    reason: str = field(default="", compare=False)

    @staticmethod
    def create(
        user_query: str,
        id: str | None = None,
        state: RoundState = "created",
        post_list: list[Post] | None = None,
    ) -> Round:
        """Build a round, with a new id unless one is given."""
        return Round(id or create_id("round"), user_query, state, post_list or [])

    @property
    def answer(self) -> RoundAnswer:
        """The answer to the user; its text is empty for a round without one."""
        post = self.post_list[-1] if self.post_list else None
        if post is None or post.send_to != "User" or self.state == "failed":
            return RoundAnswer("")
        checks = post.get_attachment(AttachmentType.answer_check)
        answer = RoundAnswer.from_finding(post.message, checks[-1].extra if checks else None)
        offers = post.get_attachment(AttachmentType.suggestions)
        if not offers:
            return answer
        return replace(answer, suggestions=Suggestions.from_extra(offers[-1].extra))

    @property
    def stop_reason(self) -> str:
        """Reason the last post ends the round, as the leader gave it; empty if it did not."""
        posts = self.post_list[-1:]
        stops = [stop for post in posts for stop in post.get_attachment(AttachmentType.stop)]
        return str(stops[-1].content).strip() if stops else ""

    @property
    def is_answered(self) -> bool:
        """Whether it gave the user an answer, not an apology."""
        return self.state == "finished" and self.stop_reason != "TaskFailure"

    @property
    def is_code(self) -> bool:
        """Whether it runs code of the user's own."""
        return self.question.startswith(RUN_THIS)

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or is code of the user's own whose cell failed."""
        if self.state == "failed" or not self.is_code:
            return self.state == "failed"
        outcomes = [
            str(outcome.content)
            for post in self.post_list
            for outcome in post.get_attachment(AttachmentType.execution_status)
        ]
        return outcomes[-1:] == ["FAILURE"]

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Files that code of the round wrote, relative to the session's `execution_cwd`."""
        return tuple(
            str(path)
            for post in self.post_list
            for attachment in post.get_attachment(AttachmentType.artifact_paths)
            for path in attachment.content
        )

    @property
    def question(self) -> str:
        """The words of the user: `user_query` without the session's notes before them."""
        return split_notes(self.user_query)[1]

    @property
    def notes(self) -> list[str]:
        """The session's notes for the roles before the words of the user, a line each."""
        return split_notes(self.user_query)[0]

    def add_post(self, post: Post) -> None:
        """Append a post."""
        self.post_list.append(post)

    def change_round_state(self, new_state: RoundState) -> None:
        """Set the state.

        Raises:
            ValueError: If it is not a `RoundState`.
        """
        if new_state not in get_args(RoundState):
            raise ValueError(f"state is one of {get_args(RoundState)}, not {new_state!r}")
        self.state = new_state

    def to_dict(self) -> RoundDict:
        """Return the wire form."""
        return {
            "id": self.id,
            "user_query": self.user_query,
            "state": self.state,
            "post_list": [post.to_dict() for post in self.post_list],
        }

    def shown_dict(self) -> RoundDict:
        """Return the wire form for readers, without the records of replies."""
        posts = []
        for post in self.post_list:
            shown = replace(post)
            shown.del_attachment([AttachmentType.reply_record])
            posts.append(shown)
        return replace(self, post_list=posts).to_dict()

    @classmethod
    def from_dict(cls, data: RoundDict) -> Self:
        """Build a round from its wire form.

        Raises:
            KeyError: If query or state is missing.
            ValueError: If the state is unknown, or an attachment has an unknown type.
        """
        new = cls(data.get("id") or create_id("round"), data["user_query"])
        new.change_round_state(data["state"])
        new.post_list = [Post.from_dict(post) for post in data.get("post_list") or []]
        return new
