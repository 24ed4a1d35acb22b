"""The round in which a node is made, and its cast.

One role proposes the attempt and assesses it, the other has it carried out.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.logging.spans import Value, workflow
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.branched.run.ingest import ingest_phase0_internal_info
from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import PostEventProxy, on_branch
from taskweaver.session.branches.turn import PLANNER, USER, Player, RoundControl, Turn
from taskweaver.treesearch.agent.asking import FATAL
from taskweaver.treesearch.agent.describe import attempt_lines
from taskweaver.treesearch.agent.events import storable
from taskweaver.treesearch.agent.phase0 import Phase0Plan, inherit_plan, save_plan, situation_of
from taskweaver.treesearch.engine.attempt_questions import (
    attempt_question,
    install_question,
    plan_question,
)
from taskweaver.treesearch.engine.node_attempt import NodeAttempt
from taskweaver.treesearch.engine.plots import Plotter
from taskweaver.treesearch.engine.review_questions import measured, metric_question, style_of
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.installation import Decision
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.scripts import ReplayError
from taskweaver.treesearch.model.artifacts import ScriptArtifact, program_text
from taskweaver.treesearch.model.limits import BudgetSpent
from taskweaver.treesearch.model.node import LARGEST, Node, NodeError, NodeKind, NodeStatus
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact_secrets_in
from taskweaver.utils.text import fenced, shorten

NODE = "search_node"
"""Name of the workflow that the work on a node is."""
WORKER = "CodeInterpreter"
_STEP = "1. carry the attempt out"
_MOST_ATTEMPTS_SHOWN = 100
_OUTPUT_CHARS = 20_000
_REPORT_CHARS = 6000
_PROGRAM_CHARS = 20_000
_MOST_POSTS = 9


class SearchRole:
    """A role in the round of one attempt."""

    alias: str
    only_acknowledges = answers_from_outcomes = False

    def __init__(self, attempt: NodeAttempt) -> None:
        self.attempt = attempt
        self.tracing = attempt.run.services.tracing


class SearchLeader(SearchRole):
    """The Planner: orders a proposal to be carried out, and assesses the outcome.

    A proposal that is nothing but the program of another attempt is not carried out.
    """

    alias = PLANNER

    def replies(self, memory: Memory, /) -> list[Post]:  # noqa: ARG002 - the attempt has it all
        """Answer the title of the attempt with an order, and the report on it with the outcome.

        Raises:
            ReplyUnusable, ModelError: If there can be no proposal.
        """
        attempt = self.attempt
        with attempt.post(self.alias) as post:
            if attempt.result is None:
                attempt.node = node = self._proposed(attempt.node)
                if node.status is not NodeStatus.SKIPPED:
                    post.restart_message()
                    post.update_send_to(WORKER)
                    plan = node.plan or _STEP
                    program = shorten(program_text(node.artifacts), _PROGRAM_CHARS)
                    post.update_attachment(plan, AttachmentType.plan)
                    post.update_attachment(plan, AttachmentType.current_plan_step)
                    post.update_attachment(program, AttachmentType.reply_content)
                    post.update_message(plan)
                    return [post.end()]
            else:
                attempt.node = self._assessed(attempt.node, attempt.result)
            return [self.answer(post)]

    def answer(self, post: PostEventProxy) -> Post:
        """End the attempt; return the post, which has the outcome in words for the user."""
        post.restart_message()
        post.update_send_to(USER)
        post.update_message(self._ended())
        return post.end()

    def _ended(self) -> str:
        attempt = self.attempt
        attempt.node = node = replace(attempt.node, finished_at=time.time(), cost=attempt.cost)
        attempt.events.result(node)
        objective = attempt.run.journal.objective
        if node.status is NodeStatus.SKIPPED:
            return f"{node.plan}\n\n{node.id} skipped: its program is that of {node.same_as}."
        lines = [f"{node.id} {node.status}: {objective.name} {objective.text(node.value)}."]
        if node.error:
            lines.append(f"{node.error.kind}: {node.error.message}")
        lines += [node.analysis, *(f"{name}: {text}" for name, text in node.summary.items())]
        return "\n\n".join(filter(None, lines))

    def _proposed(self, node: Node) -> Node:
        """Return the node with its proposal; a seed evaluation has that of its parent."""
        attempt, run = self.attempt, self.attempt.run
        parent, claims = attempt.parent, run.claims
        if node.kind is NodeKind.SEED and parent is not None:
            return replace(node, plan=parent.plan, artifacts=parent.artifacts, name=parent.name)
        attempt.plan = self._inherited() or self._planned()
        attempt.tell("proposal")
        proposal = attempt.agent.ask(attempt_question(attempt))
        shown = redact_secrets_in(proposal.artifacts.to_dict())
        write_json(attempt.places.phase_logs / "artifacts.json", shown)
        owner = claims.owner(node)
        node = replace(
            node,
            plan=proposal.plan,
            name=node.name or proposal.name,
            artifacts=proposal.artifacts,
            same_as=owner,
            seed=self._unused_seed(owner) if owner else node.seed,
            status=NodeStatus.SKIPPED if claims.is_skipped(node) else node.status,
        )
        run.journal.note_proposal(node)
        return node

    def _unused_seed(self, owner: str) -> int:
        """Return a seed with which a program was not measured yet."""
        journal = self.attempt.run.journal
        return 1 + max(run.seed for run in (journal[owner], *journal.repetitions(owner)))

    @property
    def _situation(self) -> str:
        run = self.attempt.run
        return situation_of(run.environment, run.worker.compilers, run.materials.text())

    def _inherited(self) -> Phase0Plan | None:
        """Return the parent's plan, where it holds for this node too."""
        attempt, run = self.attempt, self.attempt.run
        if run.config.phase0 != "draft" or attempt.parent is None:
            return None
        of_parent = run.places.node(attempt.parent.id)
        return inherit_plan(of_parent, attempt.places, self._situation)

    def _planned(self) -> Phase0Plan | None:
        """Return the plan of Phase 0, written to the node's folder; None is no failure."""
        attempt, run = self.attempt, self.attempt.run
        if run.config.phase0 == "off":
            return None
        attempt.tell("plan")
        try:
            plan, raw = attempt.agent.ask(plan_question(attempt))
        except ReplyUnusable:
            return None
        journal, places = run.journal, attempt.places
        planned = "; ".join(filter(None, (plan.goal_summary, *plan.implementation_strategy)))
        journal.note_proposal(replace(attempt.node, plan=planned))
        others = attempt_lines(journal, journal.finished[-_MOST_ATTEMPTS_SHOWN:])
        history = {**run.earlier, "attempts": others}
        save_plan(places.plans, plan, raw, history, self._situation)
        for file in places.prompt_logs.glob("phase0_attempt*_round0.*"):
            places.prompts.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, places.prompts / f"phase0_prompt{file.suffix}")
        if attempt.branch is not None:
            ingest_phase0_internal_info(attempt.branch, storable(plan.to_dict()))
        return plan

    def _assessed(self, node: Node, result: JobResult) -> Node:
        """Return the node with its metric, review, plots, summary and status."""
        attempt, config = self.attempt, self.attempt.run.config
        summarise = style_of(config).summary
        asks = not attempt.run.is_embedded and node.kind is not NodeKind.SEED
        if node.error is None:
            node = self._measured(node, result, asks=asks)
        wants_plots = config.has_plots
        if asks and config.has_review:
            attempt.tell("review")
            node, is_worth_one = self._reviewed(node)
            wants_plots = wants_plots and is_worth_one
        if node.error is not None:
            node = node.failed(node.error)
        else:
            node = replace(node, status=NodeStatus.OK, time_feedback=self._time_feedback(node))
            wants_plots = wants_plots and asks
            node = replace(node, wants_plots=wants_plots)
            if wants_plots and not config.draws_later:
                attempt.tell("plots")
                with suppress(ReplyUnusable, BudgetSpent):  # they are drawn later
                    drawn = Plotter(attempt).draw(node, result.files)
                    node = replace(drawn, wants_plots=False)
        if asks and config.has_summaries and summarise is not None:
            attempt.tell("summary")
            # An attempt that ran is not worse for want of words.
            with suppress(ReplyUnusable, BudgetSpent):
                node = replace(node, summary=attempt.agent.ask(summarise(attempt, node)))
        if node.summary:
            attempt.events.summary(node)
        return node

    def _reviewed(self, node: Node) -> tuple[Node, bool]:
        """Return the node with its review, and whether that wants plots.

        Without a review the node's figures stand.
        """
        attempt, config = self.attempt, self.attempt.run.config
        known = attempt.events.core()
        try:
            review = attempt.agent.ask(style_of(config).review(attempt, node))
        except (ReplyUnusable, BudgetSpent) as error:
            return replace(node, analysis=f"It was not reviewed: {error}"), not config.has_two_calls
        lessons = review.lessons if config.has_summaries else {}
        # What failed may have failed for other reasons: it disproves nothing.
        if review.is_bug or node.error:
            review = replace(review, untrue=(), refuted=())
        node = replace(node, analysis=review.summary, summary=lessons, refutes=review.refuted)
        attempt.events.refuted(node, review.untrue, known)
        if review.is_bug and node.error is None:
            node = replace(node, error=NodeError("ReviewError", review.summary))
        return node, review.wants_plots

    def _measured(self, node: Node, result: JobResult, *, asks: bool) -> Node:
        attempt, journal = self.attempt, self.attempt.run.journal
        metric = measured(result.result)
        if metric is None and asks:
            with suppress(ReplyUnusable):  # then there is none
                metric = attempt.agent.ask(metric_question(attempt, node, result))
        problem = ""
        if metric is None:
            problem = "the run measured nothing: working/result.json holds no metric"
        elif metric.value is None:
            problem = f"the metric is no finite number up to {LARGEST:g}: {dict(metric.values)}"
        else:
            metric, problem = journal.comparable(metric)
        names = tuple(name for name in metric.values if name) if metric else ()
        node = replace(node, metric=metric, datasets=names)
        attempt.events.metrics(node, problem)
        if metric is not None and not problem:
            journal.note_figure(node.id, metric)
        return replace(node, error=NodeError("MetricError", problem)) if problem else node

    def _time_feedback(self, node: Node) -> str:
        """Return a remark when a run of the third stage leaves most of its time unused."""
        limit = self.attempt.run.config.limits.run_s
        if node.stage != 3 or node.exec_seconds > limit / 2:
            return ""
        return (
            f"The run took {node.exec_seconds:.0f} s of {limit:.0f} s: there is time for more data,"
            " more repetitions or a larger model, where that helps."
        )


