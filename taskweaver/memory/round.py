"""One query of the user, the posts that answered it, and the answer with the evidence.

A session puts notes for the roles before the words of the user, a line each. The check of an answer
writes an attachment of type ``answer_check`` on the final post.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self, get_args

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.suggestions import NO_SUGGESTIONS, Suggestions
from taskweaver.memory.type_vars import RoundState
from taskweaver.utils.ids import create_id
from taskweaver.utils.text import RUN_THIS

FILES_ADDED = "files added"
FILES_CHANGED = "files changed, read them again"
FILES_KEPT = "files changed, but not the copy here, which code changed"
FILES_REFUSED = "files not added"
FILE_NAMES = "names here of files in the message"
VARIABLE_GONE = "variable that is gone, make it again before use"
ALL_VARIABLES_GONE = "The Python session is new: the variables of earlier rounds are gone."

QUESTION_NOW = "The question now:"
"""Line between the history of a chat of another program and the words of the user."""

_FILES = (f"{FILES_ADDED}: ", f"{FILES_CHANGED}: ")
_NOTES = (
    *_FILES,
    f"{FILES_KEPT}: ",
    f"{FILES_REFUSED}: ",
    f"{FILE_NAMES}: ",
    f"{VARIABLE_GONE}: ",
    ALL_VARIABLES_GONE,
)


def split_notes(query: str) -> tuple[list[str], str]:
    """Return the notes at the beginning of a request, and the words of the user."""
    notes = []
    rest = query
    while rest.startswith(_NOTES):
        line, _, rest = rest.partition("\n")
        notes.append(line)
    return notes, rest


def own_words(query: str) -> str:
    """Return the words of the user alone, without notes and the history of another chat."""
    return split_notes(query)[1].rpartition(f"\n\n{QUESTION_NOW}\n\n")[2]


def file_notes(query: str) -> str:
    """Return the notes of a request that name the files of the request, if any."""
    return "\n".join(line for line in split_notes(query)[0] if line.startswith(_FILES))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The place a number of an answer came from.

    Attributes:
        text: The number as the answer writes it.
        value: The value found, as a number.
        post_id: The post of the cell; for a number the user named, their post or round.
        cell: Number of the cell among those that ran in the conversation, from 1; 0 for none.
        where: Part of the outcome: ``Result``, ``Output``, ``Variables``, ``Code``, ``message``,
            or ``Listing`` for what stood in the prompt.
        line: Line in that part, from 1.
        original: That line.
    """

    text: str
    value: float
    post_id: str
    cell: int
    where: str
    line: int
    original: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build an evidence from the wire form.

        Raises:
            KeyError, TypeError, ValueError: If the form is not that of an evidence.
        """
        value = data["value"]
        return cls(
            text=str(data["text"]),
            value=value if isinstance(value, int) else float(value),
            post_id=str(data["post_id"]),
            cell=int(data["cell"]),
            where=str(data["where"]),
            line=int(data["line"]),
            original=str(data["original"]),
        )


@dataclass(frozen=True, slots=True)
class RoundAnswer:
    """The answer of a round.

    Attributes:
        text: The message to the user; empty if the round has none.
        evidence: The place each number came from, in the order of the answer.
        unsupported_numbers: Numbers that stand in no outcome, as the answer writes them.
        is_checked: Whether the answer was checked; without a check both lists are empty.
        suggestions: Requests to go on with, and notes on how the request was read.
    """

    text: str
    evidence: tuple[Evidence, ...] = ()
    unsupported_numbers: tuple[str, ...] = ()
    is_checked: bool = False
    suggestions: Suggestions = NO_SUGGESTIONS

    def finding(self) -> dict[str, Any]:
        """Return the result of the check as plain data."""
        return {
            "evidence": [asdict(item) for item in self.evidence],
            "unsupported_numbers": list(self.unsupported_numbers),
        }

    @classmethod
    def from_finding(cls, text: str, finding: object) -> Self:
        """Build an answer from the message and the result of the check.

        A result that is not readable counts as no check.
        """
        if not isinstance(finding, Mapping):
            return cls(text)
        try:
            found = tuple(map(Evidence.from_dict, _list(finding["evidence"])))
            unsupported = tuple(map(str, _list(finding["unsupported_numbers"])))
        except (KeyError, TypeError, ValueError):
            return cls(text)
        return cls(text, found, unsupported, is_checked=True)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is no list")
    return value


@dataclass(slots=True)
class Round:
    """A user query, a state, and posts.

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
        """The answer to the user. The text is empty for a round without one."""
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
        """Reason the last post ends the round, as the leader gave the reason, else empty."""
        return self.post_list[-1].last(AttachmentType.stop).strip() if self.post_list else ""

    @property
    def is_answered(self) -> bool:
        """Whether the round gave the user an answer, not an apology."""
        return self.state == "finished" and self.stop_reason != "TaskFailure"

    @property
    def is_code(self) -> bool:
        """Whether the round runs code of the user's own."""
        return self.question.startswith(RUN_THIS)

    @property
    def has_failed(self) -> bool:
        """Whether the round failed, or is code of the user's own whose cell failed."""
        if self.state == "failed" or not self.is_code:
            return self.state == "failed"
        outcomes = [post.last(AttachmentType.execution_status) for post in self.post_list]
        return list(filter(None, outcomes))[-1:] == ["FAILURE"]

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Files that code of the round wrote, relative to the session's `execution_cwd`."""
        return tuple(path for post in self.post_list for path in post.artifacts)

    @property
    def question(self) -> str:
        """The words of the user: `user_query` without the session's notes before."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form. Keys are as in the YAML files."""
        return {
            "id": self.id,
            "user_query": self.user_query,
            "state": self.state,
            "post_list": [post.to_dict() for post in self.post_list],
        }

    def shown_dict(self) -> dict[str, Any]:
        """Return the wire form for readers, without the records of replies."""
        posts = []
        for post in self.post_list:
            shown = replace(post)
            shown.del_attachment([AttachmentType.reply_record])
            posts.append(shown)
        return replace(self, post_list=posts).to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a round from the wire form.

        Raises:
            KeyError: If query or state is missing.
            ValueError: If the state is unknown, or an attachment has an unknown type.
        """
        new = cls(data.get("id") or create_id("round"), data["user_query"])
        new.change_round_state(data["state"])
        new.post_list = [Post.from_dict(post) for post in data.get("post_list") or []]
        return new
