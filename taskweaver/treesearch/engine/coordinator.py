"""The coordinator: fills free slots with attempts, stage after stage, until the run is over.

It is one thread; each task has another, and so has the end of a stage, which may ask a model. Slots
that the last attempts, seeds and questions of a stage leave free go on with the next stage. Its
decisions depend on the journal and the seed alone, so a run that is resumed decides as if it had
never stopped.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch.engine.bench import WorkCancelled
from taskweaver.treesearch.engine.cast import play
from taskweaver.treesearch.engine.node_attempt import NodeAttempt
from taskweaver.treesearch.engine.plots import LaterPlots
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.engine.stage_transition import StageTransition
from taskweaver.treesearch.errors import ExecutorLost, SearchError, WorkerLost
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget, BudgetSpent
from taskweaver.treesearch.model.node import Node, NodeError, NodeKind, NodeStatus
from taskweaver.treesearch.model.policy import NodeChoice, Policy, StageView, policy_named
from taskweaver.treesearch.model.repetitions import Repetitions
from taskweaver.treesearch.model.stages import STAGES, StageState, why_over
from taskweaver.treesearch.record.places import ROOT_BRANCH
from taskweaver.treesearch.record.runlog import RunLog, RunState

Changed = Callable[[RunState], None]
_POLL_S = 1.0
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_MOST_BROKEN = 3


@dataclass(slots=True)
class Coordinator:
    """Runs a search."""

    parts: RunParts
    config: SearchConfig
    budget: Budget
    state: RunState
    log: RunLog
    transition: StageTransition
    plots: LaterPlots
    _working: dict[Future[Node], tuple[Node, NodeAttempt]] = field(default_factory=dict)
    _closing: Future[None] | None = None
    _queue: list[NodeChoice] = field(default_factory=list)
    _lost: dict[str, int] = field(default_factory=dict)
    _broken_in_a_row: int = 0
    _is_stopping: bool = False
    _changed: Changed = field(init=False)
    _policy: Policy = field(init=False)
    _repetitions: Repetitions = field(init=False)
    _branches: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._policy = policy_named(self.config.policy, self.config.rules)
        self._repetitions = Repetitions(self.journal, self.config.seed, self.config.num_seeds)
        self._branches = set(self.parts.store or ())

    @property
    def journal(self) -> Journal:
        """All nodes."""
        return self.state.journal

    def stop(self) -> None:
        """Stop soon, from any thread; open tasks are cancelled, and made again on resuming."""
        self._is_stopping = True
        for _, attempt in list(self._working.values()):
            attempt.cancel()
        self.plots.stop()

    def run(self, changed: Changed) -> None:
        """Run until the search is over, stopped, or has used its budget up.

        `changed` is called, in this thread, after each change of the state.

        Raises:
            SearchError: If it cannot go on.
            ModelError: If the model cannot be asked.
        """
        self._changed = changed
        self.budget.begin()
        try:
            with (
                self.plots,
                ThreadPoolExecutor(self.config.workers + 1, "search-node") as threads,
            ):
                for node in self.journal.good:
                    if node.wants_plots:  # the process ended before they were drawn
                        self.plots.add(node)
                try:
                    self._loop(threads)
                except BaseException as error:
                    is_cancelled = isinstance(error, ModelError) and error.kind == "cancelled"
                    if self._is_stopping and is_cancelled:
                        return
                    self.stop()
                    raise
        finally:
            self.log.add("paused", elapsed=self.budget.elapsed_s, at=0.0)

    def _loop(self, threads: ThreadPoolExecutor) -> None:
        if self.state.stage is None and not self.state.is_over:
            self.transition.enter(StageState(STAGES[0], goals=STAGES[0].goals))
        elif self.state.stage is not None:
            self.transition.begun(self.state.stage)  # the process may have ended before
        while not self._is_stopping and (self.state.stage is not None or self._closing):
            self._step(threads)
        self._drain()

    def _step(self, threads: ThreadPoolExecutor) -> None:
        """Begin what can begin, and wait for the next end of a task."""
        stage = self.state.stage
        spent = self.budget.why_spent(self.journal.attempts)
        if spent and self.budget.is_late:
            self._cut_off()
        if stage is not None and not spent:
            if self._is_ready_to_end(stage):
                self._advance(threads, stage)
                return
            self._fill(threads, stage)
        if self._working or self._closing:
            self._collect()
        elif stage is not None and spent:
            last = self._last_repetition()
            if last is not None:
                self._begin(threads, stage, last)
                return
            self.transition.break_off(stage, spent)
            self._changed(self.state)
        elif not self._is_stopping and not self.budget.why_spent(self.journal.attempts):
            raise SearchError("The search cannot go on: nothing is left to try.")

    def _last_repetition(self) -> NodeChoice | None:
        """Return a repetition that a run with all its nodes still makes; None where none is due.

        The limit of nodes does not count repetitions; the others hold for them.
        """
        if self._is_stopping or self.budget.why_spent(None):
            return None
        return self._repetitions.at_limit() or next(iter(self._repetitions.confirming(1)), None)

    def _is_ready_to_end(self, stage: StageState) -> bool:
        """Return whether a stage is over, and no task of it runs, waits or closes it."""
        is_busy = any(node.stage <= stage.stage.number for node, _ in self._working.values())
        return not (is_busy or self._queue or self._closing) and bool(self._why_over(stage))

    def _cut_off(self) -> None:
        """End commands when the time is over; an attempt that had not run is made again later."""
        for _, attempt in self._working.values():
            attempt.bench.cut_off()
        self.plots.stop()

    def _fill(self, threads: ThreadPoolExecutor, stage: StageState) -> None:
        """Begin attempts while there is room: of the stage, or of the next where it is over.

        Where measurements scatter, repetitions of the best go before new attempts.
        """
        while len(self._working) < self.config.workers and not self._is_stopping:
            if self._queue:
                self._begin(threads, stage, self._queue.pop(0))
                continue
            if self.budget.why_spent(self.journal.attempts):
                return
            again = self._repetitions.during(stage.stage.number)
            if again is not None:
                self._begin(threads, stage, again)
                continue
            open_ = stage if self._has_room(stage) else self._ahead(stage)
            if open_ is None:
                return
            random = Random(f"{self.config.seed}:{self._next_step()}")
            choice = self._policy(self._view(open_), random)
            if choice is None:
                return
            self._begin(threads, open_, choice)

    def _ahead(self, stage: StageState) -> StageState | None:
        """Return the stage after one whose last tasks still run; None if it must wait for them.

        Its base is the best node so far. Ablations wait, since all are compared with one base; so
        do stages that a model may extend, or whose best node it may choose.
        """
        if self.transition.is_open(stage):
            return None
        ahead = self.transition.following(stage)
        if ahead is None or ahead.stage.growth is NodeKind.ABLATION or not self._has_room(ahead):
            return None
        return ahead

    def _has_room(self, stage: StageState) -> bool:
        """Return whether a stage goes on, and its nodes, running ones too, do not use it up."""
        number = stage.stage.number
        has_room = len(self.journal.of_stage(number)) < self.config.stage_nodes[number - 1]
        return has_room and not self._why_over(stage)

    def _view(self, stage: StageState) -> StageView:
        drafts = self.config.rules.num_drafts if stage.stage.number == 1 else 0
        nodes = self.journal.of_stage(stage.stage.number)
        return StageView(self.journal, nodes, stage.stage.growth, stage.base, drafts)

    def _why_over(self, stage: StageState) -> str:
        return why_over(
            stage,
            self.journal,
            drafts=self.config.rules.num_drafts,
            max_nodes=self.config.stage_nodes[stage.stage.number - 1],
        )

    def _next_step(self) -> int:
        """Return the first number that no node has: of a resumed run, perhaps one in between."""
        taken = {node.step for node in self.journal.nodes}
        return next(step for step in range(1, len(taken) + 2) if step not in taken)

    def _begin(self, threads: ThreadPoolExecutor, stage: StageState, action: NodeChoice) -> None:
        step = self._next_step()
        id_ = f"n{step:04d}"
        node = Node(
            id=id_,
            step=step,
            kind=action.kind,
            stage=stage.stage.number,
            substage=stage.substage,
            parent=action.parent,
            name=action.name,
            seed=self.config.seed if action.seed is None else action.seed,
            is_fresh=action.is_fresh,
            attempt=1 + self._lost.get(id_, 0),
            started_at=time.time(),
        )
        self.parts.places.node(id_).remove()
        node = replace(node, branch=self._fork(node))
        self._put(node)
        attempt = NodeAttempt(self.parts, node, stage)
        self._working[threads.submit(play, attempt)] = (node, attempt)
        if self._is_stopping:  # it came too late for `stop` to see it
            attempt.cancel()
        self._changed(self.state)

    def _fork(self, node: Node) -> str:
        """Make the node's branch; the branch of an attempt that did not finish is pruned."""
        store = self.parts.store
        if store is None:
            return ""
        name, number = node.id, 1
        while name in self._branches:
            store[name].prune()
            number += 1
            name = f"{node.id}-{number}"
        parent = (self.journal[node.parent].branch if node.parent else "") or ROOT_BRANCH
        store[parent].fork(name, node_uid=name, phase=node.kind.value)
        self._branches.add(name)
        return name

    def _collect(self) -> None:
        """Wait until a task ends, and put its node into the journal; or for the end of a stage."""
        awaited: list[Future[Any]] = [*self._working, *self.plots.works]
        if self._closing is not None:
            awaited.append(self._closing)
        wait(awaited, _POLL_S, FIRST_COMPLETED)
        for future in [future for future in self._working if future.done()]:
            node, _ = self._working.pop(future)
            finished = self._outcome(future, node)
            if finished is None:
                self.journal.drop(node.id)
                continue
            self._put(finished)
            if finished.wants_plots and not self._is_stopping:
                self.plots.add(finished)
        for drawn in self.plots.take():
            self._put(drawn)
        if self._closing is not None and self._closing.done():
            closed, self._closing = self._closing, None
            closed.result()
        self._changed(self.state)

    def _put(self, node: Node) -> None:
        self.journal.put(node)
        # With the time so far: a process that is killed does not say that it pauses.
        clock = {"elapsed": self.budget.elapsed_s, "at": time.time()}
        self.log.add("node", node=node.to_dict(), **clock)

    def _outcome(self, future: Future[Node], node: Node) -> Node | None:
        try:
            finished = future.result()
        except WorkerLost as error:
            is_again = node.attempt < self.config.attempts and not self._is_stopping
            self._remark(f"{node.id}: {error} {'It is tried again.' if is_again else ''}".rstrip())
            if is_again:
                self._lost[node.id] = node.attempt
                again = NodeChoice(node.kind, node.parent, node.name, node.seed, node.is_fresh)
                self._queue.insert(0, again)
                return None
            failure = NodeError("WorkerLost", str(error))
            return replace(node, status=NodeStatus.LOST, error=failure, finished_at=time.time())
        except (WorkCancelled, BudgetSpent):
            return None
        except (ModelError, ExecutorLost):
            raise
        except Exception as error:  # noqa: BLE001 - no node may take the others with it
            return self._broken(error, node)
        self._broken_in_a_row = 0
        return self._compared(finished)

    def _remark(self, text: str) -> None:
        """Keep a remark, which people see at once and in the log."""
        self.log.add("remark", text=text)
        self.state.remarks.append(text)

    def _compared(self, finished: Node) -> Node:
        """Return a node, failed if it lacks data sets that the run compares.

        Its own look at the journal may have been too early: two first attempts at one time.
        """
        if finished.metric is None or not finished.is_good:
            return finished
        metric, problem = self.journal.comparable(finished.metric)
        if not problem:
            return replace(finished, metric=metric, datasets=tuple(filter(None, metric.values)))
        failure = NodeError("MetricError", problem)
        return replace(finished, status=NodeStatus.BUGGY, error=failure, wants_plots=False)

    def _broken(self, error: Exception, node: Node) -> Node:
        """Return the failed node of a task that raised an error.

        Raises:
            SearchError: If it will be the same for others.
        """
        problem = f"{type(error).__name__}: {error}"
        self._broken_in_a_row += 1
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise SearchError(f"{problem}.", "Make room, and go on with --resume.") from error
        if self._broken_in_a_row >= _MOST_BROKEN:
            raise SearchError(
                f"{_MOST_BROKEN} attempts in a row could not be carried out; the last: {problem}."
            ) from error
        failure = NodeError("InternalError", problem)
        return replace(node, status=NodeStatus.BUGGY, error=failure, finished_at=time.time())

    def _drain(self) -> None:
        """Wait for the end of cancelled tasks, and for the plots that are left."""
        while self._working or self._closing or self.plots.works:
            if self._is_stopping or self.budget.is_late:
                self.plots.stop()
            self._collect()

    def _advance(self, threads: ThreadPoolExecutor, stage: StageState) -> None:
        """Queue the repetitions that a finished stage waits for, or close the stage.

        With one slot nothing goes on meanwhile: the run is a function of journal, seed and replies.
        """
        is_last = self.transition.following(stage) is None
        slots = self.config.workers
        self._queue = self._repetitions.closing(stage.stage.number, slots, is_last=is_last)
        if is_last and not self._queue:
            self._queue = self._repetitions.confirming(slots)
        if self._queue:
            return
        reason = self._why_over(stage)
        if self.config.workers > 1:
            self._closing = threads.submit(self.transition.go_on, stage, reason)
            return
        self.transition.go_on(stage, reason)
        self._changed(self.state)
