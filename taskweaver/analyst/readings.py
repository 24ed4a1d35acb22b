"""Readings: requests as typed values.

A `Reading` is rendered three ways: in words, as pandas code, and as the first line of the answer.
Rendering never adds meaning; whatever an answer depends on is in the reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taskweaver.memory.suggestions import Suggestion
from taskweaver.tables.files.profile import TableId

# -- values of a row ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """Value of a column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """Number written in the request."""

    value: float


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic of two expressions."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


Expression = Column | Constant | Arithmetic
Scalar = str | int | float | bool

# -- conditions on a row --------------------------------------------------------------------------

Comparator = Literal["==", "!=", "<", "<=", ">", ">="]
Unit = Literal["year", "quarter", "month", "week", "day", "hour"]
CalendarPart = Literal["quarter", "month", "weekday", "day", "hour", "decade"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison with a scalar or another expression; an integer year column included."""

    left: Expression
    operator: Comparator
    right: Scalar | Expression


@dataclass(frozen=True, slots=True)
class OneOf:
    """Membership of a column's value in a set of values."""

    column: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """Occurrence of a text in a column's value, without regard to case."""

    column: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing value in a column, or in any column if the name is empty."""

    column: str = ""


@dataclass(frozen=True, slots=True)
class During:
    """Time from `start` up to, and without, `end` (ISO 8601; empty for open); time columns."""

    column: str
    start: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class OnCalendar:
    """Part of the calendar in any year: months 1-12, weekdays 0 (Monday)-6, quarters 1-4."""

    column: str
    part: CalendarPart
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Latest:
    """Last `count` units before the column's largest value; for an integer year, years."""

    column: str
    count: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class And:
    """All of some conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of some conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation, as in pandas: a row whose value is missing satisfies it."""

    part: Condition


Condition = Comparison | OneOf | Contains | Missing | During | OnCalendar | Latest | And | Or | Not


def columns_of(expression: Expression | None) -> tuple[str, ...]:
    """Return the columns of an expression, each as often as it occurs."""
    match expression:
        case Column(name):
            return (name,)
        case Arithmetic(_, left, right):
            return (*columns_of(left), *columns_of(right))
        case _:
            return ()


def columns_in(condition: Condition) -> set[str]:
    """Return the columns of a condition; the empty name stands for any column."""
    match condition:
        case And(parts) | Or(parts):
            return set().union(*map(columns_in, parts))
        case Not(part):
            return columns_in(part)
        case Comparison(left, _, right):
            others = columns_of(right) if isinstance(right, Column | Arithmetic) else ()
            return {*columns_of(left), *others}
        case _:
            return {condition.column}


# -- what is computed over ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableSource:
    """Table, or inner join of several tables.

    Attributes:
        tables: The tables, in join order.
        on: For each table after the first, the columns that it shares with those before.
    """

    tables: tuple[TableId, ...]
    on: tuple[tuple[str, ...], ...] = ()


# -- values of a group ----------------------------------------------------------------------------

Function = Literal[
    "count", "nunique", "sum", "mean", "median", "min", "max", "std", "var", "range", "iqr",
    "percentile", "mode", "nth", "missing", "correlation",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measure:
    """Value computed from the rows of a group.

    Attributes:
        function: The function. ``nth`` is the n-th largest (or smallest) distinct value.
        of: The expression it is computed from; None for a count of rows.
        quantile: Of ``percentile``: between 0 and 1.
        n: Of ``nth``: 2 for the second; negative for the n-th smallest.
        other: Of ``correlation``: the second expression.
    """

    function: Function
    of: Expression | None = None
    quantile: float = 0.0
    n: int = 0
    other: Expression | None = None


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Group key.

    Attributes:
        unit: For a time column: the period (``month`` is 2024-03).
        part: For a time column: the part of the calendar (``month`` is 3 in any year). For years
            as integers: ``decade``.
    """

    column: str
    unit: Unit | None = None
    part: CalendarPart | None = None


# -- steps after the aggregation ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """Part of the total: of the rows that satisfy `part`, or of each group if None."""

    part: Condition | None = None


@dataclass(frozen=True, slots=True)
class Contrast:
    """Difference of the measure between two sets of rows: `first` minus `second`.

    Attributes:
        is_relative: Whether the difference is divided by the second value (growth).
    """

    first: Condition
    second: Condition
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class PeriodChange:
    """Change from each period to the next.

    Attributes:
        is_relative: Whether as a fraction of the earlier value (growth).
    """

    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Running total over the periods or rows, in order."""


Then = Share | Contrast | PeriodChange | Cumulative


@dataclass(frozen=True, slots=True)
class Rank:
    """Order of groups or rows, and the part of it that is shown.

    Attributes:
        ascending: Whether the smallest comes first.
        count: Number of entries; None for all.
        nth: 2 for the second entry alone; 0 for the first `count`.
    """

    ascending: bool = False
    count: int | None = None
    nth: int = 0


Chart = Literal["line", "bar", "pie", "histogram", "box", "scatter"]

# -- readings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """Measures of all rows or of groups.

    Attributes:
        measures: At least one. `rank` and `then` refer to the first.
        keys: Group keys; none for one value.
        where: Condition on the rows; None for all.
        names_winner: Whether the answer is the name of the first group ("which ..."), with its
            value.
    """

    source: TableSource
    measures: tuple[Measure, ...]
    keys: tuple[GroupKey, ...] = ()
    where: Condition | None = None
    then: Then | None = None
    rank: Rank | None = None
    names_winner: bool = False
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows themselves, or a picture of them.

    Attributes:
        columns: Columns shown or drawn; none for all.
        by: Expression they are ordered by; None for the order of the file.
        rank: Order and number; None for the first twenty.
        from_end: Whether the last rows are shown.
        chart: The picture: histogram, box, scatter or line.
        split: Column by which a box plot or line is split; empty for none.
    """

    source: TableSource
    columns: tuple[str, ...] = ()
    where: Condition | None = None
    by: Expression | None = None
    rank: Rank | None = None
    from_end: bool = False
    chart: Chart | None = None
    split: str = ""


View = Literal[
    "describe", "columns", "sample", "values", "missing", "correlations", "outliers", "span",
    "shape", "duplicates",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableView:
    """View of a table as it is.

    Attributes:
        view: ``values``: the distinct values with their counts; ``span``: smallest to largest;
            ``shape``: numbers of rows and columns; ``duplicates``: number of rows that repeat one.
        columns: Columns it is about; none for all.
        count: Number of rows of a sample.
    """

    source: TableSource
    view: View
    columns: tuple[str, ...] = ()
    where: Condition | None = None
    count: int = 5


@dataclass(frozen=True, slots=True)
class About:
    """Description of tables in prose, with questions that can be asked of the first one."""

    tables: tuple[TableId, ...]
    questions: tuple[Suggestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """Result of a reading, written to a CSV or Excel file."""

    of: Summary | Rows | TableView
    file: str


@dataclass(frozen=True, slots=True)
class FileListing:
    """List of the files, with rows and columns where they are known.

    Attributes:
        files: Names of those whose numbers can be answered.
    """

    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL query that the request holds, on a database file."""

    file: str
    query: str


@dataclass(frozen=True, slots=True)
class Python:
    """Python code that the request holds."""

    code: str


@dataclass(frozen=True, slots=True)
class Calculation:
    """Arithmetic of numbers that the request holds, as a Python expression."""

    expression: str


@dataclass(frozen=True, slots=True)
class Help:
    """Request for help, or a message that asks nothing of the data.

    Attributes:
        topic: ``help``, ``hello``, ``thanks``, ``stop`` or ``who``.
    """

    topic: str = "help"


Reading = (
    Summary | Rows | TableView | Saved | About | FileListing | Sql | Python | Calculation | Help
)

# -- outcomes of reading a request ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Understood:
    """Request with a reading.

    Attributes:
        unused: Content words that no part of the reading used; named in the answer. Never words
            of a filter, negation, comparison, time or aggregate.
        notes: Decisions worth a line: `class` taken as the column, a misspelled word's column.
    """

    reading: Reading
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeedsLook:
    """Request that cannot be read before some files have been looked at.

    Attributes:
        files: The files.
        find: Text whose words are looked up in the values: the request, or what it takes up.
    """

    files: tuple[str, ...]
    find: str = ""


@dataclass(frozen=True, slots=True)
class Unclear:
    """Request with several readings; the user is asked.

    Attributes:
        question: The question, with the options in back quotes.
        phrase: The words of the request that are unclear; empty where something is absent.
        options: The options, in the order of the question: column, file or part names.
    """

    question: str
    phrase: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """Request without a reading.

    Attributes:
        words: Words that were not understood, as written.
        reason: A sentence about the reason, where there is a better one than the words, for
            example a column that holds text; else empty.
        nearest: Request that is offered instead; None for none.
        is_part: Whether the offer is made of what was understood.
        files: Files that were tried, where the request may be about others; none elsewhere.
    """

    words: tuple[str, ...]
    reason: str = ""
    nearest: Suggestion | None = None
    is_part: bool = False
    files: tuple[str, ...] = ()


Outcome = Understood | NeedsLook | Unclear | NotUnderstood
