"""One round: the loop that carries posts between roles until the user is answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.lanes import side_by_side
from taskweaver.role.errors import UnknownRole, UnusableReply
from taskweaver.role.forms.alternatives import kept_alternatives
from taskweaver.session.answers.check import AnswerCheck, unsupported_note
from taskweaver.session.branches.alternatives import AlternativeBranches
from taskweaver.session.branches.stuck import repetition_hint, repetitions, stuck_summary
from taskweaver.session.errors import RoundLimit, SessionError

USER = "User"
PLANNER = "Planner"


class Player(Protocol):
    """A role, as a round knows the role; see `Role`."""

    alias: str
    tracing: Tracing
    only_acknowledges: bool
    answers_from_outcomes: bool

    def replies(self, memory: Memory, /) -> list[Post]:
        """Answer the newest post; see `Role.replies`."""


@dataclass(frozen=True, slots=True)
class RoundControl:
    """Control of a round: its end from outside, and its forks.

    Attributes:
        check: Called before each role's answer; raises when the round must end.
        cancel: Ends the round soon; called when its thread is interrupted.
        alternatives: Has alternatives carried out on branches; None where none are ordered.
    """

    check: Callable[[], None]
    cancel: Callable[[], None]
    alternatives: AlternativeBranches | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One round on a branch, from the user's message to the leader's answer.

    Attributes:
        memory: The conversation.
        roles: The branch's roles, by alias.
        leader: Alias of the role that receives the user's message.
        emitter: Receives events.
        max_posts: Most replies of roles.
        stuck_after: Repetitions before a hint; one more after it ends the round.
        control: Ends the round from outside, and forks it.
        answers: Checks the leader's answer to the user; None for no check.
    """

    memory: Memory
    roles: Mapping[str, Player]
    leader: str
    emitter: SessionEventEmitter
    max_posts: int
    stuck_after: int
    control: RoundControl
    answers: AnswerCheck | None = None

    def play(self, round_: Round) -> Post:
        """Carry posts between roles until one is for the user; return that one.

        Raises:
            RoundLimit: If the roles do not come to an end.
            UnknownRole: If a post is for a role that does not take part.
            TaskWeaverError: If a role cannot answer, or `check` forbids it.
        """
        request = Post.create(round_.user_query, USER, self.leader)
        answer = self._carry(round_, request, {USER}, iter(range(self.max_posts)))
        self.memory.add_post(round_, answer)
        return answer

    def carry_out(self, order: Post) -> Post:
        """Have an order of the leader carried out in the open round; return the report on it.

        Raises:
            TaskWeaverError: As `play`.
        """
        round_ = self.memory.conversation.rounds[-1]
        ends = {USER, self.leader}
        report = self._carry(round_, order, ends, iter(range(self.max_posts)))
        self.memory.add_post(round_, report)
        return report

    def _carry(
        self, round_: Round, first: Post, ends: AbstractSet[str], steps: Iterator[int]
    ) -> Post:
        """Carry posts between roles until one is for one of `ends`; return it, not stored."""
        waiting = deque([first])
        for _ in steps:
            post = self._next(round_, waiting, ends)
            if post.send_to in ends:
                return post
            self.control.check()
            answers = self._answers(round_, post)
            if self._are_side_by_side(answers):
                answers = self._side_by_side(round_, answers, steps)
            waiting.extendleft(reversed(answers))
        raise RoundLimit(
            f"The roles exchanged {self.max_posts} messages without an answer. Ask for less at"
            " once, or raise session.max_internal_chat_round_num."
        )

    def _are_side_by_side(self, posts: Sequence[Post]) -> bool:
        """Return whether posts are orders of the leader to different roles."""
        receivers = [post.send_to for post in posts]
        others = self.roles.keys() - {self.leader}
        is_each_other = set(receivers) <= others and len(set(receivers)) == len(receivers)
        return len(posts) > 1 and is_each_other and not any(map(kept_alternatives, posts))

    def _side_by_side(
        self, round_: Round, orders: Sequence[Post], steps: Iterator[int]
    ) -> list[Post]:
        """Have orders carried out at the same time; return the reports in the order of these.

        Where one fails, the reports on the others are stored.
        """
        ends = {USER, self.leader}
        works = [partial(self._carry, round_, order, ends, steps) for order in orders]
        found = side_by_side(works, self.control.cancel)
        failed = [end for end in found if end.exception() is not None]
        if failed:
            for end in found:
                if end not in failed:
                    self.memory.add_post(round_, end.result())
        return [end.result() for end in (failed or found)]

    def _next(self, round_: Round, waiting: deque[Post], ends: AbstractSet[str]) -> Post:
        """Store the next post, and further ones that are collected before a role is asked.

        The leader reads all answers to its orders at once, and a role all its notes to itself of
        one reply. A post for one of `ends` is not stored.
        """
        while True:
            post = waiting.popleft()
            if post.send_to in ends:
                return post
            if alternatives := self._alternatives(post):
                alternatives.fork(post)
            self.memory.add_post(round_, post)
            if not waiting:
                return post
            is_note = post.send_from == post.send_to == waiting[0].send_from
            if post.send_to != self.leader and not is_note:
                return post

    def _alternatives(self, post: Post) -> AlternativeBranches | None:
        return self.control.alternatives if kept_alternatives(post) else None

    def _answers(self, round_: Round, post: Post) -> list[Post]:
        if alternatives := self._alternatives(post):
            return [alternatives.carry_out(post)]
        role = self._role(post.send_to)
        try:
            with role.tracing.agent(role.alias):
                answers = role.replies(self.memory)
        except UnusableReply as error:
            self.memory.add_post(round_, _apology(error))
            raise
        return [self._reviewed(round_, role, answer) for answer in answers]

    def _reviewed(self, round_: Round, role: Player, answer: Post) -> Post:
        """Return an answer with its marks, or the one that ends a conversation in circles."""
        if answer.send_to == PLANNER and PLANNER not in self.roles:
            answer.send_to = USER  # a role may take it that a Planner is always there
        posts = [*round_.post_list, answer]
        said = round_.post_list if role.only_acknowledges else posts
        repeated = repetitions(said) if answer.send_to == self.leader else 0
        if repeated == self.stuck_after:
            answer.message += repetition_hint(answer)
        if repeated <= self.stuck_after:
            self._mark(role, answer)
            return answer
        self.memory.add_post(round_, answer)
        return self._give_up(posts)

    def _mark(self, role: Player, answer: Post) -> None:
        """Check an answer to the user, and name the numbers in it that stand in no outcome."""
        if answer.send_to != USER or self.answers is None or not role.answers_from_outcomes:
            return
        unsupported = self.answers.mark(answer)
        if unsupported:
            self.emitter.warn(unsupported_note(unsupported))

    def _role(self, alias: str) -> Player:
        try:
            return self.roles[alias]
        except KeyError:
            raise UnknownRole(alias, list(self.roles)) from None

    def _give_up(self, posts: list[Post]) -> Post:
        with self.emitter.post(self.leader) as proxy:
            proxy.update_send_to(USER)
            proxy.update_attachment("TaskFailure", AttachmentType.stop)
            proxy.update_message(stuck_summary(posts))
            return proxy.end()


def _apology(error: UnusableReply) -> Post:
    """Return the last post of a round that fails, for the user: the one before is for the model."""
    post = Post.create(f"The question was not answered: {error.problem}", error.role, USER)
    post.add_attachment(Attachment.create(AttachmentType.stop, "TaskFailure"))
    return post


def require_text(message: object) -> None:
    """Check that a message has a text; raises SessionError."""
    if not isinstance(message, str) or not message.strip():
        raise SessionError(f"A message must be text and not empty, not {message!r}.")
