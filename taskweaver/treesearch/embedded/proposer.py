"""Proposals of attempts by rules, from what `prompt_reading` finds in the prompt alone.

It changes one thing at a time. A change that helped is continued, in the same direction where it is
a number; a change that ancestors (memory) or others (the digest) tried is not tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.embedded.prompt_reading import (
    Other,
    number,
    others,
    remembered,
    sections,
    values_in,
)
from taskweaver.treesearch.embedded.space import Parameter, Space

_TRIED, _LAST = "tried_changes", "last_change"
_TAKEN = re.compile(r"make another change than (.+)\.$", re.MULTILINE)


class RuleProposer:
    """A model of one idea. It keeps nothing between calls."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer a prompt in the protocol it asks for."""
        prompt = sections(str(messages[-1]["content"]))
        if "Kind of attempt" not in prompt:
            return _with_memory(prompt, {}, json.dumps(_plan(prompt)))
        kind, _, wanted = prompt["Kind of attempt"].partition(" ")
        return self._attempt(prompt, kind, wanted)

    def _attempt(self, prompt: Mapping[str, str], kind: str, wanted: str) -> str:
        known = others(prompt.get("Other attempts", ""))
        memory = prompt.get("Memory", "")
        parent = values_in(prompt.get("Code", ""))
        if kind == "draft" or not parent:
            count = sum(other.kind == "draft" for other in known)
            count += "exactly this program" in prompt.get("Parsing Feedback", "")
            drafts = self._space.drafts
            values, change = dict(drafts[count % len(drafts)]), ""
            why = "A plain first attempt."
        elif kind == "debug":
            error = f"{prompt.get('Error', '')}\n{prompt.get('Execution output', '')}"
            values, change = dict(self._space.repair(parent, error)), ""
            why = f"Repaired: {prompt.get('Error', 'it failed').splitlines()[0][:120]}"
        else:
            helped = self._hint(prompt, memory)
            if kind == "ablation":  # what was added by its ancestors is there to be taken away
                helped, memory, known = "", "", [o for o in known if o.kind == kind]
            tried = self._tried({**prompt, "Memory": memory}, known)
            moves = [
                (parameter, value)
                for parameter, value in self._moves(kind, parent, helped)
                if f"{parameter.name}={value}" not in tried
            ]
            values, change, why = _chosen(parent, moves, helped)
        return self._reply(prompt, values, change or wanted, why)

    def _tried(self, prompt: Mapping[str, str], known: Sequence[Other]) -> set[str]:
        """Return the changes not to try: those of ancestors, of the same node, or running now."""
        before = remembered(prompt.get("Memory", ""), _TRIED)
        changes = set(before) if isinstance(before, list) else set()
        parent = prompt.get("Made from", "")
        refused = _TAKEN.search(prompt.get("Parsing Feedback", ""))
        taken = set(refused[1].split(", ")) if refused else set()
        return changes | {other.change for other in known if other.parent == parent} | taken

    def _hint(self, prompt: Mapping[str, str], memory: str) -> str:
        """Return the parameter whose last change helped, to change it further."""
        last = remembered(memory, _LAST)
        now = number(prompt.get("Result", ""))
        if not isinstance(last, dict) or now is None or last.get("before") is None:
            return ""
        is_up = "lower is better" not in prompt.get("Evaluation metric", "")
        gain = now - float(last["before"])
        return str(last.get("name", "")) if (gain > 0) is is_up and gain else ""

    def _moves(
        self, kind: str, parent: Mapping[str, Any], helped: str
    ) -> Iterator[tuple[Parameter, Any]]:
        fitting = [p for p in self._space.parameters if p.applies(parent)]
        if kind == "ablation":
            for parameter in fitting:
                if parent.get(parameter.name) != parameter.values[0]:
                    yield parameter, parameter.values[0]
            return
        if kind == "hyperparam":
            fitting = sorted(fitting, key=lambda p: not p.is_tuned)
        fitting = sorted(fitting, key=lambda p: p.name != helped)
        back = []
        for parameter in fitting:
            values = parameter.values
            now = parent.get(parameter.name)
            place = values.index(now) if now in values else 0
            for value in values[place + 1 :]:
                yield parameter, value
            back += [(parameter, value) for value in reversed(values[:place])]
        yield from back

    def _reply(
        self, prompt: Mapping[str, str], values: Mapping[str, Any], change: str, why: str
    ) -> str:
        memory = prompt.get("Memory", "")
        tried = remembered(memory, _TRIED)
        tried = [*(tried if isinstance(tried, list) else []), *([change] if change else [])]
        name = change.partition("=")[0]
        before = number(prompt.get("Result", ""))
        updates = {
            "core": {
                _TRIED: json.dumps(tried),
                _LAST: json.dumps({"name": name, "before": before}),
                "best_params": json.dumps(dict(values)),
            },
            "archival": [{"text": f"{change or 'first attempt'}: {why}", "tags": ["CHANGE"]}],
        }
        said = f"{why} Values: {json.dumps(dict(values))}"
        form = prompt.get("Instructions", "")
        if "/workspace" in form or self._space.script is None:
            plan = self._space.write(values, has_evaluator="Evaluator" in prompt)
            answer = {"plan": said, "name": change, "phase_artifacts": plan}
        else:
            answer = {"plan": said, "name": change, "code": self._space.script(values)}
        return _with_memory(prompt, updates, json.dumps(answer))


def _chosen(
    parent: Mapping[str, Any], moves: Sequence[tuple[Parameter, Any]], helped: str
) -> tuple[dict[str, Any], str, str]:
    """Make the first change: one that helped is continued before others are tried."""
    if not moves:
        return dict(parent), "", "Everything was tried; the same again."
    parameter, value = moves[0]
    why = f"{parameter.name} was {parent.get(parameter.name)}; try {value}."
    if parameter.name == helped:
        why = f"The last change of it helped. {why}"
    return {**parent, parameter.name: value}, f"{parameter.name}={value}", why


def _with_memory(prompt: Mapping[str, str], updates: Mapping[str, Any], answer: str) -> str:
    if "Memory" not in prompt:
        return answer
    return f"<memory_update>\n{json.dumps(dict(updates))}\n</memory_update>\n{answer}"


def _plan(prompt: Mapping[str, str]) -> dict[str, Any]:
    """Return a plan for Phase 0, of the content of its prompt, in its form."""
    first = prompt.get("Environment", "").splitlines()
    return {
        "plan": {
            "goal_summary": "One change, measured as the idea says.",
            "implementation_strategy": ["write the program", "run it", "check it, and measure"],
            "phase_guidance": {"phase4": {"output_policy": "working/result.json"}},
        },
        "internal": {"environment_analysis": " ".join(first[:6])[:600]},
    }
