"""Facts about a model in Ollama, and the window it is loaded with.

Ollama loads a model anew for each other window, and without one it takes a small default, so that a
window is chosen once and stays.
"""

from __future__ import annotations

import re
from typing import Any

from taskweaver.llm.facts.model_facts import ModelFacts, group, tokens_of
from taskweaver.llm.facts.question import answer_of
from taskweaver.llm.transport.endpoint import ConnectionPool

_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_USUAL = 16_384
"""Window of a model whose prompts are short so far."""

_REPLY = 1_024
_SMALL = 8_192
"""A loaded window below this is not kept for a conversation."""


def ollama_facts(pool: ConnectionPool, model: str, root: str = "") -> ModelFacts:
    """Return the facts about a model that Ollama states.

    Args:
        pool: Connections to the server.
        model: Name of the model.
        root: Address of the server, where that of the endpoint is below it.
    """
    shown = answer_of(pool, f"{root}/api/show", {"model": model})
    if not isinstance(shown, dict):
        return ModelFacts()
    listed = shown.get("capabilities")
    capabilities = listed if isinstance(listed, list) else None
    return ModelFacts(
        window=_loaded(answer_of(pool, f"{root}/api/ps"), model),
        trained=_trained(shown.get("model_info")),
        preferred=_preferred(shown.get("parameters")),
        takes_tools=_has(capabilities, "tools"),
        takes_images=_has(capabilities, "vision"),
        thinks=_has(capabilities, "thinking"),
    )


def chosen_window(facts: ModelFacts, needed: int) -> int:
    """Return the window to load a model with; 0 to leave it to the server.

    A window that is loaded already is kept when a conversation fits into it, and one that the
    model's own settings name when the prompt does; else it is a power of two.

    Args:
        facts: The facts about the model.
        needed: Estimated tokens of the first prompt.
    """
    most = facts.trained
    if not most:
        return 0
    if facts.window >= min(max(2 * needed, _SMALL), most):
        return facts.window
    if facts.preferred >= needed + _REPLY:
        return min(facts.preferred, most)
    return min(max(_USUAL, 1 << (2 * needed - 1).bit_length()), most)


def _has(capabilities: list[Any] | None, name: str) -> bool | None:
    return None if capabilities is None else name in capabilities


def _trained(info: Any) -> int:
    """Return the window of the training; its name begins with that of the architecture."""
    own = tokens_of(group(info, f"{group(info, 'general.architecture')}.context_length"))
    if own or not isinstance(info, dict):
        return own
    found = (tokens_of(value) for name, value in info.items() if name.endswith(".context_length"))
    return max(found, default=0)


def _preferred(parameters: Any) -> int:
    named = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return tokens_of(named[1]) if named else 0


def _loaded(running: Any, model: str) -> int:
    listed = group(running, "models")
    names = {model, f"{model}:latest"}
    for entry in listed if isinstance(listed, list) else ():
        if group(entry, "name") in names or group(entry, "model") in names:
            return tokens_of(group(entry, "context_length"))
    return 0
