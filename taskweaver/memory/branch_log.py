"""A conversation, with the summaries, on a branch of a memory file.

`Memory` knows no rows, and the branched memory knows no posts: the two meet here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from taskweaver.memory.branched.conversation import Extent, RoundRow
from taskweaver.memory.branched.errors import BranchedMemoryError, InvalidUpdate, StoreCorrupt
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries import SUMMARY_CHARS, CompactedMessage
from taskweaver.memory.summary_texts import LEDGER_CHARS
from taskweaver.memory.type_vars import RoundState
from taskweaver.memory.utils import encodable

_ROUND_EVENT_CHARS = 600
_TORN: RoundState = "failed"


@dataclass
class BranchLog:
    """The conversation of one branch."""

    _store: BranchedMemory
    branch_id: str
    _seqs: dict[str, int] = field(default_factory=dict)

    def resume(self, open_round: str = "") -> Conversation:
        """Return the conversation of the branch, to be continued.

        A round that was torn is ended as failed, but for the one with the id `open_round`, which
        goes on.

        Raises:
            UnknownBranch: If the branch does not exist.
            StoreCorrupt: If a row cannot be read.
        """
        conversation = Conversation.init()
        for stored in self._store.turns.load(self.branch_id):
            self._seqs[stored.id] = stored.seq
            is_open = stored.id == open_round
            if not stored.state and not is_open:
                self._store.turns.end_round(self.branch_id, stored.seq, _TORN)
            conversation.add_round(_round(stored, is_open=is_open))
        return conversation

    def rounds(self, *, with_posts: bool = True) -> list[Round]:
        """Return the conversation of the branch so far. Nothing is written.

        Without posts they are read fast, however long the conversation is.

        Raises:
            UnknownBranch: If the branch does not exist.
            StoreCorrupt: If a row cannot be read.
        """
        stored = self._store.turns.load(self.branch_id, with_posts=with_posts)
        return [_round(one) for one in stored]

    def newest(self) -> Round | None:
        """Return the newest round of the branch, if any; the posts of others are not read.

        Raises:
            UnknownBranch, StoreCorrupt: As `rounds`.
        """
        for stored in self._store.turns.load(self.branch_id, with_posts=False)[-1:]:
            stored.posts = self._store.turns.posts_of([stored.id])[stored.id]
            return _round(stored)
        return None

    def round_started(self, round_: Round) -> None:
        """Write a new round."""
        query = encodable(round_.user_query)
        self._seqs[round_.id] = self._store.turns.start_round(self.branch_id, round_.id, query)

    def post_added(self, round_: Round, post: Post) -> None:
        """Write a complete post."""
        body = json.dumps(encodable(post.to_dict()), ensure_ascii=False, separators=(",", ":"))
        self._store.turns.add_post(self.branch_id, self._seqs[round_.id], body)

    def round_ended(self, round_: Round) -> None:
        """Write how a round ended. A finished one becomes an event of the branch too."""
        self._store.turns.end_round(self.branch_id, self._seqs[round_.id], round_.state)
        if round_.state != "finished" or not round_.post_list:
            return
        said = f"{round_.question}\n-> {round_.post_list[-1].message}"
        text = encodable(said).replace("\0", "")[:_ROUND_EVENT_CHARS]
        event = {"kind": "round", "summary": text, "round_id": round_.id}
        self._store[self.branch_id].append(event)

    def summaries(self, role: str) -> BranchSummaries:
        """Return the stored summaries of a role's rounds."""
        return BranchSummaries(self._store, self.branch_id, role)


def failed_rounds(store: BranchedMemory, rounds: Sequence[Round]) -> set[str]:
    """Return the ids of rounds that failed, or are code of the user whose cell failed.

    The rounds may lack their posts, which are read for code alone.

    Raises:
        StoreCorrupt: If a row cannot be read.
    """
    unread = {one.id: one for one in rounds if one.is_code and not one.post_list}
    posts = store.turns.posts_of(unread) if unread else {}
    whole = [
        _round(RoundRow(0, one.id, one.user_query, posts[one.id], one.state))
        if one.id in unread
        else one
        for one in rounds
    ]
    return {one.id for one in whole if one.has_failed}


