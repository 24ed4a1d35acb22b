"""Questions to a model before an attempt, and the readers of its answers.

Each question is an ordered mapping: the task, the material, and the form of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.agent.attempt_replies import Basis, Proposal, read_phases, read_script
from taskweaver.treesearch.agent.board import board
from taskweaver.treesearch.agent.describe import (
    environment_lines,
    metric_text,
    parent_code,
    parent_sections,
    parent_summary,
    sibling_digest,
)
from taskweaver.treesearch.agent.node_agent import AnswerForm, NodeAgent
from taskweaver.treesearch.agent.phase0 import Phase0Plan, read_plan
from taskweaver.treesearch.agent.prompt_files import PromptFiles, plan_lines
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.execution.results import Evaluator
from taskweaver.treesearch.model.artifacts import Artifacts
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.model.plan_checks import refuse_mask
from taskweaver.treesearch.model.stages import StageState
from taskweaver.utils.text import fenced

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


@dataclass(frozen=True, slots=True)
class RunBackground:
    """Facts about a run that prompts show.

    The findings of earlier runs of the same idea are `earlier` as data, `history` in words; it and
    `resources` are empty for none. `evaluator` is None where attempts measure themselves.
    """

    idea: Idea
    environment: Mapping[str, Any]
    compilers: tuple[str, ...]
    programs: frozenset[str]
    resources: str
    history: str
    earlier: Mapping[str, Any]
    evaluator: Evaluator | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Facts about a node that begins, and its run.

    The parent is None for a draft. `is_script` is an attempt in a kernel, and not in phases;
    `is_forked`, a kernel with the parent's variables. `loss` names the files and variables of the
    parent that are missing, in words.
    """

    node: Node
    parent: Node | None
    background: RunBackground
    state: StageState
    journal: Journal
    run_seconds: float
    has_memory: bool
    is_script: bool
    is_forked: bool
    loss: str


class ProgramClaim(Protocol):
    """A claim to a change and a program; see `ChangeClaims.take`."""

    def __call__(self, node: Node, name: str, artifacts: Artifacts, /, *, insists: bool) -> str:
        """Return why a node cannot have them, or nothing."""


