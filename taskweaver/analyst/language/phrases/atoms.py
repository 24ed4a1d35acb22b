"""Phrases of a request: the parts that a reading is composed of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taskweaver.analyst.language.conditions.options import Cond
from taskweaver.analyst.language.lookup.measures import Operand
from taskweaver.analyst.readings.reading import Chart, Function, GroupKey, Rank, View


@dataclass(frozen=True, slots=True)
class Fn:
    """Aggregate function.

    Attributes:
        quantile: Of a percentile.
        is_least: Whether the rarest value is meant, of ``mode``.
        is_time: Whether it is of times alone: ``latest``.
    """

    function: Function
    quantile: float = 0.0
    is_least: bool = False
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """Group keys; each with the meanings it may have."""

    keys: tuple[tuple[GroupKey, ...], ...]
    phrase: str
    is_by: bool = False


@dataclass(frozen=True, slots=True)
class Noun:
    """Noun for the rows: of the language, or the name of the file; or a unit of time."""

    kind: Literal["row", "person", "thing", "file", "unit"]
    word: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Pick:
    """Rank: ``top 5``, ``second largest``, ``heaviest``.

    Attributes:
        ascending: Whether the smallest comes first.
        count: Number of entries; None if it is not stated.
        nth: 2 for the second alone.
        columns: Columns of the dimension that an adjective states.
        word: The adjective: ``most``, ``top``, ``highest``, ``dimension``.
    """

    ascending: bool
    count: int | None = None
    nth: int = 0
    columns: tuple[str, ...] = ()
    word: str = ""

    @property
    def rank(self) -> Rank:
        """The entries it picks: one, if no number is stated."""
        return Rank(self.ascending, None if self.nth else self.count or 1, self.nth)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimension asked for or compared without a number: ``how heavy``, ``heavier than``."""

    columns: tuple[str, ...]
    ascending: bool
    is_comparative: bool = False
    word: str = "it"


@dataclass(frozen=True, slots=True)
class AggregateStep:
    """Step after an aggregation: share, difference, change or running total."""

    kind: Literal["share", "diff", "change", "cumulative"]
    detail: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Chart, or any."""

    chart: Chart | Literal["any"]


@dataclass(frozen=True, slots=True)
class Look:
    """View of a table."""

    view: View | Literal["head", "tail", "ncolumns"]
    count: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """Word that shapes the reading.

    Attributes:
        kind: ``which``, ``who``, ``when``, ``sort``, ``asc``, ``desc``, ``each``, ``over``,
            ``against``, ``files``, ``refused``, ``verb``, ``show``, ``filler`` or ``unused``.
        detail: The word or its detail.
    """

    kind: str
    detail: str = ""


Content = (
    Fn | Operand | Cond | Keys | Noun | Pick | Dimension | AggregateStep | Picture | Look | Mark
)


@dataclass(frozen=True, slots=True)
class Atom:
    """Phrase of a request at its place.

    Attributes:
        start: Number of its first token.
        end: Number after its last token.
    """

    start: int
    end: int
    content: Content
    cost: float
