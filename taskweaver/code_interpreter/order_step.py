"""One reply to an order in words, carried out: cells that run, an answer, or the end of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taskweaver.code_interpreter.cell_run import CellEnd
from taskweaver.code_interpreter.code_executor import CodeExecutor
from taskweaver.code_interpreter.code_generator import CodeGenerator
from taskweaver.code_interpreter.orders.progress import OrderProgress, earlier_outcomes
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.answering import AnswerReview
from taskweaver.role.forms.actions import ModelReply, ReplyReading, RunCell
from taskweaver.role.forms.offer import USER
from taskweaver.role.forms.writing import ReplyWriter


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

    @property
    def alias(self) -> str:
        """Alias of the role."""
        return self.generator.alias

    def carry_out(self, reply: ModelReply, review: AnswerReview | None) -> list[Post]:
        """Run the cells of a reply, or send its answer."""
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
                with self.emitter.post(self.alias) as proxy:
                    self.writer.fill(proxy, cell, ReplyReading())
                    posts.append(self._run_own(proxy, cell.code, posts, is_last=is_last))
            if not _goes_on(posts[-1]):
                break
        self.writer.keep(reading, posts)
        return posts

    def _answer(self, reading: ReplyReading, review: AnswerReview | None) -> Post:
        """Send the model's answer in words, to a role with the outcomes that it is about."""
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
        """Run a cell; report to the role itself, or at the end of the order to its giver."""
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
        proxy.update_message(CodeExecutor.format_code_output(end.result, code_shown))
        cells = [*self.progress.cells, *before]
        if not goes_on and cells and task.send_from != USER:
            proxy.update_message(f"\n\n# Cells before it\n\n{earlier_outcomes(cells)}")
        proxy.update_send_to(self.alias if goes_on else task.send_from)
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
        proxy.update_send_to(self.alias)
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
