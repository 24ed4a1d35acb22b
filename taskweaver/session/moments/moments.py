"""The moments of a session's branches, read from what is kept of them. Nothing that runs is asked.

Variables are those of the reports of cells and of the stored states, files those of the lists at
the ends of rounds, memory that of the branched memory at a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from taskweaver.ces.state.manifest import LostVariable, StateDamaged, StateManifest
from taskweaver.memory.reading.cells import ran_cells, ran_code, variables_of
from taskweaver.memory.round import Round
from taskweaver.session.branches.tree import BranchTree
from taskweaver.session.errors import UnknownRound
from taskweaver.session.moments.compare import MomentDifference, difference
from taskweaver.session.moments.moment import KeptState, Moment, MomentFile, MomentVariable
from taskweaver.session.moments.outline import Outline, outline
from taskweaver.session.states.restoring import names_in, newest_state
from taskweaver.session.states.round_states import RoundStates
from taskweaver.session.storage.facts import Facts
from taskweaver.session.storage.file_lists import Listed, listed_files
from taskweaver.utils.text import without_addresses


class Moments:
    """The moments of a session's branches."""

    def __init__(self, branches: BranchTree) -> None:
        self._branches = branches

    @property
    def _states(self) -> RoundStates:
        return self._branches.shared.states

    def at(self, branch: str, number: int | None = None) -> Moment:
        """Return a branch at the end of a round, or now.

        Args:
            branch: Its name.
            number: Number of the round, from 1; 0 is before the first, None is now.

        Raises:
            UnknownSessionBranch: If the branch does not exist.
            UnknownRound: If it sees no such round.
            SessionError: If its files cannot be read.
        """
        rounds = self.rounds(branch, number)
        handle = self._branches.files.store[branch]
        seq = None if number is None else self._branches.files.end_of(branch, number)
        core = handle.core.entries(at=seq)
        return Moment(
            branch,
            len(rounds),
            rounds,
            self.state(branch, rounds),
            {one.name: one for one in self._variables(branch, rounds)},
            self._files(branch, rounds, is_now=number is None),
            {key: entry.value for key, entry in core.items()},
            Facts("s", lambda _: handle).as_of(seq),
        )

    def diff(
        self, first: tuple[str, int | None], second: tuple[str, int | None]
    ) -> MomentDifference:
        """Return the differences of two moments, each a branch and a number; raises as `at`."""
        one, two = self.at(*first), self.at(*second)
        known = [{round_.id for round_ in moment.rounds} for moment in (one, two)]
        apart = [
            *(round_ for round_ in one.rounds if round_.id not in known[1]),
            *(round_ for round_ in two.rounds if round_.id not in known[0]),
        ]
        touched = touched_names(apart, *(self._manifest(m.branch, m.rounds) for m in (one, two)))
        is_now = first[1] is None and second[1] is None
        files = self._branches.files.differing_files(first[0], second[0]) if is_now else None
        return difference(one, two, touched, files)

    def outline(self) -> Outline:
        """Return all rounds of the session with forks and merges."""
        return outline(self._branches)

    def losses(self, branch: str, number: int | None = None) -> list[LostVariable]:
        """Return the variables that a fork at the end of a round, or now, would lack; as `at`.

        A fork of a process has all of them. One whose kernel starts from disk lacks those that are
        not stored, or may have changed since.
        """
        every = self.rounds(branch)
        rounds = every[: self._checked(branch, number, every)]
        client = self._branches.at(branch).kernel.taken
        is_newest = len(rounds) == len(every)
        has_process = is_newest and client is not None and client.has_state
        if has_process or self.state(branch, rounds) in {"live", "empty"}:
            return []
        folder, lineage = self._states.folder, self._branches.files.lineage(branch)
        why = "no state that has it is kept"
        try:
            stored = newest_state(rounds, lambda id_: folder.find(lineage, id_))
        except StateDamaged as error:
            stored, why = None, str(error)
        if not folder.is_trusted:
            stored, why = None, "its stored state was written by another installation"
        if stored is not None:
            return stored.lost
        return [LostVariable(name, "", why, "") for name in variables_of(rounds)]

    def rounds(self, branch: str, number: int | None = None) -> list[Round]:
        """Return the rounds that a branch sees, or saw then, oldest first; raises as `at`."""
        self._branches.files.require(branch)
        rounds = self._branches.at(branch).rounds()
        return rounds[: self._checked(branch, number, rounds)]

    @staticmethod
    def _checked(branch: str, number: int | None, rounds: Sequence[Round]) -> int:
        if number is None:
            return len(rounds)
        if not 0 <= number <= len(rounds):
            raise UnknownRound(f"There is no round {number} on {branch}; it has {len(rounds)}.")
        return number

    def state(self, branch: str, rounds: Sequence[Round]) -> KeptState:
        """Return how the variables at the end of some rounds of a branch are kept."""
        last = last_with_code(rounds)
        if last is None:
            return "empty"
        lineage, states = self._branches.files.lineage(branch), self._states
        if states.snapshots.get(lineage, last.id) is not None:
            return "live"
        return "none" if states.folder.path(lineage, last.id) is None else "stored"

    def _variables(self, branch: str, rounds: Sequence[Round]) -> list[MomentVariable]:
        before, now = variables_of(rounds[:-1]), variables_of(rounds)
        kept, earlier = (self._manifest(branch, seen) for seen in (rounds, rounds[:-1]))
        types = kept.types if kept else {}
        lost = {one.name: one.reason for one in kept.lost} if kept else {}
        contents = [one.contents if one else {} for one in (earlier, kept)]
        touched = touched_names(rounds[-1:], kept)
        found = []
        for name in sorted({*now, *types}):
            if name not in now and not _is_shown(name, types[name]):
                continue
            text, (old, new) = now.get(name, ""), (one.get(name, ()) for one in contents)
            is_other = name in touched and bool(old and new and old != new)
            is_new = _plain(text) != _plain(before.get(name)) if name in now else not old
            size = kept.sizes.get(name) if kept else None
            own = (types.get(name, ""), size, new, is_other or is_new, lost.get(name, ""))
            found.append(MomentVariable(name, text, *own))
        return found

    def _manifest(self, branch: str, rounds: Sequence[Round]) -> StateManifest | None:
        """Return the stored state at the end of some rounds; None where none can be read."""
        last, states = last_with_code(rounds), self._states
        if last is None or not states.folder.is_trusted:
            return None
        try:
            return states.folder.find(self._branches.files.lineage(branch), last.id)
        except StateDamaged:
            return None

    def _files(
        self, branch: str, rounds: Sequence[Round], *, is_now: bool
    ) -> dict[str, MomentFile] | None:
        with self._branches.files.open_working_folder(branch) as folder:
            present = listed_files(folder)
        listed = present if is_now else self._list(branch, rounds)
        if listed is None:
            return None
        before = self._list(branch, rounds if is_now else rounds[:-1]) or {}
        return {
            path: MomentFile(path, *facts, before.get(path) != facts, _now(present, path, facts))
            for path, facts in listed.items()
        }

    def _list(self, branch: str, rounds: Sequence[Round]) -> Listed | None:
        if not rounds:
            return {}
        return self._branches.files.lists.find(self._branches.files.lineage(branch), rounds[-1].id)


def _plain(text: str | None) -> str | None:
    return None if text is None else without_addresses(text)


def touched_names(rounds: Sequence[Round], *states: StateManifest | None) -> set[str]:
    """Return the names of variables that rounds may have changed in place.

    The same value may be stored as other bytes once it came back from disk, so bytes that differ
    say nothing about a variable that no code names.
    """
    found = {name for cell in ran_cells(rounds) for name in names_in(cell.code).mentioned}
    together = [names for state in states if state is not None for names in state.together]
    shared = [names for names in together if not found.isdisjoint(names)]
    return found.union(*shared)


def last_with_code(rounds: Sequence[Round]) -> Round | None:
    """Return the last round in which code ran."""
    return next((round_ for round_ in reversed(rounds) if ran_code(round_)), None)


def _now(present: Listed, path: str, facts: tuple[int, int]) -> Literal["same", "changed", "gone"]:
    if path not in present:
        return "gone"
    return "same" if present[path] == facts else "changed"


_UNSHOWN = {"module", "function", "type", "builtin_function_or_method"}


def _is_shown(name: str, kind: str) -> bool:
    """Return whether a stored variable is one that reports of cells show."""
    return not name.startswith("_") and kind not in _UNSHOWN
