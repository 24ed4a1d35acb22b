"""Descriptions of nodes for a model: code, output, figures, and lines about other attempts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from taskweaver.treesearch.agent.prompt_files import plan_lines
from taskweaver.treesearch.model.artifacts import artifact_files, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeError, NodeKind, Objective
from taskweaver.treesearch.record import run_statistics
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import fenced, shorten, shorten_words

_HARDWARE = "kernel caches simd numa_nodes huge_pages memory_copy load compilers variables".split()
_COMPILED = re.compile(
    r"\b(?:C|C\+\+|CUDA|Fortran|Rust|Go|Julia|OpenMP|OpenCL|OpenACC|MPI|SIMD|AVX\S*|HIP|SYCL)(?![\w+])"
    r"|\b(?:gcc|g\+\+|gfortran|clang|icx|ifx|nvcc|mpicc|compil\w+|vectori[sz]\w+)\b"
)
_PYTHON = re.compile(r"\bpython|numpy|pandas|scikit|sklearn|torch|Packages:", re.IGNORECASE)
_OUTPUT_CHARS = 5000
_REVIEWED_OUTPUT_CHARS = 6000
_CANDIDATE_CODE_CHARS = 8000
_PARENT_CODE_CHARS = 12_000
_PARENT_CHARS = 600
_CODE_CHARS = 60_000
_DIGEST_LINES = 40
_MOST_ANCESTORS = 12
_PLAN_CHARS = 200
_DRAFT_PLAN_CHARS = 1500  # it says how the data are made, which others are to make as well
_ERROR_CHARS = 120
_FINDINGS_CHARS = 400


def parent_sections(parent: Node, journal: Journal) -> dict[str, str | list[str]]:
    """Return the sections of a parent, for the prompt of an attempt made from it."""
    before = ancestry(parent, journal)
    sections: dict[str, str | list[str]] = {
        "Made from": parent.id,
        **({"Its ancestors": before} if before else {}),
        "Its plan": quoted_section(f"{parent.title}. {parent.plan}", 1),
        "Code": _code(parent, journal.files(parent.id)),
        "Result": f"{reached_text(journal, parent)} ({parent.status})",
        "Execution output": _output(parent, _OUTPUT_CHARS),
    }
    sections |= repeated(parent, journal)
    if parent.error:
        first, _, rest = parent.error.message.partition("\n")
        message = first if rest.strip() in parent.output else parent.error.message
        sections["Error"] = quoted_section(f"{parent.error.kind}: {message}", 1)
    if parent.analysis:
        sections["Review"] = quoted_section(parent.analysis, 1)
    summary = run_statistics.lessons(journal, parent)
    titles = {"findings": "Found", "next_steps": "To try next"}
    lessons = [f"{title}: {summary[name]}" for name, title in titles.items() if summary.get(name)]
    if lessons:
        sections["What was learnt"] = quoted_section("\n".join(lessons), 1)
    if parent.plot_feedback:
        sections["Plot feedback"] = quoted_section(parent.plot_feedback, 1)
    if parent.time_feedback:
        sections["Time feedback"] = parent.time_feedback
    return sections


def ancestry(parent: Node, journal: Journal) -> list[str]:
    """Return a line for each ancestor of a parent: its change and figure; none for a draft."""
    return [
        f"{node.id} {node.title}: {run_statistics.outcome(journal, node)}"
        for node in journal.path(parent.id)[:-1][-_MOST_ANCESTORS:]
    ]


def parent_summary(parent: Node, journal: Journal) -> str:
    """Return a parent's figures, plan and error in a few lines, for the plan of an attempt."""
    text = f"{parent.id}: {measured_text(journal, parent)}. {shorten(parent.plan, _PARENT_CHARS)}"
    if parent.error:
        text += f"\nIt failed: {parent.error.kind}: {shorten(parent.error.message, _PARENT_CHARS)}"
    return text


