"""Operations on the model that answers: find, test, add and choose one."""

from __future__ import annotations

import asyncio
import shutil
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from taskweaver.ces.sandbox.sandbox import is_confined
from taskweaver.doors.agent_api.routes import PREFIX
from taskweaver.llm.errors import ModelError
from taskweaver.llm.providers.presets import PRESETS
from taskweaver.llm.services import ModelServices
from taskweaver.llm.setup import (
    OTHER,
    SMALL_GB,
    SMALL_MEMORY_GB,
    SMALL_MODEL,
    FoundModel,
    ModelSetup,
    Scope,
)
from taskweaver.llm.transport.endpoint import is_loopback
from taskweaver.llm.trial import ModelTest
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import Call, missing, operation, view
from taskweaver.utils.redact import redact

_MODEL, _MODELS = f"{PREFIX}/model", f"{PREFIX}/models"
_LONGEST = 4096
_FORWARDING = frozenset("forwarded via x-forwarded-for x-forwarded-host x-real-ip".split())


class ModelRow(BaseModel):
    """A model that can answer; `key_from` names a variable or file, and never holds a key."""

    id: str
    name: str
    provider: str
    label: str
    address: str
    size_bytes: int | None
    is_local: bool
    is_free: bool
    key_from: str
    is_answering: bool


class ModelNow(BaseModel):
    """The model that answers now; none if `problem` keeps the configured one from answering."""

    model: ModelRow | None
    answers: bool | None
    may_change: bool
    why_fixed: str = ""
    note: str = ""
    can_undo: bool = False
    problem: str = ""


class ModelProvider(BaseModel):
    """A provider whose models can be added, with its default model."""

    name: str
    label: str
    model: str
    needs_key: bool
    needs_address: bool


class LocalHelp(BaseModel):
    """The command that gets a small local model."""

    has_ollama: bool
    model: str = SMALL_MODEL
    command: str = f"ollama pull {SMALL_MODEL}"
    size_gb: float = SMALL_GB
    memory_gb: int = SMALL_MEMORY_GB


class ModelList(BaseModel):
    """The models found just now, and what the caller may do with them."""

    now: ModelNow
    models: list[ModelRow]
    scopes: list[Scope]
    may_enter_key: bool
    providers: list[ModelProvider]
    local_help: LocalHelp


class ModelWanted(BaseModel):
    """A model of the list."""

    id: str = Field(max_length=_LONGEST)


class ModelChosen(ModelWanted):
    """A model of the list, and whose configuration names it."""

    scope: Scope


class NewModel(BaseModel):
    """A model to add; empty texts for the provider's default model, no key, its own address."""

    provider: str = Field(max_length=100)
    model: str = Field("", max_length=_LONGEST)
    key: SecretStr = Field(SecretStr(""), max_length=_LONGEST)
    address: str = Field("", max_length=_LONGEST)


class ModelTestResult(BaseModel):
    """Result of a test question; `detail` is the sentence to show."""

    id: str
    state: Literal["works", "no-tools", "wrong", "failed", "cancelled"]
    seconds: float
    tokens: int
    is_estimated: bool
    cost: float | None
    answer: str
    expected: str = "42"
    detail: str


class AddedModel(BaseModel):
    """A model that was added, or none if it did not answer."""

    row: ModelRow | None
    test: ModelTestResult


