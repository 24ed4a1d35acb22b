"""Questions to a model before an attempt, and the readers of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from taskweaver.treesearch.agent.asking import Question
from taskweaver.treesearch.agent.attempt_replies import Basis, Proposal, read_phases, read_script
from taskweaver.treesearch.agent.board import board
from taskweaver.treesearch.agent.describe import (
    environment_lines,
    parent_code,
    parent_sections,
    parent_summary,
    sibling_digest,
)
from taskweaver.treesearch.agent.phase0 import Phase0Plan, read_plan
from taskweaver.treesearch.agent.prompt_files import plan_lines
from taskweaver.treesearch.engine.node_attempt import NodeAttempt
from taskweaver.treesearch.engine.review_questions import style_of
from taskweaver.treesearch.engine.run_parts import RunParts
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.execution.installation import Decision, read_decision
from taskweaver.treesearch.model.artifacts import Artifacts
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.utils.text import fenced

T = TypeVar("T")

_INTRODUCTIONS = {
    NodeKind.DRAFT: "agent/parallel/tasks/draft/introduction",
    NodeKind.DEBUG: "agent/parallel/tasks/debug/introduction",
    NodeKind.IMPROVE: "agent/parallel/tasks/improve/introduction",
    NodeKind.HYPERPARAM: "agent/parallel/nodes/hyperparam/introduction",
    NodeKind.ABLATION: "agent/parallel/nodes/ablation/introduction",
}
HINTS = {
    NodeKind.DRAFT: "draft",
    NodeKind.DEBUG: "debug",
    NodeKind.IMPROVE: "improve",
    NodeKind.HYPERPARAM: "hyperparam_node",
    NodeKind.ABLATION: "ablation_node",
}
"""Task hints of the memory, by kind."""


def plan_question(attempt: NodeAttempt) -> Question[tuple[Phase0Plan, str]]:
    """Return the question for the plan of Phase 0, and the reply that it is read from."""
    run, node = attempt.run, attempt.node
    introduction = run.prompts.text(_INTRODUCTIONS[node.kind])
    task: dict[str, Any] = {
        **run.aim,
        "Kind of attempt": f"{node.kind}. Its author gets these instructions: {introduction}",
        **_stage(attempt),
    }
    if attempt.parent is not None:
        task["Made from"] = parent_summary(attempt.parent, run.journal)
    sections = {
        "Task": task,
        **parent_code(attempt.parent, run.journal),
        "Time limit": f"{run.config.limits.run_s:g} seconds for a run",
        "Other attempts": sibling_digest(run.journal, node) or ["none so far"],
        "Lessons of other attempts": board(run.journal, node) or ["none so far"],
        **({"History": run.history} if run.history else {}),
        **_environment(run),
        **_evaluator(run),
        "Reply": run.prompts.text("agent/parallel/response_format/phase0"),
    }

    def read(text: str) -> tuple[Phase0Plan, str]:
        return read_plan(text), text

    text = "config/phases/phase0_planning"
    return _needed(attempt, "phase0", text, sections, read, "phase0_planning")


def attempt_question(attempt: NodeAttempt) -> Question[Proposal]:
    """Return the question for a proposal, whose reader claims its change and its program."""
    run, node = attempt.run, attempt.node
    refused: list[Artifacts] = []

    def read(text: str) -> Proposal:
        found = _proposal(text, attempt)
        is_last = len(refused) + 1 >= run.config.asking.attempts
        insists = is_last or found.artifacts in refused
        problem = run.claims.take(node, found.name, found.artifacts, insists=insists)
        if problem:
            refused.append(found.artifacts)
            raise PhasePlanError("", problem)
        return found

    text, hint = _INTRODUCTIONS[node.kind], HINTS[node.kind]
    return _needed(attempt, node.kind.value, text, _attempt_sections(attempt), read, hint)


def install_question(
    attempt: NodeAttempt, artifacts: Artifacts | None, progress: Mapping[str, Any]
) -> Question[Decision]:
    """Return the question for the installer's next ``command``, ``done`` and ``notes``."""
    run, plan = attempt.run, attempt.plan
    parts = artifacts.to_dict() if artifacts else {}
    wanted = {
        "commands that were planned": parts.get("download", {}).get("commands", []),
        "guidance": plan.phase_guidance.get("phase1", {}) if plan else {},
        "compile": parts.get("compile", {}),
        "run": parts.get("run", {}),
    }
    sections = {
        "Research idea": fenced(run.idea.text, "markdown"),
        "Phase plan": plan_lines(wanted),
        **_environment(run),
        "Progress": plan_lines(progress),
        "Reply": run.prompts.text("agent/parallel/response_format/phase1"),
    }
    label, text = f"phase1_step{progress['step']}", "config/phases/phase1_installer"
    return _needed(attempt, label, text, sections, read_decision, "phase1")


