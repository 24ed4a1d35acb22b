"""Summaries of old rounds: the message, the store, and when a pass is due.

A summary covers a set of round ids, never a position: a round that fails late or is left out of a
view shifts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from taskweaver.memory.round import Round
from taskweaver.memory.summary_texts import LEDGER_CHARS, notes_of, tokens_of, transcript_of
from taskweaver.memory.views import outcome_chars, with_short_outcomes
from taskweaver.utils.text import shorten


@dataclass(frozen=True, slots=True)
class CompactedMessage:
    """The summary of the rounds a role need not read in full any more.

    Attributes:
        start_index: Number of the first covered round, from 1.
        end_index: Number of the last covered round.
        summary: The text.
        last_round_id: Id of the last covered round; empty when only positions are known.
        round_ids: Ids of all covered rounds; empty when only positions are known.
    """

    start_index: int
    end_index: int
    summary: str
    last_round_id: str = ""
    round_ids: frozenset[str] = frozenset()

    def to_system_message(self) -> str:
        """Return the summary with a line that names the covered rounds."""
        return f"Summary of Rounds {self.start_index}-{self.end_index}:\n{self.summary}"

    def uncovered(self, rounds: Sequence[Round]) -> list[Round]:
        """Return the uncovered rounds of `rounds`."""
        if not self.round_ids:
            return list(rounds[self.end_index :])
        return [round_ for round_ in rounds if round_.id not in self.round_ids]


class SummaryStore(Protocol):
    """Stored summaries of one role's rounds."""

    def load(self, retain_recent: int, warn: Callable[[str], None]) -> CompactedMessage | None:
        """Return the stored summary that covers most rounds, if any is usable.

        Args:
            retain_recent: How many of the newest rounds are read in full.
            warn: Called with a sentence for each summary that cannot be used.
        """

    def save(self, summary: CompactedMessage) -> None:
        """Store a summary, which is safe when the call returns."""


class NoSummaries:
    """A `SummaryStore` that stores nothing."""

    def load(self, *_: object) -> None:
        """Return None."""
        return

    def save(self, *_: object) -> None:
        """Do nothing."""


@runtime_checkable
class CompactionProvider(Protocol):
    """Keeps a summary of the older rounds of one role.

    Attributes:
        rounds_getter: Returns the rounds the role sees now.
    """

    rounds_getter: Callable[[], list[Round]]

    def start(self) -> None:
        """Begin, or begin again after `stop`."""

    def stop(self) -> None:
        """End. The last summary stays."""

    def get_compaction(self) -> CompactedMessage | None:
        """Return the newest summary, at once."""

    def notify_rounds_changed(self) -> None:
        """Learn that a round began or ended. Must return quickly and never raise."""


PASS_CHARS = 60_000
SUMMARY_CHARS = 12_000
MAX_REST_ROUNDS = 16
_ROUNDS_SHARE = 0.4
"""Share of a window that rounds may fill before they are summarised."""

_PASS_SHARE, _PART_SHARE = 0.4, 0.15
"""Shares of a window for the rounds of one pass, and for each part of a summary."""

_CHARS = 3.0
"""Characters of a token, carefully."""


@dataclass(frozen=True, slots=True)
class CompactorConfig:
    """When rounds are summarised.

    Attributes:
        threshold: Rounds without summary that start one.
        retain_recent: Newest rounds that are never summarised.
        token_threshold: Estimated tokens in them that start one earlier; 0 for never.
        prompt_template_path: YAML file with `content` and perhaps `instructions`; None or empty
            for the packaged one.
        enabled: Whether anything is summarised at all.
    """

    threshold: int = 10
    retain_recent: int = 3
    token_threshold: int = 24_000
    prompt_template_path: str | Path | None = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Due:
    """Rounds that are due to be summarised, oldest first, at least one.

    `covered` is the summary so far, and `seen` the number of rounds there are, covered or not.
    """

    rounds: Sequence[Round]
    covered: CompactedMessage | None
    seen: int


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewriting of the summary so far: rounds to add, and their text for the model."""

    covered: CompactedMessage | None
    rounds: Sequence[Round]
    text: str

    @property
    def previous(self) -> str:
        """The model's part of the summary so far."""
        return notes_of(self.covered.summary) if self.covered else ""

    def problem_with(self, summary: str) -> str | None:
        """Return the problem of a summary, if any."""
        if not summary:
            return "it is empty"
        limit_chars = min(SUMMARY_CHARS, len(self.previous) + len(self.text))
        if len(summary) > limit_chars:
            return f"it has {len(summary):,} characters; over {limit_chars:,} nothing is gained"
        return None

    def result(self, summary: str) -> CompactedMessage:
        """Return the summary that replaces the one so far."""
        ids = frozenset(round_.id for round_ in self.rounds) | _ids(self.covered)
        return CompactedMessage(1, len(ids), summary, self.rounds[-1].id, ids)


