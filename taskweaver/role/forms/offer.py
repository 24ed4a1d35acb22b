"""The actions a prompt offers to a model, as tools and as a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from taskweaver.llm.types import ModelTool
from taskweaver.role.forms.alternatives import ALTERNATIVES, MOST_ALTERNATIVES
from taskweaver.role.forms.memory_calls import OPERATIONS

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_LAST = "Whether the outcome of this cell alone answers the order, which ends with it."
_BRANCHES = (
    "Only when the user wants alternatives compared: carry out orders in words side by side, each"
    " on its own branch, a fork of all variables and files. The reports come back; variables and"
    " files stay there."
)


def object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


_LIST = {
    "type": "array",
    "maxItems": MOST_ALTERNATIVES,
    "items": object_schema({"branch": _TEXT, "order": _TEXT}),
}
RUN_TOOLS = {"python": "run_python", "bash": "run_shell"}
"""Name of the tool that runs a cell, by the language of the cells."""

PLAN_TOOL, ASK_TOOL, BRANCH_TOOL = "set_plan", "ask", "try_alternatives"
PLAN_SHOWN = "The user sees the plan. Go on."
"""Result of a plan."""

USER = "User"


@dataclass(frozen=True, slots=True)
class ActionOffer:
    """The actions a model may choose from, besides an answer in words.

    Attributes:
        language: Language of the cells it may write; empty for none.
        runner: Alias of the role that runs them.
        roles: Aliases of the roles that take orders in words.
        has_plan: Whether it may write a plan.
        has_memory: Whether it may keep, forget and look up facts.
        has_branches: Whether it may have alternatives carried out on branches.
        asker: Alias that an answer in words is for.
        is_order: Whether the author's own role runs the cells, to carry out an order.
        has_last: Whether a cell of an order may be marked as its last.
    """

    language: str = ""
    runner: str = ""
    roles: tuple[str, ...] = ()
    has_plan: bool = False
    has_memory: bool = False
    has_branches: bool = False
    asker: str = USER
    is_order: bool = False
    has_last: bool = False

    @property
    def run_tool(self) -> str:
        """Name of the tool that runs a cell; empty for none."""
        return RUN_TOOLS.get(self.language, "")

    @property
    def recipients(self) -> tuple[str, ...]:
        """Aliases a reply may be for, the user last."""
        return tuple(dict.fromkeys([*filter(None, [self.runner]), *self.roles, USER]))

    @property
    def fields(self) -> list[str]:
        """Names of the fields of a JSON reply, in their order."""
        plan, code = ["plan"] * self.has_plan, ["code"] * bool(self.language)
        if self.is_order:
            return ["thought", "message", *code, *(["is_last"] * self.has_last)]
        memory = list(OPERATIONS) if self.has_memory else []
        branches = [ALTERNATIVES] if self.has_branches else []
        return ["thought", *plan, "send_to", "message", *code, *branches, *memory]

    def with_role(self, alias: str) -> ActionOffer:
        """Return the offer with a further role that takes orders in words."""
        return replace(self, roles=tuple(dict.fromkeys([*self.roles, alias])))

    def without_cells(self) -> ActionOffer:
        """Return the offer of an answer in words alone."""
        return replace(self, language="", has_last=False)

    def tools(self) -> list[ModelTool]:
        """Return the actions as tools."""
        found = []
        if self.run_tool:
            is_python = self.language == "python"
            subject = "a Python cell in the live kernel" if is_python else "a shell script"
            intent = {**_TEXT, "description": "Purpose of the cell, in a few words."}
            last = {"is_last": {"type": "boolean", "description": _LAST}} if self.has_last else {}
            description = f"Run {subject}, within the rules for code; its outcome comes back."
            found.append(_tool(self.run_tool, description, intent=intent, code=_TEXT, **last))
        if self.has_plan:
            steps = {"type": "array", "items": _TEXT}
            found.append(
                _tool(PLAN_TOOL, "Show the user a plan of three calls or more.", steps=steps)
            )
        if self.roles:
            role = {**_TEXT, "enum": list(self.roles)}
            order = {**_TEXT, "description": "The whole order, with exact names."}
            found.append(_tool(ASK_TOOL, "Give another role an order.", role=role, order=order))
        if self.has_branches:
            found.append(_tool(BRANCH_TOOL, _BRANCHES, **{ALTERNATIVES: _LIST}))
        if self.has_memory:
            found += [
                _tool(name, description, **{argument: _TEXT})
                for name, (argument, description) in OPERATIONS.items()
            ]
        return found

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of a reply; a field is null where it is not used."""
        fields: dict[str, object] = dict.fromkeys(self.fields, _TEXT_OR_NULL) | {"thought": _TEXT}
        if "send_to" in fields:
            fields["send_to"] = {**_TEXT, "enum": list(self.recipients)}
        if self.is_order and "code" in fields:
            fields["code"] = {**_TEXT_OR_NULL, "description": self.language}
        if "is_last" in fields:
            choices = ["yes", "no", None]
            fields["is_last"] = {**_TEXT_OR_NULL, "enum": choices, "description": _LAST}
        return object_schema({"response": object_schema(fields)})


def _tool(name: str, description: str, **properties: Mapping[str, object]) -> ModelTool:
    return ModelTool(name, description, object_schema(properties))
