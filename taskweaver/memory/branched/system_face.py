"""Prompts, blocks and pressure, as `MemoryManager` offers them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from taskweaver.memory.branched.face import Face
from taskweaver.memory.branched.injections import Injection
from taskweaver.memory.branched.operation_lines import log_block
from taskweaver.memory.branched.pressure import Relief, Score
from taskweaver.memory.branched.types import Pressure, PressureLevel, RenderResult


class SystemFace(Face):
    """Renders a memory, applies what a model writes to it, and keeps it from overflowing."""

    def apply_llm_memory_updates(
        self,
        branch_id: str,
        updates: Mapping[str, Any],
        node_id: str | None = None,
        phase: str | None = None,
        *,
        attempt: str | int | None = None,
    ) -> dict[str, Any]:
        """Apply a model's block, whole or not at all; see `Updates.apply`."""
        results = self._parts.updates.apply(
            branch_id, updates, node_id=node_id, phase=phase, attempt=attempt
        )
        marks: dict[str, Any] = {"branch_id": branch_id, "node_id": node_id, "phase": phase}
        log_block(self._log, updates, results, **marks)
        return results

    def render_for_prompt(
        self,
        branch_id: str,
        task_hint: str | None = None,
        budget_chars: int | None = None,
        *,
        task: str = "",
        no_limit: bool = False,
        at: int | None = None,
    ) -> str:
        """Return what a branch sees as a prompt shows it; see `Renderer.render`."""
        return self.render_for_prompt_with_log(
            branch_id, task_hint, budget_chars, task=task, no_limit=no_limit, at=at
        ).text

    def render_for_prompt_with_log(  # noqa: PLR0913 - each limit is a name of its own
        self,
        branch_id: str,
        task_hint: str | None = None,
        budget_chars: int | None = None,
        *,
        task: str = "",
        no_limit: bool = False,
        budget_tokens: int | None = None,
        at: int | None = None,
        leave_out: Collection[str] = (),
    ) -> RenderResult:
        """Return the rendered memory with what it shows and leaves out; see `Renderer.render`."""
        result = self._parts.renderer.render(
            branch_id,
            task_hint=task_hint,
            task=task,
            budget_chars=0 if no_limit else budget_chars,
            budget_tokens=budget_tokens,
            at=at,
            leave_out=leave_out,
        )
        shown = {section.title: len(section.shown) for section in result.sections}
        details = {"seq": result.seq, "chars": len(result.text), "shown": shown}
        self._log.add("render_for_prompt", branch_id=branch_id, details=details, phase=task_hint)
        return result

    def note_injection(self, branch_id: str, result: RenderResult, task_hint: str | None) -> None:
        """Record that a rendered memory was put into a prompt; an audit trail, not an event."""
        self._parts.injections.add(branch_id, result, task_hint)

    def injections(self, branch_id: str) -> list[Injection]:
        """Return what was shown to a branch's own prompts, newest first."""
        return self._parts.injections.of(branch_id)

    def check_memory_pressure(self, branch_id: str | None = None) -> Pressure:
        """Return how full a branch's memory is."""
        with self._parts.database.snapshot() as connection:
            found = self._parts.pressures.measure(connection, self._at_home(branch_id))
        self._log.add("check_memory_pressure", branch_id=branch_id, details=asdict(found))
        return found

    def auto_consolidate_memory(
        self, branch_id: str, pressure_level: PressureLevel, task_hint: str | None = None
    ) -> Relief:
        """Do what a pressure level calls for; see `Pressures.relieve`."""
        relief = self._parts.pressures.relieve(branch_id, pressure_level, task_hint=task_hint)
        self._log.add("auto_consolidate_memory", branch_id=branch_id, details=asdict(relief))
        return relief

    def consolidate_if_needed(self, branch_id: str, task_hint: str | None = None) -> Relief | None:
        """Relieve a branch whose pressure has reached `memory.consolidation_trigger`."""
        return self._parts.pressures.relieve_if_needed(branch_id, task_hint=task_hint)

    def consolidate_recall_events(self, branch_id: str) -> int:
        """Sum old events in view up; return how many a new digest covers."""
        count = self._parts.consolidation.consolidate(branch_id)
        details = {"events_consolidated": count}
        self._log.add("consolidate_recall_events", branch_id=branch_id, details=details)
        return count

    def consolidate_inherited_memory(self, branch_id: str, max_events: int | None = None) -> int:
        """Sum old inherited events up, for this branch and those below; return how many."""
        count = self._parts.consolidation.consolidate(
            branch_id, keep=max_events, inherited_only=True
        )
        details = {"events_consolidated": count}
        self._log.add("consolidate_inherited_memory", branch_id=branch_id, details=details)
        return count

    def evaluate_importance_with_llm(
        self, items: Sequence[Mapping[str, Any]], context: str = "", task_hint: str | None = None
    ) -> list[Score]:
        """Ask the model how important items are; see `Pressures.evaluate`."""
        scores = self._parts.pressures.evaluate(items, context, task_hint)
        self._log.add("evaluate_importance_with_llm", details={"item_count": len(items)})
        return scores
