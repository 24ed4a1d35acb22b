"""Moments of branches as clients see them: secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from taskweaver.doors.agent_api.memory_operations import fact_view
from taskweaver.doors.agent_api.moments import models
from taskweaver.doors.agent_api.views import round_dict
from taskweaver.memory.branched.types import MergePreview
from taskweaver.session.moments.compare import MomentDifference
from taskweaver.session.moments.moment import Moment, MomentFile
from taskweaver.session.moments.moments import Moments
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

FILES_OF_PAGE = 200
_MOST_LINES = 50


def moment_view(moment: Moment) -> models.MomentView:
    """Return a moment after the first round as clients see it."""
    round_ = moment.rounds[-1]
    variables = [
        models.VariableView(
            name=one.name,
            text=redact_secrets(one.text),
            type=one.type,
            size=one.size,
            is_changed=one.is_changed,
            lost=redact_secrets(one.lost),
        )
        for one in moment.variables.values()
    ]
    return models.MomentView(
        branch=moment.branch,
        number=moment.number,
        round=round_dict(round_),
        state=moment.state,
        variables=variables,
        files=files_view(moment, 0, FILES_OF_PAGE),
        memory=models.MomentMemory(
            core={key: redact_secrets(value) for key, value in moment.core.items()},
            facts=[fact_view(fact) for fact in moment.facts],
        ),
        artifacts=list(round_.artifacts),
    )


def files_view(moment: Moment, first: int, limit: int) -> models.MomentFiles:
    """Return some files of a moment; `first` is the number of those to leave out."""
    files = moment.files or {}
    shown = [
        models.MomentFileView(path=one.path, size=one.size, is_changed=one.is_changed, now=one.now)
        for one in islice(files.values(), first, first + limit)
    ]
    is_known = moment.files is not None
    return models.MomentFiles(is_known=is_known, files=shown, first=first, total=len(files))


def fork_preview(moments: Moments, branch: str, number: int | None) -> models.ForkPreview:
    """Return the things that a fork of a branch carries, and those that it does not; blocks.

    Raises:
        UnknownSessionBranch, UnknownRound, SessionError: As `Moments.at`.
    """
    moment, losses = moments.at(branch, number), moments.losses(branch, number)
    files = moments.at(branch).files or {}
    lost = {one.name for one in losses}
    carried = [
        models.CarriedVariable(name=one.name, type=one.type, size=one.size)
        for one in moment.variables.values()
        if one.name not in lost
    ]
    lines = [redact_secrets(f"{one.name}: {one.reason}") for one in losses]
    return models.ForkPreview(
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
        not_carried=lines[:_MOST_LINES] + _more(len(lines) - _MOST_LINES),
    )


def _differing(then: Mapping[str, MomentFile] | None, now: Mapping[str, MomentFile]) -> int | None:
    if then is None:
        return None
    same = {path for path, one in then.items() if one.now == "same"}
    return len({*then, *now} - same)


def _more(count: int) -> list[str]:
    return [f"and {count:,} more"] if count > 0 else []


def differences_view(found: MomentDifference) -> models.Differences:
    """Return the differences of two moments as clients see them."""
    first, second = ([fact_view(fact) for fact in facts] for facts in found.facts)
    return models.Differences(
        rounds=redact_secrets_in(found.rounds),
        common_rounds=found.common_rounds,
        variables=redact_secrets_in(found.variables),
        equal_variables=found.equal_variables,
        files=dict(found.files),
        equal_files=found.equal_files,
        memory=redact_secrets_in(found.core),
        equal_memory=found.equal_core,
        facts=(first, second),
        equal_facts=found.equal_facts,
    )


def merge_view(preview: MergePreview) -> models.MergeView:
    """Return a merge that is to be chosen."""
    conflicts = [
        models.MergeConflict(key=key, before=before, ours=ours, theirs=theirs)
        for key, (before, ours, theirs) in redact_secrets_in(preview.conflicts).items()
    ]
    core, records = redact_secrets_in(preview.core), redact_secrets_in(preview.records)
    return models.MergeView(core=core, records=records, conflicts=conflicts)
