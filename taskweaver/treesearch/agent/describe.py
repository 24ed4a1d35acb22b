"""What prompts show of a run: the attempt that is built on, its code, the others, the metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from textwrap import shorten as shorten_words
from typing import Any

from taskweaver.treesearch.model.artifacts import Artifacts
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.utils.quoting import quoted_section
from taskweaver.utils.text import fenced, shorten

_OUTPUT_CHARS = 5000
_CODE_CHARS = 60_000
_DIGEST_LINES = 40
_PLAN_CHARS = 200
_DRAFT_PLAN_CHARS = 1500  # it says how the data are made, which others are to make as well
_ERROR_CHARS = 120
_FINDINGS_CHARS = 400


def parent_sections(parent: Node, journal: Journal) -> dict[str, str]:
    """Return what a prompt shows of the attempt that is built on."""
    made_as = " ".join(filter(None, (f"{parent.kind}", parent.name)))
    sections = {
        "Made from": parent.id,
        "Its plan": quoted_section(f"{made_as}. {parent.plan}", 1),
        "Code": code_of(parent.artifacts, journal.files(parent.id)),
        "Result": f"{measured_text(journal, parent)} ({parent.status})",
        "Execution output": output_text(parent),
    }
    sections |= repeated(parent, journal)
    if parent.error:
        first, _, rest = parent.error.message.partition("\n")
        message = first if rest.strip() in parent.output else parent.error.message
        sections["Error"] = quoted_section(f"{parent.error.kind}: {message}", 1)
    if parent.analysis:
        sections["Review"] = quoted_section(parent.analysis, 1)
    learnt = [text for name, text in parent.summary.items() if name != "significance" and text]
    if learnt:
        sections["What was learnt"] = quoted_section("\n".join(learnt), 1)
    if parent.plot_feedback:
        sections["Plot feedback"] = quoted_section(parent.plot_feedback, 1)
    if parent.time_feedback:
        sections["Time feedback"] = parent.time_feedback
    return sections


def output_text(node: Node, limit_chars: int = _OUTPUT_CHARS) -> str:
    """Return the output of a node; no line of it reads like a heading of the prompt."""
    return quoted_section(shorten(node.output, limit_chars), 1) or "(nothing was printed)"


def repeated(node: Node, journal: Journal) -> dict[str, str]:
    """Return what an attempt reached with other seeds, as a section; none where it was not run."""
    others = [other for other in journal.seeds_of(node.id) if other.is_good]
    if not others:
        return {}
    told = ", ".join(f"{journal.objective.text(n.value)} (seed {n.seed})" for n in others)
    own = f"{journal.objective.text(node.value)} (seed {node.seed})"
    text = (
        f"{told}; with its own {own}. All are figures of the same program: a change that moves the"
        " metric by no more than they differ has shown nothing."
    )
    return {"With other seeds": text}


def code_of(artifacts: Artifacts | None, files: Mapping[str, str]) -> str:
    """Return code as prompts show it: files, and how they are built and run.

    Args:
        artifacts: What was proposed.
        files: Text by path; of a script the one file.
    """
    parts = [f"{path}\n{fenced(text)}" for path, text in files.items()]
    sections = artifacts.to_dict() if artifacts else {}
    rest = {name: sections[name] for name in ("compile", "run") if name in sections}
    if rest:
        parts.append(fenced(json.dumps(rest, ensure_ascii=False), "json"))
    return shorten("\n\n".join(parts), _CODE_CHARS)


def metric_text(journal: Journal) -> str:
    """Return what is optimised, in words."""
    objective = journal.objective
    unit = f" in {objective.unit}" if objective.unit else ""
    text = f"{objective.name}{unit}, {'higher' if objective.maximize else 'lower'} is better"
    names = [name for name in journal.datasets if name]
    if names:
        return f"{text}; the mean over {', '.join(names)}, each of which is measured"
    return f"{text}; one number, as in the attempts so far" if journal.datasets else text


def measured_text(journal: Journal, node: Node) -> str:
    """Return what a node reached, in words; of several data sets, each."""
    text = journal.objective.text(node.value)
    values = node.metric.values if node.metric else {}
    if len(values) < 2:
        return text
    each = ", ".join(f"{name} {journal.objective.text(value)}" for name, value in values.items())
    return f"{text}, the mean of {each}"


def sibling_digest(journal: Journal, node: Node) -> list[str]:
    """Return a line for each other attempt, the newest last; what children cannot see by memory."""
    ancestors = {ancestor.id for ancestor in journal.path(node.id)}
    others = [
        other
        for other in journal.nodes
        if other.id not in ancestors
        and other.kind is not NodeKind.SEED
        and (other.finished_at is not None or other.step < node.step)
    ]
    plan_chars = _PLAN_CHARS if node.parent else _DRAFT_PLAN_CHARS
    return attempt_lines(journal, others[-_DIGEST_LINES:], plan_chars)


def attempt_lines(
    journal: Journal, nodes: Sequence[Node], plan_chars: int = _PLAN_CHARS
) -> list[str]:
    """Return a line for each attempt: what it was, what came of it, what it set out to do."""
    lines = []
    for other in nodes:
        came = measured_text(journal, other) if other.is_good else str(other.status)
        if other.error:
            said = shorten_words(other.error.message, _ERROR_CHARS, placeholder=" ...")
            came += f" ({other.error.kind}: {said})"
        name = f" {other.name}" if other.name else ""
        origin = f" of {other.parent}" if other.parent else ""
        plan = shorten_words(other.plan, plan_chars, placeholder=" ...")
        lines.append(f"{other.id} {other.kind}{name}{origin}: {came}. {plan}")
    return lines


def findings_lines(nodes: Sequence[Node]) -> list[str]:
    """Return a line for each attempt that was summed up: what it found."""
    return [
        f"{node.id}: {shorten_words(findings, _FINDINGS_CHARS, placeholder=' ...')}"
        for node in nodes
        if (findings := node.summary.get("findings"))
    ]


def environment_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return facts about the machine, a line each."""
    return [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
        for name, value in facts.items()
    ]
