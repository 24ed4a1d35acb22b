"""The models of an application, by alias: made when first asked for, closed together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Self, cast
from urllib.parse import urlsplit

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.base import CompletionService, EmbeddingService
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.fitting import ModelWindow
from taskweaver.llm.providers.abilities import FORMS, FormLadder, ImageSupport, first_form, fixed
from taskweaver.llm.providers.embedding import OpenAIEmbedding
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.providers.function import FunctionService
from taskweaver.llm.providers.mock import Mock
from taskweaver.llm.providers.presets import PRESETS
from taskweaver.llm.providers.recorded import RecordedMode, RecordedService
from taskweaver.llm.selection.auto import Choice, choose, choose_preset, is_first_call
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.selection.endpoints import ModelOrigin, dialects_at, origin_at, origin_of
from taskweaver.llm.transport.endpoint import Endpoint, at_root
from taskweaver.llm.transport.retry import RetryPolicy
from taskweaver.llm.types import Form, ModelRequest
from taskweaver.llm.usage import Meter, Prices, TokenEstimator
from taskweaver.logging.tracing import Tracing
from taskweaver.utils.redact import register_secret
from taskweaver.utils.text import did_you_mean

ModelFunction = Callable[..., Any]
"""Gets the messages (and the request, if it takes two arguments); returns text or its pieces."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model with retry policy and prices.

    Attributes:
        service: The model.
        retry: Number and total time of retries.
        prices: Prices of tokens.
        reason: Reason for its choice, in a few words.
        origin: Provider and address, as spans carry them.
        forms: The form of its replies.
        images: Whether it is shown images.
        window: Tokens that fit, as configured; 0 where that is not.
    """

    service: CompletionService
    retry: RetryPolicy
    prices: Prices
    reason: str
    origin: ModelOrigin
    forms: FormLadder
    images: ImageSupport
    window: int = 0

    def window_for(self, request: ModelRequest) -> int:
        """Return the tokens of prompt and reply that fit, or 0 if unknown.

        The model's server may be asked for them, once, and not for short prompts.
        """
        if self.window or not isinstance(self.service, EndpointService):
            return self.window
        return self.service.window(request)


class ModelServices:
    """Owner of an application's models, a context manager. Thread-safe.

    Attributes:
        estimator: Estimates tokens for all of them.
        meter: Admits calls, and adds up their consumption.
        tracing: Records calls.
    """

    def __init__(
        self,
        src: AppConfigSource,
        *,
        function: ModelFunction | None = None,
        tracing: Tracing | None = None,
        on_new_host: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Read nothing yet: configuration is read when a model is first asked for.

        Args:
            src: The configuration.
            function: Answers for ``llm.api_type`` ``function``, and for ``auto``.
            tracing: Records calls; None for no traces.
            on_new_host: Gets one sentence when a model is at a host that was not called before.
        """
        self.tracing = tracing or Tracing()
        self.estimator = TokenEstimator()
        self.meter = Meter()
        self._windows: dict[str, ModelWindow] = {}
        self._src = src
        self._function = function
        self._on_new_host = on_new_host
        self._lock = threading.RLock()
        self._models: dict[str, Model] = {}
        self._embedding: OpenAIEmbedding | Mock | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def metered(self, meter: Meter) -> ModelServices:
        """Return the same models, with a meter for calls made through the returned object."""
        view = copy(self)
        view.meter = meter
        return view

    def patient(self, first_token_s: float) -> ModelServices:
        """Return models of the same configuration, which the caller closes.

        The first token of a reply may take `first_token_s` seconds, unless a limit is configured.
        """
        src, key = self._src.clone(), "llm.first_token_timeout_s"
        if src.lookup(key) is None:
            src.set_config_value(key, "float", first_token_s, source="override")
        return ModelServices(
            src, function=self._function, tracing=self.tracing, on_new_host=self._on_new_host
        )

    @property
    def announcement(self) -> str:
        """One line: which model answers, and why.

        Raises:
            ModelError: Of kind ``configuration``, if none can be reached as configured.
        """
        model = self.model()
        return f"model: {model.service.model} ({model.reason})"

    def get(self, alias: str = "") -> CompletionService:
        """Return the main model, or the model of an alias in ``ext_llms.llm_configs``.

        Raises:
            ModelError: Of kind ``configuration``, if the alias is unknown or the model cannot
                be reached as configured.
        """
        return self.model(alias).service

    def model(self, alias: str = "") -> Model:
        """Return a model with retry policy, prices and abilities.

        Raises:
            ModelError: As `get`.
        """
        with self._lock:
            if alias not in self._models:
                self._models[alias] = self._make(self._config(alias))
            return self._models[alias]

    def window(self, name: str) -> ModelWindow:
        """Return the window of the model of a name, to which prompts are cut."""
        return self._windows.setdefault(name, ModelWindow(self.estimator, name))

    @property
    def aliases(self) -> list[str]:
        """Names of the further models in ``ext_llms.llm_configs``."""
        return list(self._src.get_dict("ext_llms.llm_configs"))

    def embedding(self) -> EmbeddingService | None:
        """Return the embedding model, or None if not configured.

        Raises:
            ModelError: Of kind ``configuration``, if it cannot be reached as configured.
        """
        with self._lock:
            config = self._config("")
            if config.embedding_api_type == "none":
                return None
            if self._embedding is None:
                self._embedding = self._make_embedding(config)
            return self._embedding

    @property
    def embedding_origin(self) -> ModelOrigin:
        """Provider and address of the embedding model that was asked for last."""
        embedding = self._embedding
        if isinstance(embedding, OpenAIEmbedding):
            return origin_at(embedding.endpoint)
        return ModelOrigin("openai" if embedding is None else "mock")

    def close(self) -> None:
        """Close all models, which may be asked for again."""
        with self._lock:
            models = list(self._models.values())
            self._models.clear()  # in place: views with another meter share it
            embedding, self._embedding = self._embedding, None
        for model in models:
            model.service.close()
        if embedding is not None:
            embedding.close()

    def _config(self, alias: str) -> LLMServiceConfig:
        if not alias:
            return LLMServiceConfig(self._src)
        configs = self._src.get_dict("ext_llms.llm_configs")
        own = configs.get(alias)
        if not isinstance(own, dict):
            raise _unknown_alias(alias, list(configs))
        src = self._src.clone()
        for name, value in own.items():
            src.set_config_value(name, "enum", value, source="override")
        config = LLMServiceConfig(src)
        # Another endpoint gets neither the address nor the key nor the model of the main one.
        is_elsewhere = "llm.api_type" in own
        if not _is_meant(src, own, "llm.api_key") and (is_elsewhere or _has_base(src, own)):
            config.api_key = ""
        if is_elsewhere:
            is_its_base = _is_meant(src, own, "llm.api_base")
            config.api_base = config.api_base if is_its_base else ""
            config.model = config.model if _is_meant(src, own, "llm.model") else ""
        table = self._src.lookup("ext_llms.llm_configs")
        if table is not None and _has_base(src, own):
            config.address_source = table.source
            if config.key_source == "override":
                config.key_source = table.source
        return config

    def _make(self, config: LLMServiceConfig) -> Model:
        service, reason = self._service(config, config.api_type)
        origin = origin_of(service, config.api_type)
        forms, images = _forms(config), ImageSupport("", config.images)
        if isinstance(service, EndpointService):
            forms, images = service.forms, service.images
        return Model(
            service, config.retry, config.prices, reason, origin, forms, images, config.window
        )

    def _service(self, config: LLMServiceConfig, api_type: str) -> tuple[CompletionService, str]:
        if self._function is not None and api_type in ("auto", "function"):
            return FunctionService(self._function), "a Python function"
        if config.use_mock:
            return config.mock, "llm.use_mock"
        match api_type:
            case "function":
                detail = "llm.api_type is function, and no function was given."
                raise ModelError("configuration", detail)
            case "offline":
                return _offline(), "as configured"
            case "recorded":
                return self._recorded(config), f"{config.recorded_mode}, {config.recorded_path}"
            case "auto":
                return self._connect(config, choose(config))
            case _:
                return self._connect(config, choose_preset(config, api_type))

    def _connect(self, config: LLMServiceConfig, choice: Choice) -> tuple[CompletionService, str]:
        if choice.endpoint is None:
            return _offline(), choice.reason
        register_secret(choice.endpoint.api_key)
        dialects = dialects_at(choice.endpoint, choice.dialect, config.dialect)
        spoken = dialects.current
        endpoint = at_root(choice.endpoint) if spoken.name == "ollama" else choice.endpoint
        facts = EndpointFacts(
            endpoint,
            dialect=spoken.name,
            headers=spoken.headers(endpoint.api_key),
            configured_window=config.window,
        )
        learnt = facts.learnt
        dialects.remember(
            lambda needs: learnt.note(needs_responses=needs),
            is_for_reasoning=learnt.known.needs_responses,
        )
        service = EndpointService(
            facts,
            dialects=dialects,
            sampling=config.sampling,
            deadlines=config.deadlines,
            response_format=config.response_format,
            forms=_forms(config, facts),
            images=config.images,
        )
        new = ", first call to this host" if self._note_host(choice.endpoint) else ""
        return service, f"{_place(choice.endpoint)}, {choice.reason}{new}"

    def _note_host(self, endpoint: Endpoint) -> bool:
        """Report a host that was not called before, and return whether the host is new."""
        is_new = is_first_call(endpoint.api_base)
        if is_new:
            self._on_new_host(f"first call to the model host {_place(endpoint)}")
        return is_new

    def _recorded(self, config: LLMServiceConfig) -> RecordedService:
        def connect() -> CompletionService:
            if config.recorded_api_type == "recorded":
                raise ModelError("configuration", "llm.recorded.api_type cannot be recorded.")
            return self._service(config, config.recorded_api_type)[0]

        mode = cast("RecordedMode", config.recorded_mode)
        return RecordedService(config.recorded_path, mode, connect)

    def _make_embedding(self, config: LLMServiceConfig) -> OpenAIEmbedding | Mock:
        if config.use_mock:
            return config.mock
        if not config.embedding_model:
            raise ModelError("configuration", "llm.embedding_model is not set.")
        config.model = config.embedding_model
        is_at_main = not config.embedding_api_base and config.api_type in PRESETS
        is_preset = is_at_main and (not config.api_base or config.api_type == "other")
        if config.embedding_api_base:
            config.address_source = config.embedding_address_source
        config.api_base = config.embedding_api_base or config.api_base
        # The key of a preset's provider goes to no other provider.
        endpoint = choose_preset(config, config.api_type if is_preset else "openai").endpoint
        if endpoint is None:
            raise ModelError("configuration", "there is no endpoint for embeddings.")
        self._note_host(endpoint)
        return OpenAIEmbedding(endpoint, config.deadlines)


