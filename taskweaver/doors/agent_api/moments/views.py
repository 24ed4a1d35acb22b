"""Moments of branches as clients see them: secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from taskweaver.doors.agent_api.memory_operations import fact_view
from taskweaver.doors.agent_api.moments import models
from taskweaver.doors.agent_api.views import round_dict
from taskweaver.memory.branched.types import MergePreview
from taskweaver.server.operations import view
from taskweaver.session.moments import Moment, MomentDifference, MomentFile, Moments
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

FILES_OF_PAGE = 200
_MOST_LINES = 50


def moment_view(moment: Moment) -> models.MomentView:
    """Return a moment after the first round as clients see it."""
    round_ = moment.rounds[-1]
    variables = [
        view(models.VariableView, one, text=redact_secrets(one.text), lost=redact_secrets(one.lost))
        for one in moment.variables.values()
    ]
    return view(
        models.MomentView,
        moment,
        round=round_dict(round_),
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
    chosen = islice(files.values(), first, first + limit)
    shown = [view(models.MomentFileView, one) for one in chosen]
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
        view(models.CarriedVariable, one)
        for one in moment.variables.values()
        if one.name not in lost
    ]
    lines = [redact_secrets(f"{one.name}: {one.reason}") for one in losses]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES:,} more"]
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
        not_carried=lines,
    )


def _differing(then: Mapping[str, MomentFile] | None, now: Mapping[str, MomentFile]) -> int | None:
    if then is None:
        return None
    same = {path for path, one in then.items() if one.now == "same"}
    return len({*then, *now} - same)


def differences_view(found: MomentDifference) -> models.Differences:
    """Return the differences of two moments as clients see them."""
    first, second = ([fact_view(fact) for fact in facts] for facts in found.facts)
    return view(
        models.Differences,
        found,
        rounds=redact_secrets_in(found.rounds),
        variables=redact_secrets_in(found.variables),
        memory=redact_secrets_in(found.core),
        equal_memory=found.equal_core,
        facts=(first, second),
    )


def merge_view(preview: MergePreview) -> models.MergeView:
    """Return a merge that is to be chosen."""
    conflicts = [
        models.MergeConflict(key=key, before=before, ours=ours, theirs=theirs)
        for key, (before, ours, theirs) in redact_secrets_in(preview.conflicts).items()
    ]
    core, records = redact_secrets_in(preview.core), redact_secrets_in(preview.records)
    return models.MergeView(core=core, records=records, conflicts=conflicts)
