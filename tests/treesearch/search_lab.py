"""A small, fast search: a model by rules whose experiments are one-line shell scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage, ModelRequest
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.reports.run_results import write_results
from taskweaver.treesearch.service import resume_search, start_search

IDEA = "# Where is the top?\n\nThree numbers, from 0 to 3.\n\nMetric: height ({})\n"
FAST = {
    "search.workers": 1,
    "search.num_seeds": 1,
    "search.stage1_nodes": 5,
    "search.stage2_nodes": 4,
    "search.stage3_nodes": 4,
    "search.stage4_nodes": 3,
    "search.install": "batch",
    "search.calls": "seeds",
    "search.phase0": "off",
    "search.review": False,
    "search.summaries": False,
    "search.plots": False,
}
"""Settings of a search that asks for attempts, and for nothing else; each question is one alone."""
FULL = {"search.phase0": "node", "search.review": True, "search.summaries": True}
NAMES = ("x", "y", "z")
CHECKED = {"build_plan": {"language": "other"}, "commands": ["sh -n try.sh"]}
"""How a script is compiled: its syntax is checked."""
_VALUES = re.compile(r"VALUES (\{.*?\})")
_CHILD = re.compile(r"^- n\d+ \w+(?: \S+)? of (n\d+):", re.MULTILINE)
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)

Values = Mapping[str, int]
Height = Callable[[Values], float | str]
Fault = Callable[[Mapping[str, str]], str | None]
"""Given the sections of a prompt, a reply in place of the usual one; None for the usual one."""


def hill(values: Values) -> float:
    """Return the height of a place; the top, 30, is at 3, 3, 3."""
    return 10.0 * values["x"] + values["y"] - values["z"] * 0.5


def valley(values: Values) -> float:
    """Return what is least where the hill is highest."""
    return -hill(values)


def proposal(values: Values, **sections: Any) -> dict[str, Any]:
    """Return an attempt that writes the height of a place as its result, by a single command.

    A command costs half as much as the rest of an attempt: `CHECKED` is for tests of compiling.
    """
    text = sections.pop("text", None)
    if text is None:
        text = f'{{"metric": {sections.pop("height", 0.0)}}}'
    mark = f": 'VALUES {json.dumps(dict(values))}'"
    script = f"{mark}\ncat > working/result.json <<EOT\n{text}\nEOT\n"
    usual = {
        "coding": {"workspace": {"files": [{"path": "try.sh", "content": script}]}},
        "compile": {"build_plan": {"language": "other"}, "commands": []},
        "run": {"commands": [["sh", "try.sh"]]},
    }
    return {"plan": f"try {dict(values)}", "phase_artifacts": usual | sections}


def sections_of(text: str) -> dict[str, str]:
    """Return the text below each heading of the first level."""
    marks = list(_HEADING.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {m[1]: text[m.end() : end].strip() for m, end in zip(marks, ends, strict=True)}


def remembering(prompt: Mapping[str, str], body: str, updates: Mapping[str, Any] = {}) -> str:
    """Put a memory block before a reply, where one is asked for."""
    if "Memory" not in prompt:
        return body
    return f"<memory_update>\n{json.dumps(dict(updates))}\n</memory_update>\n{body}"


def is_memory_asked(prompt: Mapping[str, str]) -> bool:
    """Return whether it is the first of two questions, for the memory block alone."""
    return "first of two questions" in prompt.get("Reply", "")


class Climber:
    """A model that knows nothing but its prompt: it tries one number more at a time.

    Attributes:
        prompts: The sections of each prompt it was asked.
    """

    def __init__(self, height: Height = hill, fault: Fault | None = None, **sections: Any) -> None:
        """Prepare it; `sections` are those of its attempts, see `proposal`."""
        self._height = height
        self._fault = fault
        self._sections = sections
        self.prompts: list[dict[str, str]] = []

    def __call__(self, messages: Sequence[ChatMessage], request: ModelRequest) -> str:
        content = messages[-1]["content"]
        prompt = sections_of(content if isinstance(content, str) else str(content))
        self.prompts.append(prompt)
        wrong = self._fault(prompt) if self._fault else None
        if wrong is not None:
            return wrong
        if is_memory_asked(prompt):
            return remembering(prompt, "")
        if request.schema is not None:
            return json.dumps(filled(request.schema))
        if "Kind of attempt" in prompt:
            updates = {"core": {"last": "climbed"}, "archival": [{"text": "up", "tags": ["UP"]}]}
            return remembering(prompt, json.dumps(self.attempt(prompt)), updates)
        return remembering(prompt, json.dumps({"plan": {"goal_summary": "go up"}}))

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        """Return the next attempt of the parent's children."""
        kind = prompt["Kind of attempt"].split()[0]
        found = _VALUES.search(prompt.get("Code", ""))
        if not found:
            values: Values = dict.fromkeys(NAMES, 0)
            return self._proposal(values)
        before = json.loads(found[1])
        if kind == "debug":
            return self._proposal(before)
        tried = _CHILD.findall(prompt.get("Other attempts", "")).count(prompt["Made from"])
        step = -1 if kind == "ablation" else 1
        moves = [n for n in NAMES if 0 <= before[n] + step <= 3]
        if tried >= len(moves):
            return self._proposal(before)
        name = moves[tried]
        values = {**before, name: before[name] + step}
        return {**self._proposal(values), "name": f"{name}={values[name]}"}

    def _proposal(self, values: Values) -> dict[str, Any]:
        return proposal(values, height=self._height(values), **self._sections)


def filled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of a schema with nothing much in it."""
    empty = {"string": "well", "boolean": False, "array": [], "object": {}, "number": 0}
    return {name: empty[field["type"]] for name, field in schema["properties"].items()}


def lab(folder: Path, *, goal: str = "maximize", **config: Any) -> Path:
    """Make a project with an idea in it."""
    project = make_project(folder / "lab", config)
    (project / "idea.md").write_text(IDEA.format(goal))
    return project


def search(
    project: Path,
    model: Any,
    *,
    name: str = "run",
    resume: bool = False,
    report: bool = False,
    **settings: Any,
) -> Search:
    """Search to the end, and return the closed search.

    Args:
        project: The project.
        model: The model.
        name: Name of the run.
        resume: Whether to go on with it.
        report: Whether its results are written.
        settings: Named without ``search.``; ``memory`` says whether there is one.
    """
    values: dict[str, Any] = {f"search.{key}": value for key, value in settings.items()}
    if "search.memory" in values:
        values["memory.enabled"] = values.pop("search.memory")
    with TaskWeaverApp(project, model=model) as app:
        if resume:
            opened = resume_search(app, name, values)
        else:
            opened = start_search(app, project / "idea.md", FAST | values, name=name)
        with opened:
            opened.run(lambda _: None)
            if report:
                write_results(opened.places, opened.state, opened.budget, opened.store)
    return opened


def story(made: Search) -> list[tuple[Any, ...]]:
    """Return what a run came to, without times."""
    return [
        (node.id, node.kind, node.stage, node.parent, node.name, node.seed, node.value, node.status)
        for node in made.state.journal.nodes
    ]
