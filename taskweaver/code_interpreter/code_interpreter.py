"""The CodeInterpreter role: generates a cell, runs it, reports, and corrects it on failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from injector import inject

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.code_interpreter.code_executor import CodeExecutor
from taskweaver.code_interpreter.code_generator import Cell, CodeGenerator
from taskweaver.code_interpreter.code_verification.policy_check import Policy
from taskweaver.code_interpreter.interpreter import Interpreter
from taskweaver.code_interpreter.plugin_selection import PluginSelection
from taskweaver.code_interpreter.report import sections
from taskweaver.code_interpreter.scope import AnyCode, Scope
from taskweaver.llm.parsing.json_stream import ParsedReply
from taskweaver.llm.selection.config import embedding_model
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.servers import MCPServers
from taskweaver.mcp.session_tools import SessionTools, intro_of
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import (
    ORDER_KEY,
    TABLES_KEY,
    Ran,
    RecordedCell,
    carried_code,
    successful_cells,
)
from taskweaver.memory.round import Round
from taskweaver.module.confirmation import ConfirmationRequest, NotConfirmed
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.role.asking import PostAsking
from taskweaver.role.correction import task_of, tries_so_far
from taskweaver.role.errors import RoleError
from taskweaver.role.role import Role, RoleConfig, RoleEntry
from taskweaver.utils.redact import MASK, MASK_ADVICE, has_mask
from taskweaver.utils.text import fill


class CodeInterpreterConfig(RoleConfig):
    """Keys under ``code_interpreter.``; a subclass has another name and another scope."""

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
    """Turns a task into a cell, runs it in the session's kernel, and reports.

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
        self._registry = plugin_registry if generator.config.load_plugin else None
        self._asked = ""
        self._client = client
        confirmations, limit_s = event_emitter.confirmations, config.confirmation_timeout_s
        tools = (
            SessionTools(mcp_servers, confirmations, limit_s)
            if self.scope.language == "python"
            else None
        )
        self.executor = CodeExecutor(
            client, self._registry, logger, config.code_prefix, tools, tracing
        )
        self.selection = PluginSelection(
            config.shown_plugins, generator.llm_api, embedding_model(config.src), logger
        )
        self._interpreters = {self.alias: self}

    @property
    def plugins(self) -> list[PluginEntry]:
        """The plugins its code may call, by name."""
        usable = {entry.name for entry in self.executor.plugins}
        return [entry for entry in self.scope.plugins(self._entries) if entry.name in usable]

    @property
    def tools(self) -> list[PluginEntry]:
        """The tools outside the kernel its code may call; waits for servers that are starting."""
        tools = self.executor.tools
        allowed = self.scope.plugins([*self._entries, *tools])
        return [entry for entry in tools if entry in allowed]

    @property
    def language(self) -> str:
        """Language of its cells."""
        return self.scope.language

    @property
    def has_own_model(self) -> bool:
        """Whether a further model is configured to write its cells."""
        return bool(self.generator.config.llm_alias)

    def cell_guide(self, memory: Memory) -> str:
        """Return what another author of its cells has to know; see `CellRunner`."""
        functions = [*self.plugins, *self.tools]
        shown = self.selection.pool(functions, memory.conversation.rounds, "")
        return self.generator.prompt.cell_guide(shown)

    @property
    def _entries(self) -> list[PluginEntry]:
        """All plugins there are: a scope decides by the broken ones, too."""
        entries = self._registry.plugins if self._registry else {}
        return [entries[name] for name in sorted(entries)]

    def get_intro(self) -> str:
        """Return its description for the Planner, with its plugins in the place of the text.

        The tools come last. Unusable ones are reported to the user, once.
        """
        for problem in self.executor.new_problems():
            self.logger.warning(problem)
            self.event_emitter.warn(problem)
        lines = [entry.plugin_description() for entry in self.plugins]
        intro = fill(self.intro, plugin_description="\n".join(lines) or "- none")
        return "\n".join(filter(None, [intro, intro_of(self.tools)]))

    def bind_peers(self, peers: Mapping[str, Role]) -> None:
        """Start the kernel in the background, and learn the other roles that run code in it."""
        found = {name: role for name, role in peers.items() if isinstance(role, CodeInterpreter)}
        self._interpreters = found or self._interpreters
        self.executor.start()

    def update_session_variables(self, session_variables: dict[str, str]) -> None:
        """Set variables that plugins read."""
        self.executor.update_session_var(session_variables)

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
        """Turn the newest task into a cell, unless it carries one, run it, and report.

        Raises:
            ModelError: If the model cannot be reached.
            KernelError: If the kernel cannot be started.
            RoleError: If no role gave this one a task.
        """
        view = self.generator.model.view(memory, self.alias)
        task, tries = task_of(view.rounds, self.alias), tries_so_far(view.rounds, self.alias)
        if task is None:
            raise RoleError(self.alias, "no role gave it a task in this round.")
        code = carried_code(task)
        if code:
            return self._run_given(memory, task, code)
        most = self.interpreter_config.max_retry_count
        may_retry = tries < most
        with self.event_emitter.post(self.alias) as proxy:
            self._load()
            proxy.update_status("writing code")
            rounds = memory.conversation.rounds
            shown = self.selection.pool([*self.plugins, *self.tools], rounds, task.message)
            sections = [self.files.text(), self.long_memory.text(task.message)]
            around = "\n\n".join(filter(None, sections))

            outcome = PostAsking(
                self.logger,
                lambda: self.generator.ask(memory, shown, around, proxy),
                proxy,
                "the code model",
                lambda reply: self._read(proxy, task, reply, may_retry=may_retry),
                lambda problem: self._give_up(proxy, task, f"No usable code came back: {problem}"),
                failed=tries,
                attempts=most + 1,
            ).ask()
            if isinstance(outcome, Post):
                return outcome
            return self._check(proxy, task, outcome.code, rounds, may_retry=may_retry)

    def _read(
        self, proxy: PostEventProxy, task: Post, reply: ParsedReply, *, may_retry: bool
    ) -> Cell | Post:
        """Return the cell in a reply, or the finished post of an answer in words."""
        found = self.generator.read(proxy.post, reply)
        if isinstance(found, Cell):
            return found
        proxy.update_message(found.text)
        proxy.update_send_to(task.send_from)
        if may_retry:
            revise = self.generator.prompt.revise_answer
            self.generator.model.review(self.answer_review, proxy.post, revise)
        return proxy.end()

    def run(self, memory: Memory, task: Post) -> Post:
        """Run the code that is the message of a post, as a model's would be, and report.

        Raises:
            KernelError: If the kernel cannot be started.
        """
        return self._run_given(memory, task, task.message)

    def _run_given(self, memory: Memory, task: Post, code: str) -> Post:
        """Run code that another wrote, and report; its author corrects it."""
        with self.event_emitter.post(self.alias) as proxy:
            self._load()
            proxy.update_attachment(self.scope.language, AttachmentType.reply_type)
            proxy.update_attachment(code, AttachmentType.reply_content)
            rounds = memory.conversation.rounds
            return self._check(proxy, task, code, rounds, may_retry=False)

    def _load(self) -> None:
        self.executor.wait_for_tools()  # outside of the operation, which others wait for
        with self._client.operation():
            self.generator.llm_api.check()  # the round may have been interrupted before
            problems = self.executor.load_plugins()
        for problem in (*problems, *self.executor.new_problems()):
            self.event_emitter.warn(problem)

    def _check(
        self,
        proxy: PostEventProxy,
        task: Post,
        written: str,
        rounds: Sequence[Round],
        *,
        may_retry: bool,
    ) -> Post:
        """Run a cell if the role's scope, and a person, allow it."""
        code = self._kept(proxy, written)
        if has_mask(code):
            number = len(successful_cells(rounds)) + 1
            return self._refuse_mask(proxy, task, number, may_retry=may_retry)
        refused = self._verify(proxy, code, rounds)
        if refused:
            return self._refuse(proxy, task, refused, may_retry=may_retry)
        declined = self._declined(proxy, code, rounds)
        if declined:
            proxy.update_message(declined)
            proxy.update_send_to(task.send_from)
            return proxy.end()
        return self._run(proxy, task, code, may_retry=may_retry)

    def _kept(self, proxy: PostEventProxy, written: str) -> str:
        """Return the cell that runs code of the model, and keep it so that it can run again."""
        cell = self.scope.cell(written)
        if cell != written:
            proxy.post.get_attachment(AttachmentType.reply_content)[-1].content = cell
        return cell

    def _verify(self, proxy: PostEventProxy, code: str, rounds: Sequence[Round]) -> list[str]:
        if not self.scope.is_checked:
            return []
        earlier = [cell.code for cell in successful_cells(rounds)]
        names = [entry.name for entry in (*self.plugins, *self.tools)]
        found = self.scope.problems(code, names, earlier)
        proxy.update_attachment("INCORRECT" if found else "CORRECT", AttachmentType.verification)
        return found

    def _refuse(
        self, proxy: PostEventProxy, task: Post, refused: Sequence[str], *, may_retry: bool
    ) -> Post:
        problems = "\n".join(refused)
        proxy.update_attachment(problems, AttachmentType.code_error)
        if not may_retry:
            return self._give_up(
                proxy, task, f"No code came back that the policy allows:\n{problems}"
            )
        return self._ask_again(proxy, "revise_refused", problems)

    def _refuse_mask(
        self, proxy: PostEventProxy, task: Post, number: int, *, may_retry: bool
    ) -> Post:
        """Send back a cell that holds a mask where its author read one, instead of running it."""
        problem = f"Cell {number} holds {MASK}. {MASK_ADVICE}"
        proxy.update_attachment(problem, AttachmentType.code_error)
        if not may_retry:
            return self._give_up(proxy, task, f"The code did not run. {problem}")
        return self._ask_again(proxy, "revise_masked", problem)

    def _ask_again(self, proxy: PostEventProxy, text: str, problems: str) -> Post:
        """End a post whose code did not run with a request to the model to correct it."""
        revise = self.generator.prompt.text(text, PROBLEMS=problems)
        proxy.update_attachment(revise, AttachmentType.revise_message)
        proxy.update_message(f"The code did not run.\n{problems}")
        proxy.update_send_to(self.alias)
        return proxy.end()

    def _declined(self, proxy: PostEventProxy, code: str, rounds: Sequence[Round]) -> str:
        """Return why a cell may not run, where a person has to be asked; empty if it may."""
        if not self.interpreter_config.require_confirmation:
            return ""
        names = [entry.name for entry in self.plugins]
        own = [cell.code for cell in successful_cells(rounds) if cell.role == self.alias]
        previous, self._asked = self._asked or (own[-1] if own else ""), code
        request = ConfirmationRequest(self.scope.kinds(code, names), code, previous, proxy.post.id)
        proxy.update_status("waiting for you")
        confirmations = self.event_emitter.confirmations
        try:
            is_allowed = confirmations.ask(request, self.interpreter_config.confirmation_timeout_s)
        except NotConfirmed as error:
            return f"The code did not run: {error}"
        return "" if is_allowed else self.generator.prompt.text("declined")

    def _run(self, proxy: PostEventProxy, task: Post, code: str, *, may_retry: bool) -> Post:
        proxy.update_status("running code")
        self.files.bring(code)
        with self._client.operation():
            self.generator.llm_api.check()  # the round may have been interrupted before
            self._client.load_plugins([])  # waits until the kernel has started
            result = self.executor.execute_code(proxy.post.id, code, proxy.emit_execution_output)
        order = task.id if carried_code(task) else ""
        self._attach(proxy, result, order)
        if result.is_success or not may_retry or result.status == "interrupted":
            shown = None if order else code  # the author of a carried cell knows it
            proxy.update_message(self.executor.format_code_output(result, shown))
            proxy.update_send_to(task.send_from)
            return proxy.end()
        revise = self.generator.prompt.text("revise_failure")
        proxy.update_attachment(revise, AttachmentType.revise_message)
        proxy.update_message(self.executor.format_code_output(result))
        proxy.update_send_to(self.alias)
        return proxy.end()

    def _attach(self, proxy: PostEventProxy, result: ExecutionResult, order: str) -> None:
        status = "SUCCESS" if result.is_success else "FAILURE"
        extra: dict[str, object] = {ORDER_KEY: order} if order else {}
        if result.tables:
            extra[TABLES_KEY] = [read.to_dict() for read in result.tables]
        proxy.update_attachment(status, AttachmentType.execution_status, extra or None)
        proxy.update_attachment(sections(result, level=3), AttachmentType.execution_result)
        if result.error:
            proxy.update_attachment(result.error, AttachmentType.code_error)
        if result.variables:
            stored = json.dumps(result.variables, ensure_ascii=False)
            proxy.update_attachment(stored, AttachmentType.session_variables)
        paths = [artifact.file_name for artifact in result.artifact if artifact.file_name]
        if paths:
            proxy.update_attachment(paths, AttachmentType.artifact_paths)
            self.files.keep_pictures(proxy.post.id, paths)

    def _give_up(self, proxy: PostEventProxy, task: Post, reason: str) -> Post:
        (proxy.update_message if carried_code(task) else proxy.error)(reason)
        proxy.update_send_to(task.send_from)
        return proxy.end()

    def close(self) -> None:
        """Stop the compactor and the kernel."""
        self.generator.close()
        self.selection.close()
        self.executor.stop()
