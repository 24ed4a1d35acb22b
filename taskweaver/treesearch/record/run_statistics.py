"""Facts about a run, and statistics of its nodes: gains, effects, seeds, failures and costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import USED_BY_OTHERS, Cost, Node, NodeKind, Objective
from taskweaver.treesearch.model.samples import Difference, difference, with_error
from taskweaver.utils.text import counted

_MOST_RIVALS = 6
_WITHIN = ", within the noise"
_NO_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a limited quantity. A limit of 0 is none."""

    used: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Budgets:
    """Use of a run's budget.

    Attributes:
        nodes: Nodes that have finished, seed evaluations not counted.
        seconds: Time since it started, waiting between two sittings not counted.
        tokens: Tokens the models read and wrote.
        money: In the currency of the configured prices; None when they are unknown.
    """

    nodes: Use = Use()
    seconds: Use = Use()
    tokens: Use = Use()
    money: Use | None = None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage the run has been in.

    Attributes:
        number: From 1.
        name: Its name.
        reason: Why it ended; empty while it goes on.
        base: Id of the best node when it began; None in the first.
        best: Id of the best node when it ended; None while nothing was measured.
    """

    number: int
    name: str
    reason: str = ""
    base: str | None = None
    best: str | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about a run beside its nodes.

    Attributes:
        name: Name of its folder.
        title: Title of the idea.
        started_at: When it began, in seconds since 1970.
        finished_at: When it ended; None while it goes on.
        budgets: Use of its budget.
        stages: The stages it has been in, in order.
        reason: Why it ended; empty while it goes on.
        beside: Consumption of model calls that are of no finished node: about stages, for the
            memory, of attempts that were cancelled or lost.
    """

    name: str
    title: str
    started_at: float
    finished_at: float | None = None
    budgets: Budgets = Budgets()
    stages: tuple[StageFacts, ...] = ()
    reason: str = ""
    beside: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True)
class Effect:
    """A node beside the one it is compared with, if there is one.

    The difference is None when one of them has no value.
    """

    node: Node
    base: Node | None
    difference: Difference | None

    @property
    def gain(self) -> float | None:
        """Gain over the base, in the unit of the metric, below 0 for a worse one."""
        return self.difference.gain if self.difference else None


def gain(journal: Journal, after: Node | None, before: Node | None) -> Difference | None:
    """Return how much better one node is than another, None when one of them has no value.

    A program that was proposed again is no better than itself.
    """
    if after is None or before is None:
        return None
    programs = [node.same_as or node.id for node in (after, before)]
    if programs[0] == programs[1] and after.value is not None:
        return Difference(0.0, 0.0)
    return difference(journal.objective, *map(journal.samples, programs))


def gain_text(objective: Objective, found: Difference | None, base: float | None = None) -> str:
    """Return a gain with its sign and standard error, and in per cent of a value before it.

    One that is not larger than the noise is called so.
    """
    if found is None:
        return "-"
    text = f"{found.gain:+z.4g}" if not found.error else with_error(found.gain, found.error)
    sign = "+" if found.gain >= 0 and not text.startswith("+") else ""
    text = f"{sign}{text} {objective.unit}".strip()
    if base:
        text += f" ({_percent(found.gain / abs(base))})"
    return text if found.is_clear or not found.error else f"{text}{_WITHIN}"


def _percent(share: float) -> str:
    """Return a share in per cent with its sign, in three digits where it has more."""
    percent = 100 * share
    return f"{percent:+z.1f}%" if abs(percent) < 100 else f"{float(f'{percent:.3g}'):+,.0f}%"


def gained(journal: Journal, found: Difference | None, base: Node | None) -> str:
    """Return a gain over a node as text, in per cent of the node's mean too."""
    mean = journal.samples(base.id).mean if base else None
    return gain_text(journal.objective, found, mean)


def measured_ancestor(journal: Journal, node: Node) -> Node | None:
    """Return the nearest of the nodes that a node was made from which has a value, or None."""
    before = node.parent
    while before is not None and before in journal:
        if journal[before].value is not None:
            return journal[before]
        before = journal[before].parent
    return None


def certainty(journal: Journal) -> str:
    """Return how far the figures of a run can be trusted, and whether its best is surely so."""
    best = journal.best()
    if best is None:
        return ""
    rivals = _rivals(journal, best) if journal.noise is not None else ""
    return " ".join(filter(None, [scatter(journal), rivals, _beside(journal)]))


