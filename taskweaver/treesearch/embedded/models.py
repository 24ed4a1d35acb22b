"""Which model of our own knows an idea."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.embedded.proposer import RuleProposer
from taskweaver.treesearch.embedded.stencil import STENCIL
from taskweaver.treesearch.embedded.tabular import TABULAR
from taskweaver.treesearch.idea import Idea

Model = Callable[[Sequence[ChatMessage]], str]
_NAMED = re.compile(r"built-in proposer\W+(?:is\s+)?`(?P<name>[a-z_]+)`", re.IGNORECASE)
_SPACES = {space.name: space for space in (TABULAR, STENCIL)}


def model_for(idea: Idea) -> Model | None:
    """Return the model that an idea names, as in ``Built-in proposer: `stencil```; or None."""
    found = _NAMED.search(idea.text)
    space = _SPACES.get(found["name"]) if found else None
    return RuleProposer(space) if space is not None else None
