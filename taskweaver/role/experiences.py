"""Experiences in a role's prompt: those that suit the request, chosen for every request."""

from __future__ import annotations

from taskweaver.llm.api import LLMApi
from taskweaver.llm.selection.config import embedding_model
from taskweaver.llm.types import ChatMessage, format_chat_message
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.experience import ExperienceGenerator
from taskweaver.memory.memory import Memory
from taskweaver.role.role import RoleConfig

_TEMPLATE = (
    "# Experience\nWhat was learnt in earlier conversations like this one. Follow it where it fits"
    " the request; the user's own words go first.\n\n{experiences}"
)
_MOST = 3


class RoleExperiences:
    """Experiences of a role; none if its configuration turns them off."""

    def __init__(self, config: RoleConfig, llm_api: LLMApi, logger: TelemetryLogger) -> None:
        src = config.src
        self._is_used = config.use_experience
        self._follows_memory = config.dynamic_experience_sub_path
        self._generator = ExperienceGenerator(
            llm_api,
            config.experience_dir,
            embedding_model=embedding_model(src),
            threshold=src.get_float("experience.retrieve_threshold"),
            llm_alias=src.get_str("experience.llm_alias"),
            tell=logger.warning,
        )

    def added_to(self, messages: list[ChatMessage], memory: Memory) -> list[ChatMessage]:
        """Return a prompt with the experiences that suit the newest request.

        Raises:
            TaskWeaverError: If a model that is needed for them cannot be asked.
        """
        rounds = memory.conversation.rounds
        if not self._is_used or not rounds:
            return messages
        text = self._text(rounds[-1].user_query, memory)
        if not text:
            return messages
        first, rest = messages[0], messages[1:]
        return [format_chat_message("system", f"{first['content']}\n\n{text}"), *rest]

    def _text(self, request: str, memory: Memory) -> str:
        if self._follows_memory:
            entries = memory.get_shared_memory_entries("experience_sub_path")
            if not entries:
                return ""
            self._generator.set_sub_path(entries[-1].content)
        is_new = bool(self._generator.refresh())
        if is_new or not self._generator.experience_list:
            self._generator.load_experience()
        found = self._generator.retrieve_experience(request)[:_MOST]
        return self._generator.format_experience_in_prompt(_TEMPLATE, found)
