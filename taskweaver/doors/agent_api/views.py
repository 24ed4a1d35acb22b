"""Views of a conversation: its rounds, a moment, the differences of two branches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from taskweaver.doors.agent_api import models
from taskweaver.memory.round import Round
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.operations import view
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.moments import Outline
from taskweaver.session.storage.store import BranchInfo
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.images import image_header
from taskweaver.utils.redact import redact_secrets, redact_secrets_in
from taskweaver.utils.text import title_line

_TITLE_CHARS = 60
_PICTURE_HEAD_BYTES = 256 << 10


def branch_summary(conversation: UserConversation, branch: BranchInfo) -> models.BranchSummary:
    """Return a branch as clients see it."""
    kernel = conversation.branch(branch.name).kernel_state
    state = conversation.state(branch.name)
    return view(models.BranchSummary, branch, state=state, kernel=kernel)


def title_of(round_: Round) -> str:
    """Return the title of a round: the first line of its question or cell, shortened."""
    title = title_line(round_.question)
    return (
        title
        if len(title) <= _TITLE_CHARS
        else f"{title[: _TITLE_CHARS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )


def round_index(outline: Outline, last_event: int) -> models.RoundIndex:
    """Return the outline of a session as clients see it."""
    rounds = [
        view(
            models.RoundSummary,
            one,
            round_id=one.round.id,
            title=redact_secrets(title_of(one.round)),
            state="failed" if one.has_failed else one.round.state,
        )
        for one in outline.rounds
    ]
    return models.RoundIndex(rounds=rounds, merges=outline.merges, last_event=last_event)


def round_page(rounds: Sequence[Round], first: int, limit: int) -> models.RoundPage:
    """Return some rounds of a branch; `first` counts from 1."""
    chosen = rounds[first - 1 : first - 1 + limit]
    return models.RoundPage(
        rounds=[round_dict(round_) for round_ in chosen], first=first, total=len(rounds)
    )


def round_dict(round_: Round) -> dict[str, object]:
    """Return a round as clients see it, with secrets masked."""
    shown = {**round_.shown_dict(), "title": title_of(round_), "question": round_.question}
    masked: dict[str, object] = redact_secrets_in(shown)
    return masked


def artifacts_of(branch: SessionBranch, folder: Folder) -> list[models.ArtifactView]:
    """Return the files that code of a branch's rounds wrote, as they are now; blocks."""
    found: dict[str, models.ArtifactView] = {}
    for number, round_ in enumerate(branch.rounds(), 1):
        for path in round_.artifacts:
            shown = models.ArtifactView(path=path, round_id=round_.id, number=number, size=None)
            with suppress(OSError, ValueError), folder.open_file(path) as file:
                header = image_header(file.read(_PICTURE_HEAD_BYTES))
                shown.size = file.seek(0, 2)
                if header is not None:
                    shown.width, shown.height = header.width, header.height
            found[path] = shown
    return list(found.values())
