"""Nodes of a search, given as plain data, as facts of a paper.

Every function takes plain data by the names docs/memory.md lists; fields that are missing or empty
give no line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.run.paper_ledger import Fact

Data = Mapping[str, Any]
_DETAILS = (
    "overall_plan", "metric_per_dataset", "commands", "files", "workspace_path", "reproduce",
    "phase_artifacts", "exp_results_dir",
)  # fmt: skip
_PLOTS = ("plot_analyses", "vlm_feedback_summary", "plot_paths", "datasets_successfully_tested")
_DIRECTIONS = {"maximize": "higher is better", "minimize": "lower is better"}
_NODES = ("top_nodes_data", "attempts_data", "failed_nodes_data")
_FORMS: Mapping[str, type] = {
    **dict.fromkeys(("best_node_data", "baseline_data", "counts", "repeated_data"), dict),
    **dict.fromkeys((*_NODES, "judgements"), list),
    "certainty": str,
}
_PLACE = (("stage", "stage"), ("branch", "branch_id"), ("from", "parent"))


def checked_index(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a search as JSON keeps it.

    Raises:
        InvalidUpdate: If JSON cannot keep it, or a part has another form.
    """
    try:
        index = json.loads(json.dumps(given, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidUpdate("artifacts_index", f"must be plain data: {error}") from error
    if not isinstance(index, dict):
        raise InvalidUpdate("artifacts_index", "must be an object")
    for name, form in _FORMS.items():
        path, part = f"artifacts_index.{name}", index.get(name) or form()
        _require(path, part, form)
        for number, node in enumerate(part if name in _NODES else ()):
            _require(f"{path}[{number}]", node, dict)
            _require(f"{path}[{number}].fixed_by", node.get("fixed_by") or [], list)
    return index


def _require(path: str, value: object, form: type) -> None:
    if not isinstance(value, form):
        raise InvalidUpdate(path, f"must be {'an object' if form is dict else 'a list'}")


def plain(value: object) -> str:
    """Return a value as a text: a text as it is, other data as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def source_of(node: Data) -> str:
    """Return the place of a node's data as the document names it."""
    return f"node {plain(node.get('id', 'best'))}"


def metric_text(value: object) -> str:
    """Return a metric as people read it: name, value and unit, and which direction is better."""
    if not isinstance(value, Mapping):
        return "" if value is None else plain(value)
    number = value.get("text") or _number(value.get("value"), value.get("unit"))
    better = _DIRECTIONS.get(str(value.get("direction")), "")
    name = plain(value.get("name") or "")
    head = f"{name} ({better}):".lstrip() if better else name
    return " ".join(filter(None, [head, number]))


def _number(value: object, unit: object) -> str:
    return " ".join(plain(part) for part in (value, unit) if part not in (None, ""))


def summary_facts(index: Data, result_sources: Mapping[str, Sequence[str]]) -> list[Fact]:
    """Return the facts of the executive summary: best, baseline, counts, findings.

    `result_sources` are rows of memory about the results of nodes, by node.
    """
    best, baseline = index.get("best_node_data") or {}, index.get("baseline_data") or {}
    facts = []
    for title, node in (("Best", best), ("Baseline", baseline)):
        metric = metric_text(node.get("metric"))
        if not metric:
            continue
        id_ = plain(node.get("id", ""))
        text = f"{title}: {metric}, by node {id_}{_label(node)}"
        sources = [source_of(node), *result_sources.get(id_, ())]
        facts.append(Fact(text, sources, key=f"result {id_}"))
    if best.get("gain"):
        facts.append(Fact(f"Gain over the baseline: {plain(best['gain'])}", [source_of(best)]))
    counts = index.get("counts") or {}
    if counts:
        rest = [f"{plain(counts[name])} {name}" for name in counts if name != "nodes"]
        text = f"{plain(counts.get('nodes', ''))} nodes: {', '.join(rest)}"
        facts.append(Fact(text, [_journal(index)], key="counts"))
    said = [index.get("certainty"), *(index.get("judgements") or ())]
    facts += [Fact(plain(text), [_journal(index)]) for text in said if text]
    if best.get("analysis"):
        facts.append(Fact(f"Finding: {plain(best['analysis'])}", [source_of(best)],
                          same=plain(best["analysis"])))  # fmt: skip
    return facts


def _journal(index: Data) -> str:
    return plain(index.get("journal") or "journal.json")


def _label(node: Data) -> str:
    label = " ".join(plain(node[name]) for name in ("kind", "name") if node.get(name))
    return f" ({label})" if label else ""


def best_facts(node: Data) -> list[Fact]:
    """Return the best node: its place in the tree, plan, parameters, change, commands, files."""
    if not node:
        return []
    source = [source_of(node)]
    place = [plain(node.get("id", "")) + _label(node)]
    place += [f"{name} {plain(node[key])}" for name, key in _PLACE if node.get(key)]
    facts = [Fact(f"Node: {', '.join(place)}", source)]
    if node.get("plan"):
        facts.append(plan_fact(node))
    if node.get("changed") or node.get("changes"):
        text = f"Changed from {plain(node.get('parent') or 'nothing')}: "
        text += plain(node.get("changed") or "")
        facts.append(Fact(text.rstrip(), source, block=plain(node.get("changes") or "")))
    parameters = _parameters(node)
    if parameters:
        facts.append(Fact(f"Parameters: {parameters}", source))
    facts += [fact for name in _DETAILS for fact in _field(name, node.get(name), source)]
    if node.get("code"):
        facts.append(Fact("Code:", source, block=plain(node["code"])))
    return facts


def plan_fact(node: Data) -> Fact:
    """Return the plan of a node, once wherever it is shown."""
    name = f"{plain(node['name'])}: " if node.get("name") else ""
    plan = plain(node["plan"])
    return Fact(f"Plan: {name}{' '.join(plan.split())}", [source_of(node)], same=plan)


def _field(name: str, value: object, source: Sequence[str]) -> Iterable[Fact]:
    """Yield a field, a line for each part of a mapping or a sequence."""
    title = name.replace("_", " ").capitalize()
    if value in (None, "", [], {}, ()):
        return
    if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
        for key, item in value.items():
            yield Fact(f"{title}, {key}: {item}", source)
    elif isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        for item in value:
            yield Fact(f"{title}: {item}", source)
    elif isinstance(value, str) and "\n" in value.strip():
        yield Fact(f"{title}:", source, key=f"{name} {source}", block=value)
    else:
        yield Fact(f"{title}: {plain(value)}", source)


def plot_facts(node: Data) -> list[Fact]:
    """Return plots, their analyses and the data sets of a node."""
    source = [source_of(node)]
    return [fact for name in _PLOTS for fact in _field(name, node.get(name), source)]


def execution_facts(node: Data) -> list[Fact]:
    """Return how a node ran: its phases, its running time, and its advice to later nodes."""
    source = [source_of(node)]
    phases = node.get("phases") or {}
    facts = [
        Fact(f"Phase {name}: {plain(text)}", source, key=f"phase {name}")
        for name, text in (phases.items() if isinstance(phases, Mapping) else ())
    ]
    return [*facts, *_field("exec_time_feedback", node.get("exec_time_feedback"), source)]


def top_facts(
    nodes: Sequence[Data], best_id: object, result_sources: Mapping[str, Sequence[str]]
) -> list[Fact]:
    """Return the top nodes, a line each; the best refers to its own section."""
    facts = []
    for rank, node in enumerate(nodes, start=1):
        id_ = plain(node.get("id", ""))
        sources = [source_of(node), *result_sources.get(id_, ())]
        text = f"{rank}. " + "; ".join(filter(None, cells(node, best_id)))
        same = plan_fact(node).text.removeprefix("Plan: ") if node.get("plan") else ""
        facts.append(Fact(text, sources, key=f"result {id_}", same=same))
    return facts


def cells(node: Data, best_id: object) -> list[str]:
    """Return the cells of a top node, but for its rank and its sources."""
    is_best = node.get("id") is not None and node.get("id") == best_id
    plan = "see Best Node Details" if is_best else _plan_and_parameters(node)
    changed = "" if is_best else plain(node.get("changed") or "")
    from_ = f"from {plain(node['parent'])}" if node.get("parent") else ""
    findings = "" if is_best else plain(node.get("analysis") or "")
    metric = metric_text(node.get("metric"))
    gain = plain(node.get("gain_over_parent") or "")
    change = ": ".join(filter(None, [from_, changed]))
    return [plain(node.get("id", "")) + _label(node), metric, gain, change, plan, findings]


def _plan_and_parameters(node: Data) -> str:
    plan, parameters = " ".join(plain(node.get("plan") or "").split()), _parameters(node)
    return " ".join(filter(None, [plan, f"Parameters: {parameters}." if parameters else ""]))


def _parameters(node: Data) -> str:
    values = node.get("parameters") or {}
    if not isinstance(values, Mapping):
        return plain(values)
    return ", ".join(f"{name}={plain(value)}" for name, value in values.items())


def attempt_facts(attempts: Sequence[Data]) -> list[Fact]:
    """Return attempts that were compared with others, for example ablations, a line each."""
    facts = []
    for node in attempts:
        against = node.get("compared_with")
        gain = f", {plain(node['gain'])}" if node.get("gain") else ""
        base = f" against {plain(against)}" if against else ""
        text = f"{plain(node.get('id', ''))}{_label(node)}: {metric_text(node.get('metric'))}"
        facts.append(Fact(f"{text}{gain}{base}", [source_of(node)]))
    return facts


def failed_facts(nodes: Sequence[Data]) -> list[Fact]:
    """Return failed nodes the memory holds no row about, a line each."""
    return [
        Fact(f"{plain(node.get('id', ''))}: {plain(node.get('error') or 'failed')}",
             [source_of(node)])
        for node in nodes
    ]  # fmt: skip


def fixes(nodes: Sequence[Data]) -> dict[str, str]:
    """Return the nodes that repaired each failed node."""
    return {
        plain(node.get("id", "")): ", ".join(map(plain, node["fixed_by"]))
        for node in nodes
        if node.get("fixed_by")
    }
