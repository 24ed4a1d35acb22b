"""A small, fast search: a model by rules whose experiments are one-line shell scripts."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.llm.types import ChatMessage, ModelRequest
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.record.runlog import RunState
from taskweaver.treesearch.reports.run_results import write_results
from taskweaver.treesearch.service import resume_search, start_search

IDEA = "# Where is the top?\n\nThree numbers, from 0 to 3.\n\nMetric: height ({})\n"
FAST = {
    "search.workers": 1, "search.num_seeds": 1, "search.stage1_nodes": 5, "search.stage2_nodes": 4,
    "search.stage3_nodes": 4, "search.stage4_nodes": 3, "search.install": "batch",
    "search.calls": "seeds", "search.phase0": "off", "search.review": False,
    "search.summaries": False, "search.plots": False,
}  # fmt: skip
"""Settings of a search that asks for attempts, and for nothing else; each question is one alone."""
FULL = {"phase0": "node", "review": True, "summaries": True}
ONE = {
    "num_drafts": 1, "stage1_nodes": 1, "stage2_nodes": 0, "stage3_nodes": 0, "stage4_nodes": 0,
    "num_seeds": 0,
}  # fmt: skip
"""Settings of a search of one attempt; they are named without ``search.``, as for `search`."""
NAMES = ("x", "y", "z")
PLACE = dict.fromkeys(NAMES, 0)
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


def trying(prompt: Mapping[str, str], **sections: Any) -> str:
    """Reply with an attempt at the place where all begin; `sections` as for `proposal`."""
    return remembering(prompt, json.dumps(proposal(PLACE, **sections)))


def is_draft(prompt: Mapping[str, str]) -> bool:
    """Return whether a first attempt is asked for."""
    return prompt.get("Kind of attempt") == "draft"


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
            return self._proposal(PLACE)
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


@contextmanager
def opened(
    project: Path, model: Any = None, *, name: str = "run", resume: bool = False, **settings: Any
) -> Iterator[Search]:
    """Open a search, or one to go on with; settings are named without ``search.``."""
    own = {"memory": "memory.enabled"}
    values = {
        own.get(key, key if "." in key else f"search.{key}"): value
        for key, value in settings.items()
    }
    with TaskWeaverApp(project, model=model) as app:
        if resume:
            made = resume_search(app, name, values)
        else:
            made = start_search(app, project / "idea.md", FAST | values, name=name)
        with made:
            yield made


def search(project: Path, model: Any, *, report: bool = False, **options: Any) -> Search:
    """Search to the end, write results if wanted, and return the closed search; see `opened`."""
    with opened(project, model, **options) as made:
        made.run(lambda _: None)
        if report:
            write_results(made.places, made.state, made.budget, made.store)
    return made


@contextmanager
def stopped_after(made: Search) -> Iterator[None]:
    """Run a search beside the block, and stop it at the end."""
    thread = threading.Thread(target=made.run, args=[lambda _: None])
    thread.start()
    yield
    made.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def story(state: RunState) -> list[tuple[Any, ...]]:
    """Return what a run came to, without times."""
    return [
        (node.id, node.kind, node.stage, node.parent, node.name, node.seed, node.value, node.status)
        for node in state.journal.nodes
    ]
