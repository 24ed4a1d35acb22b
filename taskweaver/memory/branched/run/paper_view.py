"""The memory of a run, read for its paper: the best branch's view, failures of all branches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from taskweaver.memory.branched.errors import UnknownBranch
from taskweaver.memory.branched.run.ingest import IDEA_TAG, idea_sections
from taskweaver.memory.branched.run.paper_ledger import Fact, is_telling, normal
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.types import Branch, CoreEntry, Event, Record
from taskweaver.memory.branched.upkeep.upkeep import subtree

PREAMBLE = "(introduction)"
"""Key of the idea's text between its title and its first section."""
_LIMIT_CHARS, _LIMIT_ROWS = 400, 50
_NODE_TAGS = ("node_uid:", "node:", "node_id:")
_RESULT_KINDS = frozenset({"metrics_extracted", "node_result"})
_RESULT_TAGS = frozenset({"SUCCESS", "METRICS"})
_ERROR_TAG = "ERROR"
_FAILED_RESULT = "is_buggy=True"
_FAILURE_HEAD = re.compile(r"^(?:[\w =.-]{0,120}? failed: )+")
_FOR_THE_SEARCH = re.compile(r"\W*built-in proposer\b", re.IGNORECASE)
"""A line of an idea that chooses the program which proposes, and says nothing of the matter."""

_ERROR_KIND = re.compile(r"^[A-Z]\w*: ")


