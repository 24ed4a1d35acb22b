"""The plan of Phase 0: read, with every part there, and written beside its node."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from taskweaver.llm.parsing.json_text import required_object
from taskweaver.treesearch.record.places import NodePlaces
from taskweaver.utils.files import read_text, write_json, write_text
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_PLAN_FILE = "phase0_plan.json"
_LASTING_FACTS = ("os", "machine", "cpu", "cpus", "memory_mib", "gpus", "compilers", "network")


@dataclass(frozen=True, slots=True)
class Phase0Plan:
    """Plan of an attempt, written before its files and commands.

    Attributes:
        goal_summary: Its goal.
        implementation_strategy: Its steps.
        dependencies: Packages and programs it needs, by their manager.
        phase_guidance: Advice for each phase, ``phase1`` to ``phase4``.
        risks_and_mitigations: Risks, in whatever form the model gave them.
        time_budget_estimate: Expected times.
        internal: Notes for the memory; None where the model wrote none.
        origin: Id of the ancestor it was made for; empty for the node itself.
    """

    goal_summary: str
    implementation_strategy: tuple[str, ...]
    dependencies: Mapping[str, Any]
    phase_guidance: Mapping[str, Mapping[str, Any]]
    risks_and_mitigations: tuple[Any, ...]
    time_budget_estimate: Mapping[str, Any]
    internal: Mapping[str, Any] | None = None
    origin: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``phase0_plan.json``."""
        left_out = {"origin", "internal"} if self.internal is None else {"origin"}
        return {name: part for name, part in asdict(self).items() if name not in left_out}


def read_plan(text: str) -> Phase0Plan:
    """Return the plan in a reply of Phase 0; parts that are missing are empty.

    Raises:
        ValueError: If it is no JSON object.
    """
    data = required_object(text, {})
    plan = _mapping(data.get("plan", data))
    phases = _mapping(plan.get("phase_guidance"))
    risks = plan.get("risks_and_mitigations")
    internal = data.get("internal")
    return Phase0Plan(
        goal_summary=str(plan.get("goal_summary", "")),
        implementation_strategy=_texts(plan.get("implementation_strategy")),
        dependencies=_mapping(plan.get("dependencies")),
        phase_guidance={f"phase{n}": _mapping(phases.get(f"phase{n}")) for n in range(1, 5)},
        risks_and_mitigations=tuple(risks) if isinstance(risks, list) else (),
        time_budget_estimate=_mapping(plan.get("time_budget_estimate")),
        internal=internal if isinstance(internal, Mapping) else None,
    )


def situation_of(environment: Mapping[str, Any], compilers: Sequence[str], resources: str) -> str:
    """Return a digest of the facts that a plan is made for; others change from start to start."""
    facts = [environment.get(name) for name in _LASTING_FACTS]
    text = json.dumps([facts, list(compilers), resources], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def inherit_plan(parent: NodePlaces, own: NodePlaces, situation: str) -> Phase0Plan | None:
    """Return a parent's plan, written for a node; None if there is none for this situation."""
    try:
        data = json.loads(read_text(parent.plans / _PLAN_FILE))
    except (OSError, ValueError):
        return None
    if not isinstance(data, Mapping) or data.get("situation") != situation:
        return None
    origin = data.get("inherited_from", parent.node_id)
    write_json(own.plans / _PLAN_FILE, {**data, "inherited_from": origin})
    return replace(read_plan(json.dumps(data)), origin=str(origin))


def save_plan(
    folder: Path, plan: Phase0Plan, raw: str, history: Mapping[str, Any], situation: str
) -> None:
    """Write the files of Phase 0, which people read, with their secrets masked."""
    written = {"plan": plan.to_dict(), "situation": situation}
    write_json(folder / _PLAN_FILE, redact_secrets_in(written))
    write_json(folder / "phase0_history_full.json", redact_secrets_in(dict(history)))
    write_text(folder / "phase0_llm_output.txt", redact_secrets(raw))


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in value) if isinstance(value, Sequence) else ()


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
