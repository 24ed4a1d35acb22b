"""Prompts: texts in files, and one ordered mapping that is rendered to Markdown and to JSON.

A project replaces a text by a file of the same name below its prompt folder. For each text of the
switching table there is a second one, ``<name>_with_memory``: a file of the project's, or the plain
text with a half that is made here, from the table of memory uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from taskweaver.treesearch.errors import system_errors
from taskweaver.utils.files import read_text, write_text
from taskweaver.utils.markup.quoting import indented
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

PACKAGED = Path(__file__).parents[1] / "prompts"
_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_MOST_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Keeping:
    """Memory use of a task: core keys it sets, tags of its records, and facts worth keeping.

    `is_shared` is the memory of the whole run, not of one attempt.
    """

    keys: tuple[str, ...]
    tags: tuple[str, ...]
    note: str
    is_shared: bool = False


KEEPING: Mapping[str, Keeping] = {
    "config/phases/phase0_planning": Keeping(
        ("machine_limits",), ("PHASE0_PLAN",), "what the machine allows, and the time it takes"
    ),
    "config/phases/phase1_installer": Keeping(
        ("phase1_status",), ("PHASE1_INSTALL", "PHASE1_ERROR"), "versions, and what failed and why"
    ),
    "agent/parallel/tasks/draft/introduction": Keeping(
        ("algorithm_approach", "baseline_method"),
        ("PHASE2_DRAFT", "BASELINE"),
        "the method that was chosen, and the reason",
    ),
    "agent/parallel/tasks/debug/introduction": Keeping(
        ("last_bug_type", "common_pitfalls"),
        ("PHASE2_DEBUG", "BUG_FIX"),
        "the cause of the failure, and its repair",
    ),
    "agent/parallel/tasks/improve/introduction": Keeping(
        ("improvement_count", "best_metric_achieved"),
        ("PHASE2_IMPROVE", "OPTIMIZATION"),
        "what was changed, and what it should bring",
    ),
    "agent/parallel/nodes/hyperparam/introduction": Keeping(
        ("tuning_method", "best_params"),
        ("HYPERPARAM", "TUNING_RESULTS"),
        "values that were tried, and what they brought",
    ),
    "agent/parallel/nodes/ablation/introduction": Keeping(
        ("critical_components", "removable_components"),
        ("ABLATION", "COMPONENT_ANALYSIS"),
        "which parts matter, and which do not",
    ),
    "agent/parallel/tasks/execution_review/introduction": Keeping(
        ("last_bug_type",), ("EXECUTION_REVIEW",), "what the output says about correctness"
    ),
    "agent/parallel/tasks/parse_metrics/introduction": Keeping(
        ("datasets_parsed", "metric_names"), ("METRICS_PARSE", "RESULTS"), "where figures stand"
    ),
    "agent/parallel/tasks/summary/introduction": Keeping(
        ("iteration_number", "key_metric"), ("SUMMARY",), "what was learnt, for later attempts"
    ),
    "agent/parallel/tasks/plotting/introduction": Keeping(
        ("plots_made",), ("PLOTTING",), "what is worth a picture"
    ),
    "agent/parallel/tasks/select_plots/introduction": Keeping(
        ("plots_analyzed",), ("PLOT_SELECTION",), "which pictures tell something"
    ),
    "agent/parallel/vlm_analysis": Keeping(
        ("plots_analyzed", "main_finding"), ("VLM_ANALYSIS", "PLOT_INSIGHTS"), "what they show"
    ),
    "agent/manager/stage_summary": Keeping(
        ("stage_findings",), ("STAGE_SUMMARY",), "what the next stage should build on", True
    ),
    "agent/journal/best_node/introduction": Keeping(
        ("preferred_over",), ("BEST_NODE",), "what makes one attempt better than its equals", True
    ),
}
"""By the name of the text: the tasks that have a form with memory."""


class PromptFiles:
    """The texts of prompts, the project's before the packaged ones."""

    def __init__(self, own: Path | None = None) -> None:
        """Take a project's folder of texts; None for none."""
        self._own = own

    def text(self, name: str, *, with_memory: bool = False, **values: object) -> str:
        """Return a text by its path, e.g. ``agent/parallel/tasks/draft/introduction``, filled in.

        `with_memory` is for a task with a memory to read and write. Placeholders without a value
        stay as they are.

        Raises:
            SearchError: If it is missing, or cannot be read.
        """
        keeping = KEEPING.get(name) if with_memory else None
        if keeping is None:
            text = self._read(name)
        else:
            own = self._own_file(f"{name}_with_memory")
            text = _load(own) if own else f"{self._read(name)}\n\n{memory_half(keeping)}"
        return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), text).strip()

    def _read(self, name: str) -> str:
        own = self._own_file(name)
        return _load(own) if own else _packaged(name)

    def _own_file(self, name: str) -> Path | None:
        path = self._own / f"{name}.txt" if self._own else None
        return path if path is not None and path.is_file() else None


