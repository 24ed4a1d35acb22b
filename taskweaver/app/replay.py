"""A fresh kernel with plugins and files for a replay."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from injector import Injector

from taskweaver.app.modules import FoldersConfig
from taskweaver.ces.common import ExecutionResult, Manager
from taskweaver.code_interpreter.code_executor import CodeExecutor, sections
from taskweaver.code_interpreter.code_interpreter import CodeInterpreterConfig
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.reading.cells import Ran, RecordedCell, executed_cells
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError
from taskweaver.session.replay import ReplayedCell, replay
from taskweaver.session.storage.workdir import AddedFile, add_files
from taskweaver.utils.files import PRIVATE_FOLDER, read_yaml
from taskweaver.utils.ids import create_id

_PROMPT = Path(__file__).with_name("repair_prompt.yaml")
_FENCE = re.compile(r"```(?:python)?[ \t]*\n(.*?)\n```", re.DOTALL)


class ReplayRunner:
    """Replays experiences for an application."""

    def __init__(self, injector: Injector) -> None:
        self._folders = injector.get(FoldersConfig)
        self._kernels = injector.get(Manager)  # type: ignore[type-abstract]  # the key of a binding
        self._plugins = injector.get(PluginRegistry)
        self._logger = injector.get(TelemetryLogger)
        self._config = injector.get(AppSessionConfig)
        self._llm_api = LLMApi(injector.get(ModelServices))
        self._prefix = injector.get(CodeInterpreterConfig).code_prefix

    def run(
        self, file: Path, settings: Mapping[str, str], data: Mapping[str, Path], *, repairs: bool
    ) -> Iterator[ReplayedCell]:
        """Run an experience again; see `TaskWeaverApp.replay`."""
        rounds = Conversation.from_yaml(file).rounds
        code = [cell.code for cell in executed_cells(rounds)]
        files = self._files("\n".join([*(round_.user_query for round_ in rounds), *code]), data)
        with self.fresh_kernel(files) as execute:

            def run(cell: RecordedCell) -> Ran:
                result = execute(cell.post_id, cell.code)
                return Ran(sections(result, level=3), result.reason)

            yield from replay(rounds, run, settings, self._repair if repairs else None)

    @contextmanager
    def fresh_kernel(
        self, files: Sequence[AddedFile], *, is_kept: bool = True
    ) -> Iterator[Callable[[str, str], ExecutionResult]]:
        """Start a kernel with the plugins, in a working directory of its own.

        The working directory stays when the kernel was stopped if `is_kept`.

        Yields:
            A function that runs a cell, given the id of its post and its code.

        Raises:
            KernelError: If the kernel cannot be started.
            FileNotAdded: If a file cannot be added.
        """
        id_ = create_id("replay")
        folder = self._folders.workspace / "replays" / id_
        cwd = folder / "cwd"
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        cwd.mkdir()
        try:
            add_files(cwd, files)
            client = self._kernels.get_session_client(id_, session_dir=folder, cwd=cwd)
            executor = CodeExecutor(client, self._plugins, self._logger, self._prefix)
            try:
                executor.load_plugins()
                yield executor.execute_code
            finally:
                executor.stop()
        finally:
            if not is_kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _repair(self, code: str, error: str) -> str | None:
        """Ask the model for a correction; None when it gives none."""
        instructions = str(read_yaml(_PROMPT)["content"])
        reply = self._llm_api.summarize(instructions, f"```python\n{code}\n```\n\nError: {error}")
        match = _FENCE.search(reply)
        return match[1].strip() if match and match[1].strip() != code.strip() else None

    def _files(self, said: str, data: Mapping[str, Path]) -> list[AddedFile]:
        """Return the files the conversation named, or those given in their place."""
        named = self._config.finder().in_text(said)
        files = {file.source.name: file.path for file in named if not file.problem}
        unknown = sorted(name for name in data if name not in files and name not in said)
        if unknown:
            raise SessionError(f"The conversation does not use {', '.join(unknown)}.")
        return [{"name": name, "path": path} for name, path in {**files, **data}.items()]
