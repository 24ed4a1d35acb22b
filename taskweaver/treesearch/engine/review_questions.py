"""Questions to a model after an attempt ran: metric, review, plots and summary.

The metric comes from the result file of the run. The model is asked only where no program can
decide: in two steps, first for the memory block, then for an answer of a given form.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.agent.asking import FLAG, TEXT, Question, object_schema
from taskweaver.treesearch.agent.board import FINDINGS_CHARS, board, shown_ids
from taskweaver.treesearch.agent.describe import (
    change_sections,
    measured_text,
    reached_text,
    result_text,
    run_sections,
)
from taskweaver.treesearch.engine.node_attempt import NodeAttempt
from taskweaver.treesearch.errors import ReplyUnusable
from taskweaver.treesearch.execution.job import JobResult
from taskweaver.treesearch.execution.results import as_float
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Measurement, Node
from taskweaver.utils.text import fenced, shorten

_PROBLEM_CHARS = 2000
MOST_PLOTS = 10
_MOST_PLOT_BYTES = 4 << 20
_TASKS = "agent/parallel/tasks"
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
    """Return the metric of a run's result, which was checked; None without a result."""
    if result is None:
        return None
    metric = result["metric"]
    return Measurement(metric if isinstance(metric, dict) else {"": metric}, result["details"])


def review_question(attempt: NodeAttempt, node: Node) -> Question[Review]:
    """Return the question whether a node reached its aim."""
    result = result_text(node, attempt.run.journal)
    sections = _sections(attempt, node, Result=result)

    def read(answer: Mapping[str, Any]) -> Review:
        return Review(bool(answer["is_bug"]), str(answer["summary"]))

    text, model = f"{_TASKS}/execution_review/introduction", attempt.run.config.models.feedback
    return Question("execution_review", text, sections, read, model, schema=_REVIEW)


def assessment_question(attempt: NodeAttempt, node: Node) -> Question[Review]:
    """Return the question whether a node reached its aim, and for lessons: all in one call."""
    run, journal = attempt.run, attempt.run.journal
    form = "agent/parallel/response_format/assessment"
    reply = run.prompts.text(form, findings_chars=FINDINGS_CHARS)
    result, before = result_text(node, journal), _before(node, journal)
    sections = _sections(attempt, node, Result=result, Before=before, Reply=reply)
    sections |= change_sections(node, journal)
    known = board(journal, node, has_parent=True)
    sections |= {"Lessons so far": known} if known else {}
    shown = shown_ids(known)

    def read(answer: Mapping[str, Any]) -> Review:
        untrue = _names(answer["untrue"])
        return Review(
            bool(answer["is_bug"]),
            str(answer["summary"]),
            {name: str(answer[name]) for name in ("findings", "next_steps") if answer[name]},
            answer["plots"] is True,
            untrue,
            tuple(name for name in untrue if name in shown),
        )

    text, model = f"{_TASKS}/assessment/introduction", run.config.models.feedback
    return Question("execution_review", text, sections, read, model, schema=_ASSESSMENT)


def metric_question(
    attempt: NodeAttempt, node: Node, result: JobResult
) -> Question[Measurement | None]:
    """Return the question for the metric that a run printed, whose answer may be None."""
    wanted = attempt.run.journal.objective.name.lower()

    def read(answer: Mapping[str, Any]) -> Measurement | None:
        if not answer["valid_metrics_received"]:
            return None
        found = [entry for entry in answer["metric_names"] if isinstance(entry, Mapping)]
        named = [e for e in found if str(e.get("metric_name", "")).strip().lower() == wanted]
        if not named and len(found) == 1:
            named = found  # one figure under another name; of several, none is taken for it
        values = {name: value for entry in named for name, value in _points(entry)}
        source = {"source": "read from the output by a model"}
        return Measurement(values, source) if values else None

    return Question(
        "metrics_extraction",
        f"{_TASKS}/parse_metrics/introduction",
        _sections(attempt, node, Files=list(result.files)),
        read,
        attempt.run.config.models.feedback,
        schema=_METRICS,
        needed=("valid_metrics_received", "metric_names"),
    )


def plot_question(
    attempt: NodeAttempt, node: Node, files: Sequence[str], failed: Sequence[tuple[str, str]]
) -> Question[str]:
    """Return the question for a program that plots files, given earlier ones and their problems.

    The answer is empty where the model sees nothing worth a picture.
    """
    form = (
        "Reply with the whole program in one fence ```python. Where numbers say it all and a"
        " picture would show no more, reply with the word none."
    )
    sections = _sections(attempt, node, Files=list(files), Instructions=form)
    if failed:
        code, problem = failed[-1]
        failure = f"It failed: {shorten(problem, _PROBLEM_CHARS)}"
        sections["Last program"] = f"{fenced(code, 'python')}\n{failure}"

    def read(text: str) -> str:
        program = _PROGRAM.search(text)
        if program is None and text.strip().strip(".`").lower() == "none":
            return ""
        return program[1] if program else str(required_object(text, _CODE)["code"])

    label, text = f"plotting{len(failed) + 1}", f"{_TASKS}/plotting/introduction"
    return Question(label, text, sections, read, attempt.run.config.models.code, "plotting_code")


