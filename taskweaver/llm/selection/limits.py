"""Limits of a model, as Anthropic's list of models has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from taskweaver.llm.selection.auto import fetch_json
from taskweaver.llm.transport.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of a model in tokens; 0 where one is not known.

    Attributes:
        window: Longest prompt.
        reply: Longest reply.
    """

    window: int = 0
    reply: int = 0


def listed_limits(endpoint: Endpoint, *, timeout_s: float) -> ModelLimits:
    """Ask an endpoint that speaks Anthropic messages for the limits of its model.

    Args:
        endpoint: Address of the model.
        timeout_s: Longest wait.
    """
    path = f"/models/{quote(endpoint.model, safe='')}"
    entry = fetch_json(
        endpoint.api_base, path, endpoint.api_key, timeout_s=timeout_s, dialect="anthropic"
    )
    if not isinstance(entry, Mapping):
        return ModelLimits()
    return ModelLimits(_count(entry.get("max_input_tokens")), _count(entry.get("max_tokens")))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
