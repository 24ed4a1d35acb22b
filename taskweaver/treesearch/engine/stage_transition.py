"""The transitions of a run from stage to stage: their questions, log entries and events.

An answer in the log is not asked for again: a run that is resumed in between goes on from it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from taskweaver.treesearch.agent.events import RunEvents
from taskweaver.treesearch.engine.stage_questions import StageAgent, Verdict
from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.model.stages import STAGES, StageState
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.runlog import RunLog, RunState, StagePassed


@dataclass(frozen=True, slots=True)
class StageTransition:
    """Leads a run from one stage to the next, and to its end."""

    state: RunState
    log: RunLog
    events: RunEvents
    agent: StageAgent

    @property
    def _journal(self) -> Journal:
        return self.state.journal

    def enter(self, stage: StageState) -> None:
        """Begin a stage, or a substage."""
        self.state.stage = stage
        self.log.add("stage", **(asdict(stage) | {"stage": stage.stage.number}))
        self.begun(stage)

    def begun(self, stage: StageState) -> None:
        """Note that a stage began, unless that was noted."""
        if stage.substage > 1:
            self.events.goal_generated(stage)

    def go_on(self, stage: StageState, reason: str) -> None:
        """Enter the stage or substage after one that is over, whose best node has had its seeds.

        Where a judgement chooses another node, the stage goes on until that one has had its seeds.

        Raises:
            ModelError: If no question could be answered.
        """
        best = self._journal.best_until(stage.stage.number)
        is_asked = self._is_judged() and not self._journal.judgements[-1].is_spent
        is_decided = is_asked or self._is_closed(stage)
        verdict = Verdict() if is_decided else self.agent.verdict(stage)
        if verdict.goals:
            self.events.substage_ended(stage, _explained(reason, verdict), is_complete=False)
            first, number = len(self._journal), stage.substage + 1
            self.enter(replace(stage, substage=number, goals=verdict.goals, first=first))
            return
        if self._judged(stage) and self._journal.best_until(stage.stage.number) is not best:
            return
        self._close(stage, reason, _explained(reason, verdict), best)
        self._leave(stage, reason, best)

    def break_off(self, stage: StageState, spent: str) -> None:
        """End the run in the middle of a stage, since its budget is spent."""
        self._judged(stage, is_spent=True)
        self._close(stage, spent, spent, self._journal.best(), is_spent=True)
        self._end(spent, is_spent=True)

    def _is_judged(self) -> bool:
        done = self._journal.judgements
        return bool(done) and done[-1].after == self._journal.attempts

    def _judged(self, stage: StageState, *, is_spent: bool = False) -> bool:
        """Ask the judge for the node to go on from, once; return whether it answered now."""
        if self._is_judged():
            return False
        judgement = self.agent.judgement(stage)
        if judgement is None:
            return False
        entry = self.log.add("judged", **asdict(replace(judgement, is_spent=is_spent)))
        self._journal.judge(Judgement.from_dict(entry))  # as a resumed run reads it
        return True

    def _leave(self, stage: StageState, reason: str, best: Node | None) -> None:
        following = self.following(stage)
        self.events.progressed(stage, following, reason)
        if following is None:
            self._end(reason if best else f"no attempt of the first stage worked; {reason}")
        else:
            self.enter(following)

    def is_open(self, stage: StageState) -> bool:
        """Return whether a model may extend a stage, or choose its best node."""
        return self.agent.judges or self.agent.is_open(stage)

    def following(self, stage: StageState) -> StageState | None:
        """Return the stage after one, begun with the best node so far; None after the last.

        Its nodes may have begun before: then it begins with the first of them.
        """
        number, nodes = stage.stage.number, self._journal.nodes
        best = self._journal.best_until(number)
        if best is None:
            return None
        ahead = [node.step for node in nodes if node.stage > number]
        first = min(ahead) - 1 if ahead else len(nodes)
        for next_ in STAGES[number:]:
            if self.agent.run.config.stage_nodes[next_.number - 1]:
                return StageState(next_, best.id, 1, next_.goals, first)
        return None

    def _is_closed(self, stage: StageState) -> bool:
        """Return whether the end of a stage was noted, by a process that went no further."""
        return bool(self.state.passed) and self.state.passed[-1].state == stage

    def _close(
        self,
        stage: StageState,
        reason: str,
        explanation: str,
        best: Node | None,
        *,
        is_spent: bool = False,
    ) -> None:
        """Note that a stage is over, its best node, and its summary."""
        passed = self.state.passed
        if not self._is_closed(stage):
            best_id = best.id if best else None
            self.log.add("stage_ended", reason=reason, best=best_id)
            passed.append(StagePassed(stage, reason, best_id))
        if self._is_judged() and self._journal.judgements[-1].passed_over:
            overruled = run_statistics.overruled(self._journal)[-1]
            self.events.judged(stage, self._journal.attempts, overruled)
        is_complete = best is not None and not is_spent
        self.events.substage_ended(stage, explanation, is_complete=is_complete)
        self.events.stage_ended(stage, reason, self._tested(stage))
        if not passed[-1].summary:
            summary = self.agent.summary(stage)
            self.log.add("stage_summary", summary=summary)
            passed[-1] = replace(passed[-1], summary=summary)
        self.events.stage_summary(stage, passed[-1].summary)
        if best is not None:
            self.events.lesson(best)

    def _tested(self, stage: StageState) -> str:
        nodes = self._journal.of_stage(stage.stage.number)
        names = ", ".join(dict.fromkeys(node.name for node in nodes if node.name))
        if stage.stage.number != 2:
            return names
        tried = {name for node in nodes if node.is_good for name in node.datasets}
        datasets = ", ".join(sorted(tried)) or "one, without a name"
        return f"Data sets: {datasets}. Tuned: {names or 'nothing'}."

    def _end(self, reason: str, *, is_spent: bool = False) -> None:
        self.events.journal_summary()
        self.log.add("ended", reason=reason, spent=is_spent)
        self.state.is_over, self.state.reason, self.state.stage = True, reason, None
        self.state.is_spent = is_spent


def _explained(reason: str, verdict: Verdict) -> str:
    return f"{reason}. {verdict.reason}" if verdict.reason else reason
