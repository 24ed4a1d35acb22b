"""A run that is played back: the same replies make the same prompts, files, log and memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import Asked, Desk, at_desk
from fake_endpoint import Call
from run_trace import trace
from search_lab import Climber, proposal, remembering, search

PLACE = {"x": 0, "y": 0, "z": 0}
SETTINGS: dict[str, Any] = {
    "phase0": True, "review": True, "plots": True, "summaries": True, "vlm_alias": "eye",
    "install": "iterative", "stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 1,
    "stage4_nodes": 1, "num_drafts": 2,
}  # fmt: skip
READS = {"core": {"seen": "blue"}, "core_get": ["seen"], "archival_search": {"query": "up"}}


class Slips:
    """Wrong replies to the first question of each kind, and the usual ones after it."""

    def __init__(self) -> None:
        self._climber = Climber()
        self._counts: dict[str, int] = {}

    def answers(self) -> dict[str, Callable[[Asked], str | int | None]]:
        """Return the answers by step."""
        flawed = '{"is_bug": "no", "summary": 3'
        return {
            "attempt": self._attempt,
            "other": self._other,
            "review memory": self._reading,
            "summary memory": lambda _: "<memory_update>\nno JSON\n</memory_update>",
            "review": self._first("review", "I think it is fine.", flawed),
            "summary": self._first("summary", '{"findings": "up"}'),
            # Not an outage: those plots are drawn beside the next attempts, in no certain order.
            "plotting": self._first("plotting", "no program", "{}"),
            "stage summary memory": self._reading,
            "goals": self._first("goals", "{}", "[]", "nothing", "{}"),
            "vision": self._first("vision", 400, "no object"),
        }

    def _first(self, step: str, *wrong: str | int) -> Callable[[Asked], str | int | None]:
        def answer(_: Asked) -> str | int | None:
            number = self._counts[step] = self._counts.get(step, 0) + 1
            if number <= len(wrong):
                return wrong[number - 1]
            return '{"code": "print(1)"}' if step == "plotting" else None

        return answer

    def _reading(self, asked: Asked) -> str:
        if "Memory Read Results" in asked.prompt:
            return remembering(asked.prompt, "", {"recall": {"kind": "note", "content": "read"}})
        return remembering(asked.prompt, "", READS)

    def _attempt(self, asked: Asked) -> str | None:
        number = self._counts["attempt"] = self._counts.get("attempt", 0) + 1
        attempt = json.dumps(self._climber.attempt(asked.prompt))
        wrong = {
            1: attempt,  # without a memory block: `Desk` adds one
            2: attempt.replace('"phase_artifacts":', '"phase_artifacts"'),
            3: json.dumps({"plan": "no files", "phase_artifacts": {"run": {"commands": []}}}),
            4: json.dumps(proposal(PLACE, run={"commands": ["false"]})),
            6: json.dumps(proposal(PLACE, run={"commands": ["echo top 7"]})),
        }
        return wrong.get(number, attempt)

    def _other(self, asked: Asked) -> str:
        """Answer Phase 0 and the installer: texts that name no step."""
        prompt = asked.prompt
        if "Progress" in prompt:
            number = self._counts["install"] = self._counts.get("install", 0) + 1
            step = {"command": "true" if number % 2 else "", "done": not number % 2, "notes": ""}
            return remembering(prompt, "what?" if number == 3 else json.dumps(step))
        number = self._counts["plan"] = self._counts.get("plan", 0) + 1
        plan = json.dumps({"plan": {"goal_summary": "go up", "risks_and_mitigations": ["fall"]}})
        replies = {1: plan, 2: remembering(prompt, plan, {"bogus": 1}), 4: "no plan at all"}
        if number == 3 and "Memory Read Results" not in prompt:
            return remembering(prompt, plan, READS)
        return replies.get(number, remembering(prompt, plan))


class Recorder(Desk):
    """A desk that keeps the requests as they came."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__(answers)
        self.requests: list[dict[str, Any]] = []

    def play(self, call: Call) -> None:
        """Keep a request, and answer it."""
        self.requests.append(call.body)
        super().play(call)


def recorded(folder: Path, **settings: Any) -> dict[str, str]:
    """Search with a model that slips; return the trace."""
    desk = Recorder(Slips().answers())
    with at_desk(folder, desk) as (project, _):
        made = search(project, None, report=True, **(SETTINGS | settings))
        return trace(project, made.places.folder, desk.requests)


FIRST_STAGE = {"stage2_nodes": 0, "stage3_nodes": 0, "stage4_nodes": 0}


@pytest.mark.parametrize("settings", [FIRST_STAGE, pytest.param({}, marks=pytest.mark.long)])
def test_the_same_replies_make_the_same_run(tmp_path: Path, settings: dict[str, int]) -> None:
    first = recorded(tmp_path / "first", **settings)
    second = recorded(tmp_path / "second", **settings)
    assert list(first) == list(second)
    for name, text in first.items():
        assert text == second[name], name
