"""The base class of roles: a role reads the conversation and answers with a post."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from injector import inject

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.module_config import ModuleConfig
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.errors import RoleError
from taskweaver.role.examples import ExampleFolder
from taskweaver.role.files import NoFiles, RoleFiles
from taskweaver.role.long_memory import LongMemory
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.role.situation import Situations

__all__ = ["Role", "RoleConfig", "RoleEntry", "RoleRegistry"]


class RoleConfig(ModuleConfig):
    """Configuration of a role; its keys start with the name of the file it is defined in."""

    @inject
    def __init__(self, src: AppConfigSource) -> None:
        self._set_name(type(self).__module__.rpartition(".")[2])
        super().__init__(src)
        self.use_example = self._get_bool("use_example")
        self.example_base_path = Path(self._get_path("example_base_path"))
        self.dynamic_example_sub_path = self._get_bool("dynamic_example_sub_path")
        self.llm_alias = self._get_str("llm_alias")
        self.use_experience = self._get_bool("use_experience")
        self.experience_dir = Path(self._get_path("experience_dir"))
        self.dynamic_experience_sub_path = self._get_bool("dynamic_experience_sub_path")


class AnswerReview(Protocol):
    """Checks an answer before it is sent."""

    def doubts(self, post: Post) -> list[str]:
        """Return the numbers of an answer that its author is asked to correct.

        Empty if all numbers are supported, or if the author was asked already in this round.
        """
        ...


class Role:
    """Base of all roles; a subclass overrides `reply`.

    Attributes:
        alias: Name in posts and prompts.
        name: Name in the configuration.
        intro: Description of the role for the Planner.
        examples: Example conversations for its prompt.
        situations: Files, variables and facts that its prompts show.
        only_acknowledges: Whether its answers hold no information, so that a repeated answer is no
            sign of being stuck; a repeated question is.
        answers_from_outcomes: Whether its answers to the user are words of a model about outcomes
            of the session, so that their numbers are checked.
        may_branch: Whether its orders may be carried out on branches of the session.
        answer_review: Checks its answers to the user; None for no check.
        config_type: Class of its configuration where its constructor is inherited; None takes the
            one that the constructor names.
    """

    only_acknowledges = False
    answers_from_outcomes = False
    may_branch = False
    answer_review: AnswerReview | None = None
    files: RoleFiles = NoFiles()
    long_memory: LongMemory
    config_type: ClassVar[type[RoleConfig] | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse a method of an earlier release that is no longer called.

        Raises:
            RoleError: If the class defines `meet`.
        """
        super().__init_subclass__(**kwargs)
        if "meet" in vars(cls):
            raise RoleError(cls.__name__, "`meet` is never called: rename it to `bind_peers`")

    @inject
    def __init__(
        self,
        config: RoleConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry | None = None,
    ) -> None:
        self.config = config
        self.logger = logger
        self.tracing = tracing
        self.event_emitter = event_emitter
        self.role_entry = role_entry
        self.alias = role_entry.alias if role_entry else type(self).__name__
        self.name = role_entry.name if role_entry else config.name
        self.intro = role_entry.intro if role_entry else ""
        self.examples: list[Conversation] = []
        self.situations = Situations()
        self._example_folder = ExampleFolder(
            config.example_base_path, logger.warning, is_dynamic=config.dynamic_example_sub_path
        )

    def get_intro(self) -> str:
        """Return the description of this role for the Planner."""
        return self.intro

    def get_alias(self) -> str:
        """Return the name in posts and prompts."""
        return self.alias

    def set_alias(self, alias: str) -> None:
        """Set the name in posts and prompts."""
        self.alias = alias

    def bind_peers(self, peers: Mapping[str, Role]) -> None:
        """Learn, once, which other roles take part, by alias."""

    def reply(self, memory: Memory, **kwargs: object) -> Post:
        """Answer the newest post addressed to this role.

        Raises:
            TaskWeaverError: If there can be no answer; the round then fails.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement reply")

    def replies(self, memory: Memory) -> list[Post]:
        """Answer the newest post addressed to this role, with one post or more.

        Those for other roles are carried out in their order, and their answers are all in the
        memory before this role is asked again.

        Raises:
            TaskWeaverError: If there can be no answer; the round then fails.
        """
        return [self.reply(memory)]

    def role_load_example(self, role_set: set[str], memory: Memory | None = None) -> None:
        """Load the examples in which no role but those of `role_set` takes part.

        Args:
            role_set: Aliases.
            memory: Where a shared entry names the folder, if that is configured; it is asked each
                time, and files are read again when the folder is another. Without it there are
                no examples then.

        Raises:
            SubPathRefused: If the named folder is not inside the configured one.
        """
        if self.config.use_example:
            self.examples = self._example_folder.examples(role_set, memory)

    def interrupt(self) -> None:
        """Cancel a running `reply`; called from any thread. Model calls end by themselves."""

    def close(self) -> None:
        """Release the resources of the role; called once, at the end of the session."""