@cache
def _packaged(name: str) -> str:
    return _load(PACKAGED / f"{name}.txt")


def _load(path: Path) -> str:
    with system_errors(f"The prompt {path} cannot be read"):
        return read_text(path)


def memory_half(keeping: Keeping) -> str:
    """Return the instructions of a task for its memory."""
    keys = ", ".join(f"`{key}`" for key in keeping.keys)
    tags = ", ".join(f"`{tag}`" for tag in keeping.tags)
    seen = (
        "You have the memory of the whole run: all attempts that follow see it."
        if keeping.is_shared
        else "You have a memory that outlives this attempt: attempts made from this one inherit"
        " it, others do not see it."
    )
    return (
        f"{seen} It is kept by a <memory_update> block, see Memory operations. Worth keeping here:"
        f" {keeping.note}. Usual core keys: {keys}; usual tags: {tags}. Leave out those you have"
        " nothing to say of."
    )


def to_markdown(prompt: Mapping[str, Any], depth: int = 1) -> str:
    """Render a prompt: keys become headings, lists bullets, texts stand as they are."""
    parts = []
    for title, value in prompt.items():
        heading = f"{'#' * min(depth, _MOST_DEPTH)} {title}"
        if isinstance(value, Mapping):
            parts.append(f"{heading}\n\n{to_markdown(value, depth + 1)}")
        elif isinstance(value, str):
            parts.append(f"{heading}\n\n{value.strip()}")
        elif isinstance(value, Sequence):
            bullets = "\n".join(f"- {indented(str(item))}" for item in value)
            parts.append(f"{heading}\n\n{bullets}")
        else:
            parts.append(f"{heading}\n\n{value}")
    return "\n\n".join(part.rstrip() for part in parts)


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return a plan, a line for each part; empty parts are left out."""
    parts = {name: _filled_parts(value) for name, value in plan.items()}
    return [
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in parts.items()
        if not _is_empty(value)
    ]


def _filled_parts(value: Any) -> Any:
    """Return data without its empty parts; zero and false are none of them."""
    if isinstance(value, Mapping):
        parts = {name: _filled_parts(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if not _is_empty(part)}
    if isinstance(value, list | tuple):
        return [part for part in map(_filled_parts, value) if not _is_empty(part)]
    return value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def save_prompt(folder: Path, name: str, prompt: Mapping[str, Any]) -> None:
    """Write a prompt beside its node, as JSON and as Markdown, with its secrets masked.

    Nothing reads it but people, so it is not synced: a run does not need it to go on.
    """
    data = json.dumps(redact_secrets_in(prompt), ensure_ascii=False, indent=2, default=str)
    write_text(folder / f"{name}.json", data + "\n", is_synced=False)
    text = redact_secrets(to_markdown(prompt))
    write_text(folder / f"{name}.md", text + "\n", is_synced=False)
