"""A session as it was at the ends of its rounds, read from its files: no process is asked.

Variables are those of the reports of cells and of the stored states, files those of the lists at
the ends of rounds, memory that of the branched memory at a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from taskweaver.ces.state_folder import LostVariable, StateDamaged, StateManifest
from taskweaver.memory.branch_log import failed_rounds
from taskweaver.memory.cells import last_with_code, ran_cells, variables_of
from taskweaver.memory.round import Round
from taskweaver.session.branches.tree import BranchTree
from taskweaver.session.errors import UnknownRound
from taskweaver.session.restoring import names_in, newest_state
from taskweaver.session.round_states import RoundStates
from taskweaver.session.storage.compare import (
    OTHER,
    Pair,
    differing_keys,
    differing_sizes,
    differing_variables,
    rounds_apart,
)
from taskweaver.session.storage.facts import Facts, KeptFact
from taskweaver.session.storage.file_lists import Listed, listed_files
from taskweaver.utils.text import without_addresses

KeptState = Literal["live", "stored", "none", "empty"]
_UNSHOWN = {"module", "function", "type", "builtin_function_or_method"}


@dataclass(frozen=True, slots=True)
class MomentVariable:
    """A variable at a moment.

    Attributes:
        name: Its name.
        text: Its text, as the report of the last cell shows it; empty where it shows none.
        type: Its type; empty where it is not known.
        size: Its size in bytes as it is stored; None where it is not.
        content: What equals that of another moment if and only if the value is the same; empty
            where it is not stored.
        is_changed: Whether the round made or changed it.
        lost: Reason why a stored state does not hold it; empty if it does.
    """

    name: str
    text: str
    type: str
    size: int | None
    content: tuple[str, ...]
    is_changed: bool
    lost: str


@dataclass(frozen=True, slots=True)
class MomentFile:
    """A file of the working directory at a moment.

    Attributes:
        path: Its path.
        size: Its size in bytes.
        changed_at: Time of its last change, in nanoseconds since 1970.
        is_changed: Whether it was made or changed since the round before.
        now: Whether its content can still be read: the ``same``, ``changed`` since, or ``gone``.
    """

    path: str
    size: int
    changed_at: int
    is_changed: bool
    now: Literal["same", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A branch at a moment.

    Attributes:
        branch: Name of the branch.
        number: Number of the round at whose end it is, from 1; 0 before the first.
        rounds: The rounds that it sees, oldest first.
        state: How its variables are kept: ``live`` in a sleeping process, ``stored`` on disk,
            ``none`` any more, or ``empty`` where no code had run.
        variables: Its variables, by name.
        files: Its files by path; None where their list was not kept.
        core: Core memory.
        facts: Facts of the branch, the newest first.
    """

    branch: str
    number: int
    rounds: Sequence[Round]
    state: KeptState
    variables: Mapping[str, MomentVariable]
    files: Mapping[str, MomentFile] | None
    core: Mapping[str, str]
    facts: Sequence[KeptFact]


@dataclass(frozen=True, slots=True)
class MomentDifference:
    """Differences of two moments.

    Attributes:
        rounds: Messages of the user that only the first sees, and that only the second sees.
        common_rounds: Number of rounds that both see.
        variables: Variables that differ: their texts; None is none.
        equal_variables: Number of those that are equal.
        files: Files that differ: their sizes as text; None is none.
        equal_files: Number of those that are equal; None where a list was not kept.
        core: Keys of core memory that differ: their values; None is none.
        equal_core: Number of those that are equal.
        facts: Facts of the branch that only the first sees, and that only the second sees.
        equal_facts: Number of those that both see.
    """

    rounds: tuple[list[str], list[str]]
    common_rounds: int
    variables: Mapping[str, Pair]
    equal_variables: int
    files: Mapping[str, Pair]
    equal_files: int | None
    core: Mapping[str, Pair]
    equal_core: int
    facts: tuple[list[KeptFact], list[KeptFact]]
    equal_facts: int


def difference(
    first: Moment,
    second: Moment,
    touched: set[str],
    present_files: Mapping[str, Pair] | None = None,
) -> MomentDifference:
    """Return the differences of two moments of a session.

    Args:
        first: A moment.
        second: Another one.
        touched: Variables that the rounds which only one of them sees may have changed in place.
        present_files: Files that differ, where both are the present, with their content compared.
    """
    variables = _differing_variables(first, second, touched)
    cores = first.core, second.core
    core = {key: (cores[0].get(key), cores[1].get(key)) for key in differing_keys(*cores)}
    files, equal_files = _differing_files(first, second, present_files)
    texts = [{fact.text: fact for fact in moment.facts} for moment in (first, second)]
    return MomentDifference(
        rounds_apart(first.rounds, second.rounds),
        len({one.id for one in first.rounds} & {one.id for one in second.rounds}),
        variables,
        len((first.variables.keys() & second.variables.keys()) - variables.keys()),
        files,
        equal_files,
        core,
        len((cores[0].keys() & cores[1].keys()) - core.keys()),
        (_only(texts[0], texts[1]), _only(texts[1], texts[0])),
        len(texts[0].keys() & texts[1].keys()),
    )


