"""An open session of a user: messages that run and wait on its branches, within the quotas."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from taskweaver.ces.common import Shared
from taskweaver.errors import TaskWeaverError
from taskweaver.llm.types import Usage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.event_emitter import PostEventType, RoundEventType, TaskWeaverEvent
from taskweaver.server.accounts import Accounts
from taskweaver.server.admission import Admission, HeldShare, User, used_up
from taskweaver.server.agents.confirming import ClientConfirmations
from taskweaver.server.agents.index import AgentIndex, IndexedMessage
from taskweaver.server.agents.open_messages import OpenMessages, RoundEnds, WaitingMessages
from taskweaver.server.databases.statements import DatabaseLost, retry_while_lost
from taskweaver.server.errors import RequestRefused, ServerError, conflict, stopping
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.errors import SessionBusy, SessionClosed
from taskweaver.session.session import Session
from taskweaver.utils.redact import redact_known

T = TypeVar("T")

_MOST_WAITING = 16
_CUT = "The server stopped before this message was answered."
_PAID = "An admin may raise it."


@dataclass(frozen=True, slots=True)
class RoundWorkers:
    """Means by which messages are answered.

    Attributes:
        accounts: Accounts whose shares are spent.
        log: The log of failures.
    """

    accounts: Accounts
    log: TelemetryLogger

    @property
    def admission(self) -> Admission:
        """The shares of the users, and places for their work."""
        return self.accounts.admission

    def check_spending(self, user: User, more: Usage | None = None) -> None:
        """Check the money and the tokens of a user, with those of an open round.

        Raises:
            RequestRefused: If a quota is used up, or what calls cost is unknown.
        """
        quota, more = user.quota, more or Usage()
        if quota.cost is None and quota.tokens is None:
            return
        spent = self.accounts.spent(user.name)
        tokens, cost = spent.tokens + more.total_tokens, spent.cost + (more.cost or 0.0)
        if quota.tokens is not None and tokens >= quota.tokens:
            raise used_up(user, "tokens", f"{tokens:,}", f"{quota.tokens:,}", _PAID)
        if quota.cost is None:
            return
        if more.calls and more.cost is None:
            remedy = "Set llm.prompt_price and llm.completion_price."
            raise used_up(user, "cost", "an unknown part", f"{quota.cost:.4f}", remedy)
        if cost >= quota.cost:
            raise used_up(user, "cost", f"{cost:.4f}", f"{quota.cost:.4f}", _PAID)

    def log_failures(self, what: str, outcomes: Iterable[object]) -> None:
        """Log the errors among the outcomes of several steps that each had to be taken."""
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                self.log.error(f"{what}: {outcome!r}")

    def spend(self, user: User, usage: Usage, end: threading.Event) -> None:
        """Add to the spending of a user. Wait for a database that is away, until an event."""
        add = partial(self.accounts.spend, user.name, usage.cost or 0.0, usage.total_tokens)
        try:
            retry_while_lost(add, end, is_repeatable=False)
        except ServerError:  # the answer that was paid for is not lost
            self.log.exception(f"the spending of {user.name} may lack {usage.total_tokens} tokens")


@dataclass(slots=True, eq=False)
class _Watch:
    """Listener of the round that answers a message."""

    conversation: UserConversation
    message: IndexedMessage
    user: User
    error: str = ""
    refusal: str = ""
    has_begun: bool = False

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event."""
        conversation, message = self.conversation, self.message
        if event.t is RoundEventType.round_start:
            self.has_begun = True
            conversation.index.update(message.id, state="running", round_id=event.round_id or "")
            if conversation.is_stopped(message.id):
                conversation.branch(message.branch).interrupt()
        elif event.t is RoundEventType.round_error:
            self.error = event.msg
        elif event.t.name.startswith("post_confirmation"):
            conversation.index.note("confirmation_changed", message.session, branch=message.branch)
        elif event.t is PostEventType.post_end and not self.refusal:
            self._check()

    def _check(self) -> None:
        """End the round when a quota of the user is used up."""
        conversation = self.conversation
        branch = conversation.branch(self.message.branch)
        try:
            conversation.workers.check_spending(self.user, branch.usage_now)
        except DatabaseLost:
            return  # the next post checks again
        except RequestRefused as error:
            self.refusal = str(error)
            branch.interrupt()


