"""One round: the loop that carries posts between roles until the user is answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.errors import UnknownRole, UnusableReply
from taskweaver.role.role import Role
from taskweaver.session.answers.check import AnswerCheck, unsupported_note
from taskweaver.session.branches.stuck import repetition_hint, repetitions, stuck_summary
from taskweaver.session.errors import RoundLimit

USER = "User"
PLANNER = "Planner"


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
        check: Called before each role's answer; raises when the round must end.
        answers: Checks the leader's answer to the user; None for no check.
    """

    memory: Memory
    roles: Mapping[str, Role]
    leader: str
    emitter: SessionEventEmitter
    max_posts: int
    stuck_after: int
    check: Callable[[], None]
    answers: AnswerCheck | None = None

    def play(self, round_: Round) -> Post:
        """Carry posts between roles until one is for the user; return that one.

        Raises:
            RoundLimit: If the roles do not come to an end.
            UnknownRole: If a post is for a role that does not take part.
            TaskWeaverError: If a role cannot answer, or `check` forbids it.
        """
        waiting = deque([Post.create(round_.user_query, USER, self.leader)])
        for _ in range(self.max_posts):
            post = self._next(round_, waiting)
            if post.send_to == USER:
                return post
            self.check()
            waiting.extendleft(reversed(self._answers(round_, post)))
        raise RoundLimit(
            f"The roles exchanged {self.max_posts} messages without an answer. Ask for less at"
            " once, or raise session.max_internal_chat_round_num."
        )

    def _next(self, round_: Round, waiting: deque[Post]) -> Post:
        """Store the next post, and further ones that are collected before a role is asked.

        The leader reads all answers to its orders at once, and a role all its notes to itself of
        one reply.
        """
        while True:
            post = waiting.popleft()
            self.memory.add_post(round_, post)
            if not waiting:
                return post
            is_note = post.send_from == post.send_to == waiting[0].send_from
            if post.send_to != self.leader and not is_note:
                return post

    def _answers(self, round_: Round, post: Post) -> list[Post]:
        role = self._role(post.send_to)
        try:
            with role.tracing.agent(role.alias):
                answers = role.replies(self.memory)
        except UnusableReply as error:
            self.memory.add_post(round_, _apology(error))
            raise
        return [self._reviewed(round_, role, answer) for answer in answers]

    def _reviewed(self, round_: Round, role: Role, answer: Post) -> Post:
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

    def _mark(self, role: Role, answer: Post) -> None:
        """Check an answer to the user, and name the numbers in it that stand in no outcome."""
        if answer.send_to != USER or self.answers is None or not role.answers_from_outcomes:
            return
        unsupported = self.answers.mark(answer)
        if unsupported:
            self.emitter.warn(unsupported_note(unsupported))

    def _role(self, alias: str) -> Role:
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
