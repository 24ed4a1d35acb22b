"""The rounds that are open on the branches of a session: their consumption, and their end."""

from __future__ import annotations

from dataclasses import dataclass, field

from taskweaver.llm.api import LLMApi
from taskweaver.llm.types import Usage
from taskweaver.memory.round import Round
from taskweaver.session.branches.alternatives import AlternativeBranches
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.errors import RoundInterrupted
from taskweaver.session.limits import Spending


@dataclass(slots=True)
class _Work:
    """The work of a branch: its calls of models, and the alternatives of its open round.

    `before` is the consumption before the round; `host` the branch whose open round goes on here
    as one of its alternatives, empty for none.
    """

    models: LLMApi
    alternatives: AlternativeBranches
    before: Usage = field(default_factory=Usage)
    host: str = ""


class OpenRounds:
    """The rounds of branches that answer side by side.

    A round goes on on the branches of its alternatives: what they consume is of the round, and
    they end with it.
    """

    def __init__(self, session: LLMApi, spending: Spending) -> None:
        """Keep rounds within a session's limits; `session` has its whole consumption."""
        self._session = session
        self._spending = spending
        self._works: dict[str, _Work] = {}

    def add(self, name: str, models: LLMApi, alternatives: AlternativeBranches) -> None:
        """Add a branch that was opened."""
        self._works[name] = _Work(models, alternatives)

    def clear(self) -> None:
        """Forget all branches, as they are closed."""
        self._works.clear()

    def begin(self, name: str, round_id: str, host: str = "") -> None:
        """Begin a round of a branch, or go on with the one of its `host` as an alternative."""
        work = self._works[name]
        work.models.round_id, work.host = round_id, host
        work.before = work.models.usage

    def resume(self, name: str) -> None:
        """Allow calls of models again after an interrupt."""
        if name in self._works:
            self._works[name].models.resume()

    def is_interrupted(self, name: str) -> bool:
        """Return whether the work on a branch was interrupted."""
        return self._works[name].models.is_interrupted

    def usage(self, name: str) -> Usage:
        """Return the consumption of a branch's newest round so far."""
        work = self._works[name]
        parts = [self.usage(branch.name) for branch in work.alternatives.branches]
        return sum(parts, work.models.usage - work.before)

    def check(self, name: str) -> None:
        """Check, between the steps of a round, whether it may go on.

        Raises:
            RoundInterrupted: If it was interrupted.
            LimitReached: If the round or the session has reached its limit.
        """
        if host := self._works[name].host:
            self.check(host)
            return
        if self.is_interrupted(name):
            raise RoundInterrupted("interrupted")
        self._spending.check(self._session.usage, self.usage(name))

    def interrupt(self, name: str, *, is_at_work: bool) -> None:
        """Interrupt the calls of a branch, and its alternatives as a whole."""
        work = self._works[name]
        if is_at_work:
            work.models.interrupt()
        for branch in work.alternatives.branches:
            self.interrupt(branch.name, is_at_work=True)
            branch.interrupt()

    def alternatives(self, name: str) -> list[str]:
        """Return the branches on which the open round of a branch goes on."""
        names = [branch.name for branch in self._works[name].alternatives.branches]
        return [*names, *(below for each in names for below in self.alternatives(each))]

    def end(self, name: str, round_: Round) -> list[tuple[SessionBranch, Round]]:
        """End a round on the branches of its alternatives; return each with its copy of it."""
        ended: list[tuple[SessionBranch, Round]] = []
        for branch in self._works[name].alternatives.end(round_):
            own = branch.memory.conversation.rounds[-1]
            ended += [(branch, own), *self.end(branch.name, own)]
            self._works[branch.name].host = ""
            self.resume(branch.name)
        return ended
