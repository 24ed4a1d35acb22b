"""The setup of a model: those found here, a test question, and the choice, written to a file.

The command `taskweaver setup`, the page's dialog and `doctor` show the same.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from taskweaver.config.config_mgt import UNSET, AppConfigSource, env_name
from taskweaver.config.errors import ConfigError
from taskweaver.config.files import (
    KeptEndpoint,
    change_file,
    keep_endpoint,
    kept_endpoints,
    kept_key,
    user_file,
)
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.providers.presets import LOCAL_PORTS, PRESETS, Preset, provider_at
from taskweaver.llm.selection.auto import list_models, local_servers, may_look
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.services import ModelServices
from taskweaver.llm.transport.endpoint import is_loopback, split_url
from taskweaver.llm.trial import ModelTest, ask_test_question
from taskweaver.trust.answers import Answer, remember
from taskweaver.trust.opening import IsConfined, inspect_project
from taskweaver.utils.redact import redact
from taskweaver.utils.text import shorten_words

Scope = Literal["project", "user"]

OFFLINE, OTHER = "offline", "other"
SMALL_MODEL, SMALL_GB, SMALL_MEMORY_GB = "qwen3:4b", 2.5, 8
"""The small local model that is offered, its size, and the memory it needs."""

_LOOK_S, _SEEN_S = 1.0, 3.0
_TITLE_CHARS = 100
_TEST_S = 120.0
_NEARER = ("llm.api_type", "llm.api_base", "llm.api_key", "llm.model")


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that can be chosen.

    Attributes:
        provider: Its preset; ``offline`` for the built-in analyst.
        name: Its name.
        address: Its address, up to ``/v1``; empty for a model in this process.
        key_from: Name of the variable or file of its key; empty without one.
        size_bytes: Its size as its server states it; 0 where it states none.
    """

    provider: str
    name: str
    address: str = ""
    key_from: str = ""
    size_bytes: int = 0

    @property
    def id(self) -> str:
        """Name of the model with its provider, and the address if that is not the provider's."""
        preset = PRESETS.get(self.provider)
        is_own = not self.address or (preset is not None and preset.api_base == self.address)
        if self.provider == OFFLINE:
            return OFFLINE
        return f"{self.provider}/{self.name}" + ("" if is_own else f"@{self.address}")

    def is_same(self, other: FoundModel) -> bool:
        """Return whether another one is this model, whatever its provider is called."""
        return (self.name, self.address) == (other.name, other.address)

    @property
    def title(self) -> str:
        """The name in one line, of a path its last part."""
        name = Path(self.name).name if self.name.startswith("/") else self.name
        return shorten_words(name, _TITLE_CHARS)

    @property
    def label(self) -> str:
        """The place where it was found, as people write it."""
        preset = PRESETS.get(self.provider)
        if self.provider == OFFLINE:
            return "Built-in analyst"
        is_elsewhere = preset is not None and preset.needs_key and not preset.owns(self.address)
        if preset is None or is_elsewhere or self.provider == OTHER:
            return split_url(self.address).netloc if self.address else self.provider
        return preset.label

    @property
    def is_local(self) -> bool:
        """Whether nothing is sent to another machine."""
        return not self.address or is_loopback(self.address)

    @property
    def is_free(self) -> bool:
        """Whether no token has a price."""
        return self.is_local or self.provider == "ollama"

    @property
    def line(self) -> str:
        """Place, size, origin of the key, and whether it is local and free."""
        if self.provider == OFFLINE:
            return "Built-in analyst: sums, groups, filters, charts"
        size = f", {self.size_bytes / 1e9:.1f} GB" if self.size_bytes else ""
        key = f", key in {self.key_from}" if self.key_from else ""
        kind = f"{'local' if self.is_local else 'remote'}, {'free' if self.is_free else 'paid'}"
        return f"{self.label}{size}{key} ({kind})"


