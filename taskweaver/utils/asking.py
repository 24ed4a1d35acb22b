"""The asking loop: ask, read the reply, feed the problem back, and ask again, bounded.

Every exchange with a model in the package is an `Asking`; `taskweaver.role.asking` has those of
roles, whose feedback is a post, and `taskweaver.treesearch.agent.node_agent` those of a search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from taskweaver.errors import TaskWeaverError

Reply = TypeVar("Reply")
Answer = TypeVar("Answer")


class Asking(ABC, Generic[Reply, Answer]):
    """A question to a model, until a reply can be used.

    Attributes:
        attempts: Most replies that may be unusable; the last one ends the question.
        failed: Number of unusable replies so far.
        refusals: Errors of `read` that make a reply unusable; others are passed on.
    """

    attempts: int = 3
    failed: int = 0
    refusals: tuple[type[Exception], ...] = (TaskWeaverError, ValueError)

    @abstractmethod
    def call(self) -> Reply:
        """Compose the prompt, and return the model's reply."""

    @abstractmethod
    def read(self, reply: Reply) -> Answer | None:
        """Return the answer of a valid reply, or None to continue with a reply that asks for more.

        Raises:
            Exception: One of `refusals`, with the problem of the reply as its text.
        """

    @abstractmethod
    def feed_back(self, error: Exception, reply: Reply) -> Answer | None:
        """Add the problem of a reply to the next prompt.

        Returns:
            None to ask again at once; the answer of `ask` where the caller asks again.
        """

    def give_up(self, error: Exception, reply: Reply) -> Answer:  # noqa: ARG002 - for subclasses
        """Return the answer after the last attempt. The base class raises the last problem."""
        raise error

    def ask(self) -> Answer:
        """Return the answer.

        Raises:
            Exception: That of `call`, or of `give_up` after the last attempt.
        """
        while True:
            reply = self.call()
            try:
                answer = self.read(reply)
            except self.refusals as error:
                self.failed += 1
                end = self.give_up if self.failed >= self.attempts else self.feed_back
                answer = end(error, reply)
            if answer is not None:
                return answer
