"""Facts about one model at one endpoint, asked of the server once, when needed.

The list of models is part of the protocol, so that it may be asked for anywhere; other paths are
asked for where the list shows whose server it is. Providers whose lists have no windows are not
asked: a short table has the windows of hosted models by name. Ollama loads a model anew for each
other window, and without one it takes a small default, so that a window is chosen once and stays.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from taskweaver.llm.errors import ModelError
from taskweaver.llm.learnt import LearntModel, tokens_of
from taskweaver.llm.parsing.stream import mappings_in
from taskweaver.llm.transport.endpoint import ConnectionPool, Endpoint, Sent, at_root
from taskweaver.llm.transport.exchange import Deadlines, HttpExchange
from taskweaver.utils.system.cancel import CancelToken

ASKING_S = 2.0
"""Longest time in seconds that an answer may take."""

MAX_BYTES = 4 << 20
_LIMITS = Deadlines(connect_s=1.0, first_token_s=ASKING_S, gap_s=ASKING_S, total_s=ASKING_S)
_WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(rf"(?:^|/){name}"), window)
    for name, window in (
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-5", 272_000),
        (r"gpt-4o|chatgpt-4o|gpt-4-turbo|o1-(?:mini|preview)", 128_000),
        (r"o[134](?![0-9])", 200_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4(?:-\d{4})?$", 8_192),
        (r"gpt-3\.5-turbo", 16_385),
        (r"claude-", 200_000),
        (r"gemini-(?:1\.5|2|3)", 1_000_000),
        (r"deepseek-(?:chat|reasoner)", 128_000),
        (r"qwen-(?:plus|turbo|flash)", 128_000),
        (r"qwen-max", 32_768),
        (r"glm-4", 128_000),
    )
)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_USUAL_WINDOW = 16_384
"""Window of a model whose prompts are short so far."""

_REPLY_TOKENS = 1_024
_SMALL_WINDOW = 8_192
"""A loaded window below this is not kept for a conversation."""

_SILENT_HOSTS = (
    ".api.openai.com",
    ".generativelanguage.googleapis.com",
    ".api.deepseek.com",
    ".aliyuncs.com",
    ".open.bigmodel.cn",
    ".azure.com",
)
_WINDOW_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "context_window",
    "context_length",
    "max_context_length",
    "max_input_tokens",
)
SHORT_PROMPT = 3_400
"""Tokens that fit into the smallest window with which servers load models: no question is due."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model. 0 and None stand for facts that the server does not state.

    Attributes:
        window: Tokens of prompt and reply that fit now.
        trained: Tokens that would fit at most.
        preferred: Window that the model's own settings name.
        takes_tools: Whether it takes tools.
        takes_images: Whether it takes images.
    """

    window: int = 0
    trained: int = 0
    preferred: int = 0
    takes_tools: bool | None = None
    takes_images: bool | None = None


def group(value: Any, name: str) -> Any:
    """Return a member of a JSON object, or None for any other value."""
    return value.get(name) if isinstance(value, dict) else None


def answer_of(
    pool: ConnectionPool,
    path: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return the JSON that an endpoint answers, or None without an answer in time.

    Args:
        pool: Connections to the endpoint.
        path: Path after the endpoint's address, or a whole address at the same host.
        body: Body of a POST; None for a GET.
        headers: Headers beyond the client's own.
    """
    sent = Sent(path, body or {}, headers or {}, "GET" if body is None else "POST")
    read = bytearray()
    try:
        with HttpExchange(pool, sent, _LIMITS, CancelToken()) as exchange:
            for block in exchange.blocks():
                read += block
                if len(read) > MAX_BYTES:
                    return None
        return json.loads(bytes(read))
    except (ModelError, ValueError, RecursionError):
        return None  # nothing is known then


def named_window(model: str) -> int:
    """Return the window of a hosted model of this name; 0 where it is not in the table."""
    name = model.lower()
    return next((window for pattern, window in _WINDOWS if pattern.search(name)), 0)


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
    )


def chosen_window(facts: ModelFacts, needed: int) -> int:
    """Return the window to load a model with, or 0 to leave the window to the server.

    A window that is loaded already is kept when a conversation fits into it, and one that the
    model's own settings name when the prompt does; else it is a power of two.

    Args:
        facts: The facts about the model.
        needed: Estimated tokens of the first prompt.
    """
    most = facts.trained
    if not most:
        return 0
    if facts.window >= min(max(2 * needed, _SMALL_WINDOW), most):
        return facts.window
    if facts.preferred >= needed + _REPLY_TOKENS:
        return min(facts.preferred, most)
    return min(max(_USUAL_WINDOW, 1 << (2 * needed - 1).bit_length()), most)


def _has(capabilities: list[Any] | None, name: str) -> bool | None:
    return None if capabilities is None else name in capabilities


def _trained(info: Any) -> int:
    """Return the window of the training, whose name begins with the name of the architecture."""
    own = tokens_of(group(info, f"{group(info, 'general.architecture')}.context_length"))
    if own or not isinstance(info, dict):
        return own
    found = (tokens_of(value) for name, value in info.items() if name.endswith(".context_length"))
    return max(found, default=0)


