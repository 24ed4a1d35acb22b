"""The memory of a run, read for the paper, as facts that are kept once with all their sources."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskweaver.memory.branched.errors import UnknownBranch
from taskweaver.memory.branched.run.ingest import IDEA_TAG, idea_sections
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.branched.tiers.compression import Compressor
from taskweaver.memory.branched.types import Branch, CoreEntry, Event, Record
from taskweaver.memory.branched.upkeep.upkeep import subtree

_TOKEN = re.compile(r"[\w%+-]+(?:\.\w+)*|[<>≤≥≠!~]+")
_LEAST_TOKENS = 4
"""Tokens of a text that counts as contained in a longer one; fewer may be there by chance."""


@dataclass(slots=True)
class Fact:
    """A line of a document.

    Attributes:
        text: The line.
        sources: Rows, keys, nodes and files it comes from.
        key: Name that facts with other words have in common; empty for none.
        same: Part of the text that identifies it; empty for all of it.
        block: Text shown below the line as it is, for example a difference of files.
    """

    text: str
    sources: Sequence[str]
    key: str = ""
    same: str = ""
    block: str = ""

    @property
    def line(self) -> str:
        """The text with the sources, without a bullet."""
        return f"{self.text} [{'; '.join(self.sources)}]" if self.sources else self.text


class FactLedger:
    """Facts by section. A fact that is in one section already only adds the sources there."""

    def __init__(self) -> None:
        self._facts: defaultdict[str, list[Fact]] = defaultdict(list)
        self._elsewhere: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._by_key: dict[str, tuple[str, Fact]] = {}
        self._by_words: dict[str, tuple[str, Fact]] = {}

    def add(self, section: str, facts: Iterable[Fact]) -> None:
        """Add facts to a section, in order, except facts that a section shows already."""
        for fact in facts:
            found = self._find(fact)
            if found is None:
                self.show(section, [fact])
                continue
            home, shown = found
            shown.sources = list(dict.fromkeys([*shown.sources, *fact.sources]))
            if home != section:
                self._elsewhere[section][home] = None
            self._know(fact, found)

    def show(self, section: str, facts: Iterable[Fact]) -> None:
        """Add facts to a section, whatever the document shows already."""
        for fact in facts:
            self._facts[section].append(fact)
            self._know(fact, (section, fact))

    def _know(self, fact: Fact, place: tuple[str, Fact]) -> None:
        if fact.key:
            self._by_key.setdefault(fact.key, place)
        for words in filter(None, (normal(fact.same), normal(fact.text))):
            self._by_words.setdefault(words, place)

    def facts(self, section: str) -> list[Fact]:
        """Return the facts that are shown in a section."""
        return self._facts[section]

    def elsewhere(self, section: str) -> list[str]:
        """Return the sections that show further facts of this section."""
        return list(self._elsewhere[section])

    def _find(self, fact: Fact) -> tuple[str, Fact] | None:
        words = normal(fact.same or fact.text)
        if fact.key and fact.key in self._by_key:
            return self._by_key[fact.key]
        if words in self._by_words or not is_telling(words):
            return self._by_words.get(words)
        wanted = f" {words} "
        longer = (place for text, place in self._by_words.items() if words in text
                  and wanted in f" {text} ")  # fmt: skip
        return next(longer, None)


def is_telling(text: str) -> bool:
    """Return whether a text is long enough to identify a fact."""
    return len(normal(text).split()) >= _LEAST_TOKENS


def normal(text: str) -> str:
    """Return the words, numbers and comparisons of a text, without other punctuation."""
    return " ".join(_TOKEN.findall(text))


PREAMBLE = "(introduction)"
"""Key of the idea's text between its title and its first section."""
_LIMIT_CHARS, _LIMIT_ROWS = 400, 50
_NODE_TAGS = ("node_uid:", "node:", "node_id:")
_RESULT_KINDS = frozenset({"metrics_extracted", "node_result"})
_RESULT_TAGS = frozenset({"SUCCESS", "METRICS"})
_ERROR_TAG = "ERROR"
_FAILED_RESULT = "is_buggy=True"
_FAILURE_HEAD = re.compile(r"^(?:[\w =.-]{0,120}? failed: )*(?:[A-Z]\w*: )?")
"""Part before the message of a failure: the steps that failed, and the kind of the error."""
_FOR_THE_SEARCH = re.compile(r"\W*built-in proposer\b", re.IGNORECASE)
"""A line of an idea that chooses the program which proposes, and says nothing of the matter."""


