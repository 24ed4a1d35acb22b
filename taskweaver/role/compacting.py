"""A role's background summaries: read from its configuration, attached to its memory."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.compaction import ContextCompactor
from taskweaver.memory.memory import Memory
from taskweaver.memory.summaries import CompactorConfig
from taskweaver.role.role import RoleConfig


class CompactingRoleConfig(RoleConfig):
    """Configuration of a role whose old rounds are summarised."""

    @cached_property
    def compaction_llm_alias(self) -> str:
        """Model of the summaries."""
        return self._get_str("compaction_llm_alias") or self.llm_alias

    @cached_property
    def compaction(self) -> CompactorConfig:
        """Limits of the summaries."""
        path = self._get_path("compaction_prompt_path")
        return CompactorConfig(
            threshold=self._get_int("compaction_threshold"),
            retain_recent=self._get_int("compaction_retain_recent"),
            token_threshold=self._get_int("compaction_token_threshold"),
            prompt_template_path=Path(path) if path else None,
            enabled=self._get_bool("prompt_compression"),
        )


class RoleCompaction:
    """The summaries of old rounds in a role's prompts, which all roles of a memory share.

    The settings are those of the role that is asked first; its model writes them. They are stopped
    with any of the roles.
    """

    def __init__(
        self, config: CompactingRoleConfig, llm_api: LLMApi, logger: TelemetryLogger
    ) -> None:
        self._config = config
        self._llm_api = llm_api
        self._logger = logger
        self._compactor: ContextCompactor | None = None

    def attach(self, memory: Memory, alias: str) -> None:
        """Summarise the rounds of `memory` from now on, for its role `alias` too."""
        if self._compactor is not None or not self._config.compaction.enabled:
            return
        config, llm_api = self._config, self._llm_api
        shared = memory.shared_provider(
            lambda: ContextCompactor(
                config.compaction,
                llm_api,
                memory.get_lasting_rounds,
                self._logger,
                config.compaction_llm_alias,
                memory.summaries(),
                window=lambda: llm_api.window(config.llm_alias),
                has_ledger=True,
            )
        )
        if isinstance(shared, ContextCompactor):
            self._compactor = shared
        memory.register_compaction_provider(alias, shared)

    def compact(self) -> bool:
        """Summarise more rounds now; return whether fewer are read in full than before.

        The newest rounds that stay are those configured at first, and half as many each time.
        """
        if self._compactor is None:
            return False
        kept = self._config.compaction.retain_recent
        while not self._compactor.compact(kept, self._is_wanted):
            if not kept or not self._is_wanted():
                return False
            kept //= 2
        return True

    def stop(self) -> None:
        """Stop the compactor, if there is one."""
        if self._compactor is not None:
            self._compactor.stop()

    def _is_wanted(self) -> bool:
        return not self._llm_api.is_interrupted
