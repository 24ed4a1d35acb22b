"""A model at an OpenAI-compatible endpoint that is asked for more than attempts.

Each step after a run has a text of its own in the project, so that the model knows which it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_endpoint import Call, FakeEndpoint, good, serving
from search_lab import Climber, filled, is_memory_asked, lab, remembering, sections_of
from search_story import png

STEPS = {
    "plan": "config/phases/phase0_planning",
    "assessment": "agent/parallel/tasks/assessment/introduction",
    "review": "agent/parallel/tasks/execution_review/introduction",
    "metrics": "agent/parallel/tasks/parse_metrics/introduction",
    "plotting": "agent/parallel/tasks/plotting/introduction",
    "selection": "agent/parallel/tasks/select_plots/introduction",
    "vision": "agent/parallel/vlm_analysis",
    "summary": "agent/parallel/tasks/summary/introduction",
    "completion": "agent/manager/completion_eval",
    "goals": "agent/manager/goal_prompt",
    "stage summary": "agent/manager/stage_summary",
    "judge": "agent/journal/best_node/introduction",
}
_FREE = {"attempt", "plotting"}
SEEING = "sees-images"
DRAWN = png(8, 8)
DRAW = f"from pathlib import Path\nPath('working/{{}}').write_bytes({DRAWN!r})\n"
"""A program that draws a plot of a name; `plot_program` fills it in."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: of a step, ``attempt`` for a proposal; `is_memory` if for that block alone."""

    step: str
    is_memory: bool
    prompt: Mapping[str, str]
    images: tuple[str, ...]
    model: str


Answer = Callable[[Asked], "str | int | None"]
"""What replies: a text, or the status the endpoint refuses with; None for the usual reply."""


def plot_program(*names: str) -> str:
    """Return a reply with a program that draws small plots."""
    code = "".join(DRAW.replace("{}", name) for name in names)
    return json.dumps({"code": code})


class Desk:
    """Answers as a `Climber`, and each further step as it is told.

    Attributes:
        asked: All questions, in order.
    """

    def __init__(self, answers: Mapping[str, Answer] = {}, climber: Climber | None = None) -> None:
        self._answers = {"plotting": lambda _: plot_program("height.png"), **answers}
        self._climber = climber or Climber()
        self.asked: list[Asked] = []

    def of(self, step: str, *, is_memory: bool | None = None) -> list[Asked]:
        """Return the questions of a step."""
        asked = [one for one in self.asked if one.step == step]
        return [one for one in asked if is_memory in (None, one.is_memory)]

    def play(self, call: Call) -> None:
        """Answer a request."""
        if "messages" not in call.body:
            call.answer(200, {"data": [{"id": "desk"}]})
            return
        content = call.body["messages"][-1]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        images = tuple(p["image_url"]["url"] for p in parts if p["type"] == "image_url")
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        prompt = sections_of(f"# Before\n{text}")  # what the memory asks has no headings
        step = prompt.get("Introduction", "other").splitlines()[0].removeprefix("Step: ")
        step = "attempt" if "Kind of attempt" in prompt else step
        asked = Asked(step, is_memory_asked(prompt), prompt, images, call.body["model"])
        self.asked.append(asked)
        reply = self._reply(asked, call.body)
        if isinstance(reply, int):
            call.refuse(reply, "this model cannot do that")
        else:
            call.stream(good(reply))

    def _reply(self, asked: Asked, body: Mapping[str, Any]) -> str | int:
        prompt = asked.prompt
        answer = self._answers.get(f"{asked.step} memory" if asked.is_memory else asked.step)
        told = answer(asked) if answer is not None else None
        if isinstance(told, int):
            return told
        if asked.is_memory:
            kept = {"core": {f"kept by {asked.step}": "yes"}}
            return told or remembering(prompt, "", kept)
        if told is not None:
            return remembering(prompt, told) if asked.step in _FREE else told
        if asked.step == "attempt":
            return remembering(prompt, json.dumps(self._climber.attempt(prompt)))
        form = body.get("response_format", {}).get("json_schema")
        return json.dumps(filled(form["schema"])) if form else "as it was"


@contextmanager
def at_desk(folder: Path, desk: Desk, **config: Any) -> Iterator[tuple[Path, FakeEndpoint]]:
    """Serve a desk; give a project whose model it is, and its endpoint."""
    with serving(desk.play) as endpoint:
        aliases = {"eye": {"llm.model": SEEING}}
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k",
            "llm.model": "desk", "llm.max_retries": 0, "ext_llms.llm_configs": aliases,
        }  # fmt: skip
        project = lab(folder, **{**keys, **config})
        for step, name in STEPS.items():
            path = project / "prompts" / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"Step: {step}\n")
        yield project, endpoint
