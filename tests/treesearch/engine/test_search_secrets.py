"""A run keeps its programs as they are, for its owner alone; copies for others are masked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from phase_plans import artifacts
from search_lab import Climber, is_memory_asked, lab, proposal, remembering, search

from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.utils.redact import MASK, register_secret

SECRET = "search-canary-of-16-chars"
EVERYDAY = "token=abcdefghijklmnop1234"
ONE = {"num_drafts": 1, "stage1_nodes": 1, "stage2_nodes": 0, "stage3_nodes": 0,
       "stage4_nodes": 0, "num_seeds": 0}  # fmt: skip


class Careless:
    """Proposes a program with a secret; the first time with a mask in its place."""

    def __init__(self) -> None:
        self._lines = [f"echo {MASK}"]

    def __call__(self, prompt: Mapping[str, str]) -> str | None:
        """Return the reply to the prompt of a draft; None for the usual one to any other."""
        if prompt.get("Kind of attempt") != "draft" or is_memory_asked(prompt):
            return None
        line = self._lines.pop() if self._lines else f"{EVERYDAY}; echo {SECRET}"
        made = proposal({"x": 1, "y": 0, "z": 0}, height=5.0)
        made["phase_artifacts"]["run"]["commands"].insert(0, line)
        return remembering(prompt, json.dumps(made))


def test_a_run_is_stored_as_it_ran_and_told_without_its_secrets(tmp_path: Path) -> None:
    register_secret(SECRET)
    model = Climber(fault=Careless())
    run = search(lab(tmp_path), model, report=True, **ONE).places.folder
    log = run / "journal.jsonl"
    assert f"{EVERYDAY}; echo {SECRET}" in log.read_text()
    assert run.stat().st_mode & 0o077 == 0
    assert log.stat().st_mode & 0o077 == 0
    script = (run / "best" / "reproduce.sh").read_text()
    assert SECRET in script
    for name in ("report.md", "tree.html", "journal.json", "best/node.json"):
        text = (run / name).read_text()
        assert SECRET not in text, name
        assert EVERYDAY.partition("=")[2] in text or name == "report.md", name
    prompts = [path for path in (run / "logs").rglob("prompt_logs/**/*") if path.is_file()]
    assert prompts
    assert all(SECRET not in path.read_text() for path in prompts)
    # The model was asked again after the mask, and nothing ran meanwhile.
    assert any("holds a mask" in " ".join(prompt.values()) for prompt in model.prompts)
    assert f"echo {MASK}" not in log.read_text()


def test_a_plan_with_a_mask_cannot_be_carried_out() -> None:
    file = {"path": "m.py", "content": f"key = '{MASK}'"}
    plan = artifacts(coding={"workspace": {"files": [file]}})
    with pytest.raises(PhasePlanError, match="read the value from its source"):
        PhasePlan.from_dict(plan)
