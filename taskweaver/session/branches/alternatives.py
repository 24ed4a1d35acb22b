"""Alternatives of a round: orders that are carried out on forks of it, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from taskweaver.errors import TaskWeaverError
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import has_run
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.lanes import side_by_side
from taskweaver.role.forms.actions import BranchOrder
from taskweaver.role.forms.alternatives import kept_alternatives
from taskweaver.session.answers.outcomes import USER
from taskweaver.utils.text import shorten

_REPORT_CHARS = 12_000
_STAYS = (
    "Variables and files stay on these branches, and nothing changed here. The user goes on with"
    " one by `/checkout NAME`."
)


class SideBranch(Protocol):
    """A branch on which the open round goes on; `SessionBranch` has what is needed."""

    @property
    def name(self) -> str:
        """Name of the branch."""
        ...

    @property
    def memory(self) -> Memory:
        """The conversation."""
        ...

    def carry_out(self, order: Post) -> Post:
        """Have an order carried out in the open round; see `Turn.carry_out`."""
        ...


@dataclass(slots=True)
class _Try:
    """An alternative.

    Attributes:
        order: Its order.
        branch: Its branch; None where it has none.
        problem: Reason why it has none.
        note: Reason why the kernel of its branch was not forked; empty if it was.
        posts: Number of posts that the round had when it was forked.
    """

    order: BranchOrder
    branch: SideBranch | None = None
    problem: str = ""
    note: str = ""
    posts: int = 0

    @property
    def results(self) -> str:
        """The outcomes of the cells that ran for it."""
        if self.branch is None:
            return ""
        posts = self.branch.memory.conversation.rounds[-1].post_list[self.posts :]
        found = [post.text(AttachmentType.execution_result) for post in posts if has_run(post)]
        return "\n\n".join([f"## Branch {self.branch.name}", *found]) if found else ""


@dataclass(slots=True)
class AlternativeBranches:
    """The branches of the open round's alternatives; the round goes on there as well.

    Attributes:
        fork: Makes a branch of the current one inside the open round, and returns it with the
            reason its kernel was not forked; empty if it was.
        emitter: Receives events.
        cancel: Ends the open round soon.
    """

    fork_in_round: Callable[[str], tuple[SideBranch, str]]
    emitter: SessionEventEmitter
    cancel: Callable[[], None]
    _tries: dict[str, list[_Try]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the branches on which the open round goes on."""
        return [branch.name for branch in self._branches]

    @property
    def _branches(self) -> list[SideBranch]:
        tries = [one for tries in list(self._tries.values()) for one in tries]
        return [one.branch for one in tries if one.branch is not None]

    def fork(self, post: Post) -> None:
        """Make a branch for each alternative that a post orders, before the post is stored."""
        self._tries[post.id] = [self._begin(order) for order in kept_alternatives(post)]

    def _begin(self, order: BranchOrder) -> _Try:
        try:
            branch, note = self.fork_in_round(order.branch)
        except TaskWeaverError as error:
            return _Try(order, problem=str(error))
        posts = len(branch.memory.conversation.rounds[-1].post_list)
        return _Try(order, branch, note=note, posts=posts)

    def carry_out(self, post: Post) -> Post:
        """Carry out the alternatives of a post; return the report on all of them.

        Raises:
            TaskWeaverError: If the round must end.
        """
        tries = self._tries[post.id]
        works = [partial(_carry_out, one.branch, post, one.order) for one in tries if one.branch]
        names = [one.branch.name for one in tries if one.branch]
        ends = dict(zip(names, side_by_side(works, self.cancel), strict=True))
        with self.emitter.post(post.send_to) as proxy:
            results = "\n\n".join(filter(None, (one.results for one in tries)))
            if results:
                proxy.update_attachment(results, AttachmentType.execution_result)
            share = _REPORT_CHARS // len(tries)
            sections = [_section(one, ends, share) for one in tries]
            proxy.update_message("\n\n".join([*sections, _STAYS]))
            proxy.update_send_to(post.send_from)
            return proxy.end()

    def end(self, round_: Round) -> None:
        """End the round on the branches as it ended."""
        answer = round_.post_list[-1] if round_.state == "finished" else None
        for branch in self._branches:
            copy = branch.memory.conversation.rounds[-1]
            if answer is not None:
                said = Post.create(answer.message, answer.send_from, USER)
                branch.memory.add_post(copy, said)
            branch.memory.end_round(copy, round_.state)
        self._tries = {}


def _carry_out(branch: SideBranch, post: Post, order: BranchOrder) -> Post:
    attachments = [a for a in post.attachment_list if a.type != AttachmentType.alternatives]
    own = Post(post.id, post.send_from, post.send_to, order.text, attachments)
    return branch.carry_out(own)


def _section(one: _Try, ends: Mapping[str, Future[Post]], limit_chars: int) -> str:
    if one.branch is None:
        return f"## {one.order.branch}\nNot carried out: {one.problem}"
    heading, end = f"## Branch {one.branch.name}", ends[one.branch.name]
    error = end.exception()
    if isinstance(error, TaskWeaverError):
        text = f"Failed: {error}"
    else:
        text = shorten(end.result().message, limit_chars)
    note = f"(Its kernel was not forked but restored: {one.note})" if one.note else ""
    return "\n".join(filter(None, [heading, note, text]))
