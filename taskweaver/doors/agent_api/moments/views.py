"""Moments of branches as clients see them: secrets are masked."""

from __future__ import annotations

from itertools import islice

from taskweaver.doors.agent_api.memory_operations import fact_view
from taskweaver.doors.agent_api.moments import models
from taskweaver.doors.agent_api.views import round_dict
from taskweaver.memory.branched.types import MergePreview
from taskweaver.session.moments.compare import MomentDifference
from taskweaver.session.moments.moment import Moment
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

FILES_OF_PAGE = 200


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
