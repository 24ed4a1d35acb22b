"""Cells on their way to the kernel: from a reply to an order, through checks and consent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taskweaver.ces.common import ExecutionResult
from taskweaver.code_interpreter.code_executor import sections
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.orders import OrderProgress, earlier_outcomes
from taskweaver.code_interpreter.scope import Scope
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ORDER_KEY, TABLES_KEY, RecordedCell
from taskweaver.memory.post import Post
from taskweaver.module.confirmation import ConfirmationRequest, NotConfirmed
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.asking import RefusedReply
from taskweaver.role.forms.actions import ReplyReading, RunCell
from taskweaver.role.forms.offer import USER
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.role.role import AnswerReview
from taskweaver.utils.redact import MASK, MASK_ADVICE, has_mask

EarlierCells = Callable[[], Sequence[RecordedCell]]
RunOwn = Callable[[PostEventProxy, str, Sequence[Post]], tuple[ExecutionResult, str]]
"""Runs a cell into its post, given the posts with cells that the memory does not hold yet.

The second result is the code as a person changed it, or empty; raises CellRefused.
"""


class CellRefused(Exception):
    """A cell that does not run.

    Attributes:
        revise: Name of the text that asks its author for another cell; empty for none.
        report: The reason, for a report that no other cell came back.
    """

    def __init__(self, problem: str, revise: str = "", beginning: str = "") -> None:
        super().__init__(problem)
        self.revise = revise
        self.report = f"{beginning}{problem}"


class CellGate:
    """Lets the cells of a role pass that its scope, and where asked a person, allow."""

    def __init__(
        self, scope: Scope, ask: Callable[[ConfirmationRequest], str | None] | None, declined: str
    ) -> None:
        """Ask nothing yet.

        Args:
            scope: The code that may run.
            ask: Asks a person for the code that may run; None where nobody is asked.
            declined: Reply to a no.
        """
        self._scope = scope
        self._ask = ask
        self._declined = declined
        self._asked = ""

    def admit(
        self, proxy: PostEventProxy, code: str, functions: Sequence[str], earlier: EarlierCells
    ) -> str:
        """Return the cell that may run in place of the cell of a post: with a person's changes.

        Args:
            proxy: The post.
            code: The cell.
            functions: Names of the plugins and tools it may call.
            earlier: Returns the cells that succeeded before it, of all roles.

        Raises:
            CellRefused: If the cell may not run.
        """
        self._check(proxy, code, functions, earlier)
        if self._ask is None:
            return code
        own = [cell.code for cell in earlier() if cell.role == proxy.post.send_from]
        previous, self._asked = self._asked or (own[-1] if own else ""), code
        kinds = self._scope.kinds(code, functions)
        is_editable = self._scope.language == "python"  # another scope would be left by an edit
        request = ConfirmationRequest(kinds, code, previous, proxy.post.id, is_editable=is_editable)
        proxy.update_status("waiting for you")
        try:
            allowed = self._ask(request)
        except NotConfirmed as error:
            raise CellRefused(f"The code did not run: {error}") from error
        if allowed is None:
            raise CellRefused(self._declined)
        if allowed != code:
            self._asked = allowed
            written = proxy.post.get_attachment(AttachmentType.reply_content)[-1]
            proxy.replace_attachment(written, allowed)
            self._check(proxy, allowed, functions, earlier)
        return allowed

    def _check(
        self, proxy: PostEventProxy, code: str, functions: Sequence[str], earlier: EarlierCells
    ) -> None:
        if has_mask(code):
            problem = f"Cell {len(earlier()) + 1} holds {MASK}. {MASK_ADVICE}"
            raise CellRefused(problem, "revise_masked", "The code did not run. ")
        if not self._scope.is_checked:
            return
        found = self._scope.problems(code, functions, [cell.code for cell in earlier()])
        proxy.update_attachment("INCORRECT" if found else "CORRECT", AttachmentType.verification)
        if found:
            beginning = "No code came back that the policy allows:\n"
            raise CellRefused("\n".join(found), "revise_refused", beginning)


def attach_outcome(proxy: PostEventProxy, result: ExecutionResult, order: str) -> list[str]:
    """Put the outcome of a run on the post, and return the new files.

    `order` is the id of the post that carried the cell, if any.
    """
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
    return paths


@dataclass(frozen=True, slots=True)
class OrderStep:
    """One step of an order.

    Attributes:
        generator: The model of the role.
        run: Runs a cell into its post.
        emitter: Makes the posts of further cells of the reply.
        progress: The order so far.
        most_tries: Most corrections of one order.
        review: Checks an answer to the user; None for no check.
    """

    generator: CodeGenerator
    run: RunOwn
    emitter: SessionEventEmitter
    progress: OrderProgress
    most_tries: int
    review: AnswerReview | None

    def carry_out(
        self, proxy: PostEventProxy, writer: ReplyWriter, reading: ReplyReading
    ) -> list[Post]:
        """Run the cells of a reply, or send the answer.

        Raises:
            RefusedReply: If it has neither.
        """
        if reading.problem or not reading.actions:
            raise RefusedReply(reading.problem or "The reply has no cell and no answer.")
        cells = [action for action in reading.actions if isinstance(action, RunCell)]
        if not cells:
            return [self._answer(proxy, writer, reading)]
        posts: list[Post] = []
        for cell in cells[: self.progress.room]:
            is_last = cell.is_last and cell is cells[-1]
            if not posts:
                writer.fill(proxy, cell, reading)
                posts.append(self._run_own(proxy, cell.code, posts, is_last=is_last))
            else:
                with self.emitter.post(self.generator.alias) as further:
                    writer.fill(further, cell, ReplyReading())
                    posts.append(self._run_own(further, cell.code, posts, is_last=is_last))
            if not _goes_on(posts[-1]):
                break
        writer.keep(reading, posts)
        return posts

    def _answer(self, proxy: PostEventProxy, writer: ReplyWriter, reading: ReplyReading) -> Post:
        """Send the model's answer in words, to a role with the outcomes."""
        progress = self.progress
        writer.fill(proxy, reading.actions[0], reading)
        if progress.task.send_from == USER:
            if progress.tries < self.most_tries:
                self.generator.review(self.review, proxy.post)
        else:
            proxy.update_attachment("text", AttachmentType.reply_type)
            proxy.update_attachment(proxy.post.message, AttachmentType.reply_content)
            if progress.cells:
                proxy.update_message(f"\n\n{earlier_outcomes(progress.cells)}")
        writer.keep(reading, [proxy.post])
        return proxy.end()

    def _run_own(
        self,
        proxy: PostEventProxy,
        code: str,
        before: Sequence[Post],
        *,
        is_last: bool,
    ) -> Post:
        """Run a cell. Report to the same role, or at the order's end to the giver."""
        try:
            result, edited = self.run(proxy, code, before)
        except CellRefused as refused:
            return self._not_run(proxy, refused)
        failed = not result.is_success and result.status != "interrupted"
        may_retry = self.progress.tries < self.most_tries
        if failed and may_retry:
            revise = self.generator.prompt.text("revise_failure")
            proxy.update_attachment(revise, AttachmentType.revise_message)
        goes_on = may_retry if failed else result.is_success and not is_last
        task = self.progress.task
        proxy.update_message(sections(result, code=edited if goes_on else result.code))
        cells = [*self.progress.cells, *before]
        if not goes_on and cells and task.send_from != USER:
            proxy.update_message(f"\n\n# Cells before it\n\n{earlier_outcomes(cells)}")
        proxy.update_send_to(self.generator.alias if goes_on else task.send_from)
        return proxy.end()

    def _not_run(self, proxy: PostEventProxy, refused: CellRefused) -> Post:
        """Report a cell that was refused, or ask the model for another."""
        problem = str(refused)
        if not refused.revise:
            proxy.update_message(problem)
            proxy.update_send_to(self.progress.task.send_from)
            return proxy.end()
        proxy.update_attachment(problem, AttachmentType.code_error)
        if self.progress.tries >= self.most_tries:
            return self._give_up(proxy, refused.report)
        revise = self.generator.prompt.text(refused.revise, PROBLEMS=problem)
        proxy.update_attachment(revise, AttachmentType.revise_message)
        proxy.update_message(f"The code did not run.\n{problem}")
        proxy.update_send_to(self.generator.alias)
        return proxy.end()

    def give_up_reply(self, proxy: PostEventProxy, problem: str) -> list[Post]:
        """End an order whose last reply could not be used."""
        kind = "answer" if self.progress.must_answer else "code"
        return [self._give_up(proxy, f"No usable {kind} came back: {problem}")]

    def _give_up(self, proxy: PostEventProxy, reason: str) -> Post:
        """End an order without an answer, with the outcomes that there are."""
        cells = self.progress.cells
        proxy.error("\n\n".join([reason, *([earlier_outcomes(cells)] if cells else [])]))
        proxy.update_send_to(self.progress.task.send_from)
        return proxy.end()


def _goes_on(post: Post) -> bool:
    """Return whether the cell of a post succeeded and the order goes on."""
    is_own = post.send_from == post.send_to
    return is_own and not post.get_attachment(AttachmentType.revise_message)