def scatter(journal: Journal) -> str:
    """Return how far single measurements of a run scatter, and what ± means."""
    noise = journal.noise
    if noise is None:
        return "No program was measured twice, so it is unknown how far figures scatter."
    repeated = counted(noise.freedom, "repetition")
    if not noise.deviation:
        return f"Repeated programs gave the very same figures ({repeated})."

    def size(deviation: float) -> str:
        return f"{100 * deviation:.2g} % of its value" if noise.is_relative else f"{deviation:.2g}"

    beside = "not known yet"
    if noise.residual is not None:
        beside = f"{size(noise.residual)} ({counted(noise.residual_freedom, 'degree')} of freedom)"
    return (
        f"One measurement scatters by {size(noise.deviation)} (standard deviation, from"
        f" {repeated}); beside the effect of its seed, which all programs share: {beside}."
        " Differences are taken over common seeds, ± is a standard error, and at most one run of"
        " twenty calls noise a difference."
    )


def confirmation(journal: Journal) -> str:
    """Return what fresh seeds say of the result of the search, in a few sentences."""
    found, base, noise = journal.found, journal.baseline, journal.noise
    if found is None or base is None:
        return ""
    if found is base:
        return f"No program was found better than {base.id}, the first draft that works."
    over = f"{found.id} over {base.id}, the first draft that works"
    confirmed = journal.confirmed(found)
    if confirmed is None:
        exact = noise is not None and not noise.deviation
        why = "Nothing scatters" if exact else "No fresh seed measured both"
        return f"{why}: the gain of {over}, is that of the search."
    before = journal.fresh_samples(base.id)
    text = gain_text(journal.objective, confirmed, before.mean).removesuffix(_WITHIN)
    ends = confirmed.interval
    if ends is None:
        return f"On one fresh seed, which chose nothing, the gain of {over}, was {text}."
    low, high = (f"{end:+z.4g}" for end in ends)
    failed = journal.fresh_samples(found.id).failed + before.failed
    said = (
        f"Gain of {over}, on {counted(confirmed.pairs, 'fresh seed')}, which chose nothing:"
        f" {text}, with 95 % between {low} and {high}."
    )
    said += f" {counted(failed, 'measurement')} failed." if failed else ""
    if confirmed.is_likely:
        return said
    result = f", so {base.id} is the result of the run" if journal.best() is base else ""
    return f"{said} That is within the noise{result}."


def _beside(journal: Journal) -> str:
    """Return beside how many timed runs other processes worked, as a sentence, empty for none."""
    details = [node.metric.details.get(USED_BY_OTHERS) for node in journal.good if node.metric]
    used = [value for value in details if isinstance(value, int | float)]
    if not used:
        return ""
    runs = f"{len(used)} of {counted(len(journal.good), 'timed run')}"
    return (
        f"Beside {runs} other processes, those of the search among them, used up to"
        f" {max(used):.1f} CPUs: give a timed search a machine of its own."
    )


def _rivals(journal: Journal, best: Node) -> str:
    """Return which other nodes may be as good as the best, in a sentence, empty for none."""
    said = ""
    if journal.is_candidate(best.id):
        said = f"{best.id} was measured once: it may have been lucky."
    leaders = [node for node in journal.leaders(_MOST_RIVALS) if node is not best]
    others = [(node, gain(journal, best, node)) for node in leaders]
    rivals = [(node, found) for node, found in others if found and not found.is_clear]
    if not rivals:
        return said
    (first, found), count = rivals[0], len(rivals) - 1
    if not found.gain and not found.error:
        more = f" and {count} more" if count else ""
        return f"{first.id}{more} reached exactly the same."
    names = f"{first.id}, {reached(journal, first)}" + (f", and {count} more" if count else "")
    gained = gain_text(journal.objective, found).removesuffix(_WITHIN)
    told = f"{best.id} cannot be told from {names}: {gained} is within the noise."
    return f"{said} {told}".strip()


def standing(journal: Journal, node: Node) -> str:
    """Return ``best`` of the best node, ``candidate`` while it may only be lucky, else nothing."""
    if journal.best() is not node:
        return ""
    return "candidate" if journal.is_candidate(node.id) else "best"


