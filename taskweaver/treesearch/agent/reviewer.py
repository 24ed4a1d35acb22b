"""Questions to a model after an attempt ran: metric, review, plots and summary.

The metric comes from the result file of the run. The model is asked only where no program can
decide: in two steps, first for the memory block, then for an answer of a given form.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.agent.board import FINDINGS_CHARS, board, shown_ids
from taskweaver.treesearch.agent.describe import (
    change_sections,
    measured_text,
    metric_text,
    reached_text,
    result_text,
    run_sections,
)
from taskweaver.treesearch.agent.node_agent import (
    FLAG,
    TEXT,
    AnswerForm,
    NodeAgent,
    as_unusable,
    object_schema,
)
from taskweaver.treesearch.agent.prompt_files import PromptFiles
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import RoleModels
from taskweaver.treesearch.model.node import Measurement, Node
from taskweaver.utils.text import fenced, shorten

_PROBLEM_CHARS = 2000
MOST_PLOTS = 10
_MOST_PLOT_BYTES = 4 << 20
_PROGRAM = re.compile(r"```(?:python|py)\n(.*?)```", re.DOTALL)
_REVIEW = object_schema(is_bug=FLAG, summary=TEXT)
_SUMMARY = object_schema(findings=TEXT, significance=TEXT, next_steps=TEXT)
_ASSESSMENT = object_schema(
    is_bug=FLAG,
    summary=TEXT,
    findings=TEXT,
    next_steps=TEXT,
    untrue={"type": "array", "items": TEXT},
    plots=FLAG,
)
_CODE = object_schema(code=TEXT)
_SELECTION = object_schema(selected_plots={"type": "array", "items": TEXT})
_VISION = object_schema(
    plot_analyses={"type": "array", "items": object_schema(analysis=TEXT)},
    valid_plots_received=FLAG,
    vlm_feedback_summary=TEXT,
)
_POINT = object_schema(dataset_name=TEXT, value={"type": "number"})
_METRICS = object_schema(
    valid_metrics_received=FLAG,
    metric_names={
        "type": "array",
        "items": object_schema(
            metric_name=TEXT,
            lower_is_better=FLAG,
            description=TEXT,
            data={"type": "array", "items": _POINT},
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Review:
    """Verdict on an attempt: whether it missed its aim, and the reason or a description.

    Attributes:
        is_bug: Whether it missed its aim.
        summary: Why, or what it did.
        lessons: ``findings`` and ``next_steps``; empty where they are asked for later.
        wants_plots: Whether plots of the results are worth a question.
        untrue: Names of what the attempt disproves: ids of attempts, and keys of core memory.
        refuted: Those that are ids of attempts whose findings the question showed.
    """

    is_bug: bool
    summary: str
    lessons: Mapping[str, str] = field(default_factory=dict)
    wants_plots: bool = True
    untrue: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()


def measured(result: Mapping[str, Any] | None) -> Measurement | None:
    """Return the metric in a run's result file; None when it holds none."""
    if result is None:
        return None
    metric, details = result.get("metric"), result.get("details")
    values = dict(metric) if isinstance(metric, Mapping) else {"": metric}
    numbers = {
        str(name): float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    if not numbers or len(numbers) < len(values):
        return None
    return Measurement(numbers, dict(details) if isinstance(details, Mapping) else {})


class Reviewer:
    """Puts the questions about one finished run to the agent of its node."""

    def __init__(
        self, prompts: PromptFiles, agent: NodeAgent, idea: str, models: RoleModels
    ) -> None:
        self._prompts = prompts
        self._agent = agent
        self._idea = idea
        self._models = models

    def _prompt(self, name: str, node: Node, journal: Journal, **more: Any) -> dict[str, Any]:
        introduction = self._prompts.text(name)
        sections = {
            "Introduction": introduction,
            "Research idea": fenced(self._idea, "markdown"),
            "Evaluation metric": metric_text(journal),
            **run_sections(node, journal),
            **more,
        }
        if node.error:
            sections["Error"] = f"{node.error.kind}: {node.error.message}"
        return sections

    def _ask(
        self,
        name: str,
        label: str,
        prompt: Mapping[str, Any],
        schema: Mapping[str, Any],
        alias: str,
        needed: Collection[str] = (),
    ) -> dict[str, Any]:
        first = self._prompts.text(name, with_memory=True)
        form = AnswerForm(schema, alias, needed=needed)
        with as_unusable():
            return self._agent.ask_structured(label, prompt, form, first, hint=label)

    def review(self, node: Node, journal: Journal) -> Review:
        """Judge whether a node reached its aim.

        Raises:
            ReplyUnusable, ModelError: If there is no usable answer.
        """
        name = "agent/parallel/tasks/execution_review/introduction"
        prompt = self._prompt(name, node, journal, Result=result_text(node, journal))
        answer = self._ask(name, "execution_review", prompt, _REVIEW, self._models.feedback)
        return Review(bool(answer["is_bug"]), str(answer["summary"]))

    def assessment(self, node: Node, journal: Journal) -> Review:
        """Judge whether a node reached its aim, with the lessons for the next attempts: one call.

        Raises:
            ReplyUnusable, ModelError: If there is no usable answer.
        """
        name = "agent/parallel/tasks/assessment/introduction"
        form = "agent/parallel/response_format/assessment"
        reply = self._prompts.text(form, findings_chars=FINDINGS_CHARS)
        result, before = result_text(node, journal), _before(node, journal)
        prompt = self._prompt(name, node, journal, Result=result, Before=before, Reply=reply)
        prompt |= change_sections(node, journal)
        known = board(journal, node, has_parent=True)
        prompt |= {"Lessons so far": known} if known else {}
        model = self._models.feedback
        answer = self._ask(name, "execution_review", prompt, _ASSESSMENT, model)
        untrue = _names(answer["untrue"])
        shown = shown_ids(known)
        return Review(
            bool(answer["is_bug"]),
            str(answer["summary"]),
            {name: str(answer[name]) for name in ("findings", "next_steps") if answer[name]},
            answer["plots"] is True,
            untrue,
            tuple(name for name in untrue if name in shown),
        )

    def metric(self, node: Node, journal: Journal, result: JobResult) -> Measurement | None:
        """Return the metric a run printed; None when it printed none.

        Raises:
            ReplyUnusable, ModelError: If there is no usable answer.
        """
        name = "agent/parallel/tasks/parse_metrics/introduction"
        prompt = self._prompt(name, node, journal, Files=list(result.files))
        model, needed = self._models.feedback, ("valid_metrics_received", "metric_names")
        answer = self._ask(name, "metrics_extraction", prompt, _METRICS, model, needed)
        if not answer["valid_metrics_received"]:
            return None
        wanted = journal.objective.name.lower()
        found = [entry for entry in answer["metric_names"] if isinstance(entry, Mapping)]
        named = [e for e in found if str(e.get("metric_name", "")).strip().lower() == wanted]
        if not named and len(found) == 1:
            named = found  # one figure under another name; of several, none is taken for it
        values = {name: value for entry in named for name, value in _points(entry)}
        source = {"source": "read from the output by a model"}
        return Measurement(values, source) if values else None

    def plot_code(
        self,
        node: Node,
        journal: Journal,
        files: Sequence[str],
        failed: Sequence[tuple[str, str]],
    ) -> str:
        """Return a program that plots the files of a run, given earlier ones and why they failed.

        It is empty where the model sees nothing worth a picture.

        Raises:
            ReplyUnusable, ModelError: If there is none.
        """
        name = "agent/parallel/tasks/plotting/introduction"
        form = (
            "Reply with the whole program in one fence ```python. Where numbers say it all and a"
            " picture would show no more, reply with the word none."
        )
        prompt = self._prompt(name, node, journal, Files=list(files), Instructions=form)
        has_memory = self._agent.memory is not None
        prompt["Introduction"] = self._prompts.text(name, with_memory=has_memory)
        if failed:
            code, problem = failed[-1]
            failure = f"It failed: {shorten(problem, _PROBLEM_CHARS)}"
            prompt["Last program"] = f"{fenced(code, 'python')}\n{failure}"

        def read(text: str) -> str:
            program = _PROGRAM.search(text)
            if program is None and text.strip().strip(".`").lower() == "none":
                return ""
            return program[1] if program else str(required_object(text, _CODE)["code"])

        label = f"plotting{len(failed) + 1}"
        with as_unusable():
            writer = AnswerForm(alias=self._models.code)
            return self._agent.ask(label, prompt, read, hint="plotting_code", form=writer)

    def select_plots(self, node: Node, journal: Journal, plots: Sequence[str]) -> list[str]:
        """Return the most telling plots, at most `MOST_PLOTS`.

        Raises:
            ReplyUnusable, ModelError: If there is no usable answer.
        """
        name = "agent/parallel/tasks/select_plots/introduction"
        prompt = self._prompt(name, node, journal, Plots=list(plots))
        answer = self._ask(name, "plot_selection", prompt, _SELECTION, self._models.feedback)
        named = (str(plot).rpartition("/")[2] for plot in answer["selected_plots"])
        chosen = [plot for plot in dict.fromkeys(named) if plot in plots]
        return (chosen or list(plots))[:MOST_PLOTS]

    def look_at(self, node: Node, journal: Journal, plots: Sequence[Path]) -> str:
        """Return the description of plots by the model that sees images.

        Raises:
            ReplyUnusable: If there is no usable answer, whatever the model's error.
            OSError: If a plot cannot be read.
        """
        shown = [plot for plot in plots if plot.stat().st_size <= _MOST_PLOT_BYTES]
        if not shown:
            raise ReplyUnusable(f"Each has more than {_MOST_PLOT_BYTES >> 20} MiB.")
        name = "agent/parallel/vlm_analysis"
        prompt = self._prompt(name, node, journal, Plots=[plot.name for plot in shown])
        first = self._prompts.text(name, with_memory=True)
        images = [_data_url(plot) for plot in shown]
        label = "vlm_analysis"
        with as_unusable(fatal={"cancelled"}):  # the search does not need that model
            form = AnswerForm(_VISION, self._models.vlm, images, ("vlm_feedback_summary",))
            answer = self._agent.ask_structured(label, prompt, form, first, hint=label)
        return str(answer["vlm_feedback_summary"])

    def summary(self, node: Node, journal: Journal) -> dict[str, str]:
        """Return ``findings``, ``significance`` and ``next_steps``.

        Raises:
            ReplyUnusable, ModelError: If there is none.
        """
        name = "agent/parallel/tasks/summary/introduction"
        result = measured_text(journal, node)
        prompt = self._prompt(name, node, journal, Result=result, Before=_before(node, journal))
        answer = self._ask(name, "node_summary", prompt, _SUMMARY, self._models.summary)
        return {field: str(answer[field]) for field in ("findings", "significance", "next_steps")}


def _names(value: object) -> tuple[str, ...]:
    """Return names that a reply lists, in whatever form, without their marks."""
    items = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(dict.fromkeys(str(item).strip(" `.") for item in items if item))


def _before(node: Node, journal: Journal) -> str:
    """Return the figures of the nearest ancestor that worked: its mean, and that of this seed."""
    line = [ancestor for ancestor in journal.path(node.id)[:-1] if ancestor.is_good]
    if not line:
        return "none"
    before = line[-1]
    text = f"{reached_text(journal, before)}, {before.id}"
    if journal.samples(before.id).n > 1 and before.seed == node.seed:
        text += f"; with the seed of this attempt {measured_text(journal, before)}"
    return text


def _points(entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a metric, those that are some: the form is asked for, not certain."""
    data = entry.get("data")
    for point in data if isinstance(data, list) else []:
        value = point.get("value") if isinstance(point, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield str(point.get("dataset_name", "")), _number(value)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def _data_url(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
