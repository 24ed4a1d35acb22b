"""Cells on their way to the kernel: from a reply to an order, through checks and consent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from taskweaver.ces.common import Client, ExecutionResult
from taskweaver.code_interpreter.code_executor import CodeExecutor, sections
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.orders import OrderProgress, earlier_outcomes
from taskweaver.code_interpreter.scope import Scope
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.cells import ORDER_KEY, TABLES_KEY, RecordedCell
from taskweaver.memory.post import Post
from taskweaver.module.confirmation import ConfirmationRequest, NotConfirmed
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.answering import AnswerReview
from taskweaver.role.forms.actions import ModelReply, ReplyReading, RunCell
from taskweaver.role.forms.offer import USER
from taskweaver.role.forms.writing import ReplyWriter
from taskweaver.utils.redact import MASK, MASK_ADVICE, has_mask

EarlierCells = Callable[[], Sequence[RecordedCell]]
_EDITED = "The user changed this code before it ran."


class CellEnd(NamedTuple):
    """End of a cell: the outcome, or the reason why the cell did not run.

    Attributes:
        code: The cell, as it ran.
        result: Outcome of its run; None if it did not run.
        problem: Reason why it did not run.
        revise: Name of the text that asks its author for another cell; empty for none.
        refusal: Beginning of a report that no other cell came back.
        is_edited: Whether a person changed it before it ran.
    """

    code: str
    result: ExecutionResult | None = None
    problem: str = ""
    revise: str = ""
    refusal: str = ""
    is_edited: bool = False


class CellRun:
    """Runs the cells of a role, as scope and person allow."""

    def __init__(
        self,
        scope: Scope,
        client: Client,
        executor: CodeExecutor,
        check: Callable[[], None],
        consent: Callable[[ConfirmationRequest], str | None] | None,
        declined: str,
    ) -> None:
        """Run nothing yet.

        Args:
            scope: The code that may run.
            client: The kernel.
            executor: Runs code in it.
            check: Raises where the round was interrupted.
            consent: Asks a person for the code that may run; None where nobody is asked.
            declined: Reply to a no.
        """
        self._scope = scope
        self._client = client
        self._executor = executor
        self._check = check
        self._consent = consent
        self._declined = declined
        self._asked = ""

    def run(
        self,
        proxy: PostEventProxy,
        written: str,
        functions: Sequence[str],
        earlier: EarlierCells,
        bring: Callable[[str], None],
    ) -> CellEnd:
        """Run a cell into the post, unless forbidden.

        Args:
            proxy: The post.
            written: Code of its author.
            functions: Names of the plugins and tools it may call.
            earlier: Returns the cells that succeeded before it, of all roles.
            bring: Makes the files that a cell names available.
        """
        code = self._scope.cell(written)
        if code != written:  # kept as it runs, so that it can run again
            proxy.post.get_attachment(AttachmentType.reply_content)[-1].content = code
        forbidden = self._forbidden(proxy, code, functions, earlier)
        if forbidden is not None:
            return forbidden
        allowed, declined = self._allowed(proxy, code, functions, earlier)
        if declined:
            return CellEnd(code, None, declined)
        is_edited = allowed != code
        if is_edited:
            written_code = proxy.post.get_attachment(AttachmentType.reply_content)[-1]
            proxy.replace_attachment(written_code, allowed)
            forbidden = self._forbidden(proxy, allowed, functions, earlier)
        if forbidden is not None:
            return forbidden
        proxy.update_status("running code")
        bring(allowed)
        with self._client.operation():
            self._check()
            self._client.load_plugins([])  # waits until the kernel has started
            emit = proxy.emit_execution_output
            result = self._executor.execute_code(proxy.post.id, allowed, emit)
        if is_edited:
            result.log.insert(0, ("info", "user", _EDITED))
        return CellEnd(allowed, result, is_edited=is_edited)

    def _forbidden(
        self,
        proxy: PostEventProxy,
        code: str,
        functions: Sequence[str],
        earlier: EarlierCells,
    ) -> CellEnd | None:
        """Return the end of a forbidden cell, or None for a cell that may run."""
        if has_mask(code):
            problem = f"Cell {len(earlier()) + 1} holds {MASK}. {MASK_ADVICE}"
            return CellEnd(code, None, problem, "revise_masked", "The code did not run. ")
        if not self._scope.is_checked:
            return None
        found = self._scope.problems(code, functions, [cell.code for cell in earlier()])
        proxy.update_attachment("INCORRECT" if found else "CORRECT", AttachmentType.verification)
        if not found:
            return None
        beginning = "No code came back that the policy allows:\n"
        return CellEnd(code, None, "\n".join(found), "revise_refused", beginning)

    def _allowed(
        self,
        proxy: PostEventProxy,
        code: str,
        functions: Sequence[str],
        earlier: EarlierCells,
    ) -> tuple[str, str]:
        """Return the cell that may run, after the consent and changes of a person where needed.

        In place of it the reason why it may not; empty if it may.
        """
        if self._consent is None:
            return code, ""
        own = [cell.code for cell in earlier() if cell.role == proxy.post.send_from]
        previous, self._asked = self._asked or (own[-1] if own else ""), code
        kinds = self._scope.kinds(code, functions)
        is_editable = self._scope.language == "python"  # another scope would be left by an edit
        request = ConfirmationRequest(kinds, code, previous, proxy.post.id, is_editable=is_editable)
        proxy.update_status("waiting for you")
        try:
            allowed = self._consent(request)
        except NotConfirmed as error:
            return code, f"The code did not run: {error}"
        if allowed is None:
            return code, self._declined
        self._asked = allowed
        return allowed, ""


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
        run: Runs a cell into its post; given those with cells that the memory does not hold yet.
        emitter: Makes the posts of further cells of the reply.
        progress: The order so far.
        proxy: The post of the reply.
        writer: Writes the reply into it.
        most_tries: Most corrections of one order.
    """

    generator: CodeGenerator
    run: Callable[[PostEventProxy, str, Sequence[Post]], CellEnd]
    emitter: SessionEventEmitter
    progress: OrderProgress
    proxy: PostEventProxy
    writer: ReplyWriter
    most_tries: int

    def carry_out(self, reply: ModelReply, review: AnswerReview | None) -> list[Post]:
        """Run the cells of a reply, or send the answer."""
        reading = self.generator.read(reply, self.progress)
        cells = [action for action in reading.actions if isinstance(action, RunCell)]
        if not cells:
            return [self._answer(reading, review)]
        posts: list[Post] = []
        for cell in cells[: self.progress.room]:
            is_last = cell.is_last and cell is cells[-1]
            if not posts:
                self.writer.fill(self.proxy, cell, reading)
                posts.append(self._run_own(self.proxy, cell.code, posts, is_last=is_last))
            else:
                with self.emitter.post(self.generator.alias) as proxy:
                    self.writer.fill(proxy, cell, ReplyReading())
                    posts.append(self._run_own(proxy, cell.code, posts, is_last=is_last))
            if not _goes_on(posts[-1]):
                break
        self.writer.keep(reading, posts)
        return posts

    def _answer(self, reading: ReplyReading, review: AnswerReview | None) -> Post:
        """Send the model's answer in words, to a role with the outcomes."""
        proxy, progress = self.proxy, self.progress
        words = reading.actions[0]
        self.writer.fill(proxy, words, reading)
        if progress.task.send_from == USER:
            if progress.tries < self.most_tries:
                revise = self.generator.prompt.revise_answer
                self.generator.model.review(review, proxy.post, revise)
            self.writer.keep(reading, [proxy.post])
            return proxy.end()
        proxy.update_attachment("text", AttachmentType.reply_type)
        proxy.update_attachment(proxy.post.message, AttachmentType.reply_content)
        if progress.cells:
            proxy.update_message(f"\n\n{earlier_outcomes(progress.cells)}")
        self.writer.keep(reading, [proxy.post])
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
        end = self.run(proxy, code, before)
        if end.result is None:
            return self._not_run(proxy, end)
        failed = not end.result.is_success and end.result.status != "interrupted"
        may_retry = self.progress.tries < self.most_tries
        if failed and may_retry:
            revise = self.generator.prompt.text("revise_failure")
            proxy.update_attachment(revise, AttachmentType.revise_message)
        goes_on = may_retry if failed else end.result.is_success and not is_last
        task = self.progress.task
        code_shown = None if goes_on and not end.is_edited else end.code
        proxy.update_message(sections(end.result, code=code_shown))
        cells = [*self.progress.cells, *before]
        if not goes_on and cells and task.send_from != USER:
            proxy.update_message(f"\n\n# Cells before it\n\n{earlier_outcomes(cells)}")
        proxy.update_send_to(self.generator.alias if goes_on else task.send_from)
        return proxy.end()

    def _not_run(self, proxy: PostEventProxy, end: CellEnd) -> Post:
        """Report a cell that was refused, or ask the model for another."""
        if not end.revise:
            proxy.update_message(end.problem)
            proxy.update_send_to(self.progress.task.send_from)
            return proxy.end()
        proxy.update_attachment(end.problem, AttachmentType.code_error)
        if self.progress.tries >= self.most_tries:
            return self._give_up(proxy, f"{end.refusal}{end.problem}")
        revise = self.generator.prompt.text(end.revise, PROBLEMS=end.problem)
        proxy.update_attachment(revise, AttachmentType.revise_message)
        proxy.update_message(f"The code did not run.\n{end.problem}")
        proxy.update_send_to(self.generator.alias)
        return proxy.end()

    def give_up_reply(self, problem: str) -> Post:
        """End an order whose last reply could not be used."""
        kind = "answer" if self.progress.must_answer else "code"
        return self._give_up(self.proxy, f"No usable {kind} came back: {problem}")

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