def choice_question(attempt: NodeAttempt, node: Node, plots: Sequence[str]) -> Question[list[str]]:
    """Return the question for the most telling plots, at most `MOST_PLOTS`."""
    sections = _sections(attempt, node, Plots=list(plots))

    def read(answer: Mapping[str, Any]) -> list[str]:
        named = (str(plot).rpartition("/")[2] for plot in answer["selected_plots"])
        chosen = [plot for plot in dict.fromkeys(named) if plot in plots]
        return (chosen or list(plots))[:MOST_PLOTS]

    text, model = f"{_TASKS}/select_plots/introduction", attempt.run.config.models.feedback
    return Question("plot_selection", text, sections, read, model, schema=_SELECTION)


def look_question(attempt: NodeAttempt, node: Node, plots: Sequence[Path]) -> Question[str]:
    """Return the question for a description of plots by the model that sees images.

    Raises:
        ReplyUnusable: If no plot is small enough.
        OSError: If a plot cannot be read.
    """
    shown = [plot for plot in plots if plot.stat().st_size <= _MOST_PLOT_BYTES]
    if not shown:
        raise ReplyUnusable(f"Each has more than {_MOST_PLOT_BYTES >> 20} MiB.")
    return Question(
        "vlm_analysis",
        "agent/parallel/vlm_analysis",
        _sections(attempt, node, Plots=[plot.name for plot in shown]),
        lambda answer: str(answer["vlm_feedback_summary"]),
        attempt.run.config.models.vlm,
        schema=_VISION,
        needed=("vlm_feedback_summary",),
        images=[f"data:image/png;base64,{b64encode(p.read_bytes()).decode()}" for p in shown],
        fatal={"cancelled"},  # the search does not need that model
    )


def summary_question(attempt: NodeAttempt, node: Node) -> Question[Mapping[str, str]]:
    """Return the question for ``findings``, ``significance`` and ``next_steps``."""
    journal = attempt.run.journal
    result, before = measured_text(journal, node), _before(node, journal)
    sections = _sections(attempt, node, Result=result, Before=before)

    def read(answer: Mapping[str, Any]) -> dict[str, str]:
        return {name: str(answer[name]) for name in _SUMMARY["properties"]}

    text, model = f"{_TASKS}/summary/introduction", attempt.run.config.models.summary
    return Question("node_summary", text, sections, read, model, schema=_SUMMARY)


@dataclass(frozen=True, slots=True)
class AskStyle:
    """Way of asking about an attempt.

    Attributes:
        forms: Names of the forms of a proposal: in phases, and of a script.
        review: Question whether it reached its aim.
        summary: Question for its lessons; None where the review asks for them.
    """

    forms: tuple[str, str]
    review: Callable[[NodeAttempt, Node], Question[Review]]
    summary: Callable[[NodeAttempt, Node], Question[Mapping[str, str]]] | None


_TWO = AskStyle(("phases_in_fences", "script_in_fences"), assessment_question, None)
_SEEDS = AskStyle(("execution_split", "default"), review_question, summary_question)


def style_of(config: SearchConfig) -> AskStyle:
    """Return the way of asking that a run is configured for."""
    return _TWO if config.has_two_calls else _SEEDS


def _sections(attempt: NodeAttempt, node: Node, **more: Any) -> dict[str, Any]:
    run = attempt.run
    sections = {
        **run.aim,
        **run_sections(node, run.journal),
        **more,
    }
    if node.error:
        sections["Error"] = f"{node.error.kind}: {node.error.message}"
    return sections


def _names(value: object) -> tuple[str, ...]:
    """Return names that a reply lists, in whatever form, without their marks."""
    items = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(dict.fromkeys(str(item).strip(" `.") for item in items if item))


def _before(node: Node, journal: Journal) -> str:
    """Return the figures of the nearest ancestor that worked: its mean, and that of this seed."""
    line = reversed(journal.path(node.parent or ""))
    before = next((ancestor for ancestor in line if ancestor.is_good), None)
    if before is None:
        return "none"
    text = f"{reached_text(journal, before)}, {before.id}"
    if journal.samples(before.id).n > 1 and before.seed == node.seed:
        text += f"; with the seed of this attempt {measured_text(journal, before)}"
    return text


def _points(entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers among the values of a metric. A model may send other values."""
    data = entry.get("data")
    for point in data if isinstance(data, list) else []:
        value = point.get("value") if isinstance(point, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield str(point.get("dataset_name", "")), as_float(value)
