"""Every prompt of a short search, byte for byte: both ways of asking, in phases and in kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from desk import SEEING, plot_program
from fake_endpoint import Call, good, serving
from golden import check_golden
from search_lab import (
    FULL,
    ONE,
    PLACE,
    filled,
    is_memory_asked,
    lab,
    proposal,
    remembering,
    search,
    sections_of,
)

GOLDEN = Path(__file__).parents[1] / "golden"
SETTINGS: dict[str, Any] = ONE | FULL | {
    "plots": True, "vlm_alias": "eye", "debug_prob": 1.0, "stage1_nodes": 2, "stage2_nodes": 1,
    "stage3_nodes": 1, "stage4_nodes": 1,
}  # fmt: skip
SHORT: dict[str, dict[str, Any]] = {
    "single": {"plots": False, "stage3_nodes": 0, "stage4_nodes": 0},
    "seeds": {"stage2_nodes": 0, "stage4_nodes": 0},
}
"""Settings of a mode and of a way of asking whose other prompts are much the same."""
UNSTEADY = {
    r"^(#+ Environment\n\n)(?:- .*\n(?:  .*\n)*)+": r"\1- those of this machine\n",
    r"\b\d+\.\d+ s\b|(?<=The run took )\d+ s": "T s",
    r"(?<=#)\d+\b": "N",
}
"""Facts about the machine, times, and numbers of records."""
READ = {"core": {"seen": "blue"}, "core_get": ["seen"]}
KEPT = {"core": {"kept": "yes"}, "archival": [{"text": "up is good", "tags": ["UP"]}]}
WRONG = "It is all done; there is nothing to correct."


class Author:
    """A model whose first draft fails, and that slips at the first question of some kinds."""

    def __init__(self, *, in_fences: bool, is_script: bool) -> None:
        self._in_fences, self._is_script = in_fences, is_script
        self._slips = {"attempt": [WRONG], "answer": [WRONG], "memory": ["no block"]}
        self._reads = {"attempt", "memory"}
        self._heights = iter(["exit", "1", "2", "3", "2.5"])
        self.requests: list[dict[str, Any]] = []

    def play(self, call: Call) -> None:
        """Answer a request."""
        if "messages" not in call.body:
            call.answer(200, {"data": [{"id": "author"}]})
            return
        self.requests.append(call.body)
        content = call.body["messages"][-1]["content"]
        text = content if isinstance(content, str) else str(content[0].get("text"))
        call.stream(good(self._reply(sections_of(text), call.body)))

    def _reply(self, prompt: Mapping[str, str], body: Mapping[str, Any]) -> str:
        form = body.get("response_format", {}).get("json_schema")
        is_memory = is_memory_asked(prompt)
        kind = "attempt" if "Kind of attempt" in prompt else "memory" if is_memory else "answer"
        slips = self._slips[kind]
        if slips:
            return slips.pop()
        if kind in self._reads:
            self._reads.remove(kind)
            return remembering(prompt, "", READ)
        if is_memory:
            return remembering(prompt, "", KEPT)
        if form:
            return json.dumps(filled(form["schema"]))
        if kind == "attempt":
            return remembering(prompt, self._attempt(next(self._heights)), KEPT)
        return remembering(prompt, self._answer(prompt), {})

    def _attempt(self, height: str) -> str:
        plan, name = f"reach {height}", f"height={height}"
        if self._is_script:
            result = f"open('working/result.json', 'w').write('{{\"metric\": {height}}}')\n"
            code = "1 / 0\n" if height == "exit" else f"height = {height}\n{result}"
            fences, commands = f"```python\n{code}```", {"name": name}
            fields: dict[str, Any] = {"code": code}
        else:
            sections = proposal(PLACE, height=height)["phase_artifacts"]
            if height == "exit":
                sections["run"]["commands"] = ["false"]
            script = sections["coding"]["workspace"]["files"][0]["content"]
            fences = f"```file try.sh\n{script}```"
            commands = {"name": name, "compile": sections["compile"], "run": sections["run"]}
            fields = {"phase_artifacts": sections}
        if self._in_fences:
            return f"{plan}\n\n{fences}\n\n```commands\n{json.dumps(commands)}\n```\n"
        return json.dumps({"plan": plan, "name": name, **fields})

    def _answer(self, prompt: Mapping[str, str]) -> str:
        asked = prompt["Introduction"]
        if "untrue" in prompt.get("Reply", ""):
            review = {"is_bug": False, "summary": "It ran.", "findings": "up", "next_steps": "on"}
            return json.dumps(review | {"plots": "reach 3" in prompt["Plan"]})
        if "one fence ```python" in prompt.get("Instructions", ""):
            return plot_program("height.png")
        if "valid_plots_received" in prompt.get("Reply", ""):
            return json.dumps({"vlm_feedback_summary": "one colour"})
        if "summary" in prompt.get("Reply", "") and "stage" in asked:
            return json.dumps({"summary": "well"})
        return json.dumps({"plan": {"goal_summary": "go up", "dependencies": {"pip": []}}})


@pytest.mark.parametrize("calls", ["two", "seeds"])
@pytest.mark.parametrize("mode", ["split", "single"])
def test_the_prompts_of_a_search_are_those_of_the_file(
    calls: str, mode: str, tmp_path: Path
) -> None:
    author = Author(in_fences=calls == "two", is_script=mode == "single")
    with serving(author.play) as endpoint:
        keys = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k",
            "llm.model": "author", "llm.max_retries": 0,
            "ext_llms.llm_configs": {"eye": {"llm.model": SEEING}},
        }  # fmt: skip
        project = lab(tmp_path, **keys)
        settings = SETTINGS | SHORT.get(calls, {}) | SHORT.get(mode, {})
        made = search(project, None, **settings, calls=calls, phase_mode=mode)
    kinds = [str(node.kind) for node in made.state.journal.nodes]
    assert kinds[:2] == ["draft", "debug"]
    check_golden(GOLDEN / f"{calls}_{mode}.txt", author.requests, UNSTEADY)