class SearchWorker(SearchRole):
    """The CodeInterpreter: has a proposal carried out on the bench, and reports."""

    alias = WORKER

    def replies(self, memory: Memory, /) -> list[Post]:  # noqa: ARG002 - the attempt has it all
        """Answer the order with a report; a script is reported as a cell.

        Raises:
            WorkCancelled, BudgetSpent, WorkerLost, OSError: As `PhaseBench.carry_out`.
            ReplyUnusable, ModelError: If the installer's next command cannot be had.
        """
        attempt = self.attempt
        with attempt.post(self.alias) as post:
            node, result = self._carried_out(attempt.node)
            attempt.node, attempt.result = node, result
            phases = [f"{p.name}: {p.status}, {p.seconds:.1f} s {p.message}" for p in node.phases]
            output = shorten(node.output, _REPORT_CHARS)
            parts = {"Phases": "\n".join(phases), "Output": fenced(output) if output else ""}
            report = "\n\n".join(f"### {title}\n{text}" for title, text in parts.items() if text)
            attempt.output.add()
            status = "SUCCESS" if node.error is None else "FAILURE"
            post.update_send_to(PLANNER)
            post.update_attachment(status, AttachmentType.execution_status)
            post.update_attachment(report, AttachmentType.execution_result)
            if isinstance(node.artifacts, ScriptArtifact):
                names = json.dumps(result.variables)
                post.update_attachment(node.artifacts.code, AttachmentType.reply_content)
                post.update_attachment(names, AttachmentType.session_variables)
            post.update_message(report)
            return [post.end()]

    def _carried_out(self, node: Node) -> tuple[Node, JobResult]:
        attempt = self.attempt

        def ask(progress: Mapping[str, Any]) -> Decision:
            return attempt.agent.ask(install_question(attempt, node.artifacts, progress))

        needs: Mapping[str, Any] = attempt.plan.dependencies if attempt.plan else {}
        result = attempt.bench.carry_out(node, ask, needs)
        if result.error is not None and result.error.kind == ReplayError.__name__:
            node = replace(node, line=())  # so that repairing it begins with nothing
        node = replace(
            node,
            phases=result.phases,
            error=result.error,
            output=result.output[-_OUTPUT_CHARS:],
            exec_seconds=result.exec_seconds,
        )
        for outcome in result.phases:
            attempt.events.phase(node, outcome)
        return node, result