def parent_code(parent: Node | None, journal: Journal) -> dict[str, str]:
    """Return a parent's code as a section, for the plan of an attempt; none for a draft."""
    if parent is None:
        return {}
    code = _code(parent, journal.files(parent.id))
    return {f"Code of {parent.id}": shorten(code, _PARENT_CODE_CHARS)}


def run_sections(node: Node, journal: Journal) -> dict[str, str]:
    """Return the sections of a node that has run, for questions about its outcome."""
    return {
        "Plan": node.plan,
        "Code": _code(node, {**journal.files(node.id), **artifact_files(node.artifacts)}),
        "Execution output": _output(node, _REVIEWED_OUTPUT_CHARS),
    }


def change_sections(node: Node, journal: Journal) -> dict[str, str]:
    """Return the sections of a node that has run, with its changes of the parent's files alone.

    Without a parent, and where the changes are longer than the files, these stand whole.
    """
    sections = run_sections(node, journal)
    if node.parent is None or journal[node.parent].has_failed:  # as a program it was not judged
        return sections
    before = journal.files(node.parent)
    after = {**before, **artifact_files(node.artifacts)}
    changed = changes(before, after, _CODE_CHARS)
    if not changed or len(changed) >= len(sections["Code"]):
        return sections
    parts = [fenced(changed, "diff"), _commands(node)]
    code = f"Its changes of {node.parent}, which was reviewed before:\n\n" + "\n\n".join(
        filter(None, parts)
    )
    return sections | {"Code": code}


def candidate_sections(node: Node, journal: Journal) -> dict[str, str]:
    """Return the sections of a node that is compared with others as the best."""
    objective = journal.objective
    metric = asdict(node.metric) if node.metric else {}
    again = journal.repeated_samples(node.id)
    sections = {
        "Metric": f"{objective.text(node.value)}\n{shorten(str(metric), 1000)}",
        "With other seeds": again.text(objective) if again else "",
        "Plan": node.plan,
        "Review": node.analysis,
        "Findings": node.summary.get("findings", ""),
        "Code": shorten(_code(node, journal.files(node.id)), _CANDIDATE_CODE_CHARS),
    }
    return {title: text for title, text in sections.items() if text}


def result_text(node: Node, journal: Journal) -> str:
    """Return the metric of a node with its details."""
    value = measured_text(journal, node)
    details = plan_lines(node.metric.details) if node.metric else []
    return f"{value}\nDetails: {shorten('; '.join(details), 2000)}" if details else value


def _output(node: Node, limit_chars: int) -> str:
    """Return the output of a node; no line of it reads like a heading of the prompt."""
    return quoted_section(shorten(node.output, limit_chars), 1) or "(nothing was printed)"


def reached_text(journal: Journal, node: Node) -> str:
    """Return the mean of a node that was repeated; of any other one the metric of each data set."""
    if journal.samples(node.id).n > 1:
        return run_statistics.reached(journal, node)
    return measured_text(journal, node)


def repeated(node: Node, journal: Journal) -> dict[str, str]:
    """Return the figures of a node with other seeds as a section; none if there are none."""
    others = [other for other in journal.repetitions(node.id) if other.is_good]
    if not others:
        return {}
    figures = ", ".join(f"{journal.objective.text(n.value)} (seed {n.seed})" for n in others)
    own = f"{journal.objective.text(node.value)} (seed {node.seed})"
    text = (
        f"{figures}; with its own {own}. All are figures of the same program: a change that moves"
        " the metric by no more than they differ has shown nothing."
    )
    return {"With other seeds": text}


def _code(node: Node, files: Mapping[str, str]) -> str:
    """Return files, by path, with the commands that build and run them."""
    parts = [f"{path}\n{fenced(text)}" for path, text in files.items()]
    return shorten("\n\n".join(filter(None, [*parts, _commands(node)])), _CODE_CHARS)


def _commands(node: Node) -> str:
    sections = node.artifacts.to_dict() if node.artifacts else {}
    rest = {
        name: sections[name]
        for name in ("compile", "run")
        if sections.get(name, {}).get("commands")
    }
    return fenced(json.dumps(rest, ensure_ascii=False), "json") if rest else ""