@dataclass(frozen=True, slots=True)
class RunView:
    """Rows that a paper is made of, oldest first, and the search's facts about the nodes.

    Attributes:
        index: The search's facts; see docs/memory.md.
        core: Core memory as the best branch sees it.
        events: Events the best branch sees.
        records: Records the best branch sees.
        failures: Events and records about failures, of every branch of the run.
        results: Events about results, of every branch of the run.
        idea: Sections of the idea, by title in lower case.
        title: Title of the idea.
        chain: Ids of the best branch and its ancestors, the root last.
        names: Ids of all branches by number.
        is_limited: Whether lines and lists are cut.
    """

    index: Mapping[str, Any]
    core: Mapping[str, CoreEntry]
    events: Sequence[Event]
    records: Sequence[Record]
    failures: Sequence[Event | Record]
    results: Sequence[Event]
    idea: Mapping[str, str]
    title: str
    chain: Sequence[str]
    names: Mapping[int, str]
    is_limited: bool

    def source(self, row: CoreEntry | Event | Record) -> str:
        """Return the name of a row's place in the document."""
        if isinstance(row, CoreEntry):
            return f"core {row.key}, {self.names[row.branch]}"
        if isinstance(row, Event):
            return f"event {row.seq}, {self.names[row.branch]}"
        return f"record {row.id}, {self.names[row.branch]}"

    def cut(self, text: str) -> str:
        """Return a text on one line, cut where there is a limit."""
        line = " ".join(text.split())
        return Compressor.cut(line, _LIMIT_CHARS) if self.is_limited else line

    def newest(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Return facts, or where there is a limit the last facts."""
        return facts[-_LIMIT_ROWS:] if self.is_limited else facts

    def keys(self, *names: str) -> list[Fact]:
        """Return core values, a line each."""
        entries = [self.core[name] for name in names if name in self.core]
        return [
            self.fact(entry, f"{entry.key}: {entry.value}", _telling(entry.value))
            for entry in entries
        ]

    def happened(self, *kinds: str) -> Sequence[Fact]:
        """Return events of some kinds, a line each."""
        return self.newest(
            [
                self.fact(event, f"{event.kind}{_times(event)}: {event.text}", _telling(event.text))
                for event in self.events
                if event.kind in kinds
            ]
        )

    def tagged(self, *tags: str) -> Sequence[Fact]:
        """Return records with any of some tags, a line each."""
        found = [row for row in self.records if set(tags) & set(row.tags)]
        return self.newest([self.fact(row, row.text, row.text) for row in found])

    def fact(
        self, row: CoreEntry | Event | Record, text: str, same: str = "", key: str = ""
    ) -> Fact:
        """Return a line about a row. `same` is the identifying part."""
        return Fact(self.cut(text), [self.source(row)], key=key, same=same)

    def idea_lines(self, *sections: str) -> list[Fact]:
        """Return the first of some sections of the idea, a line for each paragraph or bullet."""
        text = next((self.idea[name] for name in sections if self.idea.get(name)), "")
        parts = [part for part in _paragraphs(text) if not _FOR_THE_SEARCH.match(part)]
        return [Fact(self.cut(part), ["idea.md"]) for part in parts]

    def node_of(self, row: Event | Record) -> str:
        """Return the node a row is about, by default the id of the branch."""
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

    def result_facts(self) -> list[Fact]:
        """Return the results the best branch sees, a line for each node.

        The line of a node that was repeated ends with all its measurements.
        """
        repeated = self.index["repeated_data"]
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

    def failure_facts(self, fixed: Mapping[str, str]) -> Sequence[Fact]:
        """Return the failures of all branches, a line each, and the nodes that `fixed` some.

        Of a node with an account of the failure its result says no more.
        """
        facts: list[Fact] = []
        for node, group in _grouped(self.failures, self.node_of).items():
            rows = sorted(group, key=_failure_order)
            told = [row for row in rows if isinstance(row, Record) or row.kind != "node_result"]
            told = told or rows[:1]
            lines = [self._failure(node, row) for row in told]
            lines[0].sources = [*lines[0].sources, *(self.source(r) for r in rows if r not in told)]
            lines[0].text += f" (fixed by {fixed[node]})" if node in fixed else ""
            facts += lines
        return self.newest(facts)

    def _failure(self, node: str, row: Event | Record) -> Fact:
        head = f"{row.kind}{_times(row)}: " if isinstance(row, Event) else ""
        same = f"{node} {_FAILURE_HEAD.sub('', row.text, count=1)}"
        return self.fact(row, f"{node}: {head}{row.text}", same)


def read_view(
    memory: BranchedMemory,
    root_id: str,
    best_id: str,
    index: Mapping[str, Any],
    *,
    is_limited: bool = False,
) -> RunView:
    """Read the memory of a run: the root, and the branch of the best node.

    With `is_limited`, texts are cut at 400 characters and lists at 50 lines. `index` has the
    search's facts about its nodes.

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
    written: list[Event] = []
    failures: list[Event | Record] = []
    for branch in run:
        handle, number = memory[branch.id], branch.number
        written += [event for event in handle.events() if event.branch == number]
        errors = handle.records(tags=[_ERROR_TAG])
        failures += [record for record in errors if record.branch == number]
    failures += [event for event in written if _is_failure(event)]
    return RunView(
        index=index,
        core=memory[best.id].core.entries(),
        events=list(reversed(memory[best.id].events())),
        records=records,
        failures=sorted(failures, key=_seq),
        results=sorted(filter(_is_result, written), key=_seq),
        idea={**idea_sections(idea), PREAMBLE: _preamble(idea[heading.end() :] if heading else "")},
        title=heading[1].strip() if heading else "",
        chain=[branch.id for branch in chain],
        names={number: branch.id for number, branch in branches.items()},
        is_limited=is_limited,
    )


def _preamble(text: str) -> str:
    """Return the text before the first section of an idea."""
    return re.split(r"^##\s", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _ancestors(branch: Branch, branches: Mapping[int, Branch]) -> list[Branch]:
    line = [branch]
    while (parent := line[-1].parent) is not None:
        line.append(branches[parent])
    return line


def _is_failure(event: Event) -> bool:
    is_failed_result = event.kind == "node_result" and _FAILED_RESULT in event.text
    return event.kind.endswith("_failed") or event.kind == "error_encountered" or is_failed_result


def _is_result(event: Event) -> bool:
    return event.kind in _RESULT_KINDS and not _is_failure(event)


def _telling(text: str) -> str:
    """Return a text that is long enough to identify a fact, or nothing."""
    return text if is_telling(text) else ""


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
    groups: defaultdict[str, list[Event | Record]] = defaultdict(list)
    for row in rows:
        groups[node_of(row)].append(row)
    return groups


def _times(event: Event) -> str:
    return f" (x{event.count})" if event.count > 1 else ""


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs and the bullets of a text, each on one line."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text)
    return [re.sub(r"^[-*+]\s+", "", " ".join(part.split())) for part in parts if part.strip()]
