"""The CodeInterpreter role: generates cells, runs, reports, and corrects failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from injector import inject

from taskweaver.ces.common import Client
from taskweaver.code_interpreter.cells import CellEnd, CellRun, OrderStep, attach_outcome
from taskweaver.code_interpreter.code_executor import CodeExecutor, sections
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.code_verification.policy_check import Policy
from taskweaver.code_interpreter.interpreter import Interpreter
from taskweaver.code_interpreter.orders import OrderProgress, progress_of
from taskweaver.code_interpreter.plugin_selection import PluginSelection
from taskweaver.code_interpreter.prompt import text_of
from taskweaver.code_interpreter.scope import (
    AnyCode,
    PluginCalls,
    PromptedScope,
    Scope,
    ShellScripts,
)
from taskweaver.llm.errors import ModelError
from taskweaver.llm.selection.config import embedding_model
from taskweaver.llm.types import ChatMessage
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.servers import MCPServers
from taskweaver.mcp.session_tools import SessionTools, intro_of
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import (
    Ran,
    RecordedCell,
    carried_code,
    successful_cells,
)
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.asking import PostAsking
from taskweaver.role.errors import RoleError
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.role.in_force import own_texts
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import Role, RoleConfig
from taskweaver.utils.text import fill


class CodeInterpreterConfig(RoleConfig):
    """Keys under ``code_interpreter.``. A subclass has another name and another scope."""

    role = "code_interpreter"
    code_prefix = ""

    def _configure(self) -> None:
        self._set_name(self.role)
        self.max_retry_count = self._get_int("max_retry_count")
        self.require_confirmation = self._get_bool("require_confirmation")
        self.confirmation_timeout_s = self._get_float("confirmation_timeout_s")
        self.scope = self._read_scope()
        is_selecting = self.src.get_bool("code_interpreter.enable_auto_plugin_selection")
        most = self.src.get_int("code_interpreter.auto_plugin_selection_topk")
        self.shown_plugins = most if is_selecting else None

    def _read_scope(self) -> Scope:
        self.code_prefix = self._get_str("code_prefix")
        policy = Policy(
            self._get_list("allowed_modules", None),
            self._get_list("blocked_modules"),
            self._get_list("allowed_functions", None),
            self._get_list("blocked_functions"),
        )
        return AnyCode(policy if self._get_bool("code_verification_on") else None)


class CodeInterpreter(Role, Interpreter):
    """Turns a task into cells that run in the session's kernel, and reports.

    The code it may run is its configuration's `Scope`; several in a session share the kernel.
    """

    answers_from_outcomes = True

    @inject
    def __init__(  # noqa: PLR0913 - a role receives its parts by type
        self,
        config: CodeInterpreterConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        generator: CodeGenerator,
        client: Client,
        plugin_registry: PluginRegistry,
        mcp_servers: MCPServers,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.interpreter_config = config
        self.scope = config.scope
        self.generator = generator
        generator.set_alias(self.alias, self.scope)
        self.examples = generator.examples
        self._registry = plugin_registry if generator.config.load_plugin else None
        self._client = client
        limit_s, confirmations = config.confirmation_timeout_s, event_emitter.confirmations
        has_tools = self.scope.language == "python" and mcp_servers.names
        tools = SessionTools(mcp_servers, confirmations, limit_s) if has_tools else None
        self.executor = CodeExecutor(
            client, self._registry, logger, config.code_prefix, tools, tracing
        )
        ask = partial(confirmations.allowed_content, timeout_s=limit_s)
        self._cells = CellRun(
            self.scope,
            client,
            self.executor,
            generator.llm_api.check,
            ask if config.require_confirmation else None,
            generator.prompt.text("declined"),
        )
        self.selection = PluginSelection(
            config.shown_plugins, generator.llm_api, embedding_model(config.src), logger
        )

    @property
    def plugins(self) -> list[PluginEntry]:
        """The plugins that the code may call, by name."""
        usable = {entry.name for entry in self.executor.plugins}
        return [entry for entry in self.scope.plugins(self._entries) if entry.name in usable]

    @property
    def tools(self) -> list[PluginEntry]:
        """The tools outside the kernel that the code may call, once all servers have started."""
        tools = self.executor.tools
        allowed = self.scope.plugins([*self._entries, *tools])
        return [entry for entry in tools if entry in allowed]

    @property
    def language(self) -> str:
        """Language of the cells."""
        return self.scope.language

    @property
    def has_own_model(self) -> bool:
        """Whether the role takes orders in words: an own model or own texts are configured."""
        return bool(own_texts(self.config.src, self.name))

    def cell_guide(self, memory: Memory) -> str:
        """Return the facts for a foreign author of cells. See `CellRunner`."""
        functions = [*self.plugins, *self.tools]
        shown = self.selection.pool(functions, memory.conversation.rounds, "")
        return self.generator.prompt.cell_guide(shown)

    @property
    def _entries(self) -> list[PluginEntry]:
        """All plugins: a scope decides by the broken plugins, too."""
        entries = self._registry.plugins if self._registry else {}
        return [entries[name] for name in sorted(entries)]

    def get_intro(self) -> str:
        """Return the role's description for the Planner, with the plugins in the text's place.

        The tools come last. Unusable ones are reported to the user, once.
        """
        for problem in self.executor.new_problems():
            self.logger.warning(problem)
            self.event_emitter.warn(problem)
        lines = [entry.plugin_description() for entry in self.plugins]
        intro = fill(self.intro, plugin_description="\n".join(lines) or "- none")
        return "\n".join(filter(None, [intro, intro_of(self.tools)]))

    def bind_peers(self, peers: Mapping[str, Role]) -> None:  # noqa: ARG002 - as roles have it
        """Start the servers of tools."""
        self.executor.begin_tools()

    def update_session_variables(self, session_variables: dict[str, str]) -> None:
        """Set variables that plugins read."""
        self._client.update_session_var(session_variables)

    def repeater(self, client: Client) -> Callable[[RecordedCell], Ran]:
        """Return a function that runs this role's recorded cells again in another kernel.

        Raises:
            KernelError: If the kernel cannot be started.
        """
        executor = self.executor.in_kernel(client)
        executor.load_plugins()

        def run(cell: RecordedCell) -> Ran:
            result = executor.execute_code(cell.post_id, cell.code, is_repeated=True)
            return Ran(sections(result, level=3), result.reason, dict(result.variables))

        return run

    def reply(self, memory: Memory, **_kwargs: object) -> Post:
        """Return the newest post of `replies`."""
        return self.replies(memory)[-1]

    def replies(self, memory: Memory) -> list[Post]:
        """Take the next step of the newest order: run cells, or end with a report.

        An order that carries a cell ends with its run. For one in words the model writes cells
        and reads their outcomes, one post to itself after the other, until it answers.

        Raises:
            ModelError: If the model cannot be reached.
            KernelError: If the kernel cannot be started.
            RoleError: If no role gave this one an order.
        """
        view = self.generator.model.view(memory, self.alias)
        progress = progress_of(view.rounds, self.alias)
        if progress is None:
            raise RoleError(self.alias, "no role gave it a task in this round.")
        code = carried_code(progress.task)
        if code:
            return [self._run_given(memory, progress.task, code)]
        while True:
            form = self.generator.form
            try:
                return self._next_step(memory, progress)
            except ModelError as error:
                if error.kind != "form" or self.generator.form == form:
                    raise

    def _next_step(self, memory: Memory, progress: OrderProgress) -> list[Post]:
        most = self.interpreter_config.max_retry_count
        with self.event_emitter.post(self.alias) as proxy:
            self._load()
            proxy.update_status("writing code")
            compose = partial(self._messages, memory, progress)
            writer = ReplyWriter(self.event_emitter, proxy, self.generator.offer(progress))

            def run(post: PostEventProxy, code: str, before: Sequence[Post]) -> CellEnd:
                return self._run(memory, post, code, before)

            step = OrderStep(self.generator, run, self.event_emitter, progress, proxy, writer, most)
            answer = PostAsking(
                self.logger,
                lambda: writer.read(self.generator.chunks(compose, progress, proxy)),
                proxy,
                "the code model",
                lambda reply: step.carry_out(reply, self.answer_review),
                lambda problem: [step.give_up_reply(problem)],
                failed=progress.tries,
                attempts=progress.tries + 1 if progress.must_answer else most + 1,
            ).ask()
            return [answer] if isinstance(answer, Post) else answer

    def _messages(self, memory: Memory, progress: OrderProgress) -> list[ChatMessage]:
        rounds, generator = memory.conversation.rounds, self.generator
        view = generator.model.view(memory, self.alias)
        shown = self.selection.pool([*self.plugins, *self.tools], rounds, progress.task.message)
        around = self.situations.around(
            view.rounds,
            rounds,
            self.files,
            lambda: self.long_memory.text(progress.task.message),
            shows_pictures=generator.model.takes("images"),
        )
        return generator.compose(memory, view, shown, around, progress)

    def run(self, memory: Memory, task: Post) -> Post:
        """Run the code that is the message of a post, as a model's would be, and report.

        Raises:
            KernelError: If the kernel cannot be started.
        """
        return self._run_given(memory, task, task.message)

    def _run_given(self, memory: Memory, task: Post, code: str) -> Post:
        """Run foreign code, and report. The author corrects the code."""
        with self.event_emitter.post(self.alias) as proxy:
            self._load()
            proxy.update_attachment(self.scope.language, AttachmentType.reply_type)
            proxy.update_attachment(code, AttachmentType.reply_content)
            order = task.id if carried_code(task) else ""
            end = self._run(memory, proxy, code, [], order)
            if end.result is None:
                problem = f"{end.refusal}{end.problem}"
                if end.revise:
                    proxy.update_attachment(end.problem, AttachmentType.code_error)
                report = (
                    proxy.update_message if carried_code(task) or not end.revise else proxy.error
                )
                report(problem)
            else:
                is_known = order and not end.is_edited  # to the author of a carried cell
                shown = None if is_known else end.code
                proxy.update_message(sections(end.result, code=shown))
            proxy.update_send_to(task.send_from)
            return proxy.end()

    def _load(self) -> None:
        self.executor.wait_for_tools()  # outside of the operation, which others wait for
        with self._client.operation():
            self.generator.llm_api.check()  # the round may have been interrupted before
            problems = self.executor.load_plugins()
        for problem in (*problems, *self.executor.new_problems()):
            self.event_emitter.warn(problem)

    def _run(
        self,
        memory: Memory,
        proxy: PostEventProxy,
        code: str,
        before: Sequence[Post],
        order: str = "",
    ) -> CellEnd:
        """Run a cell, and put the outcome on the post.

        `before` are posts with cells that the memory does not hold yet; `order` is the id of the
        post that carried the cell.
        """
        names = [entry.name for entry in (*self.plugins, *self.tools)]

        def earlier() -> list[RecordedCell]:
            of_order = [
                RecordedCell(post.id, text_of(post, AttachmentType.reply_content), self.alias)
                for post in before
            ]
            return [*successful_cells(memory.conversation.rounds), *of_order]

        end = self._cells.run(proxy, code, names, earlier, self.files.bring)
        if end.result is not None:
            paths = attach_outcome(proxy, end.result, order)
            if paths:
                self.files.keep_pictures(proxy.post.id, paths)
        return end

    def close(self) -> None:
        """Stop the compactor and the kernel."""
        self.generator.close()
        self.selection.close()
        self.executor.stop()


class _NarrowConfig(CodeInterpreterConfig):
    """Configuration of a code interpreter whose scope has a prompt file."""

    scope_type: ClassVar[type[PromptedScope]]

    def _read_scope(self) -> Scope:
        file = self._get_path("prompt_file_path")
        return self.scope_type(Path(file) if file else None)


class PluginOrchestratorConfig(_NarrowConfig):
    """Keys under ``code_interpreter_plugin_only.``."""

    role = "code_interpreter_plugin_only"
    scope_type = PluginCalls


class PluginOrchestrator(CodeInterpreter):
    """Answers tasks by calls of plugins, and no further code."""

    config_type = PluginOrchestratorConfig


class CLIAgentConfig(_NarrowConfig):
    """Keys under ``code_interpreter_cli_only.``."""

    role = "code_interpreter_cli_only"
    scope_type = ShellScripts


class CLIAgent(CodeInterpreter):
    """Answers tasks with shell commands, in the session's kernel and sandbox."""

    config_type = CLIAgentConfig
