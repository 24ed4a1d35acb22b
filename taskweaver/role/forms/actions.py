"""The content of a model's reply: its actions, operations and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskweaver.llm.types import ToolCall
from taskweaver.memory.suggestions import NO_SUGGESTIONS, Suggestions
from taskweaver.role.forms.kept_replies import KeptCall
from taskweaver.role.forms.memory_calls import FactOperation


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole reply of a model.

    Attributes:
        text: Its text, without reasoning.
        calls: Its native tool calls.
        is_cut: Whether it ended at the length limit.
        record: The reply as its provider sent it; empty where nothing has to go back.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    is_cut: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def raw(self) -> str:
        """The reply as text; calls are written out, so that a broken one never is a call again."""
        calls = [f"{call.name}({call.arguments})" for call in self.calls]
        return "\n".join(filter(None, [self.text, *calls]))


@dataclass(frozen=True, slots=True)
class RunCell:
    """Run a cell; an order ends with the outcome of its last one."""

    code: str
    intent: str = ""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """Give a role an order in words."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Answer the user, or the role that gave an order."""

    text: str


@dataclass(frozen=True, slots=True)
class BranchOrder:
    """An order in words that is carried out on a branch of its own."""

    branch: str
    text: str


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Carry out orders side by side, each on its own branch of the session."""

    orders: tuple[BranchOrder, ...]


Action = RunCell | Order | Alternatives | Say
Meaning = Action | FactOperation | str
"""Meaning of a call: an action, an operation on memory, or the text of a plan."""


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """The content of a reply.

    Attributes:
        actions: Its actions, in order; none if it only has a plan, or a problem.
        thought: Words beside the actions.
        plan: The plan; empty for none.
        memory: Operations on long-term memory, in order.
        suggestions: Offers of an answer.
        ignores_form: Whether an action was written into the text, in another form than asked for.
        problem: Reason why it cannot be used, in a sentence to the model; empty for none.
        calls: All calls of the reply, in order, as they may go back to its model, each with its
            meaning: the same object as in the content, of which they are no part.
    """

    actions: tuple[Action, ...] = ()
    thought: str = ""
    plan: str = ""
    problem: str = ""
    memory: tuple[FactOperation, ...] = ()
    suggestions: Suggestions = NO_SUGGESTIONS
    ignores_form: bool = False
    calls: tuple[tuple[KeptCall, Meaning], ...] = field(default=(), compare=False)
