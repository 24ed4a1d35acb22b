"""The actions a model may ask for: read from its reply, checked, and done on a page."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ext_role.web_explorer.page import BrowserPage
from taskweaver.llm.parsing.json_text import ParsedReply
from taskweaver.role.prompt import reply_schema
from taskweaver.utils.text import shorten

_KINDS = ("open", "click", "type", "select", "scroll", "back", "done")
_NUMBERED = frozenset(("click", "type", "select"))
_WORD_CHARS = 200
_MOST_DIGITS = 6

SCHEMA = reply_schema(
    {"thought": {}, "action": {"enum": list(_KINDS)}, "target": {}, "text": {}, "answer": {}}
)
"""JSON schema of a reply."""


@dataclass(frozen=True, slots=True)
class BrowserAction:
    """One action, with the model's reason for it; `answer` is the final one to the task.

    The target is an address, the number of an element, or a direction; the text is typed, or the
    option to select.
    """

    thought: str
    kind: str
    target: str
    text: str
    answer: str

    @property
    def words(self) -> str:
        """The action in words."""
        text = repr(shorten(self.text, _WORD_CHARS)) if self.kind in {"type", "select"} else ""
        target = self.target if self.kind not in {"back", "done"} else ""
        return " ".join(filter(None, (self.kind, shorten(target, _WORD_CHARS), text)))

    def do(self, page: BrowserPage) -> None:
        """Do it.

        Raises:
            PageError: If the page does not let it.
            BrowserError: If the browser has ended.
        """
        match self.kind:
            case "open":
                page.open(self.target)
            case "click":
                page.click(int(self.target))
            case "type":
                words = self.text.rstrip("\n")
                page.type(int(self.target), words, submit=self.text.endswith("\n"))
            case "select":
                page.select(int(self.target), self.text)
            case "scroll":
                page.scroll(self.target)
            case "back":
                page.back()


def read_action(reply: ParsedReply) -> BrowserAction:
    """Return the action of a reply.

    Raises:
        ValueError: If it has none that can be done.
    """
    if reply.problem:
        raise ValueError(reply.problem)
    fields = reply.fields
    kind = fields.get("action", "").strip().lower()
    target = fields.get("target", "").strip()
    if kind in _NUMBERED:
        target = target.strip("[]# ")
    elif kind == "scroll":
        target = target.lower()
    text, answer = fields.get("text", ""), fields.get("answer", "")
    action = BrowserAction(fields.get("thought", ""), kind, target, text, answer)
    problem = _problem(action)
    if problem:
        raise ValueError(problem)
    return action


def _problem(action: BrowserAction) -> str:
    """Return the reason an action is impossible; empty if it is possible."""
    kind, target = action.kind, action.target
    is_number = target.isascii() and target.isdigit() and len(target) <= _MOST_DIGITS
    shown = repr(shorten(target, _WORD_CHARS))
    problems = (
        (kind not in _KINDS, f"`action` is {kind!r}, and must be one of {', '.join(_KINDS)}."),
        (
            kind in _NUMBERED and not is_number,
            f"`target` of {kind} is {shown}, and must be an element's number.",
        ),
        (
            kind == "select" and not action.text,
            "`text` of select is empty, and must be one of the options.",
        ),
        (
            kind == "scroll" and target not in {"down", "up"},
            f'`target` of scroll is {shown}, and must be "down" or "up".',
        ),
        (kind == "open" and not target, "`target` of open is empty, and must be an address."),
        (
            kind == "done" and not action.answer.strip(),
            "`answer` is empty: done tells what was found, or why it was not.",
        ),
    )
    return next((text for is_wrong, text in problems if is_wrong), "")