def _preferred(parameters: Any) -> int:
    named = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return tokens_of(named[1]) if named else 0


def _loaded(running: Any, model: str) -> int:
    names = {model, f"{model}:latest"}
    for entry in mappings_in(group(running, "models")):
        if entry.get("name") in names or entry.get("model") in names:
            return tokens_of(entry.get("context_length"))
    return 0


def _entry(listing: Any, model: str) -> Any:
    """Return the entry of a model. A list of one entry is about that model."""
    entries = mappings_in(group(listing, "data"))
    named = [entry for entry in entries if entry.get("id") == model]
    return next(iter(named or entries), None) if named or len(entries) == 1 else None


def _facts(entry: Any) -> ModelFacts:
    stated = [tokens_of(group(entry, name)) for name in _WINDOW_FIELDS]
    provided = tokens_of(group(group(entry, "top_provider"), "context_length"))
    windows = [window for window in stated if window][:1] + ([provided] if provided else [])
    return ModelFacts(window=min(windows, default=0))


class EndpointFacts:
    """Facts about one model: configured, asked, learnt or known by name. Thread-safe.

    Attributes:
        endpoint: Address of the model.
        pool: Connections to the endpoint, shared with the calls.
        learnt: Facts learnt of the model, which are kept.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        dialect: str = "chat",
        headers: Mapping[str, str] | None = None,
        configured_window: int = 0,
    ) -> None:
        """Ask nothing yet.

        Args:
            endpoint: The model.
            dialect: Name of its protocol.
            headers: Headers of its protocol beyond the client's own.
            configured_window: Tokens of its window; 0 where that is not configured.
        """
        self.pool = ConnectionPool(endpoint)
        self.learnt = LearntModel(endpoint)
        self.endpoint = endpoint
        self._headers = headers or {}
        self._configured = configured_window
        self._dialect = dialect
        self._is_ollama = dialect == "ollama"
        self._lock = threading.Lock()
        self._stated: ModelFacts | None = None
        self._chosen: int | None = None

    @property
    def takes_tools(self) -> bool | None:
        """Whether the model takes tools, or None if only a trial can tell."""
        is_asked = self._is_ollama or self.endpoint.is_loopback
        return self._ask().takes_tools if is_asked else None

    @property
    def takes_images(self) -> bool | None:
        """Whether the model takes images, or None if only a trial can tell."""
        return self._ask().takes_images if self._is_ollama else None

    def window(self, needed: Callable[[], int]) -> int:
        """Return the tokens of prompt and reply that fit, or 0 if unknown.

        Args:
            needed: Estimates the tokens of the prompt.
        """
        if self._configured:
            return self._configured
        if self._is_ollama:
            return self.loaded_window(needed)
        learnt = self.learnt.known.window
        if self._stated is None and needed() < SHORT_PROMPT:
            return learnt
        stated = self._ask().window
        if self.endpoint.is_loopback:
            return stated or learnt
        return min(filter(None, (stated, learnt)), default=named_window(self.endpoint.model))

    def loaded_window(self, needed: Callable[[], int]) -> int:
        """Return the window that Ollama is to load the model with, chosen at the first request.

        Args:
            needed: Estimates the tokens of the first prompt.

        Returns:
            The window; 0 to leave it to the server, and for all other servers.
        """
        if not self._is_ollama:
            return 0
        if self._configured:
            return self._configured
        stated = self._ask()
        with self._lock:
            if self._chosen is None:
                self._chosen = chosen_window(stated, needed())
            return self._chosen

    def close(self) -> None:
        """Close the connections."""
        self.pool.close()

    def _ask(self) -> ModelFacts:
        with self._lock:
            if self._stated is None:
                is_ollama, model = self._is_ollama, self.endpoint.model
                self._stated = ollama_facts(self.pool, model) if is_ollama else self._listed()
            return self._stated

    def _listed(self) -> ModelFacts:
        """Return the facts about the model in the server's list."""
        model = self.endpoint.model
        host = urlsplit(self.endpoint.api_base).hostname or ""
        if self.endpoint.api_version or f".{host}".endswith(_SILENT_HOSTS):
            return ModelFacts()
        if self._dialect == "anthropic":  # its list has no names that stand for the newest
            path = f"/models/{quote(model, safe='')}"
            return _facts(answer_of(self.pool, path, headers=self._headers))
        entry = _entry(answer_of(self.pool, "/models", headers=self._headers), model)
        root = at_root(self.endpoint).api_base
        match group(entry, "owned_by"):
            case "llamacpp":
                props = answer_of(self.pool, f"{root}/props")
                settings = group(props, "default_generation_settings")
                takes_tools = group(group(props, "chat_template_caps"), "supports_tools")
                is_stated = isinstance(takes_tools, bool)
                window = tokens_of(group(settings, "n_ctx"))
                return ModelFacts(window=window, takes_tools=takes_tools if is_stated else None)
            case "organization_owner":  # LM Studio; what it lists elsewhere is not what it loaded
                entry = _entry(answer_of(self.pool, f"{root}/api/v0/models"), model)
                return ModelFacts(window=tokens_of(group(entry, "loaded_context_length")))
            case "library":
                return ollama_facts(self.pool, model, root)
        return _facts(entry)
