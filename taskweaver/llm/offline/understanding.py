"""From words to a request that can be carried out, or to a question back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from taskweaver.llm.offline.columns import candidates, plain, singular
from taskweaver.llm.offline.conditions import Filter
from taskweaver.llm.offline.grammar import (
    FOLLOW_UP,
    NEEDS_COLUMNS,
    NEEDS_FILE,
    Request,
    file_in,
    merge,
    names_file,
    parse,
)
from taskweaver.llm.offline.loading import is_database, split_table
from taskweaver.llm.offline.reading import Said, Table

_NUMBERS = ("int", "float", "Int", "Float", "uint")
_DATES = ("datetime",)
_TEXTS = ("str", "object", "category")
_NUMERIC = {"mean", "sum", "median", "std", "min", "max"}
_COMPUTED = {"aggregate", "plot", "top", "filter", "correlate", "distinct", "outliers"}


@dataclass(frozen=True, slots=True)
class Ready:
    """The request can be carried out."""

    request: Request


@dataclass(frozen=True, slots=True)
class Look:
    """A file has to be looked at first."""

    file: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The user has to be asked; `word` is what was not clear."""

    question: str
    word: str = ""


Understanding = Ready | Look | Ask


def understand(said: Sequence[Said], known: Mapping[str, Table]) -> Understanding:
    """Understand the newest words of the user, in the light of the earlier ones."""
    previous: Request | None = None
    words = ""
    request = Request("unknown")
    for index, item in enumerate(said):
        if item.sender == "summary":
            files = [file_in(line) for line in item.text.splitlines() if file_in(line)]
            previous = Request("help", files[-1]) if files else None
        if item.sender not in {"User", ""}:
            continue
        words = _completed(item.text, words, said[:index])
        request = _read(words, previous, known)
        if request.kind != "unknown":
            before = previous.file if previous else ""
            previous = replace(request, file=request.file or before)
    return _resolve(request, words, known)


def _completed(text: str, words: str, before: Sequence[Said]) -> str:
    """Return the user's words; an answer to our question is put into the words it was about."""
    last = next((item for item in reversed(before) if item.sender == "me"), None)
    if last is None or last.fields.get("stop") != "Clarification" or not words:
        return text
    asked = re.search(r"`([^`]+)`", last.fields.get("message", ""))
    answer = text.strip().strip("`'\".!")
    if len(answer.split()) > 5 or file_in(text):
        return text
    if asked and re.search(rf"\b{re.escape(asked[1])}\b", words):
        return re.sub(rf"`?\b{re.escape(asked[1])}\b`?", lambda _: f"`{answer}`", words, count=1)
    return f"{words} of `{answer}`"


def _read(words: str, previous: Request | None, known: Mapping[str, Table]) -> Request:
    last = next(reversed(list(known)), "")
    before = previous.file if previous else ""
    spoken = (name for name in known if re.search(names_file(name), words))
    named = max(spoken, key=len, default="")
    file = named or file_in(words) or (before if before in known else last or before)
    table = _table(file, words, known)
    request = parse(words, tuple(table.columns) if table else (), files=tuple(known))
    if request.kind == "sql":
        return replace(request, file=split_table(file)[0])
    if request.kind in NEEDS_FILE | {"unknown"}:
        request = replace(request, file=table.file if table else file)
    if previous is None or previous.kind not in _COMPUTED or file_in(words):
        return request
    is_part = request.kind in {"unknown", "head"} or not request.columns
    if (
        FOLLOW_UP.search(words)
        and is_part
        and request.kind not in {"code", "sql", "arithmetic", "help"}
    ):
        return replace(merge(previous, request), file=previous.file)
    return request


def _table(file: str, words: str, known: Mapping[str, Table]) -> Table | None:
    """Return what is known of a file; of a database, the table the words name."""
    table = known.get(file)
    if table is None or not table.tables:
        return table
    named = [
        name
        for name in table.tables
        if re.search(rf"\b{re.escape(singular(name.lower()))}s?\b", words.lower())
    ]
    names = named or (list(table.tables) if len(table.tables) == 1 else [])
    if len(names) == 1:
        return known.get(f"{file}#{names[0]}", Table(f"{file}#{names[0]}"))
    return table


def _resolve(request: Request, words: str, known: Mapping[str, Table]) -> Understanding:
    if request.kind in NEEDS_FILE | {"sql"} and not request.file:
        return Ask("Which file do you mean? Name one in the data folder, or add one with /load.")
    if request.kind == "unknown" and file_in(words) and request.file not in known:
        return Look(request.file)  # it may make sense once the columns are known
    if request.kind not in NEEDS_FILE:
        return Ready(request)
    table = known.get(request.file)
    if table is None:
        is_whole = is_database(request.file) and not split_table(request.file)[1]
        needs_look = is_whole or request.kind in NEEDS_COLUMNS or bool(request.columns)
        needs_look = needs_look or request.kind == "describe"
        return Look(request.file) if needs_look else Ready(request)
    if table.tables and request.kind != "columns":
        names = ", ".join(f"`{name}`" for name in table.tables)
        return Ask(f"`{request.file}` holds several tables: {names}. Which one do you mean?")
    return _with_columns(request, words, table)


