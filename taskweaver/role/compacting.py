"""A role's background summaries: read from its configuration, attached to its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from taskweaver.llm.api import LLMApi
from taskweaver.llm.types import ChatMessage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.compaction import ContextCompactor
from taskweaver.memory.memory import Memory
from taskweaver.memory.summaries import CompactorConfig
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.role import RoleConfig


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Limits of a role's summaries, and their model (empty: the role's own)."""

    config: CompactorConfig
    llm_alias: str


class CompactingRoleConfig(RoleConfig):
    """Configuration of a role whose old rounds are summarised."""

    @cached_property
    def compaction(self) -> CompactionSettings:
        """Limits and model of the summaries."""
        path = self._get_path("compaction_prompt_path")
        compactor = CompactorConfig(
            threshold=self._get_int("compaction_threshold"),
            retain_recent=self._get_int("compaction_retain_recent"),
            token_threshold=self._get_int("compaction_token_threshold"),
            prompt_template_path=Path(path) if path else None,
            enabled=self._get_bool("prompt_compression"),
        )
        return CompactionSettings(compactor, self._get_str("compaction_llm_alias"))


class RoleCompaction:
    """The summaries of old rounds in a role's prompts, which all roles of a memory share.

    The settings are those of the role that is asked first; its model writes them. They are stopped
    with any of the roles.
    """

    def __init__(
        self,
        settings: CompactionSettings,
        llm_api: LLMApi,
        logger: TelemetryLogger,
        llm_alias: str,
    ) -> None:
        self._settings = settings
        self._llm_api = llm_api
        self._logger = logger
        self._reader_alias = llm_alias
        self._llm_alias = settings.llm_alias or llm_alias
        self._compactor: ContextCompactor | None = None

    def attach(self, memory: Memory, alias: str) -> None:
        """Summarise the rounds of `memory` from now on, for its role `alias` too."""
        if self._compactor is not None or not self._settings.config.enabled:
            return
        shared = memory.shared_provider(lambda: self._make(memory))
        if isinstance(shared, ContextCompactor):
            self._compactor = shared
        memory.register_compaction_provider(alias, shared)

    def compact(self) -> bool:
        """Summarise more rounds now; return whether fewer are read in full than before.

        The newest rounds that stay are those configured at first, and half as many each time.
        """
        if self._compactor is None:
            return False
        kept = self._settings.config.retain_recent
        while not self._compactor.compact(kept, self._is_wanted):
            if not kept or not self._is_wanted():
                return False
            kept //= 2
        return True

    def stop(self) -> None:
        """Stop the compactor, if there is one."""
        if self._compactor is not None:
            self._compactor.stop()

    def _make(self, memory: Memory) -> ContextCompactor:
        return ContextCompactor(
            self._settings.config,
            self._llm_api,
            memory.get_lasting_rounds,
            self._logger,
            self._llm_alias,
            memory.summaries(),
            window=lambda: self._llm_api.window(self._reader_alias),
            has_ledger=True,
        )

    def _is_wanted(self) -> bool:
        return not self._llm_api.is_interrupted


@dataclass(frozen=True, slots=True)
class RoundShortener:
    """A `Shortener` that summarises rounds of a role's prompt.

    Attributes:
        compaction: Summarises.
        compose: Returns the prompt with the newest summary.
        proxy: Post that is written meanwhile.
        emitter: Receives warnings.
    """

    compaction: RoleCompaction
    compose: Callable[[], list[ChatMessage]]
    proxy: PostEventProxy
    emitter: SessionEventEmitter

    def shorter(self) -> list[ChatMessage] | None:
        """Return the prompt with more of its rounds summarised; None without further ones."""
        self.proxy.update_status("summarising the conversation")
        return self.compose() if self.compaction.compact() else None

    def warn(self, text: str) -> None:
        """Show the user a sentence."""
        self.emitter.warn(text)