class Schedule:
    """Decides when a pass is due. After a failure none is due before there are more rounds."""

    def __init__(self, config: CompactorConfig, window: Callable[[], int] = lambda: 0) -> None:
        """Follow limits.

        Args:
            config: The configured ones.
            window: Returns the tokens that the reader of the rounds takes; 0 for unknown.
        """
        self._config = config
        self._window = window
        self._tokens: dict[tuple[str, int], int] = {}
        self._failures = 0
        self._rest = range(0)

    def due(self, rounds: Sequence[Round], covered: CompactedMessage | None) -> Due | None:
        """Return the rounds that a pass should cover, if a pass is due.

        A summary so far that is of none of the role's rounds is disregarded.
        """
        due = self.due_now(rounds, covered, self._config.retain_recent)
        if due is None or len(rounds) in self._rest:
            return None
        uncovered = due.covered.uncovered(rounds) if due.covered is not None else rounds
        settled = uncovered[:-1] if rounds[-1].state == "created" else uncovered
        is_many = len(uncovered) >= self._config.threshold
        return due if is_many or self._is_long(settled, due.rounds) else None

    def due_now(
        self, rounds: Sequence[Round], covered: CompactedMessage | None, kept: int
    ) -> Due | None:
        """Return the rounds that a prompt has no room for, if any.

        Args:
            rounds: The rounds.
            covered: The summary so far.
            kept: Number of the newest rounds that stay; one still being answered always does.
        """
        uncovered = covered.uncovered(rounds) if covered is not None else list(rounds)
        if len(uncovered) == len(rounds):
            covered = None
        is_live = bool(rounds) and rounds[-1].state == "created"
        recent = {round_.id for round_ in rounds[max(len(rounds) - max(kept, int(is_live)), 0) :]}
        old = [round_ for round_ in uncovered if round_.id not in recent]
        return Due(old, covered, len(rounds)) if old else None

    @property
    def ledger_chars(self) -> int:
        """Most characters of the program's part of a summary."""
        return self._share(LEDGER_CHARS, _PART_SHARE)

    @property
    def notes_chars(self) -> int:
        """Most characters of the model's part of a summary."""
        return self._share(SUMMARY_CHARS, _PART_SHARE)

    def next_pass(self, due: Due) -> Pass:
        """Return a pass over as many of the oldest rounds as one call may read."""
        limit_chars = self._share(PASS_CHARS, _PASS_SHARE)
        # A model that failed may have too small a context: offer it less each time.
        limit_chars >>= min(self._failures, 3)
        texts: list[str] = []
        for number, round_ in enumerate(due.rounds, len(_ids(due.covered)) + 1):
            shown = with_short_outcomes(round_, outcome_chars(self._window()))
            text = shorten(transcript_of(shown, number), limit_chars)
            if texts and sum(map(len, texts)) + len(text) > limit_chars:
                break
            texts.append(text)
        return Pass(due.covered, due.rounds[: len(texts)], "\n\n".join(texts))

    def succeeded(self) -> None:
        """Forget earlier failures."""
        self._failures = 0

    def failed(self, due: Due) -> None:
        """Rest until there are more rounds, longer after each failure in a row."""
        self._failures += 1
        self._rest = range(due.seen, due.seen + min(2 ** (self._failures - 1), MAX_REST_ROUNDS))

    def _share(self, most: int, share: float) -> int:
        """Return a number of characters: a share of the window, and no more than `most`."""
        window = self._window()
        return min(most, int(window * share * _CHARS)) if window else most

    def _is_long(self, settled: Sequence[Round], old: Sequence[Round]) -> bool:
        """Return whether there is too much text, and a pass would free a good part of it."""
        limit = self._config.token_threshold
        if limit <= 0:
            return False
        window = self._window()
        limit = min(limit, int(window * _ROUNDS_SHARE)) if window else limit
        chars, known = outcome_chars(window), self._tokens
        self._tokens = {
            (r.id, chars): known.get((r.id, chars)) or tokens_of(r, chars) for r in settled
        }
        total, freed = sum(self._tokens.values()), sum(self._tokens[r.id, chars] for r in old)
        return total >= limit and freed * 4 >= limit


def _ids(summary: CompactedMessage | None) -> frozenset[str]:
    return summary.round_ids if summary is not None else frozenset()
