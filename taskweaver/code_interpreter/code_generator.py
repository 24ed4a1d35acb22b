"""The code model of a CodeInterpreter: its configuration, prompts and replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from injector import inject

from taskweaver.code_interpreter.prompt import CodePrompt, NewestTurn
from taskweaver.code_interpreter.scope import Scope
from taskweaver.llm.api import LLMApi
from taskweaver.llm.parsing.json_stream import ParsedReply
from taskweaver.llm.types import ChatMessage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.asking import RefusedReply, RoleModel
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.correction import task_of
from taskweaver.role.examples import ExampleFolder

_FENCE = re.compile(r"\A\s*(`{3,})[a-zA-Z0-9]*\n(.*?)\n?\1\s*\Z", re.DOTALL)


class CodeGeneratorConfig(CompactingRoleConfig):
    """Keys under ``code_generator.``."""

    def _configure(self) -> None:
        self._set_name("code_generator")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.role_name = self._get_str("role_name")
        self.load_plugin = self._get_bool("load_plugin")


@dataclass(frozen=True, slots=True)
class Cell:
    """Code of the model that is to run."""

    code: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the model in words."""

    text: str


class CodeGenerator:
    """The model side of the CodeInterpreter; call `set_alias` before all else."""

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
        self.model = RoleModel(config, logger, tracing, event_emitter, llm_api)
        self._example_folder = ExampleFolder(
            config.example_base_path, is_dynamic=config.dynamic_example_sub_path
        )

    def set_alias(self, alias: str, scope: Scope) -> None:
        """Write for the role called `alias`; load the examples it takes part in."""
        self.alias = alias
        self.language = scope.language
        own = scope.prompt_files
        file = None if own else self.config.prompt_file_path
        self.prompt = CodePrompt(
            alias, self.config.role_name, self.model.translator, file, own, scope.language
        )
        if scope.rules:
            self.prompt.policy = self.prompt.text("policy", POLICY=scope.rules)
        self.load_examples()

    def load_examples(self, memory: Memory | None = None) -> None:
        """Load the examples its role takes part in; see `Role.role_load_example`."""
        roles = {self.alias, "Planner"}
        use = self.config.use_example
        self.examples = self._example_folder.examples(roles, memory) if use else []

    def ask(
        self, memory: Memory, plugins: Sequence[PluginEntry], files: str, proxy: PostEventProxy
    ) -> ParsedReply:
        """Return the model's reply with the next cell, after it was streamed into a post.

        Raises:
            ModelError: If the model cannot be reached.
        """
        return self.model.stream(
            lambda: self.compose(memory, plugins, files), self.prompt.schema, proxy
        )

    def compose(
        self, memory: Memory, plugins: Sequence[PluginEntry], files: str
    ) -> list[ChatMessage]:
        """Return the prompt for the next cell."""
        view = self.model.view(memory, self.alias)
        self.load_examples(memory)
        newest = self._newest(memory, view.rounds, files)
        messages = self.prompt.compose(view.rounds, view.summary, self.examples, plugins, newest)
        return self.model.with_experiences(messages, memory)

    def read(self, post: Post, reply: ParsedReply) -> Cell | Answer:
        """Return the cell or the answer in a reply.

        Raises:
            RefusedReply: If it has neither.
        """
        reply_type, content = (
            "\n".join(str(item.content) for item in post.get_attachment(kind))
            for kind in (AttachmentType.reply_type, AttachmentType.reply_content)
        )
        problem, kind = reply.problem, reply_type.strip().lower()
        if problem is None and not content.strip():
            problem = "reply_content is missing or empty."
        elif problem is None and kind not in {"text", self.language}:
            problem = f'reply_type is {reply_type!r}, and must be "{self.language}" or "text".'
        if problem is not None:
            raise RefusedReply(problem, self.prompt.text("revise_reply", PROBLEM=problem))
        return Answer(content) if kind == "text" else Cell(_without_fence(content))

    def _newest(self, memory: Memory, rounds: Sequence[Round], files: str) -> NewestTurn:
        task = task_of(rounds, self.alias)
        plans = tuple(entry.content for entry in memory.get_shared_memory_entries("plan"))
        is_users_own = task is None or task.send_from == "User"
        request = "" if is_users_own or not rounds else rounds[-1].user_query
        return NewestTurn(request, plans, files)

    def close(self) -> None:
        """Stop the summaries."""
        self.model.close()


def _without_fence(content: str) -> str:
    match = _FENCE.match(content)
    return match[2] if match else content
