"""The code model of a CodeInterpreter: configuration, prompts and replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from injector import inject

from taskweaver.code_interpreter.orders import OrderProgress, OrderPrompt
from taskweaver.code_interpreter.prompt import CodePrompt, KernelFacts, PromptInput
from taskweaver.code_interpreter.scope import Scope
from taskweaver.llm.api import LLMApi
from taskweaver.llm.types import ChatMessage, Chunk, Form
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.memory import Memory
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.asking import ComposePrompt, RefusedReply, RoleModel, View
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.examples import ExampleFolder
from taskweaver.role.forms.actions import ModelReply, ReplyReading
from taskweaver.role.forms.fences import Asked, told
from taskweaver.role.forms.kept_replies import refused_reply
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.forms.reading import read_reply
from taskweaver.role.prompt import prompt_version
from taskweaver.role.situation import Surroundings


class CodeGeneratorConfig(CompactingRoleConfig):
    """Keys under ``code_generator.``."""

    def _configure(self) -> None:
        self._set_name("code_generator")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.role_name = self._get_str("role_name")
        self.load_plugin = self._get_bool("load_plugin")


class CodeGenerator:
    """The model side of the CodeInterpreter. Call `set_alias` before all else."""

    @inject
    def __init__(
        self,
        config: CodeGeneratorConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        facts: KernelFacts,
    ) -> None:
        self.config = config
        self._facts = facts
        self.llm_api = llm_api
        self.model = RoleModel(config, logger, tracing, event_emitter, llm_api)
        self._example_folder = ExampleFolder(
            config.example_base_path, logger.warning, is_dynamic=config.dynamic_example_sub_path
        )

    def set_alias(self, alias: str, scope: Scope) -> None:
        """Write for the role called `alias`, and load the role's examples."""
        self.alias = alias
        self.language = scope.language
        self.prompt = self._prompt(scope)
        policy = self.prompt.text("policy", POLICY=scope.rules) if scope.rules else ""
        self.prompt.limits = "\n\n".join(filter(None, [self._facts.text, policy]))
        self.load_examples()

    def load_examples(self, memory: Memory | None = None) -> None:
        """Load the examples of the role. See `Role.role_load_example`."""
        roles = {self.alias, "Planner"}
        use = self.config.use_example
        self.examples = self._example_folder.examples(roles, memory) if use else []

    def _prompt(self, scope: Scope) -> OrderPrompt | CodePrompt:
        """Return the prompt: version 1 where a prompt file of the user names no version."""
        packaged, own = scope.prompt_files[:1], scope.prompt_files[1:]
        main = None if packaged else self.config.prompt_file_path
        role_name = self.config.role_name
        if any(prompt_version(file) < 2 for file in [*own, *filter(None, [main])]):
            return CodePrompt(
                self.alias,
                role_name,
                self.model.translator,
                main,
                scope.prompt_files,
                self.language,
            )
        return OrderPrompt(self.alias, role_name, main, scope.prompt_files)

    @property
    def form(self) -> Form:
        """The form of replies that is in force."""
        return self.prompt.only_form or self.model.form

    def offer(self, progress: OrderProgress) -> ActionOffer:
        """Return the actions of any reply to an order.

        A cell ends an order as its last where its outcome goes to another role; the user gets
        an answer in words.
        """
        asker = progress.task.send_from
        return ActionOffer(self.language, asker=asker, is_order=True, has_last=asker != USER)

    def compose(
        self,
        memory: Memory,
        view: View,
        plugins: Sequence[PluginEntry],
        around: Surroundings,
        progress: OrderProgress,
    ) -> list[ChatMessage]:
        """Return the prompt for the next reply to an order. `around` is the situation."""
        self.load_examples(memory)
        is_users_own = progress.task.send_from == USER
        given = PromptInput(
            view.rounds,
            view.summary,
            self.examples,
            plugins,
            "" if is_users_own else view.rounds[-1].user_query,
            [entry.content for entry in memory.get_shared_memory_entries("plan")],
            around,
            progress.task,
            self.form,
            self.offer(progress),
            progress.must_answer,
        )
        return self.model.with_experiences(self.prompt.compose(given), memory)

    def chunks(
        self, compose: ComposePrompt, progress: OrderProgress, proxy: PostEventProxy
    ) -> Iterator[Chunk]:
        """Yield the model's next reply to an order, piece by piece. `compose` returns the prompt.

        Raises:
            ModelError: If the model cannot be reached; of kind ``form`` if it refuses the form.
        """
        offer, form, may_call = self.offer(progress), self.form, not progress.must_answer
        tools = offer.tools() if form == "tools" else []
        shown = offer if may_call else offer.without_cells()
        schema = self.prompt.schema(shown) if form == "json" else None
        return self.model.chunks(compose, tools, schema, proxy, may_call=may_call)

    def read(self, reply: ModelReply, progress: OrderProgress) -> ReplyReading:
        """Return the content of a reply to an order: cells, or an answer.

        Raises:
            RefusedReply: If it has neither.
        """
        form, offer, must_answer = self.form, self.offer(progress), progress.must_answer
        is_answer = bool(progress.cells) or (form == "tools" and self.model.takes("tools"))
        shown = offer.without_cells() if must_answer else offer
        asked = Asked(form, progress.task.message, is_answer, told(progress.notes))
        reading = read_reply(reply, shown, asked)
        self.model.note_form(form, reading)
        problem = reading.problem
        if not problem and not reading.actions:
            problem = "The reply has no cell and no answer."
        if problem:
            revise = self.prompt.revise(form, problem)
            kept = refused_reply(reply.calls, reply.record, revise)
            raise RefusedReply(problem, revise, reply=kept)
        return reading

    def close(self) -> None:
        """Stop the summaries."""
        self.model.close()