def _needed(
    attempt: NodeAttempt,
    label: str,
    text: str,
    sections: Mapping[str, Any],
    read: Callable[[str], T],
    hint: str,
) -> Question[T]:
    """Return a question to the model for code; a call that fails is no unusable reply."""
    model = attempt.run.config.models.code
    return Question(label, text, sections, read, model, hint, fatal=None)


def _attempt_sections(attempt: NodeAttempt) -> dict[str, Any]:
    """Return the prompt for an attempt, by its kind."""
    run, node, parent, plan = attempt.run, attempt.node, attempt.parent, attempt.plan
    prompt: dict[str, Any] = {
        "Kind of attempt": node.title,
        **run.aim,
        **_stage(attempt),
    }
    if parent is not None:
        prompt |= parent_sections(parent, run.journal)
    shown = {
        "Lost": attempt.bench.loss,
        "Other attempts": sibling_digest(run.journal, node),
        "Lessons of other attempts": board(run.journal, node),
    }
    prompt |= {title: section for title, section in shown.items() if section}
    prompt["Domain"] = run.prompts.text("core/domain_neutral")
    prompt |= _environment(run) | _evaluator(run)
    planned = plan_lines(plan.to_dict()) if plan else []
    if plan and planned:
        origin = [f"made for {plan.origin}: what has changed since is not in it"]
        prompt["Phase 0 plan"] = [*(origin if plan.origin else []), *planned]
    prompt["Instructions"] = {"Response format": _response_format(attempt)}
    return prompt


def _response_format(attempt: NodeAttempt) -> str:
    run, parent = attempt.run, attempt.parent
    is_repair = parent is not None and not parent.is_good
    where = "the parent's program began with" if is_repair else "the program of the parent left"
    state = (
        f"Its variables are those {where}; do not compute them again."
        if attempt.node.line
        else "It is new: nothing is defined in it."
    )
    files = (
        "The workspace is empty: list all files."
        if parent is None
        else f"The files of {parent.id} are in the workspace already: list those that are new or"
        " changed."
    )
    folder, evaluator = "agent/parallel/response_format", run.evaluator
    edits = "" if parent is None else f"{run.prompts.text(f'{folder}/edits')}\n\n"
    measured_by = (
        run.prompts.text(f"{folder}/result_file")
        if evaluator is None
        else run.prompts.text(f"{folder}/evaluator", evaluator=evaluator.command)
    )
    return run.prompts.text(
        f"{folder}/{style_of(run.config).forms[run.scripts is not None]}",
        run_seconds=f"{run.config.limits.run_s:g}",
        kernel_state=state,
        workspace_state=files,
        edit_form=edits,
        measured_by=measured_by,
    )


def _proposal(text: str, attempt: NodeAttempt) -> Proposal:
    """Read the reply to an attempt's prompt.

    Raises:
        PhasePlanError: If it cannot be carried out.
        ValueError: If it is not of the form that was asked for.
    """
    run, parent = attempt.run, attempt.parent
    basis = Basis(
        run.journal.files(parent.id) if parent is not None else {},
        parent.artifacts if parent is not None else None,
        run.worker.compilers,
        run.worker.programs,
        run.evaluator is not None,
    )
    return (read_phases if run.scripts is None else read_script)(text, basis)


def _stage(attempt: NodeAttempt) -> dict[str, str]:
    """Return the stage and its goals; a repair has the goals of its parent.

    The first stage wants a plain version, which an improvement of one has left behind.
    """
    assert attempt.state is not None
    kind, number = attempt.node.kind, attempt.state.stage.number
    if kind is NodeKind.DEBUG or (kind is NodeKind.IMPROVE and number == 1):
        return {}
    return {"Stage": f"{attempt.state.stage.label}: {attempt.state.goals}"}


def _environment(run: RunParts) -> dict[str, Any]:
    """Return the sections on the machine, and on the resources, if there are any."""
    lines = environment_lines(run.environment, run.idea.text, run.journal.objective)
    resources = run.materials.text()
    return {"Environment": lines, **({"Resources": resources} if resources else {})}


def _evaluator(run: RunParts) -> dict[str, str]:
    evaluator = run.evaluator
    return {"Evaluator": fenced(evaluator.source)} if evaluator and evaluator.source else {}