def effects(journal: Journal, facts: RunFacts, nodes: Iterable[Node]) -> list[Effect]:
    """Compare nodes: parts taken away with the stage's base, others with their ancestors.

    A repaired node is compared with its nearest ancestor that works. One that proposed an earlier
    program has the effect of that one.
    """
    bases = {stage.number: stage.base for stage in facts.stages}
    found = []
    for node in nodes:
        base_id = (node.kind is NodeKind.ABLATION and bases.get(node.stage)) or ""
        base = journal[base_id] if base_id in journal else measured_ancestor(journal, node)
        found.append(Effect(node, base, gain(journal, node, base) if node.is_good else None))
    return found


def reached(journal: Journal, node: Node) -> str:
    """Return the measurement of a node as text. Of a repeated one mean, standard error, number."""
    samples = journal.samples(node.id)
    if node.value is None or samples.n < 2:
        return journal.objective.text(node.value)
    return samples.text(journal.objective)


def outcome(journal: Journal, node: Node) -> str:
    """Return the measurement as `reached` does, or status and repair of a failed node."""
    if node.is_good:
        return reached(journal, node)
    repair = next((child.id for child in journal.children(node.id) if child.is_good), "")
    return f"{node.status}, repaired by {repair}" if repair else str(node.status)


def overruled(journal: Journal) -> list[str]:
    """Return a sentence for each judgement that chose another node than the metric."""
    found = []
    for one in (judgement for judgement in journal.judgements if judgement.passed_over):
        chosen, first = (
            f"{node_id} ({journal.objective.text(journal[node_id].value)})"
            for node_id in (one.chosen, one.candidates[0])
        )
        fell = "" if journal.holds(one) else " With other seeds it fell behind, and gave way."
        found.append(
            f"After stage {one.stage}, {chosen} was chosen by judgement; the metric alone would"
            f" have chosen {first}. {one.reasoning}{fell}"
        )
    return found


def failures(journal: Journal) -> list[tuple[str, list[Node], int]]:
    """Return the failures by kind, the most frequent first: the kind, its nodes, those repaired.

    The kind is that of the error, or the status where there is none. A child of a repaired node
    works.
    """
    by_kind: dict[str, list[Node]] = {}
    for node in journal.buggy:
        by_kind.setdefault(node.error.kind if node.error else node.status.value, []).append(node)
    found = [
        (
            kind,
            nodes,
            sum(any(child.is_good for child in journal.children(node.id)) for node in nodes),
        )
        for kind, nodes in by_kind.items()
    ]
    return sorted(found, key=lambda failure: (-len(failure[1]), failure[0]))


def missing_modules(journal: Journal) -> list[str]:
    """Return the modules that attempts could not import, those of most attempts first."""
    found: Counter[str] = Counter()
    for node in journal.buggy:
        message = node.error.message if node.error else ""
        found.update(set(_NO_MODULE.findall(f"{message}\n{node.output}")))
    return [name for name, _ in found.most_common()]


def history(journal: Journal, nodes: Sequence[Node]) -> list[tuple[Node, float | None]]:
    """Return nodes in order, each with the best value so far. Repetitions are left out."""
    best: Node | None = None
    found: list[tuple[Node, float | None]] = []
    once = journal.objective.rank
    for node in nodes:
        if node.repeats:
            continue
        if node.is_good and once(node.metric) > once(best.metric if best else None):
            best = node
        found.append((node, best.value if best else None))
    return found


def total_cost(nodes: Iterable[Node]) -> Cost:
    """Return the cost of all nodes together. Money is known when any amount is."""
    return sum((node.cost for node in nodes), Cost())


def seconds(node: Node) -> float:
    """Return how long a node took as a whole, or how long its phases did while it is open."""
    if node.finished_at is not None and node.started_at:
        return max(node.finished_at - node.started_at, 0.0)
    return sum(phase.seconds for phase in node.phases)


def count(nodes: Iterable[Node]) -> tuple[Counter[str], Counter[str]]:
    """Return how many nodes there are of each status, and of each kind."""
    listed = list(nodes)
    return Counter(str(node.status) for node in listed), Counter(str(node.kind) for node in listed)


def lessons(journal: Journal, node: Node) -> dict[str, str]:
    """Return the summary of a node, with a remark where its findings were found untrue."""
    by = journal.refuted.get(node.id)
    remark = {"findings": f"({by} found this untrue) {node.summary.get('findings', '')}"}
    return {**node.summary, **(remark if by else {})}
