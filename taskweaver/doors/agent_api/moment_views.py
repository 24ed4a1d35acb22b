"""Moments of branches as clients see them, with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, Field

from taskweaver.doors.agent_api.memory_operations import fact_view
from taskweaver.doors.agent_api.models import FactView, MemoryView
from taskweaver.doors.agent_api.views import round_dict
from taskweaver.memory.branched.types import MergePreview
from taskweaver.server.operations import view
from taskweaver.session.moments import Moment, MomentDifference, MomentFile, Moments
from taskweaver.utils.redact import redact_secrets, redact_secrets_in


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
    memory: MemoryView
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
    are copied as they are now: `files_differ` names those that were others then, and is null where
    that is not known.
    """

    rounds: int
    variables: int
    variables_bytes: int
    carried: list[CarriedVariable]
    state: Literal["live", "stored", "none", "empty"]
    files: int
    files_bytes: int
    files_differ: list[str] | None
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


FILES_OF_PAGE = 200
_MOST_LINES = 50


def moment_view(moment: Moment) -> MomentView:
    """Return a moment after the first round as clients see it."""
    round_ = moment.rounds[-1]
    variables = [
        view(VariableView, one, text=redact_secrets(one.text), lost=redact_secrets(one.lost))
        for one in moment.variables.values()
    ]
    return view(
        MomentView,
        moment,
        round=round_dict(round_),
        variables=variables,
        files=files_view(moment, 0, FILES_OF_PAGE),
        memory=MemoryView(
            core={key: redact_secrets(value) for key, value in moment.core.items()},
            facts=[fact_view(fact) for fact in moment.facts],
        ),
        artifacts=list(round_.artifacts),
    )


def files_view(moment: Moment, first: int, limit: int) -> MomentFiles:
    """Return some files of a moment; `first` is the number of those to leave out."""
    files = moment.files or {}
    chosen = islice(files.values(), first, first + limit)
    shown = [view(MomentFileView, one) for one in chosen]
    is_known = moment.files is not None
    return MomentFiles(is_known=is_known, files=shown, first=first, total=len(files))


def fork_preview(moments: Moments, branch: str, number: int | None) -> ForkPreview:
    """Return the things that a fork of a branch carries, and those that it does not; blocks.

    Raises:
        UnknownSessionBranch, UnknownRound, SessionError: As `Moments.at`.
    """
    moment, losses = moments.at(branch, number), moments.losses(branch, number)
    files = moments.at(branch).files or {}
    lost = {one.name for one in losses}
    carried = [
        view(CarriedVariable, one) for one in moment.variables.values() if one.name not in lost
    ]
    lines = [redact_secrets(f"{one.name}: {one.reason}") for one in losses]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES:,} more"]
    return ForkPreview(
        rounds=len(moment.rounds),
        variables=len(moment.variables),
        variables_bytes=sum(one.size or 0 for one in carried),
        carried=carried,
        state=moment.state,
        files=len(files),
        files_bytes=sum(one.size for one in files.values()),
        files_differ=_differing(moment.files, files),
        facts=len(moment.facts),
        core=len(moment.core),
        not_carried=lines,
    )


def _differing(
    then: Mapping[str, MomentFile] | None, now: Mapping[str, MomentFile]
) -> list[str] | None:
    if then is None:
        return None
    return [path for path in {**then, **now} if path not in then or then[path].now != "same"]


def differences_view(found: MomentDifference) -> Differences:
    """Return the differences of two moments as clients see them."""
    first, second = ([fact_view(fact) for fact in facts] for facts in found.facts)
    return view(
        Differences,
        found,
        rounds=redact_secrets_in(found.rounds),
        variables=redact_secrets_in(found.variables),
        memory=redact_secrets_in(found.core),
        equal_memory=found.equal_core,
        facts=(first, second),
    )


def merge_view(preview: MergePreview) -> MergeView:
    """Return a merge that is to be chosen."""
    conflicts = [
        MergeConflict(key=key, before=before, ours=ours, theirs=theirs)
        for key, (before, ours, theirs) in redact_secrets_in(preview.conflicts).items()
    ]
    core, records = redact_secrets_in(preview.core), redact_secrets_in(preview.records)
    return MergeView(core=core, records=records, conflicts=conflicts)
