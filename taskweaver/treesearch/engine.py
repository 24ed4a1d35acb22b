"""The coordinator: fills free slots with attempts, stage after stage, until the run is over.

It is one thread; each attempt is worked on in another. What it decides depends on the journal and
the seed alone, so a run that is resumed decides as if it had never stopped.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from random import Random

from taskweaver.llm.errors import ModelError
from taskweaver.treesearch import findings
from taskweaver.treesearch.budget import Budget, BudgetSpent
from taskweaver.treesearch.errors import SearchError, WorkerLost
from taskweaver.treesearch.events import RunEvents
from taskweaver.treesearch.journal import Journal, Judgement
from taskweaver.treesearch.judging import Judge
from taskweaver.treesearch.node import Node, NodeError, NodeKind, NodeStatus
from taskweaver.treesearch.policy import Action, Policy, StageView, policy_named
from taskweaver.treesearch.runlog import RunLog
from taskweaver.treesearch.stages import STAGES, StageState, why_over
from taskweaver.treesearch.state import RunState, StagePassed, stage_entry
from taskweaver.treesearch.substages import Substages, Verdict
from taskweaver.treesearch.toolbox import Toolbox
from taskweaver.treesearch.work import NodeWork, WorkCancelled

Changed = Callable[[RunState], None]
_POLL_S = 1.0
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_MOST_BROKEN = 3


class Engine:
    """Runs a search."""

    def __init__(
        self, tools: Toolbox, state: RunState, log: RunLog, budget: Budget, changed: Changed
    ) -> None:
        """Get ready.

        Args:
            tools: What all nodes share.
            state: Where the run is.
            log: Its log.
            budget: What it may spend.
            changed: Told, in the coordinator's thread, whenever the run went on.
        """
        self._tools = tools
        self._config = tools.config
        self._state = state
        self._log = log
        self._budget = budget
        self._changed = changed
        self._events = RunEvents(tools.store)
        self._policy: Policy = policy_named(self._config.policy, self._config.rules)
        self._substages = Substages(tools, state.journal)
        self._judge = Judge(tools, state.journal)
        self._working: dict[Future[Node], tuple[Node, NodeWork]] = {}
        self._queue: list[Action] = []
        self._branches = {branch.id for branch in tools.store.branches()} if tools.store else set()
        self._lost: dict[str, int] = {}
        self._broken_in_a_row = 0
        self._is_stopping = False

    @property
    def journal(self) -> Journal:
        """All nodes."""
        return self._state.journal

    def stop(self) -> None:
        """Stop soon, from any thread: what is worked on is given up, and made again on resuming."""
        self._is_stopping = True
        self._substages.give_up()
        for _, work in list(self._working.values()):
            work.cancel()

    def run(self) -> None:
        """Run until the search is over, stopped, or has used up what it may.

        Raises:
            SearchError: If it cannot go on.
            ModelError: If the model cannot be asked.
        """
        self._budget.begin(self.journal)
        try:
            with ThreadPoolExecutor(self._config.workers, "search-node") as threads:
                try:
                    self._loop(threads)
                except BaseException as error:
                    if self._is_stopping and _is_cancelled(error):
                        return
                    self.stop()
                    raise
        finally:
            self._log.add("paused", elapsed=self._budget.elapsed_s)

    def _loop(self, threads: ThreadPoolExecutor) -> None:
        if self._state.stage is None and not self._state.is_over:
            self._enter(StageState(STAGES[0], goals=STAGES[0].goals))
        elif self._state.stage is not None:
            self._begun(self._state.stage)  # the process may have ended before it was noted
        while self._state.stage is not None and not self._is_stopping:
            spent = self._budget.why_spent(self._steps())
            if spent:
                if not self._working:
                    self._judged(self._state.stage)
                    self._close(self._state.stage, spent, self.journal.best(), spent)
                    self._end(spent, is_spent=True)
                    return
            else:
                self._fill(threads, self._state.stage)
            if self._working:
                self._collect()
            elif not spent:
                self._advance(self._state.stage)
        self._drain()

    def _steps(self) -> int:
        return sum(node.kind is not NodeKind.SEED for node in self.journal.nodes)

    def _fill(self, threads: ThreadPoolExecutor, stage: StageState) -> None:
        """Begin attempts while there is room; none when the stage is over but for what runs."""
        while len(self._working) < self._config.workers and not self._is_stopping:
            if self._queue:
                self._begin(threads, stage, self._queue.pop(0))
                continue
            if self._why_over(stage) or self._is_full(stage):
                return
            if self._budget.why_spent(self._steps()):
                return
            step = self._next_step()
            random = Random(f"{self._config.seed}:{step}")
            actions = self._policy.select(self._view(stage), 1, random)
            if not actions:
                return
            self._begin(threads, stage, actions[0])

    def _view(self, stage: StageState) -> StageView:
        drafts = self._config.rules.num_drafts if stage.stage.number == 1 else 0
        nodes = self.journal.of_stage(stage.stage.number)
        return StageView(self.journal, nodes, stage.stage.growth, stage.base, drafts)

    def _why_over(self, stage: StageState) -> str:
        return why_over(
            stage,
            self.journal,
            drafts=self._config.rules.num_drafts,
            max_nodes=self._config.stage_nodes[stage.stage.number - 1],
        )

    def _is_full(self, stage: StageState) -> bool:
        """Return whether the nodes that are there, running ones too, use the stage up."""
        number = stage.stage.number
        return len(self.journal.of_stage(number)) >= self._config.stage_nodes[number - 1]

    def _next_step(self) -> int:
        """Return the first number that no node has: of a resumed run, perhaps one in between."""
        taken = {node.step for node in self.journal.nodes}
        return next(step for step in range(1, len(taken) + 2) if step not in taken)

    def _begin(self, threads: ThreadPoolExecutor, stage: StageState, action: Action) -> None:
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
            seed=self._config.seed if action.seed is None else action.seed,
            attempt=1 + self._lost.get(id_, 0),
            started_at=time.time(),
        )
        self._tools.places.node(id_).remove()
        node = replace(node, branch=self._fork(node))
        self.journal.put(node)
        self._log.add("node", node=node.to_dict())
        work = NodeWork(self._tools, self.journal, stage, node)
        self._working[threads.submit(work.run)] = (node, work)
        if self._is_stopping:  # it came too late for `stop` to see it
            work.cancel()
        self._changed(self._state)

    def _fork(self, node: Node) -> str:
        """Make the node's branch; one of an attempt that did not finish is given up."""
        store = self._tools.store
        if store is None:
            return ""
        name, number = node.id, 1
        while name in self._branches:
            store.prune(name)
            number += 1
            name = f"{node.id}-{number}"
        parent = (self.journal[node.parent].branch or None) if node.parent else None
        store.mem_node_fork(parent, name, phase=node.kind.value)
        self._branches.add(name)
        return name

    def _collect(self) -> None:
        """Wait until an attempt ends, and take what came of it."""
        done, _ = wait(self._working, _POLL_S, FIRST_COMPLETED)
        for future in done:
            node, _ = self._working.pop(future)
            finished = self._outcome(future, node)
            if finished is None:
                self.journal.drop(node.id)
                continue
            self.journal.put(finished)
            self._budget.add(finished)
            # With the time so far: a process that is killed does not say that it pauses.
            self._log.add("node", node=finished.to_dict(), elapsed=self._budget.elapsed_s)
        self._changed(self._state)

    def _outcome(self, future: Future[Node], node: Node) -> Node | None:
        try:
            finished = future.result()
        except WorkerLost as error:
            if node.attempt < self._config.attempts and not self._is_stopping:
                self._lost[node.id] = node.attempt
                self._queue.insert(0, Action(node.kind, node.parent, node.name, node.seed))
                return None
            failure = NodeError("WorkerLost", str(error))
            return replace(node, status=NodeStatus.LOST, error=failure, finished_at=time.time())
        except (WorkCancelled, BudgetSpent):
            return None
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - no node may take the others with it
            return self._broken(error, node)
        self._broken_in_a_row = 0
        return self._compared(finished)

    def _compared(self, finished: Node) -> Node:
        """Return a node, failed if what it measured is not what the run compares.

        Its own look at the journal may have been too early: two first attempts at one time.
        """
        if finished.metric is None or not finished.is_good:
            return finished
        _, problem = self.journal.comparable(finished.metric)
        if not problem:
            return finished
        return replace(finished, status=NodeStatus.BUGGY, error=NodeError("MetricError", problem))

    def _broken(self, error: Exception, node: Node) -> Node:
        """Return a node whose attempt could not be carried out, as it is to be kept.

        Raises:
            SearchError: If it will be the same for others.
        """
        said = f"{type(error).__name__}: {error}"
        self._broken_in_a_row += 1
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise SearchError(f"{said}.", "Make room, and go on with --resume.") from error
        if self._broken_in_a_row >= _MOST_BROKEN:
            raise SearchError(
                f"{_MOST_BROKEN} attempts in a row could not be carried out; the last: {said}."
            ) from error
        failure = NodeError("InternalError", said)
        return replace(node, status=NodeStatus.BUGGY, error=failure, finished_at=time.time())

    def _drain(self) -> None:
        """Wait for what was given up."""
        while self._working:
            self._collect()

    def _enter(self, stage: StageState) -> None:
        self._state.stage = stage
        self._log.add("stage", **stage_entry(stage))
        self._begun(stage)

    def _begun(self, stage: StageState) -> None:
        if stage.substage > 1:
            self._events.goal_generated(stage)

    def _advance(self, stage: StageState) -> None:
        """Go on when a stage is over: seeds of its best node, then the next substage or stage."""
        reason = self._why_over(stage)
        if not reason and (self._is_stopping or self._budget.why_spent(self._steps())):
            return  # it happened since the loop looked
        if not reason:
            raise SearchError(f"The search cannot go on in {stage.label}: nothing is left to try.")
        best = self.journal.best()
        if best is not None and self._wants_seeds(best):
            return
        is_decided = self._is_judged() or self._is_closed(stage)
        verdict = Verdict() if is_decided else self._substages.verdict(stage)
        if verdict.goals:
            self._events.substage_ended(stage, _told(reason, verdict), is_complete=False)
            first, number = len(self.journal), stage.substage + 1
            self._enter(replace(stage, substage=number, goals=verdict.goals, first=first))
            return
        if self._judged(stage) and self.journal.best() is not best:
            return  # the next round looks whether that one has had its seeds
        self._close(stage, reason, best, _told(reason, verdict))
        self._leave(stage, reason, best)

    def _is_judged(self) -> bool:
        done = self.journal.judgements
        return bool(done) and done[-1].after == self._steps()

    def _judged(self, stage: StageState) -> bool:
        """Have it judged which node is carried on, once; return whether it was judged now."""
        if self._is_judged():
            return False
        judgement = self._judge.judgement(stage, self._steps())
        if judgement is None:
            return False
        self._log.add("judged", **asdict(judgement))
        self.journal.judge(Judgement.from_dict(self._log.entries[-1]))  # as a resumed run reads it
        if judgement.passed_over:
            self._events.judged(stage, judgement.after, findings.overruled(self.journal)[-1])
        return True

    def _wants_seeds(self, best: Node) -> bool:
        """Queue the seed evaluations a stage's best node has not had yet."""
        had = {node.seed for node in self.journal.seeds_of(best.id)}
        wanted = [self._config.seed + n for n in range(1, self._config.num_seeds + 1)]
        self._queue = [
            Action(NodeKind.SEED, best.id, seed=seed) for seed in wanted if seed not in had
        ]
        return bool(self._queue)

    def _leave(self, stage: StageState, reason: str, best: Node | None) -> None:
        following = self._following(stage, best)
        self._events.progressed(stage, following, reason)
        if following is None:
            self._end(reason if best else f"no attempt of the first stage worked; {reason}")
        else:
            self._enter(following)

    def _is_closed(self, stage: StageState) -> bool:
        """Return whether the end of a stage was noted, by a process that went no further."""
        return bool(self._state.passed) and self._state.passed[-1].state == stage

    def _close(self, stage: StageState, reason: str, best: Node | None, told: str) -> None:
        """Note that a stage is over, and what it brought; what is noted is not asked for again."""
        passed = self._state.passed
        if not self._is_closed(stage):
            best_id = best.id if best else None
            self._log.add("stage_ended", reason=reason, best=best_id)
            passed.append(StagePassed(stage, reason, best_id))
        self._events.substage_ended(stage, told, is_complete=best is not None)
        self._events.stage_ended(stage, reason, self._tested(stage))
        if not passed[-1].summary:
            summary = self._substages.summary(stage)
            self._log.add("stage_summary", summary=summary)
            passed[-1] = replace(passed[-1], summary=summary)
        self._events.stage_summary(stage, passed[-1].summary)

    def _following(self, stage: StageState, best: Node | None) -> StageState | None:
        if best is None:
            return None
        for next_ in STAGES[stage.stage.number :]:
            if self._config.stage_nodes[next_.number - 1]:
                return StageState(next_, best.id, 1, next_.goals, len(self.journal))
        return None

    def _tested(self, stage: StageState) -> str:
        nodes = self.journal.of_stage(stage.stage.number)
        names = dict.fromkeys(node.name for node in nodes if node.name)
        return ", ".join(names)

    def _end(self, reason: str, *, is_spent: bool = False) -> None:
        self._log.add("ended", reason=reason, spent=is_spent)
        self._state.is_over, self._state.reason, self._state.stage = True, reason, None
        self._state.is_spent = is_spent
        self._changed(self._state)


def _is_cancelled(error: BaseException) -> bool:
    return isinstance(error, ModelError) and error.kind == "cancelled"


def _told(reason: str, verdict: Verdict) -> str:
    return f"{reason}. {verdict.reason}" if verdict.reason else reason
