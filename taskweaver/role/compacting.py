"""A role's background summaries: read from its configuration, attached to its memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.compaction import CompactorConfig, ContextCompactor, Summarizer
from taskweaver.memory.memory import Memory
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
    """Summaries of a role's old rounds: begun at the first reply, stopped with the role."""

    def __init__(
        self,
        settings: CompactionSettings,
        summarizer: Summarizer,
        logger: TelemetryLogger,
        llm_alias: str,
    ) -> None:
        self._settings = settings
        self._summarizer = summarizer
        self._logger = logger
        self._llm_alias = settings.llm_alias or llm_alias
        self._compactor: ContextCompactor | None = None

    def attach(self, memory: Memory, alias: str) -> None:
        """Watch the rounds `alias` sees in `memory`, from now on."""
        if self._compactor is not None or not self._settings.config.enabled:
            return
        self._compactor = ContextCompactor(
            self._settings.config,
            self._summarizer,
            lambda: memory.get_lasting_rounds(alias),
            self._logger,
            self._llm_alias,
            memory.summaries(alias),
        )
        memory.register_compaction_provider(alias, self._compactor)

    def stop(self) -> None:
        """Stop the compactor, if there is one."""
        if self._compactor is not None:
            self._compactor.stop()
