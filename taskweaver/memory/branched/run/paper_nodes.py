"""Nodes of a search, given as plain data, as facts of a paper.

Data is plain, by the names docs/memory.md lists; fields that are missing or empty give no line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.run.paper_view import Fact, RunView

Data = Mapping[str, Any]
PLOTS = ("plot_analyses", "vlm_feedback_summary", "plot_paths", "datasets_successfully_tested")
_DETAILS = (
    "overall_plan", "metric_per_dataset", "commands", "files", "workspace_path", "reproduce",
    "phase_artifacts", "exp_results_dir", "code",
)  # fmt: skip
_DIRECTIONS = {"maximize": "higher is better", "minimize": "lower is better"}
_NODES = ("top_nodes_data", "attempts_data", "failed_nodes_data")
_FORMS: Mapping[str, type] = {
    **dict.fromkeys(("best_node_data", "baseline_data", "counts", "repeated_data"), dict),
    **dict.fromkeys((*_NODES, "judgements"), list),
    **dict.fromkeys(("certainty", "journal"), str),
}
_FORM_NAMES: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text"}
_PLACE = (("stage", "stage"), ("branch", "branch_id"), ("from", "parent"))


def checked_index(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a search as plain JSON data.

    Raises:
        InvalidUpdate: If JSON cannot keep it, or a part has another form.
    """
    try:
        index = json.loads(json.dumps(given, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidUpdate("artifacts_index", f"must be plain data: {error}") from error
    _require("artifacts_index", index, dict)
    for name, part in parts(index).items():
        path = f"artifacts_index.{name}"
        _require(path, part, _FORMS[name])
        for number, node in enumerate(part if name in _NODES else ()):
            _require(f"{path}[{number}]", node, dict)
            _require(f"{path}[{number}].fixed_by", node.get("fixed_by") or [], list)
    return dict(index)


def _require(path: str, value: object, form: type) -> None:
    if not isinstance(value, form):
        raise InvalidUpdate(path, f"must be {_FORM_NAMES[form]}")


def parts(index: Data) -> dict[str, Any]:
    """Return the parts of checked data by name, with empty values for missing parts."""
    return {name: index.get(name) or form() for name, form in _FORMS.items()}


def plain(value: object) -> str:
    """Return a value as a text: a text as it is, other data as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _id(node: Data) -> str:
    return plain(node.get("id", ""))


def _source(node: Data) -> list[str]:
    return [f"node {plain(node.get('id', 'best'))}"]


def _named(node: Data) -> str:
    """Return a node's id with the kind and name."""
    label = " ".join(plain(node[name]) for name in ("kind", "name") if node.get(name))
    return f"{_id(node)} ({label})" if label else _id(node)


def _metric(node: Data) -> str:
    """Return a metric for people: name, value and unit, and which direction is better."""
    value = node.get("metric")
    if not isinstance(value, Mapping):
        return "" if value is None else plain(value)
    measured = (value.get("value"), value.get("unit"))
    number = value.get("text") or " ".join(plain(it) for it in measured if it not in (None, ""))
    better = _DIRECTIONS.get(str(value.get("direction")), "")
    name = plain(value.get("name") or "")
    head = f"{name} ({better}):".lstrip() if better else name
    return " ".join(filter(None, [head, number]))


def _result(view: RunView, node: Data, text: str, same: str = "") -> Fact:
    """Return a line about a node's result, with the rows of memory as sources."""
    sources = [*_source(node), *view.result_sources(_id(node))]
    return Fact(text, sources, key=f"result {_id(node)}", same=same)


def summary_facts(view: RunView) -> list[Fact]:
    """Return the facts of the executive summary: best, baseline, counts, findings."""
    index, best = view.index, view.index["best_node_data"]
    named = (("Best", best), ("Baseline", index["baseline_data"]))
    facts = [
        _result(view, node, f"{title}: {_metric(node)}, by node {_named(node)}")
        for title, node in named
        if _metric(node)
    ]
    if best.get("gain"):
        facts.append(Fact(f"Gain over the baseline: {plain(best['gain'])}", _source(best)))
    journal, counts = [index["journal"] or "journal.json"], index["counts"]
    if counts:
        rest = ", ".join(f"{plain(counts[name])} {name}" for name in counts if name != "nodes")
        text = f"{plain(counts.get('nodes', ''))} nodes: {rest}"
        facts.append(Fact(text, journal, key="counts"))
    said = [index["certainty"], *index["judgements"]]
    facts += [Fact(plain(text), journal) for text in said if text]
    if best.get("analysis"):
        finding = plain(best["analysis"])
        facts.append(Fact(f"Finding: {finding}", _source(best), same=finding))
    return facts


def best_facts(view: RunView) -> list[Fact]:
    """Return the best node: the place in the tree, plan, parameters, change, commands, files."""
    node = view.index["best_node_data"]
    if not node:
        return []
    source = _source(node)
    place = [f"{name} {plain(node[key])}" for name, key in _PLACE if node.get(key)]
    facts = [Fact(f"Node: {', '.join([_named(node), *place])}", source)]
    if node.get("plan"):
        plan = plain(node["plan"])
        facts.append(Fact(f"Plan: {_plan(node)}", source, same=plan))
    if node.get("changed") or node.get("changes"):
        parent, changed = node.get("parent") or "nothing", node.get("changed") or ""
        text = f"Changed from {plain(parent)}: {plain(changed)}".rstrip()
        facts.append(Fact(text, source, block=plain(node.get("changes") or "")))
    if _parameters(node):
        facts.append(Fact(f"Parameters: {_parameters(node)}", source))
    return [*facts, *fields_of_best(view, *_DETAILS)]


def _plan(node: Data) -> str:
    name = f"{plain(node['name'])}: " if node.get("name") else ""
    return f"{name}{' '.join(plain(node['plan']).split())}"


def fields_of_best(view: RunView, *names: str) -> list[Fact]:
    """Return fields of the best node, a line for each part of a mapping or a sequence."""
    node = view.index["best_node_data"]
    return [fact for name in names for fact in _field(name, node.get(name), _source(node))]


def _field(name: str, value: object, source: Sequence[str]) -> Iterable[Fact]:
    title = name.replace("_", " ").capitalize()
    if value in (None, "", [], {}, ()):
        return
    if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
        for key, item in value.items():
            yield Fact(f"{title}, {key}: {item}", source)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        for item in value:
            yield Fact(f"{title}: {item}", source)
    elif isinstance(value, str) and "\n" in value.strip():
        yield Fact(f"{title}:", source, key=f"{name} {source}", block=value)
    else:
        yield Fact(f"{title}: {plain(value)}", source)


def phase_facts(view: RunView) -> list[Fact]:
    """Return how each phase of the best node ran."""
    node = view.index["best_node_data"]
    phases = node.get("phases")
    return [
        Fact(f"Phase {name}: {plain(text)}", _source(node), key=f"phase {name}")
        for name, text in (phases.items() if isinstance(phases, Mapping) else ())
    ]


def top_facts(view: RunView) -> list[Fact]:
    """Return the top nodes, a line each. The best refers to its own section."""
    facts = []
    for rank, node in enumerate(view.index["top_nodes_data"], start=1):
        text = "; ".join(filter(None, cells(node, view.index["best_node_data"].get("id"))))
        same = _plan(node) if node.get("plan") else ""
        facts.append(_result(view, node, f"{rank}. {text}", same))
    return facts


def cells(node: Data, best_id: object) -> list[str]:
    """Return the cells of a top node, but for the rank and the sources."""
    plan, changed, findings = "see Best Node Details", "", ""
    if node.get("id") is None or node.get("id") != best_id:
        parameters = f"Parameters: {_parameters(node)}." if _parameters(node) else ""
        plan = f"{' '.join(plain(node.get('plan') or '').split())} {parameters}".strip()
        changed, findings = plain(node.get("changed") or ""), plain(node.get("analysis") or "")
    parent = f"from {plain(node['parent'])}" if node.get("parent") else ""
    change = ": ".join(filter(None, [parent, changed]))
    gain = plain(node.get("gain_over_parent") or "")
    return [_named(node), _metric(node), gain, change, plan, findings]


def _parameters(node: Data) -> str:
    values = node.get("parameters") or {}
    if not isinstance(values, Mapping):
        return plain(values)
    return ", ".join(f"{name}={plain(value)}" for name, value in values.items())


def attempt_facts(view: RunView) -> list[Fact]:
    """Return attempts that were compared with others, for example ablations, a line each."""
    compared = [node["id"] for node in view.index["top_nodes_data"] if node.get("id")]
    facts, shown = [], []
    for node in view.index["attempts_data"]:
        if node.get("id") in compared:
            shown.append(node)
            continue
        gain = f", {plain(node['gain'])}" if node.get("gain") else ""
        base = f" against {plain(node['compared_with'])}" if node.get("compared_with") else ""
        facts.append(Fact(f"{_named(node)}: {_metric(node)}{gain}{base}", _source(node)))
    if shown:
        text = f"See Top Nodes Comparison too: {', '.join(map(_id, shown))}"
        facts.append(Fact(text, [source for node in shown for source in _source(node)]))
    return facts


def failure_facts(view: RunView) -> list[Fact]:
    """Return the failures of all nodes, failures that only the search noted last."""
    failed = view.index["failed_nodes_data"]
    fixed = {
        _id(node): ", ".join(map(plain, node["fixed_by"]))
        for node in failed
        if node.get("fixed_by")
    }
    noted = {view.node_of(row) for row in view.failures}
    unknown = [
        Fact(f"{_id(node)}: {plain(node.get('error') or 'failed')}", _source(node))
        for node in failed
        if _id(node) not in noted
    ]
    return [*view.failure_facts(fixed), *unknown]