def _with_columns(request: Request, words: str, table: Table) -> Understanding:
    """Put exact columns where words or nothing stand."""
    for word in request.unknown:
        found = candidates(word, table.columns)
        if len(found) != 1:
            return _which(word, found, table)
        again = re.sub(rf"\b{re.escape(word)}\b", _verbatim(f"`{found[0]}`"), words, count=1)
        fresh = parse(again, tuple(table.columns), files=(table.file,))
        if word in fresh.unknown:
            return _which(word, [], table)
        merged = replace(fresh, file=request.file)
        return _with_columns(merged, again, table)
    default = ("mean",) if request.columns else ("count",)
    if request.kind == "aggregate":
        request = replace(request, functions=request.functions or default)
    request = replace(request, filters=_implied(request, words, table))
    if request.period or any(item.operator == "year" for item in request.filters):
        dates = table.of_type(*_DATES)
        first = request.by[0] if request.by and request.by[0] in dates else None
        if first is None and len(dates) != 1:
            return _which("date", dates, table)
        request = _dated(request, first or dates[0])
    texts = _texts_to_compute(request, table)
    if texts:
        return _no_numbers(texts, request, table)
    return _with_values(request, table)


def _texts_to_compute(request: Request, table: Table) -> list[str]:
    """Return the columns that hold text where numbers are computed with."""
    is_drawn = request.kind == "plot" and request.chart in {"hist", "box", "scatter"}
    is_numeric = request.kind in {"correlate", "outliers"} or is_drawn
    if not is_numeric and not set(request.functions) & _NUMERIC:
        return []
    values = request.columns[-1:] if request.kind == "top" else request.columns
    return [name for name in values if table.columns.get(name, "int").startswith(_TEXTS)]


def _no_numbers(texts: list[str], request: Request, table: Table) -> Ask:
    numbers = [name for name in table.of_type(*_NUMBERS) if name not in texts]
    others = f"Numbers are in {_listed(numbers)}." if numbers else "No column holds numbers."
    what = "hold text" if len(texts) > 1 else "holds text"
    functions = ", ".join(request.functions) or "computing"
    return Ask(f"{_listed(texts)} {what}, not numbers, so there is no {functions}. {others}")


def _verbatim(text: str) -> Callable[[re.Match[str]], str]:
    """Return a replacement that takes `text` as it is, backslashes included."""
    return lambda _: text


def _with_values(request: Request, table: Table) -> Understanding:
    """Find the column to compute with, where none was named."""
    needs = request.kind in {"plot", "outliers", "distinct", "top"} or (
        request.kind == "aggregate" and set(request.functions) - {"count"}
    )
    if not needs or request.columns or (request.kind == "plot" and request.by):
        return Ready(request)
    numbers = [name for name in table.of_type(*_NUMBERS) if name not in request.by]
    if len(numbers) == 1:
        return Ready(replace(request, columns=(numbers[0],)))
    return Ask(f"Which column do you mean? There are {_listed(numbers or list(table.columns))}.")


def _dated(request: Request, date: str) -> Request:
    filters = tuple(
        replace(item, column=item.column or date) if item.operator == "year" else item
        for item in request.filters
    )
    others = tuple(name for name in request.by if name != date)
    columns = tuple(name for name in request.columns if name != date)
    by = (date, *others) if request.period else request.by
    return replace(request, by=by, columns=columns, filters=filters)


def _implied(request: Request, words: str, table: Table) -> tuple[Filter, ...]:
    """Spell the values of conditions as the data does; add those that are only named."""
    filters = []
    for item in request.filters:
        spelling = {repr(v.lower()): repr(v) for v in table.values.get(item.column, [])}
        filters.append(replace(item, value=spelling.get(item.value.lower(), item.value)))
    taken = {item.column for item in filters} | set(request.by) | set(request.columns)
    spoken = {plain(word) for word in re.findall(r"[^\W_]+(?:[ -][^\W_]+)?", words)} | {
        plain(word) for word in re.findall(r"[^\W_]+", words)
    }
    for column, values in table.values.items():
        named = [value for value in values if len(value) > 2 and plain(value) in spoken]
        if column not in taken and len(named) == 1 and request.kind in _COMPUTED:
            filters.append(Filter(column, "==", repr(named[0])))
    return tuple(dict.fromkeys(filters))


def _which(word: str, found: Sequence[str], table: Table) -> Ask:
    if found:
        return Ask(f"`{word}` could be {_listed(list(found), 'or')}. Which one do you mean?", word)
    columns = _listed(list(table.columns))
    return Ask(
        f"There is no column `{word}` in {table.file}. There are {columns}. Which one?", word
    )


def _listed(names: list[str], joint: str = "and") -> str:
    quoted = [f"`{name}`" for name in names[:30]]
    if len(names) > 30:
        quoted.append("...")
    return f" {joint} ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
