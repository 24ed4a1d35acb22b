"""Runs cells for a session: starts its kernel, loads its plugins, words the result."""

from __future__ import annotations

from collections.abc import Mapping

from taskweaver.ces.common import Client, ExecutionResult, OutputHandler
from taskweaver.ces.errors import PluginLoadFailed
from taskweaver.code_interpreter.report import sections
from taskweaver.logging.log import TelemetryLogger
from taskweaver.mcp.session_tools import SessionTools
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry


class CodeExecutor:
    """The kernel of a session, with the plugins in it.

    Attributes:
        broken: Plugins that did not load into the kernel, and why.
    """

    def __init__(
        self,
        client: Client,
        plugin_registry: PluginRegistry | None,
        logger: TelemetryLogger,
        code_prefix: str = "",
        tools: SessionTools | None = None,
    ) -> None:
        """Take a kernel.

        Args:
            client: The kernel.
            plugin_registry: Plugins to load; None for none.
            logger: Where broken plugins are noted.
            code_prefix: Code that runs at the start of every cell.
            tools: What cells may call outside the kernel; None for nothing.
        """
        self._client = client
        self._code_prefix = code_prefix
        self._registry = plugin_registry
        self._logger = logger
        self._loaded: set[str] = set()
        self._tools = tools if tools is not None and not tools.is_empty else None
        self._is_offered = False
        self.broken: dict[str, str] = {}

    @property
    def plugins(self) -> list[PluginEntry]:
        """The plugins that can be used, by name."""
        if self._registry is None:
            return []
        entries = sorted(self._registry.plugins.items())
        return [entry for name, entry in entries if name not in self.broken]

    @property
    def functions(self) -> list[PluginEntry]:
        """What cells can call: the plugins, then the tools outside the kernel.

        Waits for the servers of the tools where they are still starting.
        """
        plugins = self.plugins
        if self._tools is None:
            return plugins
        tools = self._tools.entries([entry.name for entry in plugins])
        return [*plugins, *(entry for entry in tools if entry.name not in self.broken)]

    def new_problems(self) -> list[str]:
        """Return, once each, a sentence for what tools cannot be used."""
        names = [entry.name for entry in self.plugins]
        return [] if self._tools is None else self._tools.new_problems(names)

    @property
    def tools_intro(self) -> str:
        """What a role that plans is told of the tools; empty for none."""
        names = [entry.name for entry in self.plugins]
        return "" if self._tools is None else self._tools.intro(names)

    def start(self) -> None:
        """Start the kernel, and the servers of the tools, in the background."""
        if self._tools is not None:
            self._tools.begin()
        self._client.start()

    def load_plugins(self) -> list[str]:
        """Load the functions that are not in the kernel yet; broken ones are noted and left out.

        Returns:
            A sentence for each plugin that turned out to be broken now.

        Raises:
            KernelError: If the kernel cannot be started.
        """
        problems = []
        if self._tools is not None and not self._is_offered:
            self._client.offer(self._tools)
            self._is_offered = True
        for entry in self.functions:
            if entry.name in self._loaded:
                continue
            try:
                self._client.load_plugin(entry.name, entry.source(), entry.config)
            except (PluginLoadFailed, OSError, ValueError) as error:
                named = isinstance(error, PluginLoadFailed)
                reason = str(error) if named else f"Plugin {entry.name!r}: {error}"
                self.broken[entry.name] = reason
                problems.append(f"{reason} (left out)")
                self._logger.warning(problems[-1])
            else:
                self._loaded.add(entry.name)
        return problems

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell.

        Raises:
            KernelError: If the kernel cannot be started or was stopped.
        """
        whole = f"{self._code_prefix}\n{code}" if self._code_prefix else code
        return self._client.execute_code(exec_id, whole, on_output)

    def update_session_var(self, session_var: Mapping[str, str]) -> None:
        """Set variables plugins read."""
        self._client.update_session_var(session_var)

    @staticmethod
    def format_code_output(result: ExecutionResult, code: str | None = None) -> str:
        """Describe a run as the Planner reads it."""
        return sections(result, code=code)

    def stop(self) -> None:
        """Stop the kernel."""
        self._client.stop()