def metric_text(journal: Journal) -> str:
    """Return the objective in words."""
    objective = journal.objective
    unit = f" in {objective.unit}" if objective.unit else ""
    text = f"{objective.name}{unit}, {'higher' if objective.maximize else 'lower'} is better"
    names = [name for name in journal.datasets if name]
    if len(names) > 1:
        text += f"; the mean over {', '.join(names)}, each of which is measured"
    elif names:
        text += f"; measured on {names[0]}"
    elif journal.datasets:
        text += "; one number, as in the attempts so far"
    noise = journal.noise
    return f"{text}. {run_statistics.scatter(journal)}" if noise and noise.deviation else text


def measured_text(journal: Journal, node: Node) -> str:
    """Return the metric of a node; of several data sets, each."""
    text = journal.objective.text(node.value)
    values = node.metric.values if node.metric else {}
    if len(values) < 2:
        return text
    each = ", ".join(f"{name} {journal.objective.text(value)}" for name, value in values.items())
    return f"{text}, the mean of {each}"


def sibling_digest(journal: Journal, node: Node) -> list[str]:
    """Return a line for each attempt outside of a node's ancestors, the newest last.

    Of those that run, it has the ones that began earlier, and others with their plan.
    """
    ancestors = {ancestor.id for ancestor in journal.path(node.id)}
    others = (
        other
        for other in reversed(journal.nodes)
        if other.id not in {node.id, *ancestors}
        and other.kind is not NodeKind.SEED
        and (
            other.finished_at is not None
            or other.step < node.step
            or journal.as_proposed(other).plan
        )
    )
    newest = list(islice(others, _DIGEST_LINES))[::-1]
    plan_chars = _PLAN_CHARS if node.parent else _DRAFT_PLAN_CHARS
    return attempt_lines(journal, newest, plan_chars)


def attempt_lines(
    journal: Journal, nodes: Sequence[Node], plan_chars: int = _PLAN_CHARS
) -> list[str]:
    """Return a line for each attempt: its kind, outcome and plan."""
    lines = []
    for node in nodes:
        other = journal.as_proposed(node)
        tell = reached_text if other.is_good else run_statistics.outcome
        outcome = tell(journal, other)
        if other.finished_at is None and not other.plan:
            outcome += ", its plan is not known yet"
        figure = journal.figure(other.id)
        outcome += f", measured {journal.objective.text(figure)}" if figure is not None else ""
        outcome += f" (the program of {other.same_as} again)" if other.same_as else ""
        if other.error:
            message = _ending(other.error)
            outcome += f" ({other.error.kind}: {message})"
        origin = f" of {other.parent}" if other.parent else ""
        plan = shorten_words(other.plan, plan_chars)
        lines.append(f"{other.id} {other.title}{origin}: {outcome}. {plan}")
    return lines


def _ending(error: NodeError) -> str:
    """Return the line of a failure that names an exception, cut at its beginning if it is long."""
    words = " ".join(error.gist.split())
    if len(words) <= _ERROR_CHARS:
        return words
    return f"... {words[-_ERROR_CHARS:].partition(' ')[2] or words[-_ERROR_CHARS:]}"


def findings_lines(journal: Journal, nodes: Sequence[Node]) -> list[str]:
    """Return a line for each attempt with a summary: its findings."""
    return [
        f"{node.id}: {shorten_words(findings, _FINDINGS_CHARS)}"
        for node in nodes
        if (findings := run_statistics.lessons(journal, node).get("findings"))
    ]


def environment_lines(facts: Mapping[str, Any], idea: str, objective: Objective) -> list[str]:
    """Return the facts about the machine that an idea needs, a line each.

    Details of the hardware and compilers are for ideas that time programs or name a compiled
    language, and Python's packages for all but those that name one and no Python.
    """
    is_compiled = bool(_COMPILED.search(idea))
    left_out = set() if is_compiled or objective.is_timed else {*_HARDWARE}
    if is_compiled and not _PYTHON.search(idea):
        left_out.add("python_packages")
    return [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
        for name, value in facts.items()
        if name not in left_out
    ]
