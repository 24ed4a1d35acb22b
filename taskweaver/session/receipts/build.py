"""Makes the receipt of a conversation's newest answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ExecutedCell, executed_cells
from taskweaver.memory.round import Round, RoundAnswer
from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import USER, Outcomes
from taskweaver.session.receipts.inputs import inputs_of
from taskweaver.session.receipts.receipt import Receipt, ReceiptError, refuse_masked
from taskweaver.session.receipts.versions import versions_for
from taskweaver.utils.redact import redact_secrets, redact_secrets_in


@dataclass(frozen=True, slots=True)
class ConversationOrigin:
    """Session, branch and folders of a conversation."""

    session_id: str
    branch: str
    cwd: Path
    data_dir: Path


def build_receipt(rounds: Sequence[Round], origin: ConversationOrigin) -> Receipt:
    """Return the receipt of the newest answer of a conversation.

    Secrets are masked in all texts but code, which is stored byte for byte.

    Raises:
        ReceiptError: If there is no answer that rests on a cell, a cell holds a secret or the
            mask of one, or an input cannot be read.
    """
    number = next((n for n in range(len(rounds), 0, -1) if rounds[n - 1].answer.text), 0)
    seen = list(rounds[:number])
    cells = tuple(executed_cells(seen))
    if not any(cell.is_success for cell in cells):
        raise ReceiptError("There is no answer yet that rests on code which ran.")
    _refuse_secrets(cells)
    round_ = seen[-1]
    return Receipt(
        session_id=origin.session_id,
        branch=origin.branch,
        written_at=datetime.now(UTC).isoformat(timespec="seconds"),
        question=redact_secrets(round_.question),
        reading=redact_secrets_in(_reading(round_)),
        answer=_answer(seen),
        cells=tuple(map(_masked, cells)),
        inputs=inputs_of(seen, origin.cwd, origin.data_dir),
        versions=versions_for(cell.code for cell in cells),
    )


def _refuse_secrets(cells: tuple[ExecutedCell, ...]) -> None:
    refuse_masked(cells)
    secret = next((cell.number for cell in cells if redact_secrets(cell.code) != cell.code), None)
    if secret is not None:
        raise ReceiptError(
            f"Cell {secret} holds a secret, and a receipt stores code byte for byte. Let the code"
            " read the secret from its source, and ask again."
        )


def _masked(cell: ExecutedCell) -> ExecutedCell:
    variables = tuple((name, redact_secrets(text)) for name, text in cell.variables)
    return replace(cell, report=redact_secrets(cell.report), variables=variables)


def _answer(rounds: Sequence[Round]) -> RoundAnswer:
    """Return the newest answer, checked now if it was not when it was given."""
    answer = rounds[-1].answer
    if not answer.is_checked:
        leader = rounds[-1].post_list[-1].send_from
        answer = verify(answer.text, Outcomes().sources(rounds, leader))
    data = redact_secrets_in({"text": answer.text, "finding": answer.finding()})
    return RoundAnswer.from_finding(data["text"], data["finding"])


def _reading(round_: Round) -> dict[str, Any]:
    """Return how a request was understood: the last plan, and the orders to other roles."""
    plans = [
        str(item.content)
        for post in round_.post_list
        for item in post.get_attachment(AttachmentType.plan)
    ]
    leader = round_.post_list[-1].send_from
    orders = [
        post.message
        for post in round_.post_list
        if post.send_from == leader and post.send_to not in {leader, USER}
    ]
    return {"plan": plans[-1] if plans else "", "orders": orders}