def play(attempt: NodeAttempt) -> Node:
    """Play the round of a node that begins; return the node as it ended.

    A round runs in a thread of the coordinator, which asks the model and owns the memory. Commands
    run in worker processes, or in a kernel.

    Raises:
        WorkCancelled: If the work was cancelled.
        BudgetSpent: If the budget of the run does not last to the end of the round.
        WorkerLost: If a worker died; the node may be tried again.
        ModelError: If no call to the model can succeed, now or later.
        SearchError: If the run cannot go on.
    """
    run, node, emitter = attempt.run, attempt.node, attempt.run.emitter
    made = f"from {node.parent}" if node.parent else "from nothing"
    name = f" of {node.name}" if node.name else ""
    assert attempt.state is not None
    query = f"{run.idea.title}\nAttempt {node.id}: {node.kind}{name}, {made}."
    memory = Memory(run.places.folder.name, attempt.events)
    with _span(attempt), on_branch(node.branch or node.id):
        attempt.events.created(node, attempt.state.label, attempt.bench.loss)
        round_ = memory.create_round(query)
        emitter.start_round(round_.id, query)
        try:
            _carry(attempt, memory, round_)
            memory.end_round(round_, "finished")
        except BaseException as error:
            emitter.emit_error(str(error) or type(error).__name__)
            raise
        finally:
            emitter.end_round(round_.id)
    return attempt.node


