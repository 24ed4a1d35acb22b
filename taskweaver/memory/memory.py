"""The memory of a session: the conversation, and the view of each role.

All writes go through `Memory.create_round`, `Memory.add_post` and `Memory.end_round`. One lock
guards the conversation and the views; it is never held while a compaction provider is called,
because a provider asks for views from its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from taskweaver.memory.cells import has_orders
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.experience import save_raw_experience
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.memory.summaries import (
    CompactedMessage,
    CompactionProvider,
    NoSummaries,
    SummaryStore,
)
from taskweaver.memory.type_vars import RoleName, RoundState, SharedMemoryEntryType
from taskweaver.memory.views import EVERY_ROLE, RoleView, SharedEntries


class ConversationLog(Protocol):
    """Keeps the changes of a `Memory`. Each call returns when the change is safe."""

    def round_started(self, round_: Round) -> None:
        """Keep a new round."""

    def post_added(self, round_: Round, post: Post) -> None:
        """Keep a complete post."""

    def round_ended(self, round_: Round) -> None:
        """Keep how a round ended."""

    def summaries(self, role: str) -> SummaryStore:
        """Return the store of the summaries of a role's rounds."""


class NoLog:
    """Keeps nothing: the conversation lives in memory alone."""

    def round_started(self, round_: Round) -> None:
        """Do nothing."""

    def post_added(self, round_: Round, post: Post) -> None:
        """Do nothing."""

    def round_ended(self, round_: Round) -> None:
        """Do nothing."""

    def summaries(self, role: str) -> SummaryStore:  # noqa: ARG002 - as `ConversationLog`
        """Return a store that stores nothing."""
        return NoSummaries()