@dataclass(frozen=True, slots=True)
class RunView:
    """Rows that a paper is made of, oldest first.

    Attributes:
        core: Core memory as the best branch sees it.
        events: Events the best branch sees.
        records: Records the best branch sees.
        failures: Events and records about failures, of every branch of the run.
        results: Events about results, of every branch of the run.
        idea: Sections of the idea, by title in lower case.
        title: Title of the idea.
        chain: Ids of the best branch and its ancestors, the root last.
        names: Ids of all branches by number.
        most_chars: Longest line; None for no limit.
        most_rows: Most lines of a kind; None for no limit.
    """

    core: Mapping[str, CoreEntry]
    events: Sequence[Event]
    records: Sequence[Record]
    failures: Sequence[Event | Record]
    results: Sequence[Event]
    idea: Mapping[str, str]
    title: str
    chain: Sequence[str]
    names: Mapping[int, str]
    most_chars: int | None
    most_rows: int | None

    def source(self, row: CoreEntry | Event | Record) -> str:
        """Return the place of a row as the document names it."""
        if isinstance(row, CoreEntry):
            return f"core {row.key}, {self.names[row.branch]}"
        if isinstance(row, Event):
            return f"event {row.seq}, {self.names[row.branch]}"
        return f"record {row.id}, {self.names[row.branch]}"

    def cut(self, text: str) -> str:
        """Return a text on one line, cut where there is a limit."""
        line = " ".join(text.split())
        return line if self.most_chars is None else Compressor.cut(line, self.most_chars)

    def newest(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Return facts, only the last of them where there is a limit."""
        return facts if self.most_rows is None else facts[-self.most_rows :]

    def keys(self, *names: str) -> list[Fact]:
        """Return core values, a line each."""
        facts = []
        for entry in (self.core[name] for name in names if name in self.core):
            text = self.cut(f"{entry.key}: {entry.value}")
            same = entry.value if is_telling(entry.value) else ""
            facts.append(Fact(text, [self.source(entry)], same=same))
        return facts

    def happened(self, *kinds: str) -> Sequence[Fact]:
        """Return events of some kinds, a line each."""
        found = [event for event in self.events if event.kind in kinds]
        return self.newest([self._event(event) for event in found])

    def _event(self, event: Event) -> Fact:
        text = self.cut(f"{event.kind}{_times(event)}: {event.text}")
        same = event.text if is_telling(event.text) else ""
        return Fact(text, [self.source(event)], same=same)

    def tagged(self, *tags: str) -> Sequence[Fact]:
        """Return records with any of some tags, a line each."""
        found = [record for record in self.records if set(tags) & set(record.tags)]
        facts = [Fact(self.cut(row.text), [self.source(row)], same=row.text) for row in found]
        return self.newest(facts)

    def idea_lines(self, *sections: str) -> list[Fact]:
        """Return the first of some sections of the idea, a line for each paragraph or bullet."""
        text = next((self.idea[name] for name in sections if self.idea.get(name)), "")
        parts = [part for part in _paragraphs(text) if not _FOR_THE_SEARCH.match(part)]
        return [Fact(self.cut(part), ["idea.md"]) for part in parts]

    def node_of(self, row: Event | Record) -> str:
        """Return the node a row is about; the id of its branch where it names none."""
        if isinstance(row, Event) and row.data.get("node_id"):
            return str(row.data["node_id"])
        named = (tag.removeprefix(head) for head in _NODE_TAGS for tag in row.tags
                 if tag.startswith(head))  # fmt: skip
        return next(named, self.names[row.branch])

    def result_sources(self, node: str) -> list[str]:
        """Return the rows about the result of a node."""
        rows: list[Event | Record] = list(self.results)
        rows += [row for row in self.records if _RESULT_TAGS & set(row.tags)]
        return [self.source(row) for row in rows if self.node_of(row) == node]

    def result_facts(self, repeated: Mapping[str, str] = {}) -> list[Fact]:
        """Return the results the best branch sees, a line for each node.

        Of nodes that were `repeated`, by id, the line ends with all measurements together.
        """
        rows: list[Event | Record] = [row for row in self.events if _is_result(row)]
        rows += [row for row in self.records if _RESULT_TAGS & set(row.tags)]
        facts = []
        for node, group in _grouped(sorted(rows, key=_seq), self.node_of).items():
            first = min(group, key=_result_order)
            text = first.text if normal(node) in normal(first.text) else f"{node}: {first.text}"
            if node in repeated:
                text = f"{text.rstrip()} All its measurements: {repeated[node]}"
            sources = [self.source(row) for row in group]
            facts.append(Fact(self.cut(text), sources, key=f"result {node}"))
        return facts

    def failure_facts(self, fixed: Mapping[str, str] | None = None) -> Sequence[Fact]:
        """Return the failures of all branches, a line each, with the nodes that `fixed` them."""
        facts: list[Fact] = []
        for node, group in _grouped(self.failures, self.node_of).items():
            found = self._failures_of(node, sorted(group, key=_failure_order))
            repaired = (fixed or {}).get(node)
            if repaired:
                found[0].text += f" (fixed by {repaired})"
            facts += found
        return self.newest(facts)

    def _failures_of(self, node: str, rows: Iterable[Event | Record]) -> list[Fact]:
        """Return the failures of a node; rows about the same one are one line."""
        found: list[tuple[str, Fact]] = []
        for row in rows:
            is_result = isinstance(row, Event) and row.kind == "node_result"
            shown = next((fact for text, fact in found if _is_same_failure(text, row.text)), None)
            shown = shown or (found[0][1] if is_result and found else None)
            if shown is not None:
                shown.sources = [*shown.sources, self.source(row)]
                continue
            head = f"{row.kind}{_times(row)}: " if isinstance(row, Event) else ""
            text = f"{node}: {head}{row.text}"
            found.append((row.text, Fact(self.cut(text), [self.source(row)], same=text)))
        return [fact for _, fact in found]


def read_view(
    memory: BranchedMemory, root_id: str, best_id: str, *, is_limited: bool = False
) -> RunView:
    """Read the memory of a run: its root, and the branch of its best node.

    With `is_limited`, texts are cut at 400 characters and lists at 50 lines.

    Raises:
        UnknownBranch: If a branch does not exist, or the best does not descend from the root.
    """
    branches = {branch.number: branch for branch in memory.branches()}
    root, best = memory.branch(root_id), memory.branch(best_id)
    chain = _ancestors(best, branches)
    if root not in chain:
        raise UnknownBranch(f"Branch {best_id!r} does not descend from {root_id!r}.")
    run = subtree(branches.values(), root)
    records = list(reversed(memory[best.id].records()))
    idea = next((row.text for row in reversed(records) if IDEA_TAG in row.tags), "")
    heading = re.search(r"^# +(.+)$", idea, re.MULTILINE)
    written = [event for branch in run for event in _own_events(memory, branch)]
    failures: list[Event | Record] = [event for event in written if _is_failure(event)]
    for branch in run:
        errors = memory[branch.id].records(tags=[_ERROR_TAG])
        failures += [record for record in errors if record.branch == branch.number]
    return RunView(
        core=memory[best.id].core.entries(),
        events=list(reversed(memory[best.id].events())),
        records=records,
        failures=sorted(failures, key=_seq),
        results=sorted(filter(_is_result, written), key=_seq),
        idea={**idea_sections(idea), PREAMBLE: _preamble(idea[heading.end() :] if heading else "")},
        title=heading[1].strip() if heading else "",
        chain=[branch.id for branch in chain],
        names={number: branch.id for number, branch in branches.items()},
        most_chars=_LIMIT_CHARS if is_limited else None,
        most_rows=_LIMIT_ROWS if is_limited else None,
    )


def _preamble(text: str) -> str:
    """Return the text before the first section of an idea."""
    return re.split(r"^##\s", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _ancestors(branch: Branch, branches: Mapping[int, Branch]) -> list[Branch]:
    line = [branch]
    while (parent := line[-1].parent) is not None:
        line.append(branches[parent])
    return line


def _own_events(memory: BranchedMemory, branch: Branch) -> Iterator[Event]:
    return (event for event in memory[branch.id].events() if event.branch == branch.number)


def _is_failure(event: Event) -> bool:
    is_failed_result = event.kind == "node_result" and _FAILED_RESULT in event.text
    return event.kind.endswith("_failed") or event.kind == "error_encountered" or is_failed_result


def _is_result(event: Event) -> bool:
    return event.kind in _RESULT_KINDS and not _is_failure(event)


def _is_same_failure(one: str, other: str) -> bool:
    """Return whether of two accounts of a failure one is the beginning of the other."""
    pairs = ((a, b) for a in _messages(one) for b in _messages(other))
    return any(_is_beginning(*sorted(pair, key=len)) for pair in pairs)


def _messages(text: str) -> list[list[str]]:
    """Return the words of an account without its head, with and without the kind of the error."""
    message, heads = _FAILURE_HEAD.subn("", text)
    texts = [message, _ERROR_KIND.sub("", message)] if heads else [message]
    return [normal(text).split() for text in texts]


def _is_beginning(short: list[str], long: list[str]) -> bool:
    if len(short) < 2:
        return short == long
    last = len(short) - 1  # the last word may be cut
    return short[:last] == long[:last] and long[last].startswith(short[last])


def _seq(row: Event | Record) -> int:
    return row.seq


def _result_order(row: Event | Record) -> tuple[int, int]:
    """Return the rank of a row as the line of a result: the one with the plan first."""
    if isinstance(row, Record):
        return (0 if "SUCCESS" in row.tags else 1, row.seq)
    return (2 if row.kind == "metrics_extracted" else 3, row.seq)


def _failure_order(row: Event | Record) -> tuple[int, int]:
    """Return the rank of a row as the line of a failure: the longest account first."""
    if isinstance(row, Record):
        return (0 if any(tag.startswith("node_uid:") for tag in row.tags) else 1, row.seq)
    return (3 if row.kind == "node_result" else 2, row.seq)


def _grouped(
    rows: Iterable[Event | Record], node_of: Callable[[Event | Record], str]
) -> dict[str, list[Event | Record]]:
    groups: dict[str, list[Event | Record]] = {}
    for row in rows:
        groups.setdefault(node_of(row), []).append(row)
    return groups


def _times(event: Event) -> str:
    return f" (x{event.count})" if event.count > 1 else ""


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs and the bullets of a text, each on one line."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text)
    return [re.sub(r"^[-*+]\s+", "", " ".join(part.split())) for part in parts if part.strip()]
