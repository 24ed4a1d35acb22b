"""A branch at the end of one of its rounds, or now: variables, files and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from taskweaver.memory.round import Round
from taskweaver.session.storage.facts import KeptFact

KeptState = Literal["live", "stored", "none", "empty"]


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