def _differing_variables(first: Moment, second: Moment, touched: set[str]) -> dict[str, Pair]:
    texts = [
        {name: one.text or one.type for name, one in moment.variables.items()}
        for moment in (first, second)
    ]
    found = differing_variables(*texts)
    for name in first.variables.keys() & second.variables.keys() & touched - found.keys():
        one, two = first.variables[name], second.variables[name]
        if one.content and two.content and one.content != two.content:
            found[name] = texts[0][name], f"{texts[1][name]} ({OTHER})"
    return found


def _differing_files(
    first: Moment, second: Moment, present: Mapping[str, Pair] | None
) -> tuple[Mapping[str, Pair], int | None]:
    if first.files is None or second.files is None:
        return {}, None
    if present is None:
        sides = [
            {path: (one.size, one.changed_at) for path, one in files.items()}
            for files in (first.files, second.files)
        ]
        present = differing_sizes(*sides)
    return present, len((first.files.keys() & second.files.keys()) - present.keys())


def _only(first: Mapping[str, KeptFact], second: Mapping[str, KeptFact]) -> list[KeptFact]:
    return [fact for text, fact in first.items() if text not in second]


@dataclass(frozen=True, slots=True)
class OutlineRound:
    """A round, on the branch that it was asked on.

    Attributes:
        round: The round, maybe without its posts.
        branch: Name of the branch.
        number: Its position on its path, from 1.
        has_failed: Whether it failed, or is code of the user whose cell failed.
        forks: Branches that were forked at its end.
    """

    round: Round
    branch: str
    number: int
    has_failed: bool = False
    forks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutlineMerge:
    """A merge of the memory of `source` into a branch, after its round of a number, 0 for none."""

    branch: str
    number: int
    source: str


@dataclass(frozen=True, slots=True)
class Outline:
    """All rounds of a session, each once, parents before children, and the merges, oldest first."""

    rounds: list[OutlineRound]
    merges: list[OutlineMerge]


def _merges(branches: BranchTree) -> list[OutlineMerge]:
    store = branches.files.store
    notes = store.merges()
    ends = {
        name: [stored.end_seq for stored in store.turns.load(name, with_posts=False)]
        for name in {note.target for note in notes}
    }
    return [
        OutlineMerge(note.target, sum(0 < end < note.seq for end in ends[note.target]), note.source)
        for note in notes
    ]


@dataclass
class Moments:
    """The moments of a session's branches."""

    _branches: BranchTree

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
        """Return the differences of two moments, each a branch and a number. Raises as `at`."""
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
        """Return all rounds of the session with forks and merges.

        Of branches that are not open, posts of code alone are read. A fork is named at the last
        round that it shares with its parent.
        """
        shown: dict[str, OutlineRound] = {}
        for info in self._branches.files.branches():
            shared = 0
            rounds = self._branches.at(info.name).rounds(with_posts=False)
            for number, round_ in enumerate(rounds, 1):
                if round_.id in shown:
                    shared = number
                else:
                    shown[round_.id] = OutlineRound(round_, info.name, number)
            if info.parent is not None and shared:
                shown[rounds[shared - 1].id].forks.append(info.name)
        failed = failed_rounds(self._branches.files.store, [one.round for one in shown.values()])
        marked = [replace(one, has_failed=one.round.id in failed) for one in shown.values()]
        return Outline(marked, _merges(self._branches))

    def losses(self, branch: str, number: int | None = None) -> list[LostVariable]:
        """Return the variables that a fork at the end of a round, or now, lacks. Raises as `at`.

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
        """Return the rounds that a branch sees, or saw then, oldest first. Raises as `at`."""
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
            if name not in now and (name.startswith("_") or types[name] in _UNSHOWN):
                continue  # reports of cells do not show it
            text, (old, new) = now.get(name, ""), (one.get(name, ()) for one in contents)
            is_other = name in touched and bool(old and new and old != new)
            is_new = _plain(text) != _plain(before.get(name)) if name in now else not old
            size = kept.sizes.get(name) if kept else None
            own = (types.get(name, ""), size, new, is_other or is_new, lost.get(name, ""))
            found.append(MomentVariable(name, text, *own))
        return found

    def _manifest(self, branch: str, rounds: Sequence[Round]) -> StateManifest | None:
        """Return the stored state at the end of some rounds, None where none can be read."""
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
        now: dict[bool, Literal["same", "changed"]] = {True: "same", False: "changed"}
        return {
            path: MomentFile(
                path,
                *facts,
                is_changed=before.get(path) != facts,
                now=now[present[path] == facts] if path in present else "gone",
            )
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