def _carry(attempt: NodeAttempt, memory: Memory, round_: Round) -> None:
    """Carry the posts of a round; a failed question to the model ends the round as well."""
    leader = SearchLeader(attempt)
    roles: dict[str, Player] = {PLANNER: leader, WORKER: SearchWorker(attempt)}
    control = RoundControl(attempt.check, attempt.cancel)
    turn = Turn(memory, roles, PLANNER, attempt.run.emitter, _MOST_POSTS, _MOST_POSTS, control)
    try:
        turn.play(round_)
        return
    except ReplyUnusable as error:
        attempt.fail("PhasePlanError", error)
    except ModelError as error:
        attempt.check()
        if error.kind in FATAL:
            raise
        attempt.fail("ModelError", error)
    with attempt.post(PLANNER) as post:
        memory.add_post(round_, leader.answer(post))


@contextmanager
def _span(attempt: NodeAttempt) -> Iterator[None]:
    """Record the work on a node: a trace of its own, linked to that of the node's parent.

    A run may last for days: one trace could not be looked at.
    """
    run, node = attempt.run, attempt.node
    ids: dict[str, Value] = {
        "taskweaver.search.run": run.places.folder.name,
        "taskweaver.search.node": node.id,
        "taskweaver.search.kind": node.kind.value,
        "taskweaver.search.stage": node.stage,
        "taskweaver.search.attempt": node.attempt,
    }
    if node.parent:
        ids["taskweaver.search.parent"] = node.parent
    parent = run.spans.get(node.parent or "")
    links = [parent] if parent is not None else []
    with run.services.tracing.running(workflow(NODE, ids, links=links, is_root=True)) as span:
        if span.context is not None:
            run.spans[node.id] = span.context
        yield
        done = attempt.node
        span.set("taskweaver.search.status", done.status.value)
        if done.metric is not None and done.metric.value is not None:
            span.set("taskweaver.search.metric", done.metric.value)
        if done.error is not None:
            span.fail(done.error.kind)