class UserConversation:
    """An open session of a user, whose messages are answered in turn on each branch.

    Used in the event loop's thread, except for what a message's own thread calls.

    Attributes:
        session: The session.
        index: The index of the user's sessions.
        workers: Means by which messages are answered.
        confirmations: Requests for confirmation that wait.
        open_messages: Messages that are not answered yet.
        used_at: Time of the last use through the server, in seconds of the monotonic clock.
    """

    def __init__(
        self, session: Session, index: AgentIndex, workers: RoundWorkers, share: HeldShare
    ) -> None:
        """Answer the messages of a session, and take over a share of the user's until the end."""
        self.session = session
        self._share = share.pop_all()
        self.index = index
        self.workers = workers
        self.confirmations = ClientConfirmations(session.session_id)
        self.open_messages = OpenMessages()
        session.event_emitter.confirmation_handler = self.confirmations
        self._waiting = WaitingMessages(index, self.open_messages, workers.log)
        self._running: dict[str, str] = {}
        self._rounds = RoundEnds()
        session.event_emitter.register(self._rounds, is_first=True)
        self._stopped: set[str] = set()
        self._silent: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._releasing = asyncio.Lock()
        self._changes = 0
        self._end_of_waits = threading.Event()
        self._is_closed = False
        self.used_at = time.monotonic()

    def branch(self, name: str) -> SessionBranch:
        """Return a branch. Raises SessionError for a missing branch."""
        return self.session.at(name)

    @property
    def is_at_work(self) -> bool:
        """Whether a message runs or waits, or a branch is changed.

        Whoever saw the outcome of the last message finds the session idle.
        """
        return bool(self._running or self._waiting) or self._changes > 0

    def last_use(self) -> float:
        """Return the time of the last use, also by Jupyter clients of the kernels."""
        shared = [one for one in self.session.kernels.values() if isinstance(one, Shared)]
        return max([self.used_at, *(kernel.last_foreign_request for kernel in shared)])

    def state(self, branch: str) -> Literal["idle", "running", "asks"]:
        """Return the state of a branch: ``idle``, ``running``, or ``asks`` for confirmation."""
        if any(name == branch for name, _ in self.confirmations.waiting()):
            return "asks"
        has_messages = branch in self._running or self._waiting.count(branch) > 0
        is_at_work = has_messages or self.branch(branch).is_at_work
        return "running" if is_at_work else "idle"

    def is_stopped(self, message_id: str) -> bool:
        """Return whether a running message was stopped."""
        return message_id in self._stopped

    async def submit(self, user: User, message: IndexedMessage, share: HeldShare) -> IndexedMessage:
        """Accept a message of a new id, as `accept`, or give the message up.

        Its client is shown no requests for confirmation.
        """
        self._silent.add(message.id)
        try:
            return await self.accept(user, message, share)
        except BaseException:  # also cancelled before its turn to be accepted came
            self._silent.discard(message.id)
            await self.give_up(message.id)
            raise

    async def accept(self, user: User, message: IndexedMessage, share: HeldShare) -> IndexedMessage:
        """Accept a message, which is answered after the messages before.

        Its share of the user's is given back when it has ended.

        It is on disk then. A message that was accepted before is returned as it is now. One that is
        in the index, but waits nowhere since the database did not answer then, is accepted now.

        Raises:
            RequestRefused: If its id is that of another message, too many wait, or a quota is
                used up.
            SessionError: If the branch does not exist, or the session was closed.
        """
        self._changes += 1  # until `_accept` ends, the session is not closed as unused
        # In turn: the same message, sent twice at once, is found the second time.
        return await self.index.calls.in_turn(self._accept, user, message, share)

    async def _accept(
        self, user: User, message: IndexedMessage, share: HeldShare
    ) -> IndexedMessage:
        try:
            self.branch(message.branch)
            known = await self.index.calls.in_thread(self.index.message, message.id)
            if known is not None:
                known.require_same(message)
                is_open = known.id in self.open_messages
                if is_open or not self.index.is_queued_here(known):
                    return known
            await self._check_room(user, message.branch)
            self.open_messages.add(message.id, share.pop_all())
            try:
                add = self.index.add_message
                accepted = known if known else await self.index.calls.in_thread(add, message)
            except BaseException:
                self.open_messages.discard(message.id)
                raise
        finally:
            self._changes -= 1
            share.close()
        self._waiting.add(message)
        self.used_at = time.monotonic()
        if message.branch not in self._tasks:
            task = asyncio.ensure_future(self._work(user, message.branch))
            self._tasks[message.branch] = task
        return accepted

    async def _check_room(self, user: User, branch: str) -> None:
        if self.workers.admission.is_stopping:
            raise stopping()
        if self._is_closed:
            raise SessionClosed("The session was closed meanwhile. Send the message again.")
        if self._waiting.count(branch) >= _MOST_WAITING:
            detail = f"{_MOST_WAITING} messages wait on the branch {branch} already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=5)
        workers = self.workers
        await workers.accounts.calls.in_thread(workers.check_spending, user)

    async def withdraw(self, message_id: str) -> IndexedMessage:
        """Withdraw a message that waits.

        Raises:
            RequestRefused: If there is none, or it is being answered or was.
        """
        calls = self.index.calls
        is_withdrawn = await calls.in_turn(self._waiting.withdraw, message_id)
        found = await calls.in_thread(self.message, message_id)
        if is_withdrawn:
            return found
        raise conflict(f"Message {message_id} is {found.state}; only one that waits is withdrawn.")

    async def give_up(self, message_id: str) -> None:
        """Withdraw a message that waits or is being accepted, or stop the answer."""
        if not self._stop_answer(message_id):
            await self.index.calls.in_turn(self._give_up, message_id)

    async def _give_up(self, message_id: str) -> None:
        if not await self._waiting.withdraw(message_id):
            self._stop_answer(message_id)

    def _stop_answer(self, message_id: str) -> bool:
        branch = next((name for name, one in self._running.items() if one == message_id), None)
        return branch is not None and self.stop(branch)

    def message(self, message_id: str) -> IndexedMessage:
        """Return a message of this session.

        Raises:
            RequestRefused: If there is none of this id.
        """
        return self.index.message_of(self.session.session_id, message_id)

    def stop(self, branch: str) -> bool:
        """Interrupt what runs on a branch, and return whether something did.

        Raises:
            SessionError: If the branch does not exist.
        """
        running = self._running.get(branch)
        if running is not None:
            self._stopped.add(running)
        self.branch(branch).interrupt()
        self.confirmations.refuse(branch)
        return running is not None

    async def _work(self, user: User, branch: str) -> None:
        """Answer the messages of a branch, one after another."""
        try:
            while self._waiting.count(branch):
                async with self.workers.admission.place(user.name), self._turn(branch):
                    async with self._releasing:
                        pass  # its kernels end before they are used again
                    message = await self._waiting.take(branch)
                    if message is not None:  # the last one may have been withdrawn while it waited
                        await self._answer_next(user, message)
        except RequestRefused as refused:
            answer = _CUT if self.workers.admission.is_stopping else str(refused)
            # One more may be accepted while their ends are written.
            while self._waiting.count(branch):
                self._waiting.cut(answer, branch)
                await self._waiting.end_cut()
        finally:
            del self._tasks[branch]

    async def _answer_next(self, user: User, message: IndexedMessage) -> None:
        loop, threads = asyncio.get_running_loop(), self.workers.admission.threads
        self._rounds.over.discard(message.branch)
        self._running[message.branch] = message.id
        if message.id in self._silent:
            self.confirmations.silent.add(message.branch)
        try:
            await loop.run_in_executor(threads, self._answer, user, message)
        finally:
            self._running.pop(message.branch, None)
            self._stopped.discard(message.id)
            self._silent.discard(message.id)
            self.confirmations.silent.discard(message.branch)

    async def change(
        self, branch: str, work: Callable[[SessionBranch], T], *, waits: bool = False
    ) -> T:
        """Change a branch in a thread, between messages.

        Where a message is being answered on it, this `waits` for the answer, or is refused.

        Raises:
            SessionBusy: If a message is being answered on it, and this does not wait.
            SessionError: If the branch does not exist, or as `work` does.
        """
        changed = self.branch(branch)
        if not waits and branch in self._running and branch not in self._rounds.over:
            raise SessionBusy(f"A message is being answered on the branch {branch}; stop it first.")
        return await self.in_turn(branch, lambda: work(changed))

    async def in_turn(self, place: str, work: Callable[[], T]) -> T:
        """Work in a thread, after other work at a branch or `PAST`. Raises as `work` does."""
        self._changes += 1
        try:
            async with self._turn(place):
                async with self._releasing:
                    self.used_at = time.monotonic()
                return await asyncio.to_thread(work)
        finally:
            self._changes -= 1

    async def note(self, kind: str, **facts: object) -> None:
        """Note a change in the index."""
        await self.index.calls.change(self.index.note, kind, self.session.session_id, **facts)

    async def release(self, *, loses_none: bool = False) -> None:
        """End the processes of the session. Messages that come meanwhile wait.

        Raises:
            SessionBusy: If a branch is at work, or `loses_none` and the session must stay.
            SessionClosed: If the session was stopped.
        """
        async with self._releasing:
            if self.is_at_work:
                raise SessionBusy("A branch of this session is at work; stop it, or wait.")
            if loses_none and await asyncio.to_thread(self.session.must_stay):
                raise SessionBusy(
                    "This session has running processes, or variables that cannot be stored."
                )
            await asyncio.to_thread(self.session.release)

    def _turn(self, branch: str) -> asyncio.Lock:
        return self._turns.setdefault(branch, asyncio.Lock())

    def _answer(self, user: User, message: IndexedMessage) -> None:
        """Answer a message, in an own thread."""
        try:
            outcome = self._outcome(user, message)
        except TaskWeaverError as error:
            outcome = {"state": "failed", "answer": redact_known(str(error))}
        except Exception:
            self.workers.log.exception(f"message {message.id} failed")
            answer = "The server failed; its log has the details under the id of this message."
            outcome = {"state": "failed", "answer": answer}
        # First: who sees the outcome sees an idle branch, and a release that follows closes it.
        self._running.pop(message.branch, None)
        self.used_at = time.monotonic()
        try:
            retry_while_lost(partial(self.index.update, message.id, **outcome), self._end_of_waits)
        except ServerError:
            self.workers.log.exception(f"the outcome of message {message.id} is not written")
        self.open_messages.end(message.id)

    def _outcome(self, user: User, message: IndexedMessage) -> dict[str, Any]:
        """Play the round of a message, and return the fields of the outcome."""
        retry_while_lost(lambda: self.workers.check_spending(user), self._end_of_waits)
        branch, watch = self.branch(message.branch), _Watch(self, message, user)
        play = branch.run_code if message.kind == "code" else branch.send_message
        try:
            round_ = play(message.text, watch)
        finally:
            usage = branch.round_usage if watch.has_begun else Usage()
            self.workers.spend(user, usage, self._end_of_waits)
        said = round_.post_list[-1].message if round_.post_list else ""
        refused = self.confirmations.refused.pop(message.branch, "")
        if refused not in said:  # the model may have left it out
            said = f"{said}\n\nNot run: {refused}"
        state = "finished" if round_.state == "finished" else "failed"
        return {
            "state": "stopped" if self.is_stopped(message.id) else state,
            "round_id": round_.id,
            "answer": redact_known(watch.refusal or watch.error or said),
            "tokens": usage.total_tokens,
            "cost": usage.cost,
        }

    async def settle(self) -> None:
        """Wait until no message runs."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def interrupt(self) -> None:
        """End what runs on all branches soon, and what waits."""
        self._end_of_waits.set()
        self._waiting.cut(_CUT)
        for branch in list(self._running):
            self.stop(branch)
        self.confirmations.close()
        await self._waiting.end_cut()

    async def close(self) -> None:
        """End the messages, then the session."""
        self._is_closed = True
        self._share.close()
        await self.index.calls.settle()  # a message that was being accepted waits now
        await self.interrupt()
        await asyncio.to_thread(self.session.stop)
        await self.settle()
