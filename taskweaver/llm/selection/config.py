"""Configuration of one model."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from taskweaver.config.config_mgt import AppConfigSource, Source
from taskweaver.config.module_config import ModuleConfig
from taskweaver.llm.dialects.dialect import Sampling
from taskweaver.llm.providers.mock import Mock
from taskweaver.llm.transport.endpoint import AzureSignIn
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.transport.retry import RetryPolicy
from taskweaver.llm.types import Effort
from taskweaver.llm.usage import Prices


class LLMServiceConfig(ModuleConfig):
    """Keys under ``llm.``; texts that are not set are empty.

    Attributes:
        api_type: The provider.
        api_base: Address of an endpoint.
        api_key: Key for it.
        address_source: Layer that sets the address; None for a preset's own.
        key_source: Layer that sets the key; None without one.
        api_version: API version of Azure.
        model: Name of the model.
        dialect: Protocol of an OpenAI-compatible endpoint; ``auto`` for the best it has.
        form: Form of replies; ``auto`` finds the best that the model keeps.
        images: Whether the model is sent images: ``yes``, ``no``, or ``auto`` to know by its name.
        response_format: The way to request structured replies.
        window: Tokens of prompt and reply together; 0 where that is not known.
        auto_detect: Whether loopback ports may be asked for a local server.
        sampling: Parameters for requests that do not set them.
        deadlines: Time limits of a call.
        retry: Number and total time of retries.
        prices: Prices of tokens.
        recorded_mode: Mode of ``recorded``: to record or to play back.
        recorded_path: File of the recordings.
        recorded_api_type: The provider that ``recorded`` records.
        azure_sign_in: The way ``azure_ad`` gets a token.
        use_mock: Whether the mock answers in place of the model.
        mock: The mock.
        embedding_api_type: The provider of embeddings.
        embedding_model: Name of the embedding model.
        embedding_api_base: Address for embeddings, if it differs.
        embedding_address_source: Layer that sets it; None without one.
    """

    def _configure(self) -> None:
        self._set_name("llm")
        self.api_type = self._get_enum("api_type")
        self.api_base = self._get_str("api_base")
        self.api_key = self._get_str("api_key")
        self.address_source = self._source("llm.api_base")
        self.key_source = self._source("llm.api_key")
        self.api_version = self._get_str("api_version")
        self.model = self._get_str("model")
        self.dialect = self._get_enum("dialect")
        self.form = self._get_enum("form")
        self.images = self._get_enum("images")
        self.response_format = self._get_enum("response_format")
        self.window = self.src.get_int("llm.context_window", 0)
        self.auto_detect = self._get_bool("auto_detect")
        effort = self._get_enum("reasoning_effort")  # ``auto`` leaves it to the endpoint
        self.sampling = Sampling(
            temperature=self._get_float("temperature", None),
            top_p=self._get_float("top_p", None),
            max_tokens=self._get_int("max_tokens", None),
            stop=self._get_list("stop_token", None),
            seed=self._get_int("seed", None),
            reasoning_effort=None if effort == "auto" else cast("Effort", effort),
        )
        self.deadlines = Deadlines(
            connect_s=self._get_float("connect_timeout_s"),
            first_token_s=self._get_float("first_token_timeout_s"),
            gap_s=self._get_float("gap_timeout_s"),
            total_s=self._get_float("call_timeout_s"),
        )
        self.retry = RetryPolicy(self._get_int("max_retries"), self._get_float("max_retry_time_s"))
        self.prices = Prices(
            self._get_float("prompt_price", None),
            self._get_float("completion_price", None),
            self._get_float("cached_prompt_price", None),
        )
        self._configure_variants()

    def _source(self, name: str) -> Source | None:
        setting = self.src.lookup(name)
        return None if setting is None else setting.source

    def _configure_variants(self) -> None:
        self.recorded_mode = self._get_enum("recorded.mode")
        self.recorded_path = Path(self._get_path("recorded.path"))
        self.recorded_api_type = self._get_str("recorded.api_type")
        self.azure_sign_in = AzureSignIn(
            mode=self._get_enum("aad_auth_mode"),
            tenant_id=self._get_str("aad_tenant_id"),
            client_id=self._get_str("aad_client_id"),
            client_secret=self._get_str("aad_client_secret"),
            resource=self._get_str("aad_api_resource"),
            scope=self._get_str("aad_api_scope"),
        )
        self.use_mock = self._get_bool("use_mock")
        self.mock = Mock(
            mode=self._get_enum("mock.mode"),
            reply=self._get_str("mock.fixed_chat_responses"),
            vector=self._get_str("mock.fixed_embedding_responses"),
        )
        self.embedding_api_type = self._get_enum("embedding_api_type")
        self.embedding_model = self._get_str("embedding_model")
        self.embedding_api_base = self._get_str("embedding_api_base")
        self.embedding_address_source = self._source("llm.embedding_api_base")


def embedding_model(src: AppConfigSource) -> str:
    """Return the name of the embedding model; empty if none is configured."""
    if src.get_str("llm.embedding_api_type") == "none":
        return ""
    return src.get_str("llm.embedding_model", "") or ""
