"""Replays of conversations and checks of receipts, each in a fresh kernel."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from injector import Injector

from taskweaver.app.modules import FoldersConfig
from taskweaver.ces.common import Manager
from taskweaver.ces.sandbox.sandbox import SandboxChoice
from taskweaver.code_interpreter.code_executor import CodeExecutor
from taskweaver.code_interpreter.code_interpreter import CodeInterpreterConfig
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.memory.cells import ExecutedCell, Ran, RecordedCell, executed_cells
from taskweaver.memory.conversation import Conversation
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.errors import SessionError
from taskweaver.session.receipt import (
    ReceiptDifference,
    ReceiptError,
    compare,
    read_receipt,
)
from taskweaver.session.receipt_content import changes, files_for, hash_of, versions_for
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
        """Run an experience again. See `TaskWeaverApp.replay`."""
        rounds = Conversation.from_yaml(file).rounds
        code = [cell.code for cell in executed_cells(rounds)]
        files = self._files("\n".join([*(round_.user_query for round_ in rounds), *code]), data)
        with self.fresh_kernel(files) as run:
            yield from replay(rounds, run, settings, self._repair if repairs else None)

    @contextmanager
    def fresh_kernel(
        self, files: Sequence[AddedFile], *, is_kept: bool = True
    ) -> Iterator[Callable[[RecordedCell | ExecutedCell], Ran]]:
        """Start a kernel with the plugins, in a separate working directory.

        The working directory stays when the kernel was stopped if `is_kept`.

        Yields:
            A function that runs a recorded cell.

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
                yield executor.repeat
            finally:
                client.stop()
        finally:
            if not is_kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _repair(self, code: str, error: str) -> str | None:
        """Ask the model for a correction, and return None without a correction."""
        instructions = str(read_yaml(_PROMPT)["content"])
        reply = self._llm_api.summarize(instructions, f"```python\n{code}\n```\n\nError: {error}")
        match = _FENCE.search(reply)
        return match[1].strip() if match and match[1].strip() != code.strip() else None

    def _files(self, said: str, data: Mapping[str, Path]) -> list[AddedFile]:
        """Return the files that the conversation named, or the files given in place of these."""
        named = self._config.finder().in_text(said)
        files = {file.source.name: file.path for file in named if not file.problem}
        unknown = sorted(name for name in data if name not in files and name not in said)
        if unknown:
            raise SessionError(f"The conversation does not use {', '.join(unknown)}.")
        return [{"name": name, "path": path} for name, path in {**files, **data}.items()]


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """The result of a check.

    Attributes:
        difference: The first point that was not confirmed; None if all of it was.
        cells: How many cells the receipt holds that ran to their end.
        notes: Remarks: versions that differ, inputs that had changed when it was written, numbers
            of the answer that no outcome of a cell proves.
    """

    difference: ReceiptDifference | None
    cells: int
    notes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """True if inputs, outcomes and the numbers of the answer are as recorded."""
        return self.difference is None


def check_receipt(
    injector: Injector, file: Path, data: Mapping[str, Path], *, is_trusted: bool
) -> ReceiptVerdict:
    """Check a receipt for an application. See `TaskWeaverApp.check_receipt`."""
    receipt = read_receipt(file)
    if injector.get(SandboxChoice).policy is None and not is_trusted:
        raise ReceiptError(
            "A receipt runs the code of its author, and there is no sandbox here (see"
            " `doctor`). Read its cells; --trust runs them with your rights."
        )
    config = injector.get(AppSessionConfig)
    folders = (config.data_dir, file.resolve().parent)
    inputs = files_for(receipt.inputs, data, folders, config.data_root)
    hashes = {name: hash_of(item) for name, item in inputs.items()}
    with ReplayRunner(injector).fresh_kernel(list(inputs.values()), is_kept=False) as run:
        found = compare(receipt, hashes, run)
    codes = [cell.code for cell in receipt.cells]
    notes = changes(dict(receipt.versions), versions_for(codes))
    notes += [
        f"{item.name} had changed {item.change} when the receipt was written"
        for item in receipt.inputs
        if item.change
    ]
    if found.unproven:
        notes.append(f"in no outcome of a cell: {', '.join(found.unproven)}")
    succeeded = sum(cell.is_success for cell in receipt.cells)
    return ReceiptVerdict(found.difference, succeeded, tuple(notes))