class ModelSetup:
    """The choice of the model of an open project, or of all projects of the user; thread-safe."""

    def __init__(
        self,
        src: AppConfigSource,
        services: ModelServices,
        is_confined: IsConfined,
        *,
        is_trusted: bool,
    ) -> None:
        """Look at nothing yet.

        Args:
            src: The configuration of the project; it is changed with the file.
            services: The models of the application: the next call uses the chosen one.
            is_confined: Whether code runs in a sandbox, for the consent to the project.
            is_trusted: Whether the project was opened with all that it runs and loosens.
        """
        self._src = src
        self._services = services
        self._is_confined = is_confined
        self._is_trusted = is_trusted
        self._lock = threading.Lock()
        self._last: tuple[str, Scope, dict[str, Any]] | None = None
        self._testing: dict[str, LLMApi] = {}
        self._looking = threading.Lock()
        self._seen = (FoundModel("", ""), 0.0, False)

    @property
    def fixed_by(self) -> str:
        """One sentence: the environment or the program decides; empty if a choice takes effect."""
        for name in _NEARER:
            setting = self._src.lookup(name)
            if setting is not None and setting.source == "env":
                return f"{env_name(name)} of the environment decides; unset it to choose here."
            if setting is not None and setting.source in ("override", "app"):
                return "The program that opened the project decides."
        return ""

    @property
    def scopes(self) -> list[Scope]:
        """The files that a choice can be written to: the project's only if it is trusted."""
        if self.fixed_by:
            return []
        file = self._src.config_file
        is_open = self._is_trusted and file is not None and not file.is_symlink()
        return ["project", "user"] if is_open and self._is_granted() else ["user"]

    def can_undo(self, by: str = "") -> bool:
        """Return whether the last choice was made here by this user, who can take it back."""
        return self._last is not None and self._last[0] == by

    def _is_granted(self) -> bool:
        return inspect_project(self._src, self._is_confined).is_granted is True

    def present(self) -> FoundModel:
        """Return the model that answers now.

        Raises:
            ModelError: If it cannot be used as configured.
        """
        model = self._services.model()
        service, name = model.service, model.service.model
        if not isinstance(service, EndpointService):
            provider = self._src.get_enum("llm.api_type")
            is_offline = name.startswith("builtin/")
            return FoundModel(OFFLINE, "No model") if is_offline else FoundModel(provider, name)
        base = service.endpoint.address
        chosen = self._src.get_enum("llm.api_type")
        is_at_root = chosen in ("ollama", "auto") and not split_url(base).path.strip("/")
        base = f"{base.rstrip('/')}/v1" if is_at_root else base
        provider = (provider_at(base) or "openai") if chosen == "auto" else chosen
        key_from = "configuration" if service.endpoint.api_key else ""
        return FoundModel("ollama" if is_at_root else provider, name, base, key_from)

    def found(self) -> tuple[list[FoundModel], FoundModel | None]:
        """Look for models; return them, local ones first, and the present one among them."""
        try:
            present: FoundModel | None = self.present()
        except ModelError:
            present = None
        models = [*self._local(), *_with_variables(), *_kept()]
        by_id = {model.id: model for model in reversed(models)}
        if present is not None:
            same = (model for model in models if model.is_same(present))
            present = next(same, present)
            by_id.setdefault(present.id, present)
        by_id.pop(OFFLINE, None)
        listed = [model for model in models if by_id.pop(model.id, None)] + list(by_id.values())
        offline = FoundModel(OFFLINE, "No model")
        return [*sorted(listed, key=lambda model: not model.is_local), offline], present

    def _local(self) -> list[FoundModel]:
        if not may_look(LLMServiceConfig(self._src)):
            return []
        servers = local_servers(LOCAL_PORTS, timeout_s=_LOOK_S, has_sizes=True)
        return [
            FoundModel(server.provider, name, server.address, size_bytes=size)
            for server in servers
            for name, size in server.models.items()
        ]

    def answers(self, present: FoundModel) -> bool | None:
        """Return whether the present model's server answers; None if it is another machine's."""
        service = self._services.model().service
        if not (present.is_local and isinstance(service, EndpointService)):
            return True if present.is_local else None
        # One look at a time: a server that answers slowly keeps no more than one thread busy.
        with self._looking:
            seen, at, is_there = self._seen
            if seen != present or monotonic() - at > _SEEN_S:
                key = service.endpoint.api_key
                is_there = bool(list_models(present.address, key, timeout_s=_LOOK_S))
                self._seen = present, monotonic(), is_there
            return is_there

    def test(self, model: FoundModel, key: str = "") -> ModelTest:
        """Ask a model a test question, with a tool; a later test of the model cancels this one.

        Args:
            model: The model.
            key: Its key; empty for the one that it has.
        """
        if model.provider == OFFLINE:
            return ModelTest("works", "The built-in analyst needs no test.")
        if not key and self._is_present(model):
            return self._test_with(self._services, model)
        if self.fixed_by:  # its key would be sent to every address
            return ModelTest("failed", self.fixed_by)
        trial = self._src.clone()
        trial.trusts_addresses = False  # no key goes along that is not of this host
        trial.change("json", self._values(model))
        keys: dict[str, Any] = {"llm.max_retries": 0, "llm.call_timeout_s": _TEST_S}
        keys |= {f"llm.{model.provider}.api_key": key} if key else {}
        for name, value in keys.items():
            trial.set_config_value(name, "enum", value, source="override")
        with ModelServices(trial) as services:
            return self._test_with(services, model)

    def _test_with(self, services: ModelServices, model: FoundModel) -> ModelTest:
        api = LLMApi(services)
        with self._lock:
            before, self._testing[model.id] = self._testing.get(model.id), api
        if before is not None:
            before.close()
        try:
            return ask_test_question(api, is_free=model.is_free)
        finally:
            with self._lock:
                if self._testing.get(model.id) is api:
                    del self._testing[model.id]

    def _is_present(self, model: FoundModel) -> bool:
        try:
            return self.present().is_same(model)
        except ModelError:
            return False

    def cancel_test(self, model_id: str = "") -> None:
        """Cancel the test of a model that runs; all tests without one."""
        with self._lock:
            for name, api in self._testing.items():
                if model_id in ("", name):
                    api.close()

    def new_model(self, provider: str, model: str = "", address: str = "") -> FoundModel:
        """Return a model of a provider, or at an address.

        Raises:
            ModelError: Of kind ``configuration``, if the provider, address or model is missing.
        """
        preset = PRESETS.get(provider)
        if preset is None:
            detail = f"The provider {provider!r} is none of {', '.join(PRESETS)}."
            is_address = ":" in provider or "." in provider
            detail += f" For an address: http://{provider}" if is_address else ""
            raise ModelError("configuration", detail)
        base = split_url(preset.api_base or address).geturl().rstrip("/")
        if not _is_clean(base):
            detail = "An address has no login and no query: enter the key where keys are entered."
            raise ModelError("configuration", detail)
        name = model or preset.model
        if not name:
            raise ModelError("configuration", f"Name the model of {base}.")
        return FoundModel(provider, name, base)

    def add(self, model: FoundModel, key: str) -> tuple[ModelTest, FoundModel | None]:
        """Test a model of another provider, and keep it with its key if it answered.

        Raises:
            ConfigError: If the key cannot be kept.
        """
        test = self.test(model, key)
        if test.state in ("failed", "cancelled"):
            return test, None
        keep_endpoint(KeptEndpoint(model.provider, model.address, model.name, key))
        return test, replace(model, key_from="keys.json" if kept_key(model.address) else "")

    def choose(self, model: FoundModel, scope: Scope, by: str = "") -> str:
        """Let a model answer from the next question on; return a remark, empty for none.

        Args:
            model: The model.
            scope: The file that the choice is written to.
            by: The user, who alone can take it back.

        Raises:
            ConfigError: If the environment or the program decides, or the file cannot be changed.
        """
        if scope not in self.scopes:
            reason = self.fixed_by or "The project's file is not changed: it is not trusted."
            raise ConfigError("llm.api_type", reason)
        with self._lock:
            self._last = by, scope, self._write(scope, self._values(model))
        return self._remark(model)

    def undo(self, by: str = "") -> None:
        """Take the last choice back if this user made it; raises as `choose`."""
        with self._lock:
            if self._last is not None and self.can_undo(by):
                self._write(*self._last[1:])
                self._last = None

    def _write(self, scope: Scope, values: dict[str, Any]) -> dict[str, Any]:
        """Write values, `UNSET` to remove one, and return those that were there before."""
        file = user_file() if scope == "user" else self._src.config_file
        was_granted = scope == "project" and self._is_granted()

        def change(before: dict[str, Any]) -> dict[str, Any]:
            return {k: v for k, v in (before | values).items() if v is not UNSET}

        before = change_file(Path(file) if file else None, change)
        self._src.change("json" if scope == "project" else "user", values)
        if was_granted:  # the user's own choice is not asked about
            inspection = inspect_project(self._src, self._is_confined)
            remember(inspection.folder, Answer(inspection.digests, is_granted=True))
        self._services.close()
        return {name: before.get(name, UNSET) for name in values}

    def _values(self, model: FoundModel) -> dict[str, Any]:
        """Return the keys of a choice; None hides one of an earlier choice.

        The keys are those of the provider, so that they never mix with the keys of another.
        """
        if not model.address:
            return {"llm.api_type": model.provider}
        preset = PRESETS.get(model.provider, Preset("", ""))
        base = "" if model.address == preset.api_base else model.address
        values: dict[str, Any] = {"llm.api_type": model.provider}
        wanted = {"model": model.name, "api_base": base, "api_key": ""}
        for rest, value in wanted.items():
            name = f"llm.{model.provider}.{rest}"
            if rest == "api_key" and model.key_from == "configuration":
                continue
            is_set = not {name, f"llm.{rest}"}.isdisjoint(self._src.names())
            values[name] = value or (None if is_set else UNSET)
        return values

    def _remark(self, model: FoundModel) -> str:
        try:
            present = self.present()
        except ModelError as error:
            return redact(str(error))
        if present.is_same(model):
            return ""
        remedy = "Choose for this project, or remove the keys of llm. there."
        stays = "stays without a model" if present.provider == OFFLINE else f"keeps {present.name}"
        return f"This project {stays}: its taskweaver_config.json sets it. {remedy}"


def _with_variables() -> list[FoundModel]:
    found = []
    for name, preset in PRESETS.items():
        if not os.environ.get(preset.key_variable or "-", "").strip():
            continue
        model, base = preset.model, preset.api_base
        if name == "openai":
            model = os.environ.get("OPENAI_MODEL", "").strip() or model
            base = os.environ.get("OPENAI_BASE_URL", "").strip() or base
        if _is_clean(base):
            found.append(FoundModel(name, model, base, preset.key_variable))
    return found


def _kept() -> list[FoundModel]:
    try:
        kept = [one for one in kept_endpoints() if _is_clean(one.address)]
    except ConfigError:  # said where the key is needed
        return []
    rows = [FoundModel(k.provider, k.model, k.address, "keys.json" if k.key else "") for k in kept]
    return [row for row in rows if row.provider in PRESETS and row.name]


def _is_clean(text: str) -> bool:
    """Return whether a text is an address without a login and a query, which are secrets."""
    try:
        parts = split_url(text)
    except ModelError:
        return False
    return "@" not in parts.netloc and not (parts.query or parts.fragment)