def newest_failed(store: BranchedMemory) -> bool:
    """Return whether the newest round of all branches failed, as `failed_rounds` says.

    Raises:
        StoreCorrupt: If a row cannot be read.
    """
    newest = store.turns.newest()
    if newest is None or not newest.state:
        return False
    return bool(failed_rounds(store, [_round(newest)]))


def _round(stored: RoundRow, *, is_open: bool = False) -> Round:
    try:
        data = {
            "id": stored.id,
            "user_query": stored.user_query,
            "state": stored.state or ("created" if is_open else _TORN),
            "post_list": [json.loads(body) for body in stored.posts],
        }
        found = Round.from_dict(data)
        for post in found.post_list:
            require_texts(post)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreCorrupt(
            f"Round {stored.id:.40} cannot be read: {error!r:.200}. `taskweaver sessions repair`"
            " saves the others."
        ) from error
    return found


def require_texts(post: Post) -> None:
    """Raise unless the fields of a stored post are text.

    Raises:
        TypeError: If sender, receiver, message or id is anything else.
    """
    for name in ("id", "send_from", "send_to", "message"):
        value: object = getattr(post, name)
        if not isinstance(value, str):
            raise TypeError(f"{name} of a post is {type(value).__name__}, not text")


_UNREADABLE = (BranchedMemoryError, sqlite3.Error)
_NOT_COVERED = ("", "failed")
"""States of rounds no summary covers: still open or torn, and failed."""


@dataclass
class BranchSummaries:
    """A `SummaryStore` for one role on one branch."""

    _store: BranchedMemory
    _branch_id: str
    _role: str

    def load(self, retain_recent: int, warn: Callable[[str], None]) -> CompactedMessage | None:
        """Return the summary that covers most of the branch's rounds, if any.

        Args:
            retain_recent: How many of the newest rounds an ancestor's summary must leave out.
            warn: Called with a sentence for each summary that is damaged or does not fit.
        """
        try:
            rounds = self._coverable()
            extents = self._store.summaries.extents(self._branch_id, self._role)
        except _UNREADABLE as error:
            warn(f"stored summaries of old rounds are not used: {error}")
            return None
        for extent in extents:
            ends = (n for n, stored in enumerate(rounds, 1) if stored.seq == extent.up_to_seq)
            end = next(ends, None)
            covered = None if end is None else rounds[:end]
            left = len(rounds) - len(covered or rounds)
            if not extent.is_own and (covered is None or left < retain_recent):
                continue
            try:
                return self._message(covered, extent)
            except _UNREADABLE as error:
                warn(f"a stored summary of old rounds is not used: {error}")
        return None

    def save(self, summary: CompactedMessage) -> None:
        """Store a summary, which is on disk when the call returns.

        Raises:
            InvalidUpdate: If it does not cover the branch's first rounds, and only those.
            BranchedMemoryError: If it cannot be written.
        """
        rounds = self._coverable()[: len(summary.round_ids)]
        if not rounds or {stored.id for stored in rounds} != summary.round_ids:
            raise InvalidUpdate("summary", "covers other rounds than the oldest of this branch")
        text = encodable(summary.summary)
        self._store.summaries.add(
            self._branch_id, self._role, text, up_to_seq=rounds[-1].seq, count=len(rounds)
        )

    def _coverable(self) -> list[RoundRow]:
        stored = self._store.turns.load(self._branch_id, with_posts=False)
        return [round_ for round_ in stored if round_.state not in _NOT_COVERED]

    def _message(self, covered: Sequence[RoundRow] | None, extent: Extent) -> CompactedMessage:
        if covered is None or len(covered) != extent.count:
            raise InvalidUpdate(f"summary {extent.seq}", "does not fit the rounds of this branch")
        text = self._store.summaries.text(extent.seq).strip()
        if not 0 < len(text) <= SUMMARY_CHARS + LEDGER_CHARS:
            raise InvalidUpdate(f"summary {extent.seq}", f"has {len(text):,} characters")
        ids = frozenset(stored.id for stored in covered)
        return CompactedMessage(1, len(ids), text, covered[-1].id, ids)
