"""Bodies and answers of the agent API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from taskweaver.server.agents.index import ListedSession
from taskweaver.server.transfer import FileFacts
from taskweaver.session.moments import OutlineMerge

Title = Field(default="", max_length=200)
BranchName = Field(default="main", max_length=64)
Text = Field(max_length=1_000_000, pattern=r"\S")
_Title = Annotated[str, StringConstraints(strip_whitespace=True, max_length=64)]


class NewConversation(BaseModel):
    """A session to make."""

    title: str = Title


class SessionTitle(BaseModel):
    """A title for a session."""

    title: str = Field(min_length=1, max_length=200)


class SessionSummaries(BaseModel):
    """A page of the caller's sessions, the newest first, and the number of all."""

    sessions: list[ListedSession]
    total: int
    last_change: int


class BranchSummary(BaseModel):
    """A branch of a session; `rounds` counts those that it sees.

    `name` never changes, and is the one that addresses and messages take; `title` is the name that
    is shown.
    """

    name: str
    title: str
    parent: str | None
    rounds: int
    is_current: bool
    state: Literal["idle", "running", "asks"]
    kernel: str


class SessionView(BaseModel):
    """A session with its branches.

    Events of the session go on after `last_event`, those of the rounds that run begin after
    `open_event`; changes of the list go on after `last_change`.
    """

    session_id: str
    title: str
    branches: list[BranchSummary]
    last_event: int
    open_event: int
    last_change: int
    waiting: int


class NewMessage(BaseModel):
    """A message to a branch; one with a `message_id` that was accepted before is not repeated."""

    text: str = Text
    branch: str = BranchName
    kind: Literal["ask", "code"] = "ask"
    message_id: str = Field(default="", max_length=128)
    stream: bool = False


class MessageView(BaseModel):
    """A message; `answer` is the answer, or the reason why there is none."""

    message_id: str
    branch: str
    kind: str
    text: str
    state: Literal["queued", "running", "finished", "failed", "withdrawn", "stopped"]
    round_id: str
    answer: str
    tokens: int
    cost: float | None
    created_at: str


class AcceptedMessage(BaseModel):
    """A message that was accepted; its events come after `after`."""

    message: MessageView
    after: int


class MessageList(BaseModel):
    """The messages of a session, oldest first."""

    messages: list[MessageView]


class BranchWanted(BaseModel):
    """A branch."""

    branch: str = BranchName


class StoppedRound(BaseModel):
    """Outcome of a stop: whether a message was being answered."""

    was_running: bool


class WaitingConfirmation(BaseModel):
    """A request for confirmation that waits; `diff` are the changes to the version before.

    One that is editable may be answered with another code.
    """

    confirmation_id: str
    branch: str
    post_id: str
    kinds: list[str]
    content: str
    diff: str
    is_editable: bool


class WaitingConfirmations(BaseModel):
    """The requests for confirmation that wait."""

    confirmations: list[WaitingConfirmation]


class ConfirmationAnswer(BaseModel):
    """An answer to a request for confirmation.

    `code` goes with yes: it runs, once, in place of the code that was asked about. A policy of the
    project holds for it as for a model's.
    """

    answer: Literal["yes", "no", "always"]
    code: str | None = Field(default=None, min_length=1, max_length=1_000_000)

    @model_validator(mode="after")
    def _allows_its_code(self) -> Self:
        if self.code is not None and self.answer != "yes":
            raise ValueError("code goes with the answer yes alone")
        return self


class NewBranch(BaseModel):
    """A branch to fork off another; `at_round` is the last round it sees, None for all.

    Without a name the branch gets one that is made of the title, or made up.
    """

    source: str = BranchName
    name: str = Field(default="", max_length=64)
    title: _Title = ""
    at_round: int | None = Field(default=None, ge=0)


class BranchTitle(BaseModel):
    """A title for a branch: one line that no other branch has as its title or name."""

    title: Annotated[_Title, Field(min_length=1)]


class MadeBranch(BaseModel):
    """A branch that was made; `why_restored` says why its kernel was not forked."""

    name: str
    why_restored: str


class RoundSummary(BaseModel):
    """A round in the index: `number` is its position on its path.

    Code of the user whose cell failed is ``failed`` here.
    """

    round_id: str
    branch: str
    number: int
    title: str
    state: Literal["created", "finished", "failed"]
    forks: list[str]


class RoundIndex(BaseModel):
    """All rounds of a session, each once, and merges; events go on after `last_event`."""

    rounds: list[RoundSummary]
    merges: list[OutlineMerge]
    last_event: int


class RoundPage(BaseModel):
    """Rounds of a branch with their posts, and the number of all that it sees."""

    rounds: list[dict[str, Any]]
    first: int
    total: int


class FilesOfBranch(BaseModel):
    """The files of a branch's working directory."""

    files: list[FileFacts]


class FileLink(BaseModel):
    """An address of a file that is good once, for a minute."""

    url: str


class NewLink(BaseModel):
    """A use of a file: a download, or the frame of an interactive figure."""

    purpose: Literal["download", "frame"] = "download"


class ArtifactView(BaseModel):
    """A file that code of a round wrote; width and height of a picture, in pixels."""

    path: str
    round_id: str
    number: int
    size: int | None
    width: int | None = None
    height: int | None = None


class ArtifactViews(BaseModel):
    """The artifacts of a branch, oldest first."""

    artifacts: list[ArtifactView]


class FactView(BaseModel):
    """A fact that is kept for later requests."""

    fact_id: str
    text: str
    author: str
    day: str
    session_id: str
    state: str
    said: str
    until: str


class MemoryView(BaseModel):
    """The memory of a branch: its facts, and its core."""

    facts: list[FactView]
    core: dict[str, str]


class NewFact(BaseModel):
    """A fact to keep."""

    text: str = Field(min_length=1, max_length=1_000)


class MemoryOutcome(BaseModel):
    """Outcome of a change of the memory, in words."""

    outcome: str


class UsageView(BaseModel):
    """Consumption of a session since it was opened, and of the caller in all, with the quotas."""

    session_tokens: int | None = None
    session_cost: float | None = None
    spent_tokens: int
    spent_cost: float
    quota_tokens: int | None
    quota_cost: float | None


class FoundPassage(BaseModel):
    """A text of a conversation, or of its memory, that has a word of a query.

    `number` is that of its round; null for a text of the memory. `title` is the session's.
    """

    session_id: str
    title: str
    branch: str
    branch_title: str
    number: int | None
    text: str


class FoundPassages(BaseModel):
    """The passages that were found."""

    passages: list[FoundPassage]


class ContinuedAttempt(BaseModel):
    """A branch that continues an attempt, in the session of the run or in a `copy`."""

    session_id: str
    branch: str
    is_copy: bool
