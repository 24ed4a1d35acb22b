"""The stored state that fits a conversation, and the variables it lacks."""

from __future__ import annotations

import re
import symtable
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from taskweaver.ces.state.manifest import LostVariable, StateManifest
from taskweaver.memory.forms.request_notes import ALL_VARIABLES_GONE, VARIABLE_GONE
from taskweaver.memory.reading.cells import RecordedCell, ran_cells, ran_code
from taskweaver.memory.round import Round
from taskweaver.utils.text import counted

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINITIONS = {"module", "function", "type", "builtin_function_or_method"}
_MAKES_CODE = {"eval", "exec", "get_ipython", "globals", "locals", "setattr", "vars"}
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """The newest round of a conversation whose state is stored.

    Attributes:
        number: Its number, from 1.
        manifest: Its state.
        missing: Variables that later rounds may have changed, each with the reason.
        later: Numbers of the later rounds that ran code.
    """

    number: int
    manifest: StateManifest
    missing: Mapping[str, str]
    later: Sequence[int]

    @property
    def lost(self) -> list[LostVariable]:
        """The variables that are not there after restoring, by name once each."""
        stored = [item for item in self.manifest.lost if item.name not in self.missing]
        types = self.manifest.types
        changed = [
            LostVariable(name, types.get(name, ""), reason, "")
            for name, reason in self.missing.items()
        ]
        return list({item.name: item for item in [*stored, *changed]}.values())


def newest_state(
    rounds: Sequence[Round], find: Callable[[str], StateManifest | None]
) -> RestorePoint | None:
    """Return the newest round whose state is stored; None if there is none.

    Raises:
        StateDamaged: If a manifest cannot be read.
    """
    later: list[int] = []
    for number in range(len(rounds), 0, -1):
        round_ = rounds[number - 1]
        if not ran_code(round_):
            continue
        manifest = find(round_.id)
        if manifest is not None:
            return RestorePoint(number, manifest, _changed(rounds, later, manifest), later[::-1])
        later.append(number)
    return None


def _changed(
    rounds: Sequence[Round], numbers: Sequence[int], manifest: StateManifest
) -> dict[str, str]:
    """Return the variables that rounds may have changed after a state was stored.

    A variable that code only names may have been changed in place, so it counts, too; so do those
    that share objects with it, and those that the functions it names use.
    """
    kept = {name for name, kind in manifest.types.items() if kind not in _DEFINITIONS}
    links = _links(rounds, manifest)
    changed: dict[str, str] = {}
    for number in sorted(numbers):
        reason = f"round {number} may have changed it, and its variables were not stored"
        for cell in ran_cells([rounds[number - 1]]):
            names = names_in(cell.code)
            reached = _reached(names.mentioned, links)
            changed |= dict.fromkeys(sorted(names.bound | (reached & kept)), reason)
    return changed


def cells_with_variables(rounds: Iterable[Round]) -> Iterator[RecordedCell]:
    """Yield the cells that ran and may have changed variables, in order."""
    return (cell for cell in ran_cells(rounds) if not cell.is_script)


def _links(rounds: Sequence[Round], manifest: StateManifest) -> dict[str, set[str]]:
    """Return, for each name, the names whose variables a change of its own may reach."""
    links: dict[str, set[str]] = {}
    for names in manifest.together:
        for name in names:
            links.setdefault(name, set()).update(names)
    for cell in ran_cells(rounds):
        for name, used in names_in(cell.code).used.items():
            links.setdefault(name, set()).update(used)
    return links


