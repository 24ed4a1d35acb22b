"""The code model of a CodeInterpreter: configuration, prompts and replies."""

from __future__ import annotations

from pathlib import Path

from injector import inject

from taskweaver.code_interpreter.orders import OrderProgress, OrderPrompt
from taskweaver.code_interpreter.prompt import CodePrompt, KernelFacts
from taskweaver.code_interpreter.scope import Scope
from taskweaver.llm.api import LLMApi
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.memory import Memory
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.role.asking import RoleModel
from taskweaver.role.compacting import CompactingRoleConfig
from taskweaver.role.examples import ExampleFolder
from taskweaver.role.forms.offer import USER, ActionOffer
from taskweaver.role.prompt import prompt_version


class CodeGeneratorConfig(CompactingRoleConfig):
    """Keys under ``code_generator.``."""

    def _configure(self) -> None:
        self._set_name("code_generator")
        prompt_file = self._get_path("prompt_file_path")
        self.prompt_file_path = Path(prompt_file) if prompt_file else None
        self.role_name = self._get_str("role_name")
        self.load_plugin = self._get_bool("load_plugin")


class CodeGenerator(RoleModel):
    """The model side of the CodeInterpreter. Call `set_alias` before all else."""

    @inject
    def __init__(
        self,
        config: CodeGeneratorConfig,
        logger: TelemetryLogger,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        facts: KernelFacts,
    ) -> None:
        super().__init__(config, logger, event_emitter, llm_api)
        self.config = config
        self._facts = facts
        self._example_folder = ExampleFolder(
            config.example_base_path, logger.warning, is_dynamic=config.dynamic_example_sub_path
        )

    def set_alias(self, alias: str, scope: Scope) -> None:
        """Write for the role called `alias`, and load the role's examples."""
        self.alias = alias
        self.language = scope.language
        self.prompt = self._prompt(scope)
        self.only_form = self.prompt.only_form
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
            return CodePrompt(self.alias, role_name, main, scope.prompt_files, self.language)
        return OrderPrompt(self.alias, role_name, main, scope.prompt_files)

    def offer(self, progress: OrderProgress) -> ActionOffer:
        """Return the actions of any reply to an order.

        A cell ends an order as its last where its outcome goes to another role; the user gets
        an answer in words.
        """
        asker = progress.task.send_from
        return ActionOffer(self.language, asker=asker, is_order=True, has_last=asker != USER)
