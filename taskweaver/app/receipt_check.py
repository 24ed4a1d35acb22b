"""Gives the check of a receipt its kernel, in a sandbox, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from injector import Injector

from taskweaver.app.replay import ReplayRunner
from taskweaver.ces.sandbox.sandbox import SandboxChoice
from taskweaver.code_interpreter.code_executor import sections
from taskweaver.memory.reading.cells import ExecutedCell
from taskweaver.session.config import AppSessionConfig
from taskweaver.session.receipts.compare import Outcome, ReceiptDifference, compare
from taskweaver.session.receipts.inputs import files_for, hash_of
from taskweaver.session.receipts.receipt import ReceiptError, read_receipt
from taskweaver.session.receipts.versions import changes, versions_for


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
    """Check a receipt for an application; see `TaskWeaverApp.check_receipt`."""
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
    with ReplayRunner(injector).fresh_kernel(list(inputs.values()), is_kept=False) as execute:

        def run(cell: ExecutedCell) -> Outcome:
            result = execute(cell.post_id, cell.code)
            report = sections(result, level=3)
            return Outcome(report, result.reason, tuple(result.variables))

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