def _reached(names: set[str], links: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(names), list(names)
    while waiting:
        new = links.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


@dataclass(frozen=True, slots=True)
class Names:
    """Names in the code of a cell.

    Attributes:
        bound: Variables that it binds, without imports.
        mentioned: All names; all words where code is made of texts.
        used: Names in the body of each function and class that it defines.
    """

    bound: set[str]
    mentioned: set[str]
    used: Mapping[str, set[str]]


def names_in(code: str) -> Names:
    """Return the names in the code of a cell."""
    try:
        top = symtable.symtable(code, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return Names(set(), set(_WORD.findall(code)), {})
    bound = _bound(top)
    used: dict[str, set[str]] = {}
    for table in top.get_children():
        own = table.get_name()
        # The variable that holds a lambda may be any of the cell's.
        for name in bound if own == "lambda" else bound & {own}:
            used.setdefault(name, set()).update(_mentioned(table, code))
    return Names(bound, _mentioned(top, code), used)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    waiting = [table]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        yield table


def _mentioned(table: symtable.SymbolTable, code: str) -> set[str]:
    names = {symbol.get_name() for inner in _tables(table) for symbol in inner.get_symbols()}
    return names | set(_WORD.findall(code)) if names & _MAKES_CODE else names


def _bound(top: symtable.SymbolTable) -> set[str]:
    return {
        symbol.get_name()
        for table in _tables(top)
        for symbol in table.get_symbols()
        if (table.get_type() == "module" or symbol.is_declared_global())
        and symbol.is_assigned()
        and not symbol.is_imported()
    }


@dataclass(frozen=True, slots=True)
class Restoring:
    """Plan for restoring the variables of a branch into its kernel.

    Attributes:
        rounds: The conversation.
        stored: The newest round whose state is stored; None if there is none to load.
        problem: Reason the stored state cannot be read; empty otherwise.
        is_trusted: Whether this installation wrote the stored states.
    """

    rounds: Sequence[Round]
    stored: RestorePoint | None
    problem: str
    is_trusted: bool

    @property
    def lost(self) -> list[LostVariable]:
        """The variables that will not be there; empty where nothing is stored at all."""
        return [] if self.stored is None else self.stored.lost

    @property
    def cells(self) -> set[str]:
        """Ids of the posts whose cells make the lost variables and their containers."""
        ran = list(cells_with_variables(self.rounds))
        if self.stored is None:
            return {cell.post_id for cell in ran}
        lost = self.stored.manifest.lost
        holders = {name: cell.post_id for cell in ran for name in names_in(cell.code).bound}
        made = {item.cell for item in lost} | {holders.get(item.name, "") for item in lost}
        later = cells_with_variables(self.rounds[number - 1] for number in self.stored.later)
        return (made - {""}) | {cell.post_id for cell in later}

    def lines(self) -> list[str]:
        """Describe the variables that are not restored, and the remedy, for the user."""
        if not self.is_trusted:
            return [
                "The stored variables were written by another installation, or the session's"
                " folder was copied or moved. /trust loads them (code in them runs in the"
                " sandbox), /rebuild makes them again from the cells. Code that runs before that"
                " runs without them."
            ]
        if self.stored is None:
            problem = self.problem or "No variables of this session are stored."
            count = counted(len(self.cells), "cell")
            return [f"{problem} /rebuild makes them again by running {count}."]
        lines = []
        if self.stored.later:
            numbers = ", ".join(map(str, self.stored.later))
            lines.append(
                f"The variables are those of the end of round {self.stored.number}: the state"
                f" after round {numbers} was not stored."
            )
        lost = self._descriptions()
        if lost:
            lines += [f"not restored: {line}" for line in _first(lost)]
            if self.cells:
                lines.append("/rebuild makes them again by running their cells.")
        return lines

    def note(self) -> str:
        """Describe the variables that are not restored, for the roles; empty if none is lost."""
        if self.stored is None:
            return ALL_VARIABLES_GONE
        return "\n".join(f"{VARIABLE_GONE}: {line}" for line in _first(self._descriptions()))

    def _descriptions(self) -> list[str]:
        rounds = {
            post.id: number
            for number, round_ in enumerate(self.rounds, start=1)
            for post in round_.post_list
        }
        return [_description(item, rounds.get(item.cell)) for item in self.lost]


def _description(item: LostVariable, number: int | None) -> str:
    kind = f" ({item.type})" if item.type else ""
    made = f"; made in round {number}" if number is not None else ""
    return " ".join(f"{item.name}{kind}: {item.reason}{made}".split())


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _MOST_NAMED
    return [*lines[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
