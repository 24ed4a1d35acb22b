"""Slash commands that bring back variables which a resumed session lacks."""

from __future__ import annotations

from taskweaver.console.chat import Chat
from taskweaver.console.terminal.confirmation import read_line
from taskweaver.console.terminal.text import head, safe
from taskweaver.session.rebuild import RebuildResult
from taskweaver.utils.text import counted

_ANSWER_S = 600.0
_CODE_CHARS = 60
_TRUSTED = "the stored variables are loaded when code runs"
_TRUSTED_LATE = (
    "the stored variables are back, but code ran without them: /fork at N starts from those of"
    " round N"
)


def show_rebuild(chat: Chat, _: str) -> None:
    """Run the cells of lost variables on a scratch copy, and take the result over if agreed."""
    done: list[int] = [0]
    with chat.surface.working(lambda: f"running cells on a scratch copy, {done[-1]} done"):
        rebuilt = chat.session.rebuild(done.append)
    try:
        chat.list_facts(_rows(rebuilt))
        is_agreed = _is_agreed(chat, rebuilt)
    except BaseException:
        rebuilt.discard()
        raise
    if not is_agreed:
        rebuilt.discard()
        chat.note("not taken over: nothing has changed")
        return
    before = chat.session.branch
    rebuilt.accept()
    chat.note(f"now on {rebuilt.name}; /checkout {before} goes back")


def _rows(rebuilt: RebuildResult) -> list[tuple[str, str]]:
    rows = []
    for step in rebuilt.steps:
        verdict = "same outcome" if step.verdict == "same" else step.verdict
        rows.append((f"cell {step.number}", f"{verdict}: {head(safe(step.code), 1, _CODE_CHARS)}"))
        rows += [("", detail) for detail in step.details]
    for kind, differing in (("file", rebuilt.files), ("variable", rebuilt.variables)):
        for name, (before, after) in differing.items():
            old, new = (head(safe(text or "-"), 1, _CODE_CHARS) for text in (before, after))
            rows.append((f"{kind} {name}", f"{old}  |  {new}"))
    return rows


def _is_agreed(chat: Chat, rebuilt: RebuildResult) -> bool:
    ran = counted(len(rebuilt.steps), "cell")
    outcome = "all as recorded" if rebuilt.is_same else "not all as recorded"
    chat.note(f"{ran} ran on a scratch copy, {outcome}. Continue with it? y: yes")
    answer = read_line(_ANSWER_S)
    return answer is not None and answer.strip().lower() in {"y", "yes"}


def show_trust(chat: Chat, _: str) -> None:
    """Agree to load stored variables of another installation."""
    chat.session.trust_state()
    is_running = chat.session.restoring() is None
    chat.note(_TRUSTED_LATE if is_running else _TRUSTED)
    chat.show_notice()
