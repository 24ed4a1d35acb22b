"""A model of an idea by rules: it reads the prompt alone, and proposes one change at a time.

A change that helped is continued, in the same direction where it is a number. A change that
ancestors (memory) or others (the digest) tried is not tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskweaver.llm.types import ChatMessage
from taskweaver.treesearch.embedded.spaces import (
    STENCIL,
    TABULAR,
    Needs,
    Parameter,
    Space,
    named_packages,
)
from taskweaver.treesearch.model.idea import Idea

_FENCE = re.compile(r"(`{3,})(.*)")
_VALUES = re.compile(r"VALUES = (\{.*\})")
_OTHER = re.compile(
    r"^- n\d+ (?P<kind>\w+)(?: (?P<name>\S+=\S+))?(?: of (?P<parent>n\d+))?: \S", re.MULTILINE
)
_CORE = re.compile(r"^- (?P<key>[\w.]+)(?: \[\d\])?: (?P<value>.*)$", re.MULTILINE)
_TRIED, _LAST = "tried_changes", "last_change"
_TAKEN = re.compile(r"make another change than (.+)\.$", re.MULTILINE)
Model = Callable[[Sequence[ChatMessage]], str]
_NAMED = re.compile(r"built-in proposer\W+(?:is\s+)?`(?P<name>[a-z_]+)`", re.IGNORECASE)
_SPACES = {space.name: space for space in (TABULAR, STENCIL)}


@dataclass(frozen=True, slots=True)
class Other:
    """Another attempt, as the digest lists it.

    Attributes:
        kind: Its kind.
        change: Its change, as ``name=value``; empty for none.
        parent: Id of its parent; empty for none.
    """

    kind: str
    change: str
    parent: str


def sections(prompt: str) -> dict[str, str]:
    """Return the text below each heading of the first level; fenced text has no headings."""
    found: dict[str, list[str]] = {}
    heading, fence = "", ""
    for line in prompt.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence and line.startswith("# "):
            heading = line[2:].strip()
            found[heading] = []
            continue
        found.setdefault(heading, []).append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def values_in(code: str) -> dict[str, Any]:
    """Return the values an attempt was written with."""
    found = _VALUES.search(code)
    return dict(json.loads(found[1])) if found else {}


def others(digest: str) -> list[Other]:
    """Return the other attempts."""
    return [
        Other(match["kind"], match["name"] or "", match["parent"] or "")
        for match in _OTHER.finditer(digest)
    ]


def number(text: str) -> float | None:
    """Return the number a text begins with; None when it begins with none."""
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def remembered(memory: str, key: str) -> Any:
    """Return a core key of a rendered memory, as data; None when it is not there."""
    for match in _CORE.finditer(memory):
        if match["key"] == key:
            try:
                return json.loads(match["value"])
            except ValueError:
                return None
    return None


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


def model_for(idea: Idea) -> Model | None:
    """Return the model that an idea names, as in ``Built-in proposer: `stencil```; or None."""
    space = _space_of(idea)
    return RuleProposer(space) if space is not None else None


def needs_of(idea: Idea, *, is_embedded: bool) -> Needs:
    """Return the needs that an idea names and, where its built-in proposer works, those of that."""
    space = _space_of(idea) if is_embedded else None
    named = named_packages(idea.text)
    return Needs((*space.needs.packages, *named), space.needs.programs) if space else Needs(named)


def _space_of(idea: Idea) -> Space | None:
    found = _NAMED.search(idea.text)
    return _SPACES.get(found["name"]) if found else None
