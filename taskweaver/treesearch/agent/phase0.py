"""The plan of Phase 0: read, with every part there, and written beside its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.utils.files import write_json, write_text
from taskweaver.utils.redact import redact_secrets, redact_secrets_in


def read_plan(text: str) -> dict[str, Any]:
    """Read the reply of Phase 0: its plan, with every part there, and ``internal``.

    Raises:
        ValueError: If it is no JSON object.
    """
    data = required_object(text, {})
    given = data.get("plan", data)
    plan = dict(given) if isinstance(given, Mapping) else {}
    guidance = plan.get("phase_guidance")
    phases = guidance if isinstance(guidance, Mapping) else {}
    normal: dict[str, Any] = {
        "goal_summary": str(plan.get("goal_summary", "")),
        "implementation_strategy": _texts(plan.get("implementation_strategy")),
        "dependencies": _mapping(plan.get("dependencies")),
        "phase_guidance": {f"phase{n}": _mapping(phases.get(f"phase{n}")) for n in range(1, 5)},
        "risks_and_mitigations": _list(plan.get("risks_and_mitigations")),
        "time_budget_estimate": _mapping(plan.get("time_budget_estimate")),
    }
    internal = data.get("internal")
    return normal | ({"internal": internal} if isinstance(internal, Mapping) else {})


def save_plan(folder: Path, plan: Mapping[str, Any], raw: str, history: Mapping[str, Any]) -> None:
    """Write the files of Phase 0, which people read, with their secrets masked."""
    write_json(folder / "phase0_plan.json", redact_secrets_in({"plan": dict(plan)}))
    write_json(folder / "phase0_history_full.json", redact_secrets_in(dict(history)))
    write_text(folder / "phase0_llm_output.txt", redact_secrets(raw))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, Sequence) else []


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
