"""The outline of a session: its rounds, where branches were forked, and the merges of memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from taskweaver.memory.log.branch_log import failed_rounds
from taskweaver.memory.round import Round
from taskweaver.session.branches.tree import BranchTree


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
    """A merge of the memory of `source` into a branch, after its round of a number; 0 for none."""

    branch: str
    number: int
    source: str


@dataclass(frozen=True, slots=True)
class Outline:
    """All rounds of a session, each once, parents before children, and the merges, oldest first."""

    rounds: list[OutlineRound]
    merges: list[OutlineMerge]


def outline(branches: BranchTree) -> Outline:
    """Return the outline of a session; of branches that are not open, posts of code alone are read.

    A fork is named at the last round that it shares with its parent.
    """
    shown: dict[str, OutlineRound] = {}
    for info in branches.files.branches():
        shared = 0
        rounds = branches.at(info.name).rounds(with_posts=False)
        for number, round_ in enumerate(rounds, 1):
            if round_.id in shown:
                shared = number
            else:
                shown[round_.id] = OutlineRound(round_, info.name, number)
        if info.parent is not None and shared:
            shown[rounds[shared - 1].id].forks.append(info.name)
    failed = failed_rounds(branches.files.store, [one.round for one in shown.values()])
    marked = [replace(one, has_failed=one.round.id in failed) for one in shown.values()]
    return Outline(marked, _merges(branches))


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
