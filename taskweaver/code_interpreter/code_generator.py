"""Asks the code model for the next cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from injector import inject

from taskweaver.code_interpreter.prompt import CodePrompt, NewestTurn
from taskweaver.code_interpreter.scope import AnyCode, Scope
from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.compaction import CompactedMessage
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.compacting import CompactingRoleConfig, RoleCompaction
from taskweaver.role.correction import task_of
from taskweaver.role.examples import ExampleFolder
from taskweaver.role.experiences import RoleExperiences
from taskweaver.role.translator import PostTranslator

_FENCE = re.compile(r"\A\s*(`{3,})[a-zA-Z0-9]*\n(.*?)\n?\1\s*\Z", re.DOTALL)


class CodeGeneratorConfig(CompactingRoleConfig):
    """Keys under ``code_generator.``."""

    def _configure(self) -> None:
        self._set_name("code_generator")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.role_name = self._get_str("role_name")
        self.load_plugin = self._get_bool("load_plugin")
        self.compaction = self._read_compaction()


@dataclass(frozen=True, slots=True)
class Cell:
    """The model wants this code to run."""

    code: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model answers in words.

    Attributes:
        text: The words.
        raw: The whole reply.
    """

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The model's reply cannot be used."""

    problem: str
    raw: str


Reading = Cell | Answer | Unreadable


class View(NamedTuple):
    """The rounds a code prompt shows, and the summary of those before them."""

    rounds: list[Round]
    summary: CompactedMessage | None


class CodeGenerator:
    """The model side of the CodeInterpreter."""

    @inject
    def __init__(
        self,
        config: CodeGeneratorConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
    ) -> None:
        self.config = config
        self.llm_api = llm_api
        self.logger = logger
        self.translator = PostTranslator(logger, tracing, event_emitter)
        self.compaction = RoleCompaction(config.compaction, llm_api, logger, config.llm_alias)
        self.experiences = RoleExperiences(config, llm_api, logger)
        self._example_folder = ExampleFolder(
            config.example_base_path, is_dynamic=config.dynamic_example_sub_path
        )
        self.set_alias("CodeInterpreter", AnyCode(None))

    def set_alias(self, alias: str, scope: Scope) -> None:
        """Write for the role called `alias`; load the examples it takes part in.

        Args:
            alias: The role.
            scope: What it may run, and so what its model is told.
        """
        self.alias = alias
        self.language = scope.language
        own = scope.prompt_files
        file = None if own else self.config.prompt_file_path
        self.prompt = CodePrompt(
            alias, self.config.role_name, self.translator, file, own, scope.language
        )
        if scope.rules:
            self.prompt.policy = self.prompt.text("policy", POLICY=scope.rules)
        self.load_examples()

    def load_examples(self, memory: Memory | None = None) -> None:
        """Load the examples its role takes part in; see `Role.role_load_example`."""
        roles = {self.alias, "Planner"}
        use = self.config.use_example
        self.examples = self._example_folder.examples(roles, memory) if use else []

    def view(self, memory: Memory) -> View:
        """Return what the next prompt shows; the last round is being answered."""
        self.compaction.attend(memory, self.alias)
        return View(*memory.get_role_rounds_with_compaction(self.alias))

    def read(
        self,
        memory: Memory,
        view: View,
        plugins: Sequence[PluginEntry],
        proxy: PostEventProxy,
        files: str = "",
    ) -> Reading:
        """Ask the model for the next cell, streaming its reply into the post.

        Args:
            memory: The conversation.
            view: The rounds that the prompt shows.
            plugins: Functions that it lists.
            proxy: The post.
            files: Section that lists the user's files; empty for none.

        Raises:
            ModelError: If the model cannot be reached.
        """
        self.load_examples(memory)
        newest = self._newest(memory, view.rounds, files)
        messages = self.prompt.compose(view.rounds, view.summary, self.examples, plugins, newest)
        messages = self.experiences.added_to(messages, memory)
        chunks = self.llm_api.chat_completion_stream(
            messages,
            llm_alias=self.config.llm_alias,
            json_schema=self.prompt.schema,
            on_status=proxy.update_status,
        )
        reply = self.translator.raw_text_to_post(chunks, proxy)
        return _reading(proxy.post, reply.problem, reply.raw, self.language)

    def _newest(self, memory: Memory, rounds: Sequence[Round], files: str) -> NewestTurn:
        task = task_of(rounds, self.alias)
        plans = tuple(entry.content for entry in memory.get_shared_memory_entries("plan"))
        is_users_own = task is None or task.send_from == "User"
        request = "" if is_users_own or not rounds else rounds[-1].user_query
        return NewestTurn(request, plans, files)

    def close(self) -> None:
        """Stop the compactor."""
        self.compaction.stop()


def _reading(post: Post, problem: str | None, raw: str, language: str) -> Reading:
    kinds = (AttachmentType.reply_type, AttachmentType.reply_content)
    reply_type, content = (
        "\n".join(str(item.content) for item in post.get_attachment(kind)) for kind in kinds
    )
    if problem is not None:
        return Unreadable(problem, raw)
    if not content.strip():
        return Unreadable("reply_content is missing or empty.", raw)
    if reply_type.strip().lower() == "text":
        return Answer(content, raw)
    if reply_type.strip().lower() != language:
        wrong = f'reply_type is {reply_type!r}, and must be "{language}" or "text".'
        return Unreadable(wrong, raw)
    return Cell(_without_fence(content))


def _without_fence(content: str) -> str:
    match = _FENCE.match(content)
    return match[2] if match else content
