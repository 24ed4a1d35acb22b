"""Effort of the reasoning: adaptive thinking, or a number of tokens for models before that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.llm.types import Effort

_BUDGETED = re.compile(r"claude-(?:3-7|(?:haiku|sonnet|opus)-4(?![-.][6-9]))")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
_LARGEST_BUDGET = 24_576
_LEAST_BUDGET = 1024
_THINKING = frozenset({"thinking", "redacted_thinking"})


def effort_parameters(effort: Effort | None) -> dict[str, Any]:
    """Return the parameters for an effort; none where it is left to the endpoint."""
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "adaptive"}, "effort": "low" if effort == "minimal" else effort}


def as_budget(
    model: str, parameters: Mapping[str, Any], chat: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return parameters with a number of tokens in place of an effort, for models that need one.

    Args:
        model: Name of the model.
        parameters: The parameters, as `effort_parameters` and others have them.
        chat: The messages; such a model takes no thinking where the reply to go on with lacks its
            own.
    """
    is_adaptive = parameters.get("thinking") == {"type": "adaptive"}
    if not (is_adaptive and _BUDGETED.search(model)):
        return dict(parameters)
    found = {key: value for key, value in parameters.items() if key not in {"thinking", "effort"}}
    wanted = _BUDGETS.get(str(parameters.get("effort")), _LARGEST_BUDGET)
    budget = min(wanted, int(parameters["max_tokens"]) - _LEAST_BUDGET)
    if budget >= _LEAST_BUDGET and not _lacks_thinking(chat):
        found["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return found


def _lacks_thinking(chat: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether results go back to a reply of which the reasoning is not there."""
    if len(chat) < 2 or chat[-1]["content"][0]["type"] != "tool_result":
        return False
    return chat[-2]["content"][0]["type"] not in _THINKING