class Memory:
    """One conversation, written by a session and read by the roles, from any thread.

    Attributes:
        session_id: Names the session; part of the name of a saved experience.
        conversation: The conversation so far.
    """

    def __init__(
        self,
        session_id: str,
        log: ConversationLog | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        """Begin a conversation, or go on with one, which the log has already.

        It is written to the log while it happens; None keeps it in memory alone.
        """
        self.session_id = session_id
        self.conversation = conversation or Conversation.init()
        self._log: ConversationLog = log or NoLog()
        self._lock = threading.Lock()
        self._views: dict[RoleName, RoleView] = {}
        self._shared = SharedEntries()
        self._providers: dict[RoleName, CompactionProvider] = {}
        self._shared_provider: CompactionProvider | None = None

    def create_round(self, user_query: str) -> Round:
        """Begin a round with the request of the user."""
        round_ = Round.create(user_query)
        with self._lock:
            self._log.round_started(round_)
            self.conversation.add_round(round_)
        self._notify()
        return round_

    def add_post(self, round_: Round, post: Post) -> None:
        """Append a complete post, which stays unchanged from now on, since views share posts."""
        with self._lock:
            self._log.post_added(round_, post)
            round_.add_post(post)

    def end_round(self, round_: Round, state: RoundState) -> None:
        """Set how a round ended.

        Raises:
            ValueError: If `state` is not a `RoundState`.
        """
        with self._lock:
            round_.change_round_state(state)
            self._log.round_ended(round_)
        self._notify()

    def get_role_rounds(
        self,
        role: RoleName,
        include_failure_rounds: bool = False,  # noqa: FBT001, FBT002 - kept signature
    ) -> list[Round]:
        """Return the rounds in view of `role`.

        Each holds the posts the role wrote or received; a round without any is kept, empty. Text
        between temporal delimiters is left out of all but the last round, the delimiters are left
        out everywhere. The rounds are new objects and their lists may be changed; the posts are
        shared and may not.
        """
        with self._lock:
            view = self._views.setdefault(role, RoleView(role))
            rounds = list(self.conversation.rounds)
            return view.rounds(rounds, include_failure_rounds=include_failure_rounds)

    def get_lasting_rounds(self, role: RoleName = EVERY_ROLE) -> list[Round]:
        """Return the rounds in the later view of `role`, for a summary.

        As `get_role_rounds`, but without the text between temporal delimiters in any round, and
        with failed rounds in which work was ordered; by default with the posts of all roles.
        """
        with self._lock:
            view = self._views.setdefault(role, RoleView(role))
            return view.rounds(list(self.conversation.rounds), is_lasting=True)

    def get_role_rounds_with_compaction(
        self,
        role: RoleName,
        include_failure_rounds: bool = False,  # noqa: FBT001, FBT002 - kept signature
    ) -> tuple[list[Round], CompactedMessage | None]:
        """Return the rounds `role` has to read in full, and the summary of the rest.

        Returns:
            The rounds no summary covers, and the summary; all rounds and None as long as there
            is no summary, or when it is of none of them.
        """
        provider = self._providers.get(role)
        # The summary is taken first: it can then cover only rounds the view already knows.
        summary = provider.get_compaction() if provider is not None else None
        rounds = self.get_role_rounds(role, include_failure_rounds)
        if summary is None:
            return rounds, None
        uncovered = summary.uncovered(rounds)
        return uncovered, summary if len(uncovered) < len(rounds) else None

    def get_prompt_rounds(self, role: RoleName) -> tuple[list[Round], CompactedMessage | None]:
        """Return the rounds that a prompt of `role` shows, and the summary of the rest.

        As `get_role_rounds_with_compaction`, with those failed rounds after the summary in which
        work was ordered: files and variables may have changed.
        """
        rounds, summary = self.get_role_rounds_with_compaction(role)
        failed = {r.id for r in self.conversation.rounds if r.state == "failed" and has_orders(r)}
        if summary is not None:
            failed -= summary.round_ids
        if not failed:
            return rounds, summary
        shown, found = {round_.id: round_ for round_ in rounds}, []
        for round_ in self.get_role_rounds(role, include_failure_rounds=True):
            if round_.id in failed:
                found.append(round_)
            elif round_.state != "failed":
                if round_.id not in shown:
                    found.clear()  # a summary covers the rounds so far
                    continue
                found.append(shown[round_.id])
        return found, summary

    def register_compaction_provider(
        self,
        role: RoleName,
        provider: CompactionProvider,
        rounds_getter: Callable[[], list[Round]] | None = None,
    ) -> None:
        """Let `provider` summarise the rounds of `role`. The first one registered stays.

        It is called from now on when rounds begin and end; `rounds_getter` replaces its own.
        """
        if self._providers.setdefault(role, provider) is not provider:
            return
        if rounds_getter is not None:
            provider.rounds_getter = rounds_getter
        provider.notify_rounds_changed()

    def shared_provider(self, make: Callable[[], CompactionProvider]) -> CompactionProvider:
        """Return the one compaction provider of all roles, made on first use."""
        if self._shared_provider is None:
            self._shared_provider = make()
        return self._shared_provider

    def summaries(self, role: RoleName = EVERY_ROLE) -> SummaryStore:
        """Return the store of summaries of rounds, by default for all roles."""
        return self._log.summaries(role)

    def get_shared_memory_entries(
        self, entry_type: SharedMemoryEntryType
    ) -> list[SharedMemoryEntry]:
        """Return the entries of one type that hold now: the latest of each sender, oldest first.

        Entries of scope ``round`` hold in the last round only; those of failed rounds never.
        """
        with self._lock:
            return self._shared.effective(list(self.conversation.rounds), entry_type)

    def save_experience(
        self,
        exp_dir: str | Path,
        thin_mode: bool = True,  # noqa: FBT001, FBT002 - kept signature
    ) -> Path:
        """Write ``raw_exp_<session_id>.yaml`` and return the path (see `save_raw_experience`).

        Raises:
            ConversationError: If it cannot be written.
        """
        with self._lock:
            conversation = replace(self.conversation, rounds=list(self.conversation.rounds))
        return save_raw_experience(conversation, self.session_id, exp_dir, thin_mode=thin_mode)

    def from_yaml(self, session_id: str, path: str | Path) -> Memory:
        """Take the conversation from a file, in place of the present one, and return this memory.

        Raises:
            ConversationError: If the file does not hold a conversation.
        """
        conversation = Conversation.from_yaml(path)
        with self._lock:
            self.session_id = session_id
            self.conversation = conversation
        self._notify()
        return self

    def _notify(self) -> None:
        providers = {id(provider): provider for provider in list(self._providers.values())}
        for provider in providers.values():
            provider.notify_rounds_changed()
