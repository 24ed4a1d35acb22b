"""The choice of a built-in model for an idea."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.embedded.needs import Needs, named_packages
from taskweaver.treesearch.embedded.proposer import RuleProposer
from taskweaver.treesearch.embedded.space import Space
from taskweaver.treesearch.embedded.stencil import STENCIL
from taskweaver.treesearch.embedded.tabular import TABULAR
from taskweaver.treesearch.model.idea import Idea

Model = Callable[[Sequence[ChatMessage]], str]
_NAMED = re.compile(r"built-in proposer\W+(?:is\s+)?`(?P<name>[a-z_]+)`", re.IGNORECASE)
_SPACES = {space.name: space for space in (TABULAR, STENCIL)}


def model_for(idea: Idea) -> Model | None:
    """Return the model that an idea names, as in ``Built-in proposer: `stencil```; or None."""
    space = _space_of(idea)
    return RuleProposer(space) if space is not None else None


def needs_of(idea: Idea, *, is_embedded: bool) -> Needs:
    """Return the needs that an idea names and, where its built-in proposer works, those of that."""
    space = _space_of(idea) if is_embedded else None
    named = named_packages(idea.text)
    return Needs((*space.needs.packages, *named), space.needs.programs) if space else Needs(named)


def _space_of(idea: Idea) -> Space | None:
    found = _NAMED.search(idea.text)
    return _SPACES.get(found["name"]) if found else None
