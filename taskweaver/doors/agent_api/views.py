"""Views of a conversation: its rounds, a moment, a plan, the differences of two branches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from taskweaver.doors.agent_api import models
from taskweaver.doors.agent_api.pictures import picture_header
from taskweaver.doors.agent_api.routes import working_folder
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.reading.cells import variables_of
from taskweaver.memory.round import Round
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.operations import missing
from taskweaver.session.branches.answering import AnsweringBranch
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.redact import redact_secrets_in

_TITLE_CHARS = 60


def title_of(round_: Round) -> str:
    """Return the title of a round: the first line of its question, shortened."""
    lines = [line.strip() for line in round_.question.splitlines() if line.strip()]
    title = lines[0] if lines else ""
    return (
        title
        if len(title) <= _TITLE_CHARS
        else f"{title[: _TITLE_CHARS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )


def round_index(conversation: UserConversation) -> list[models.RoundSummary]:
    """Return all rounds of a session, each once, on the branch that it was asked on.

    A fork is named at the last round that it shares with its parent.
    """
    shown: dict[str, models.RoundSummary] = {}
    for info in conversation.session.branches():
        shared = 0
        rounds = conversation.branch(info.name).rounds()
        for number, round_ in enumerate(rounds, 1):
            if round_.id in shown:
                shared = number
                continue
            shown[round_.id] = models.RoundSummary(
                round_id=round_.id,
                branch=info.name,
                number=number,
                title=title_of(round_),
                state=round_.state,
                forks=[],
            )
        if info.parent is not None and shared:
            shown[rounds[shared - 1].id].forks.append(info.name)
    return list(shown.values())


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


def plan_of(rounds: Sequence[Round]) -> models.PlanView:
    """Return the newest plan of a conversation; its texts are empty where there is none."""
    for round_ in reversed(rounds):
        texts = {AttachmentType.plan: "", AttachmentType.current_plan_step: ""}
        for post in round_.post_list:
            for kind in texts:
                for attachment in post.get_attachment(kind):
                    texts[kind] = str(attachment.content)
        if texts[AttachmentType.plan]:
            plan, step = texts.values()
            return models.PlanView(plan=plan, current_step=step, round_id=round_.id)
    return models.PlanView(plan="", current_step="", round_id="")


def fork_preview(conversation: UserConversation, name: str, at: int | None) -> models.ForkPreview:
    """Return the things that a fork of a branch carries; blocks.

    Raises:
        RequestRefused: If there is no such round.
    """
    branch = conversation.branch(name)
    rounds = branch.rounds()
    if at is not None and at > len(rounds):
        raise missing("Round", str(at))
    seen = rounds[:at]
    with working_folder(conversation, name) as folder:
        sizes = [facts.st_size for _, facts in folder.files()]
    restoring = branch.restoring()
    return models.ForkPreview(
        rounds=len(seen),
        variables=len(variables_of(seen)),
        state=conversation.session.moments.state(name, seen),
        files=len(sizes),
        files_bytes=sum(sizes),
        facts=len(branch.long_memory.all()),
        not_carried=restoring.lines() if restoring is not None else [],
    )


def artifacts_of(branch: AnsweringBranch, folder: Folder) -> list[models.ArtifactView]:
    """Return the files that code of a branch's rounds wrote, as they are now; blocks."""
    found: dict[str, models.ArtifactView] = {}
    for number, round_ in enumerate(branch.rounds(), 1):
        for path in round_.artifacts:
            view = models.ArtifactView(path=path, round_id=round_.id, number=number, size=None)
            with suppress(OSError, ValueError), folder.open_file(path) as file:
                header = picture_header(file)
                view.size = file.seek(0, 2)
                if header is not None:
                    view.width, view.height = header.width, header.height
            found[path] = view
    return list(found.values())
