"""The application: reads a project folder, wires the parts, and hands out sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from injector import Injector

from taskweaver.app.modules import AppModule, ExecutionConfig, FoldersConfig, ModelFunction
from taskweaver.app.replay import ReceiptVerdict, ReplayRunner, check_receipt
from taskweaver.app.session_manager import InMemorySessionStore, SessionManager
from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.common import CellTables, Manager
from taskweaver.ces.sandbox.sandbox import SandboxChoice, is_confined
from taskweaver.config.check import check
from taskweaver.config.plain_folder import prepare_place
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.config import MCPConfig
from taskweaver.mcp.servers import MCPServers
from taskweaver.memory.plugin import PluginModule
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.role.in_force import without_effect
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.session.replay import ReplayedCell
from taskweaver.session.session import Session
from taskweaver.trust.opening import Trust, read_project
from taskweaver.utils.app_utils import CONFIG_FILE, config_file_of, discover_app_dir
from taskweaver.utils.system.forks import bind_to_process
from taskweaver.utils.system.installation import own_command
from taskweaver.utils.system.platform import restrictions

_NO_TOOLS = (
    "mcp.servers is left out: code runs on another machine (execution.server), which calls no"
    " tools here."
)


def _reason(app_dir: str | Path | None, path: Path) -> str:
    """Return the reason why a folder is not opened as a project."""
    if config_file_of(app_dir)[1] is None and (path / CONFIG_FILE).exists():
        return (
            f"{path / CONFIG_FILE} is not read: others can write to the folder, or own it."
            f" To use it, name the folder: {own_command(project=path)}"
        )
    return f"{path} is a plain folder: it has no {CONFIG_FILE}."


class TaskWeaverApp:
    """A project, opened, as a context manager or until `stop`.

    Attributes:
        app_dir: The project folder.
        session_manager: Owner of the sessions.
        warnings: Problems of the project: unknown keys, broken plugins and roles.
        withheld: Effects of opening the folder that are off without the user's consent.
        trust_notice: One sentence that names them; empty for none.
    """

    def __init__(
        self,
        app_dir: str | Path | None = None,
        config: dict[str, Any] | None = None,
        *,
        model: ModelFunction | None = None,
        trust: Trust = None,
        kernels: Manager | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a project.

        Args:
            app_dir: The folder; None looks upwards from the current one.
            config: Configuration keys that go before the environment and the project's file.
            model: Function that plays the model: messages in, reply out; used in place of
                `llm.api_type`.
            trust: Whether the folder may run programs, loosen the sandbox, name addresses and
                follow links: True, or False for an opening without these, or the hashes of the
                effects that are allowed. None is True for a folder that is given, and the stored
                answer for one that was looked for.
            kernels: Owner of the kernels, closed with the application; None makes the one that the
                configuration describes.
            **kwargs: More configuration keys.

        Raises:
            ConfigError: If the configuration cannot be read or a value is of the wrong type.
            ProjectNotTrusted: If a folder that was looked for needs an answer and has none.
            ForeignProject: If its configuration belongs to another user, without consent to that.
        """
        path, is_valid, _ = self.discover_app_dir(app_dir)
        values = {**(config or {}), **kwargs}
        if model is not None:
            values.setdefault("llm.api_type", "function")
        opened = read_project(app_dir, values, trust, is_confined)
        self.config, self.withheld = opened.src, opened.withheld
        self.trust_notice = opened.notice
        self.app_dir = path
        reason = "" if is_valid else _reason(app_dir, path)
        place = prepare_place(self.config)
        self.warnings = list(filter(None, [restrictions(), reason, place, self.trust_notice]))
        self._logger = TelemetryLogger.from_config(self.config)
        self._tracing = Tracing()  # empty, to be closed if that of the configuration fails
        try:
            self._tracing = Tracing(self.config, self._logger)
            own = AppModule(self.config, self._logger, self._tracing, model, kernels)
            self.app_injector = Injector([own, PluginModule()])
            self.session_manager = SessionManager(InMemorySessionStore(), self.app_injector)
            self._inspect()
        except BaseException:
            self._end_logs()
            raise
        bind_to_process(self)

    def _inspect(self) -> None:
        _ = self.mcp_servers  # a mistake in their configuration is told now
        self.warnings += check(self.config, extra_prefixes=self.roles.get_role_name_list())
        self.warnings += without_effect(self.config)
        is_remote = bool(self.app_injector.get(ExecutionConfig).server)
        if is_remote and self.app_injector.get(MCPConfig).servers:
            self.warnings.append(_NO_TOOLS)
        self.warnings += filter(None, [self.app_injector.get(SandboxChoice).warning])
        self.warnings += filter(None, [self._tracing.problem])
        self.warnings += [str(error) for error in self.roles.broken]
        self.warnings += [str(error) for error in self.plugins.broken.values()]
        for warning in self.warnings:
            self._logger.warning(warning)

    @property
    def roles(self) -> RoleRegistry:
        """The roles that can take part."""
        return self.app_injector.get(RoleRegistry)

    @property
    def plugins(self) -> PluginRegistry:
        """The plugins of the project."""
        return self.app_injector.get(PluginRegistry)

    @property
    def mcp_servers(self) -> MCPServers:
        """The MCP servers of the project."""
        return self.app_injector.get(MCPServers)

    @property
    def announcement(self) -> str:
        """One line that says which model answers, and why."""
        return self.app_injector.get(ModelServices).announcement

    @property
    def sandbox(self) -> str:
        """Kind of sandbox that code runs in, or that there is no sandbox, in a few words."""
        server = self.app_injector.get(ExecutionConfig).server
        if server:
            return f"that of {server}, where code runs"
        policy = self.app_injector.get(SandboxChoice).policy
        if policy is None:
            return "none: code runs with your rights"
        name = "bubblewrap" if policy.tier == "bwrap" else "Landlock"
        return f"{name}, {'with ' if policy.has_network else ''}{policy.network}"

    @property
    def sandbox_tier(self) -> str:
        """Kind of sandbox that code runs in: ``bwrap``, ``landlock`` or ``none``."""
        policy = self.app_injector.get(SandboxChoice).policy
        return "none" if policy is None else policy.tier

    @property
    def kernels(self) -> Manager:
        """The owner of all kernels."""
        kernels: Manager = self.app_injector.get(Manager)  # type: ignore[type-abstract]
        return kernels

    @property
    def workspace(self) -> Path:
        """Folder of all that the application writes: sessions, searches, the server's accounts."""
        return self.app_injector.get(FoldersConfig).workspace

    @property
    def log(self) -> TelemetryLogger:
        """The log."""
        return self._logger

    @property
    def cell_tables(self) -> CellTables:
        """Tables that cells ended with, kept for a program that switches this on."""
        return self.kernels.tables

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds on each session's resources, and the mechanisms that enforce them here."""
        return self.kernels.bounds

    def get_session(self, session_id: str | None = None) -> Session:
        """Return the session called `session_id`, or a new one.

        A session that is on disk and not open, as after a restart, is resumed.

        Raises:
            SessionError: If the session does not exist, or the application was stopped.
            SessionInUse: If another process has it open.
            RoleError: If a role cannot be used.
        """
        return self.session_manager.get_session(session_id)

    def resume_session(self, session_id: str | None = None) -> Session:
        """Open a session that is on disk, unchanged. None takes the session used last.

        Its variables come back when code runs; `Session.restore_notice` names those that do not.

        Raises:
            SessionError: If the session does not exist, or another process has it open.
            RoleError: If a role cannot be used.
        """
        return self.session_manager.resume_session(session_id)

    def replay(
        self,
        file: str | Path,
        *,
        settings: Mapping[str, str] | None = None,
        data: Mapping[str, Path] | None = None,
        repair: bool = False,
    ) -> Iterator[ReplayedCell]:
        """Run a saved conversation again in a fresh kernel, without a model.

        Args:
            file: The experience, as `Memory.save_experience(thin_mode=False)` writes it.
            settings: Values, as Python expressions, for names the code assigns.
            data: Files to use in place of those of the data folder, by name.
            repair: Whether the model is asked to correct a cell that fails.

        Yields:
            A step for each cell, as it is done.

        Raises:
            ConversationError: If the file is no experience.
            SessionError: If there is nothing to run, or a setting or file does not fit.
            KernelError: If the kernel cannot be started.
            ModelError: If a cell is to be corrected and the model cannot be asked.
        """
        runner = ReplayRunner(self.app_injector)
        yield from runner.run(Path(file), settings or {}, data or {}, repairs=repair)

    def check_receipt(
        self,
        file: str | Path,
        *,
        data: Mapping[str, Path] | None = None,
        is_trusted: bool = False,
    ) -> ReceiptVerdict:
        """Run the cells of a receipt again, without a model, on a scratch copy of the inputs.

        Args:
            file: The receipt, as ``/export receipt`` writes it.
            data: Files to use as inputs, by name.
            is_trusted: Whether its code may run where there is no sandbox.

        Returns:
            The first difference, or none, and remarks on versions.

        Raises:
            ReceiptError: If the file is no receipt of a known format, an input is missing, or
                there is no sandbox.
            KernelError: If the kernel cannot be started.
        """
        return check_receipt(self.app_injector, Path(file), data or {}, is_trusted=is_trusted)

    def stop(self) -> None:
        """Stop all sessions, kernels and connections. Safe to call again."""
        self.session_manager.close()
        self.mcp_servers.close()
        self.kernels.clean_up()
        self.app_injector.get(ModelServices).close()
        self._end_logs()

    def _end_logs(self) -> None:
        self._tracing.close()
        self._logger.close()

    @staticmethod
    def discover_app_dir(app_dir: str | Path | None = None) -> tuple[Path, bool, bool]:
        """Find the project folder.

        Args:
            app_dir: The folder; None looks upwards from the current one for a configuration file.

        Returns:
            The folder, whether it is a project, and whether it is empty.
        """
        return discover_app_dir(app_dir)

    def __enter__(self) -> TaskWeaverApp:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
