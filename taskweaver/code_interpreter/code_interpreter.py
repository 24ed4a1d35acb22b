"""The CodeInterpreter role: generates cells, runs, reports, and corrects failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from injector import inject

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.code_interpreter.cells import (
    CellGate,
    CellRefused,
    OrderStep,
    attach_outcome,
)
from taskweaver.code_interpreter.code_executor import CodeExecutor, sections
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.code_verification.policy_check import Policy
from taskweaver.code_interpreter.interpreter import Interpreter
from taskweaver.code_interpreter.orders import OrderProgress, progress_of
from taskweaver.code_interpreter.plugin_selection import PluginSelection
from taskweaver.code_interpreter.prompt import PromptInput
from taskweaver.code_interpreter.scope import (
    AnyCode,
    PluginCalls,
    PromptedScope,
    Scope,
    ShellScripts,
)
from taskweaver.llm.selection.config import embedding_model
from taskweaver.llm.types import ChatMessage, Form
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.servers import MCPServers
from taskweaver.mcp.session_tools import SessionTools, intro_of
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import (
    Ran,
    RecordedCell,
    carried_code,
    cell_of,
    successful_cells,
)
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.asking import RoleQuestion
from taskweaver.role.errors import RoleError
from taskweaver.role.forms.offer import USER
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
        registry = plugin_registry if generator.config.load_plugin else None
        self._client = client
        limit_s, confirmations = config.confirmation_timeout_s, event_emitter.confirmations
        has_tools = self.scope.language == "python" and mcp_servers.names
        tools = SessionTools(mcp_servers, confirmations, limit_s) if has_tools else None
        self.executor = CodeExecutor(client, registry, logger, config.code_prefix, tools, tracing)
        ask = partial(confirmations.allowed_content, timeout_s=limit_s)
        consent = ask if config.require_confirmation else None
        self._gate = CellGate(self.scope, consent, generator.prompt.text("declined"))
        self.selection = PluginSelection(
            config.shown_plugins, generator.llm_api, embedding_model(config.src), logger
        )

    @property
    def plugins(self) -> list[PluginEntry]:
        """The plugins that the code may call, by name."""
        entries, broken = self.scope.plugins(self._entries), self.executor.broken
        return [entry for entry in entries if entry.name not in broken]

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
        """Return the facts for a foreign author of cells. See `planner.CellRunner`."""
        functions = [*self.plugins, *self.tools]
        shown = self.selection.pool(functions, memory.conversation.rounds, "")
        return self.generator.prompt.cell_guide(shown)

    @property
    def _entries(self) -> list[PluginEntry]:
        """All plugins: a scope decides by the broken plugins, too."""
        return [entry for _, entry in sorted(self.executor.entries.items())]

    def get_intro(self) -> str:
        """Return the role's description for the Planner, with the plugins in the text's place.

        The tools come last. Unusable ones are reported to the user, once.
        """
        for problem in self.executor.new_problems():
            self.logger.warning(problem)
            self.event_emitter.warn(problem)
        lines = [entry.spec.plugin_description() for entry in self.plugins]
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
        return executor.repeat

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
        view = self.generator.view(memory, self.alias)
        progress = progress_of(view.rounds, self.alias)
        if progress is None:
            raise RoleError(self.alias, "no role gave it a task in this round.")
        code = carried_code(progress.task)
        if code:
            return [self._run_given(memory, progress.task, code)]
        generator, most = self.generator, self.interpreter_config.max_retry_count
        must_answer, offer = progress.must_answer, generator.offer(progress)
        run = partial(self._run, memory)
        step = OrderStep(generator, run, self.event_emitter, progress, most, self.answer_review)
        allowed = offer.without_cells() if must_answer else offer
        question = RoleQuestion(
            self.alias,
            "writing code",
            partial(self._messages, memory, progress),
            generator.prompt.schema(allowed),
            offer,
            allowed,
            progress.task.message,
            progress.notes,
            has_outcome=bool(progress.cells),
            may_call=not must_answer,
            failed=progress.tries,
            attempts=progress.tries + 1 if must_answer else most + 1,
            revise=generator.prompt.revise,
            revise_answer=generator.prompt.revise_answer,
            take=step.carry_out,
            end=step.give_up_reply,
        )
        return generator.ask(question)

    def _messages(self, memory: Memory, progress: OrderProgress, form: Form) -> list[ChatMessage]:
        self._load()
        rounds, generator, task = memory.conversation.rounds, self.generator, progress.task
        view = generator.view(memory, self.alias)
        shown = self.selection.pool([*self.plugins, *self.tools], rounds, task.message)
        around = self.situations.around(
            view.rounds,
            rounds,
            self.files,
            lambda: self.long_memory.text(task.message),
            shows_pictures=generator.takes("images"),
        )
        generator.load_examples(memory)
        given = PromptInput(
            *view,
            generator.examples,
            shown,
            "" if task.send_from == USER else view.rounds[-1].user_query,
            [entry.content for entry in memory.get_shared_memory_entries("plan")],
            around,
            task,
            form,
            generator.offer(progress),
            progress.must_answer,
        )
        return generator.experiences.added_to(generator.prompt.compose(given), memory)

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
            try:
                result, edited = self._run(memory, proxy, code, [], order)
            except CellRefused as refused:
                if refused.revise:
                    proxy.update_attachment(str(refused), AttachmentType.code_error)
                tell = proxy.update_message if order or not refused.revise else proxy.error
                tell(refused.report)
            else:
                shown = edited if order else result.code  # the author of a carried cell knows it
                proxy.update_message(sections(result, code=shown))
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
        written: str,
        before: Sequence[Post],
        order: str = "",
    ) -> tuple[ExecutionResult, str]:
        """Run a cell into the post, and return the code as well if a person changed it.

        `before` are posts with cells that the memory does not hold yet; `order` is the id of the
        post that carried the cell.

        Raises:
            CellRefused: If the cell does not run.
        """
        names = [entry.name for entry in (*self.plugins, *self.tools)]

        def earlier() -> list[RecordedCell]:
            of_order = filter(None, map(cell_of, before))
            return [*successful_cells(memory.conversation.rounds), *of_order]

        code = self.scope.cell(written)  # kept as it runs, so that it can run again
        proxy.post.get_attachment(AttachmentType.reply_content)[-1].content = code
        allowed = self._gate.admit(proxy, code, names, earlier)
        proxy.update_status("running code")
        self.files.bring(allowed)
        with self._client.operation():
            self.generator.llm_api.check()
            self._client.load_plugins([])  # waits until the kernel has started
            emit = proxy.emit_execution_output
            result = self.executor.execute_code(proxy.post.id, allowed, emit)
        if allowed != code:
            result.log.insert(0, ("info", "user", "The user changed this code before it ran."))
        paths = attach_outcome(proxy, result, order)
        if paths:
            self.files.keep_pictures(proxy.post.id, paths)
        return result, allowed if allowed != code else ""

    def close(self) -> None:
        """Stop the compactor and the kernel."""
        self.generator.close()
        self.selection.close()
        self._client.stop()


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
