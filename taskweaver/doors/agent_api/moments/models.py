"""Answers about moments of branches."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from taskweaver.doors.agent_api.models import FactView


class VariableView(BaseModel):
    """A variable at a moment.

    `text` is as the reports of cells show it, `size` in bytes as it is stored; `lost` is the reason
    why it cannot be restored, empty if it can.
    """

    name: str
    text: str
    type: str
    size: int | None
    is_changed: bool
    lost: str


class MomentFileView(BaseModel):
    """A file at a moment; `now` says whether the file that is there now is the same."""

    path: str
    size: int
    is_changed: bool
    now: Literal["same", "changed", "gone"]


class MomentFiles(BaseModel):
    """Files at a moment, a page of them; `is_known` is false where no list was kept."""

    is_known: bool
    files: list[MomentFileView]
    first: int
    total: int


class MomentMemory(BaseModel):
    """Memory of a branch at a moment: core memory and the branch's own facts."""

    core: dict[str, str]
    facts: list[FactView]


class MomentView(BaseModel):
    """A branch at the end of one of its rounds.

    `state` says how its variables are kept: in a process, on disk, not any more, or that there are
    none. Of the files the first page is here.
    """

    branch: str
    number: int
    round: dict[str, Any]
    state: Literal["live", "stored", "none", "empty"]
    variables: list[VariableView]
    files: MomentFiles
    memory: MomentMemory
    artifacts: list[str]


class CarriedVariable(BaseModel):
    """A variable that a fork has from its beginning; `size` in bytes as it is stored."""

    name: str
    type: str
    size: int | None


class ForkPreview(BaseModel):
    """Things that a fork carries, and those that it does not.

    `variables` counts all of the moment, `carried` names those that the fork has, of which
    `variables_bytes` are stored; `not_carried` has a line for each other one with the reason. Files
    are copied as they are now: `files_differ` counts those that were others then, and is null where
    that is not known.
    """

    rounds: int
    variables: int
    variables_bytes: int
    carried: list[CarriedVariable]
    state: Literal["live", "stored", "none", "empty"]
    files: int
    files_bytes: int
    files_differ: int | None
    facts: int
    core: int
    not_carried: list[str]


class Differences(BaseModel):
    """Differences of two moments as pairs, with the number of things that are equal.

    `equal_files` is None where the list of files of one of them was not kept.
    """

    rounds: tuple[list[str], list[str]]
    common_rounds: int
    variables: dict[str, tuple[str | None, str | None]]
    equal_variables: int
    files: dict[str, tuple[str | None, str | None]]
    equal_files: int | None
    memory: dict[str, tuple[str | None, str | None]]
    equal_memory: int
    facts: tuple[list[FactView], list[FactView]]
    equal_facts: int


class MergeConflict(BaseModel):
    """A key of core memory that both branches changed, with its values; null is none."""

    key: str
    before: str | None
    ours: str
    theirs: str


class MergeView(BaseModel):
    """Things that a merge of memory would bring to a branch, and what is to be chosen.

    Conversations, variables and files stay on their branches.
    """

    core: dict[str, str]
    records: list[str]
    conflicts: list[MergeConflict]


class NewMerge(BaseModel):
    """A merge of the memory of the branch `source` into another.

    `choices` has an answer for each key in conflict; `policy` is that for the other ones. Under
    `manual` nothing is merged while a key has none.
    """

    source: str = Field(max_length=64)
    policy: Literal["theirs", "ours", "manual"] = "manual"
    choices: dict[str, Literal["theirs", "ours"]] = Field(default_factory=dict, max_length=10_000)


class Merged(BaseModel):
    """Outcome of a merge; where keys are in conflict under `manual` it is not applied."""

    taken: list[str]
    conflicts: list[str]
    is_applied: bool


class VariableNow(BaseModel):
    """A variable as it is now.

    `shape` has the lengths of its sides, `size` in bytes is that in memory, without the objects
    that it refers to; both are null where they are unknown.
    """

    name: str
    type: str
    text: str
    shape: list[int] | None
    size: int | None = Field(validation_alias="bytes")
    is_table: bool


class Variables(BaseModel):
    """Variables of a branch, the oldest first."""

    variables: list[VariableNow]


class TableColumn(BaseModel):
    """A column; its kind says how it is compared, sorted and shown."""

    name: str
    dtype: str
    kind: str


class TablePage(BaseModel):
    """A part of a table.

    `rows` counts all rows, `found_rows` those that pass the filters. A cell is null where the value
    is missing, and an object with `type` and `text` where JSON cannot hold it; a long text has its
    beginning and its `length`. `labels` are those of the rows' index, by level.
    """

    rows: int
    found_rows: int
    total_columns: int
    first_row: int
    first_column: int
    columns: list[TableColumn]
    label_names: list[str]
    labels: list[list[Any]]
    cells: list[list[Any]]