class Proposer:
    """Asks the agent of one node for plans, attempts and commands."""

    def __init__(
        self, prompts: PromptFiles, agent: NodeAgent, alias: str, *, in_fences: bool
    ) -> None:
        """Ask an agent, and the model of an alias, for code in fences or in JSON."""
        self._prompts = prompts
        self._agent = agent
        self._form = AnswerForm(alias=alias)
        self._in_fences = in_fences

    def plan(self, question: Question) -> tuple[Phase0Plan, str]:
        """Return the plan of Phase 0, normalised, and the reply it was read from.

        Raises:
            ReplyUnusable, ModelError: If there can be none.
        """
        introduction = "config/phases/phase0_planning"
        prompt = {
            "Introduction": self._prompts.text(introduction, with_memory=question.has_memory),
            "Task": self._task(question),
            **parent_code(question.parent, question.journal),
            "Time limit": f"{question.run_seconds:g} seconds for a run",
            "Other attempts": sibling_digest(question.journal, question.node) or ["none so far"],
            "Lessons of other attempts": board(question.journal, question.node) or ["none so far"],
            **_history(question),
            "Environment": _environment(question),
            **_resources(question),
            **_evaluator(question),
            "Reply": self._prompts.text("agent/parallel/response_format/phase0"),
        }

        def read(text: str) -> tuple[Phase0Plan, str]:
            return read_plan(text), text

        return self._agent.ask("phase0", prompt, read, hint="phase0_planning", form=self._form)

    def propose(self, question: Question, plan: Phase0Plan | None, claim: ProgramClaim) -> Proposal:
        """Return a proposed attempt.

        `claim` claims its change and program, and returns why it cannot have them, or nothing.

        Raises:
            ReplyUnusable, ModelError: If there can be none.
        """
        kind = question.node.kind
        prompt = attempt_prompt(self._prompts, question, plan, in_fences=self._in_fences)
        refused: list[Artifacts] = []

        def read(text: str) -> Proposal:
            found = read_proposal(text, question)
            is_last = len(refused) + 1 >= self._agent.limits.attempts
            insists = is_last or found.artifacts in refused
            problem = claim(question.node, found.name, found.artifacts, insists=insists)
            if problem:
                refused.append(found.artifacts)
                raise PhasePlanError("", problem)
            return found

        return self._agent.ask(kind.value, prompt, read, hint=HINTS[kind], form=self._form)

    def install_step(
        self,
        question: Question,
        plan: Phase0Plan | None,
        artifacts: Artifacts | None,
        progress: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the next command of the installer: ``command``, ``done`` and ``notes``.

        Raises:
            ReplyUnusable, ModelError: If there is none.
        """
        introduction = "config/phases/phase1_installer"
        sections = artifacts.to_dict() if artifacts else {}
        wanted = {
            "commands that were planned": sections.get("download", {}).get("commands", []),
            "guidance": plan.phase_guidance.get("phase1", {}) if plan else {},
            "compile": sections.get("compile", {}),
            "run": sections.get("run", {}),
        }
        prompt = {
            "Introduction": self._prompts.text(introduction, with_memory=question.has_memory),
            "Research idea": fenced(question.background.idea.text, "markdown"),
            "Phase plan": plan_lines(wanted),
            "Environment": _environment(question),
            **_resources(question),
            "Progress": plan_lines(progress),
            "Reply": self._prompts.text("agent/parallel/response_format/phase1"),
        }

        def read(text: str) -> dict[str, Any]:
            step = required_object(text, {})
            if not {"command", "done"} & step.keys():
                raise ValueError("`command` and `done` missing")
            step = {"command": "", "done": False} | step
            refuse_mask("command", step["command"])
            return step

        label = f"phase1_step{progress.get('step', 0)}"
        return self._agent.ask(label, prompt, read, hint="phase1", form=self._form)

    def _task(self, question: Question) -> dict[str, Any]:
        node, parent = question.node, question.parent
        task: dict[str, Any] = {
            "Research idea": fenced(question.background.idea.text, "markdown"),
            "Evaluation metric": metric_text(question.journal),
            "Kind of attempt": f"{node.kind}. Its author gets these instructions:"
            f" {self._prompts.text(_INTRODUCTIONS[node.kind])}",
            **_stage(question),
        }
        if parent is not None:
            task["Made from"] = parent_summary(parent, question.journal)
        return task


def attempt_prompt(
    prompts: PromptFiles, question: Question, plan: Phase0Plan | None, *, in_fences: bool
) -> dict[str, Any]:
    """Return the prompt for an attempt, by its kind, whose code is asked for in fences or JSON."""
    node, parent = question.node, question.parent
    response = _response_format(prompts, question, in_fences=in_fences)
    introduction = prompts.text(_INTRODUCTIONS[node.kind], with_memory=question.has_memory)
    prompt: dict[str, Any] = {
        "Introduction": introduction,
        "Kind of attempt": node.title,
        "Research idea": fenced(question.background.idea.text, "markdown"),
        "Evaluation metric": metric_text(question.journal),
        **_stage(question),
    }
    if parent is not None:
        prompt |= parent_sections(parent, question.journal)
    if question.loss:
        prompt["Lost"] = question.loss
    digest = sibling_digest(question.journal, node)
    if digest:
        prompt["Other attempts"] = digest
    lessons = board(question.journal, node)
    if lessons:
        prompt["Lessons of other attempts"] = lessons
    prompt["Domain"] = prompts.text("core/domain_neutral")
    prompt["Environment"] = _environment(question)
    prompt |= _resources(question)
    prompt |= _evaluator(question)
    planned = plan_lines(plan.to_dict()) if plan else []
    if plan and planned:
        origin = [f"made for {plan.origin}: what has changed since is not in it"]
        prompt["Phase 0 plan"] = [*(origin if plan.origin else []), *planned]
    prompt["Instructions"] = {"Response format": response}
    return prompt


def _response_format(prompts: PromptFiles, question: Question, *, in_fences: bool) -> str:
    parent = question.parent
    is_repair = parent is not None and not parent.is_good
    where = "the parent's program began with" if is_repair else "the program of the parent left"
    state = (
        f"Its variables are those {where}; do not compute them again."
        if question.is_forked
        else "It is new: nothing is defined in it."
    )
    files = (
        "The workspace is empty: list all files."
        if parent is None
        else f"The files of {parent.id} are in the workspace already: list those that are new or"
        " changed."
    )
    folder = "agent/parallel/response_format"
    named = (
        ("phases_in_fences", "script_in_fences") if in_fences else ("execution_split", "default")
    )
    edits = "" if parent is None else f"{prompts.text(f'{folder}/edits')}\n\n"
    return prompts.text(
        f"{folder}/{named[question.is_script]}",
        run_seconds=f"{question.run_seconds:g}",
        kernel_state=state,
        workspace_state=files,
        edit_form=edits,
        measured_by=_measured_by(prompts, question),
    )


def _measured_by(prompts: PromptFiles, question: Question) -> str:
    """Return the sentences about the measurement: by the run's evaluator, or by the attempt."""
    folder, evaluator = "agent/parallel/response_format", question.background.evaluator
    if evaluator is None:
        return prompts.text(f"{folder}/result_file")
    return prompts.text(f"{folder}/evaluator", evaluator=evaluator.command)


def _evaluator(question: Question) -> dict[str, str]:
    evaluator = question.background.evaluator
    return {"Evaluator": fenced(evaluator.source)} if evaluator and evaluator.source else {}


def read_proposal(text: str, question: Question) -> Proposal:
    """Read the reply to an attempt's prompt.

    Raises:
        PhasePlanError: If it cannot be carried out.
        ValueError: If it is not of the form that was asked for.
    """
    parent = question.parent
    basis = Basis(
        question.journal.files(parent.id) if parent is not None else {},
        parent.artifacts if parent is not None else None,
        question.background.compilers,
        question.background.programs,
        question.background.evaluator is not None,
    )
    return (read_script if question.is_script else read_phases)(text, basis)


def _stage(question: Question) -> dict[str, str]:
    """Return the stage and its goals; a repair has the goals of its parent.

    The first stage wants a plain version, which an improvement of one has left behind.
    """
    kind, number = question.node.kind, question.state.stage.number
    if kind is NodeKind.DEBUG or (kind is NodeKind.IMPROVE and number == 1):
        return {}
    return {"Stage": f"{question.state.stage.label}: {question.state.goals}"}


def _environment(question: Question) -> list[str]:
    facts, idea = question.background.environment, question.background.idea.text
    return environment_lines(facts, idea, question.journal.objective)


def _resources(question: Question) -> dict[str, str]:
    return {"Resources": question.background.resources} if question.background.resources else {}


def _history(question: Question) -> dict[str, str]:
    return {"History": question.background.history} if question.background.history else {}