def _has_base(src: AppConfigSource, own: Mapping[str, Any]) -> bool:
    return "llm.api_base" in own or src.provider_name("llm.api_base") in own


def _is_meant(src: AppConfigSource, own: Mapping[str, Any], name: str) -> bool:
    """Return whether a key is set for an alias, by the alias or for the provider of the alias.

    Keys of a provider go to the provider's own address only.
    """
    special = src.provider_name(name) or name
    if name in own or special in own:
        return True
    is_provider = "llm.api_type" in own and not _has_base(src, own)
    return is_provider and src.lookup(special) is not None


def _place(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.api_base)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _forms(config: LLMServiceConfig, facts: EndpointFacts | None = None) -> FormLadder:
    """Return the form of a model's replies: configured, learnt, or the best it may keep."""
    for form in FORMS:
        if config.form == form:
            return fixed(form)
    if facts is None or config.response_format != "auto":
        return fixed("json")
    endpoint, learnt = facts.endpoint, facts.learnt

    def first() -> Form:
        known = learnt.known.form
        if known in FORMS:
            return known
        is_local, takes_tools = endpoint.is_loopback, facts.takes_tools
        return first_form(endpoint.model, is_local=is_local, takes_tools=takes_tools)

    is_provider = any(one.needs_key and one.owns(endpoint.api_base) for one in PRESETS.values())
    return FormLadder(first, lambda lower: learnt.note(form=lower), takes_tools=is_provider)


@cache
def _offline() -> CompletionService:
    """Return the built-in model: an entry point, so that models import nothing of the analyst.

    Raises:
        ModelError: Of kind ``configuration``, if the installation does not have it.
    """
    found = entry_points(group="taskweaver.models", name="offline")
    if not found:
        detail = "the installation of TaskWeaver has no entry point `offline` of taskweaver.models."
        raise ModelError(
            "configuration", detail, hint="Install it again: `pip install` its folder."
        )
    service: CompletionService = next(iter(found)).load()()
    return service


def _unknown_alias(alias: str, known: Sequence[str]) -> ModelError:
    listed = did_you_mean(alias, known, f"it has: {', '.join(known) or 'none'}.")
    detail = f"there is no model {alias!r} in ext_llms.llm_configs;"
    return ModelError("configuration", f"{detail} {listed}")