class ModelOperations:
    """Operations on the model that answers: an admin has them, others see which one it is."""

    of_admins = "Models"

    def __init__(self, sessions: AgentSessions) -> None:
        app = sessions.app
        services = app.app_injector.get(ModelServices)
        self._setup = ModelSetup(app.config, services, is_confined, is_trusted=not app.withheld)

    @operation("GET", _MODEL, "The model that answers now", of_admins="")
    async def _show(self, call: Call) -> ModelNow:
        return await asyncio.to_thread(self._now, call)

    @operation("GET", _MODELS, "Models found on this machine, by keys, and added ones")
    async def _list(self, call: Call) -> ModelList:
        return await asyncio.to_thread(self._found, call)

    @operation("POST", f"{_MODELS}/test", "Ask a model a test question")
    async def _test(self, _call: Call, wanted: ModelWanted) -> ModelTestResult:
        model = await asyncio.to_thread(self._named, wanted.id)
        return _result(model, await asyncio.to_thread(self._setup.test, model))

    @operation(
        "DELETE", f"{_MODELS}/test", "Cancel the test question",
        query={"id": "Model whose test is cancelled; all tests without one"},
    )  # fmt: skip
    async def _cancel(self, call: Call) -> None:
        self._setup.cancel_test(call.query("id"))

    @operation("POST", _MODELS, "Test a model of another provider, and add it if it answers")
    async def _add(self, call: Call, wanted: NewModel) -> AddedModel:
        key = wanted.key.get_secret_value().strip()
        if key and not _may_enter_key(call):
            detail = "Keys can be entered on this machine or over https only."
            raise RequestRefused(403, "key-refused", detail)
        try:
            model = self._setup.new_model(wanted.provider, wanted.model, wanted.address)
        except ModelError as error:
            raise RequestRefused(422, "invalid-model", redact(error.detail)) from None
        test, added = await asyncio.to_thread(self._setup.add, model, key)
        row = None if added is None else _row(added, None)
        return AddedModel(row=row, test=_result(model, test))

    @operation("PUT", _MODEL, "Choose the model that answers, from the next question on")
    async def _choose(self, call: Call, wanted: ModelChosen) -> ModelNow:
        model = await asyncio.to_thread(self._named, wanted.id)
        note = await asyncio.to_thread(self._setup.choose, model, wanted.scope, call.user.name)
        return (await self._show(call)).model_copy(update={"note": note})

    @operation("DELETE", _MODEL, "Take the last choice of the model back")
    async def _undo(self, call: Call) -> ModelNow:
        if not self._setup.can_undo(call.user.name):
            raise RequestRefused(
                409, "nothing-to-undo", "You chose no model here, or another did since."
            )
        await asyncio.to_thread(self._setup.undo, call.user.name)
        return await self._show(call)

    def _now(self, call: Call) -> ModelNow:
        fixed, is_admin = self._setup.fixed_by, call.user.role == "admin"
        now = ModelNow(
            model=None,
            answers=False,
            may_change=is_admin and not fixed,
            why_fixed=fixed if is_admin else "Chosen by the owner of this server.",
            can_undo=is_admin and self._setup.can_undo(call.user.name),
        )
        try:
            model = self._setup.present()
        except ModelError as error:
            now.problem = redact(f"{error.detail} {error.hint}".strip())
        else:
            now.model, now.answers = _row(model, model), self._setup.answers(model)
        return now

    def _found(self, call: Call) -> ModelList:
        models, present = self._setup.found()
        providers = [
            view(ModelProvider, preset, name=name, needs_address=not preset.api_base)
            for name, preset in PRESETS.items()
            if preset.needs_key or name == OTHER
        ]
        return ModelList(
            now=self._now(call),
            models=[_row(model, present) for model in models],
            scopes=self._setup.scopes,
            may_enter_key=_may_enter_key(call),
            providers=providers,
            local_help=LocalHelp(has_ollama=shutil.which("ollama") is not None),
        )

    def _named(self, wanted: str) -> FoundModel:
        models, _ = self._setup.found()
        found = next((model for model in models if model.id == wanted), None)
        if found is None:
            raise missing("Model", wanted[:128])
        return found


def _row(model: FoundModel, present: FoundModel | None) -> ModelRow:
    is_answering = present is not None and model.id == present.id
    size = model.size_bytes or None
    return view(ModelRow, model, name=model.title, size_bytes=size, is_answering=is_answering)


def _result(model: FoundModel, test: ModelTest) -> ModelTestResult:
    usage = test.usage
    return view(
        ModelTestResult,
        test,
        id=model.id,
        tokens=usage.total_tokens,
        is_estimated=usage.is_estimated,
        cost=usage.cost,
    )


def _may_enter_key(call: Call) -> bool:
    """Return whether a key that the caller sends cannot be read on its way."""
    request = call.request
    from_here = request.client is None or is_loopback(f"http://{_host(request.client.host)}")
    # A proxy may have read it on its way.
    is_direct = from_here and _FORWARDING.isdisjoint(request.headers)
    return request.url.scheme == "https" or (is_direct and is_loopback(str(request.base_url)))


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name
