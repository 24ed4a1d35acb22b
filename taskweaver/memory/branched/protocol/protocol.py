"""Operations of a model on the memory, in one table.

From the table come the checks, the order of execution, the instructions for prompts and the
documentation, so that none of them can drift from the others. The names of the operations are names
of functions too, so a model may write the arguments of the call:
``{"mem_core_set": {"key": "best", "value": "8"}}`` in place of ``{"core": {"best": "8"}}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from taskweaver.memory.branched import values
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.tiers.recall import text_in
from taskweaver.memory.branched.values import fields_of

Step = Literal["write", "read", "maintain"]
Check = Callable[[str, Any], Any]
DEFAULT_IMPORTANCE = 4
"""Of a key a model writes."""
_TIMES = ("valid_from", "valid_to")
_FUNCTIONS = {
    "core": "mem_core_set",
    "core_delete": "mem_core_del",
    "archival": "mem_archival_write",
    "recall": "mem_recall_append",
}
"""Functions of the original that do not have the name of their operation after ``mem_``."""


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """One operation of a block.

    Attributes:
        name: Its name; the name of its function is accepted too.
        step: Writes are done first, then reads, then maintenance.
        check: Brings the value that a model wrote to one form, or raises `InvalidUpdate`.
        example: How to write it, as JSON.
        doc: Its effect.
    """

    name: str
    step: Step
    check: Check
    example: str
    doc: str

    @property
    def names(self) -> tuple[str, str]:
        """Name of the operation, and name of the function."""
        return self.name, _FUNCTIONS.get(self.name, f"mem_{self.name}")


def _core(path: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, Mapping):
        given = [
            (key, dict(item) if isinstance(item, Mapping) and "value" in item else {"value": item})
            for key, item in value.items()
        ]
    elif isinstance(value, list) and value:
        parts = [fields_of(f"{path}[{n}]", item, ENTRY_FIELDS) for n, item in enumerate(value)]
        given = [(part.pop("key", None), part) for part in parts]
    else:
        raise InvalidUpdate(path, 'must be an object of keys and values like {"threads": "8"}')
    entries: dict[str, dict[str, Any]] = {}
    for key, item in given:
        entry = _entry(path, key, item)
        if entry["key"] in entries:
            raise InvalidUpdate(f"{path}.{key}", "is set twice; write each key once")
        entries[entry["key"]] = entry
    return list(entries.values())


def _entry(path: str, key: object, fields: Mapping[str, Any]) -> dict[str, Any]:
    where = f"{path}.{key}"
    value = fields.get("value")
    if value is None:
        raise InvalidUpdate(where, "must not be null; use core_delete to remove a key")
    given = fields.get("importance")
    return {
        "key": values.name(where, key),
        "value": values.json_text(where, value)
        if isinstance(value, Mapping | list)
        else values.checked_text(where, value, may_be_empty=True),
        "importance": values.importance(
            f"{where}.importance", DEFAULT_IMPORTANCE if given is None else given
        ),
        "ttl": values.ttl(f"{where}.ttl", fields.get("ttl")),
    }


def _names(path: str, value: Any) -> list[str]:
    items = _listed(path, value, str, 'a list of keys like ["key"]')
    return [values.name(f"{path}[{n}]", item) for n, item in enumerate(items)]


def _listed(path: str, value: Any, alone: type, form: str) -> list[Any]:
    """Return a list, or the list of a single value. `form` is the expected form, for errors."""
    items = [value] if isinstance(value, alone) else value
    if not isinstance(items, list):
        raise InvalidUpdate(path, f"must be {form}")
    return items


def _records(path: str, value: Any) -> list[dict[str, Any]]:
    form = 'a list like [{"text": "...", "tags": ["TAG"]}]'
    records = []
    for n, item in enumerate(_listed(path, value, Mapping, form)):
        fields = fields_of(f"{path}[{n}]", item, {"text", "tags", "meta", "replaces", *_TIMES})
        fields["text"] = values.checked_text(f"{path}[{n}].text", fields.get("text"))
        fields["replaces"] = _ids(f"{path}[{n}].replaces", fields.get("replaces") or [])
        fields |= _times(f"{path}[{n}]", fields)
        records.append({**fields, "tags": _tags(f"{path}[{n}].tags", fields.get("tags"))})
    return records


def _times(path: str, fields: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        name: values.moment(f"{path}.{name}", fields[name]) for name in _TIMES if name in fields
    }


def _changes(path: str, value: Any) -> list[dict[str, Any]]:
    changes = []
    for n, item in enumerate(
        _listed(path, value, Mapping, 'a list like [{"id": 7, "text": "..."}]')
    ):
        fields = fields_of(f"{path}[{n}]", item, {"id", "text", "tags", "meta", "valid_to"})
        fields["id"] = values.whole(f"{path}[{n}].id", fields.get("id"))
        if fields.get("tags") is not None:
            fields["tags"] = _tags(f"{path}[{n}].tags", fields["tags"])
        fields |= _times(f"{path}[{n}]", fields)
        if not any(fields[name] is not None for name in fields if name != "id"):
            raise InvalidUpdate(
                f"{path}[{n}]", "changes nothing: give text, tags, meta or valid_to"
            )
        changes.append(fields)
    return changes


def _ids(path: str, value: Any) -> list[int]:
    items = value if isinstance(value, list) else [value]
    numbers = [values.whole(f"{path}[{n}]", item) for n, item in enumerate(items)]
    return list(dict.fromkeys(numbers))


def _search(path: str, value: Any) -> dict[str, Any]:
    is_tagged = path == "archival_search"
    fields = {"query": value} if isinstance(value, str) else value
    fields = fields_of(path, fields, {"query", "k", *(["tags"] if is_tagged else [])})
    query = values.checked_text(f"{path}.query", fields.get("query") or "", may_be_empty=True)
    k = values.whole(f"{path}.k", 10 if fields.get("k") is None else fields["k"], least=1)
    tags = {"tags": _tags(f"{path}.tags", fields.get("tags"))} if is_tagged else {}
    return {"query": query, "k": min(k, 100), **tags}


def _event(path: str, value: Any) -> list[dict[str, Any]]:
    items = [value] if isinstance(value, Mapping) else value
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise InvalidUpdate(path, 'must be an object like {"kind": "...", "content": "..."}')
    for n, item in enumerate(items):
        values.checked_text(f"{path}[{n}].content", text_in(item))
        if "kind" in item:
            values.name(f"{path}[{n}].kind", item["kind"])
    return [{"kind": "llm_insight", **item} for item in items]


def _eviction(path: str, value: Any) -> dict[str, Any]:
    fields = fields_of(path, value, {"ids", "kind", "oldest"})
    ids = fields.get("ids") or []
    if not isinstance(ids, list):
        raise InvalidUpdate(f"{path}.ids", "must be a list of event numbers")
    kind = fields.get("kind")
    return {
        "ids": _ids(f"{path}.ids", ids),
        "kind": None if kind is None else values.name(f"{path}.kind", kind),
        "oldest": values.whole(f"{path}.oldest", fields.get("oldest") or 0),
    }


def _wish(path: str, value: Any) -> bool:
    if not isinstance(value, bool | Mapping):
        raise InvalidUpdate(path, "must be true")
    return value is not False


def _tags(path: str, value: Any) -> list[str]:
    items = [value] if isinstance(value, str) else value or []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidUpdate(path, 'must be a list of texts like ["TAG"]')
    return [item.strip() for item in items if item.strip()]


OPERATIONS: tuple[MemoryOperation, ...] = (
    MemoryOperation(
        "core",
        "write",
        _core,
        '{"best_flags": "-O3", "batch": {"value": "64", "importance": 5, "ttl": "2h"}}',
        "Set keys that every prompt shows. Importance 1 to 5 (4 when not given; 5 is never"
        " evicted); `ttl` in seconds, or like 30m, 2h, 7d.",
    ),
    MemoryOperation(
        "core_delete",
        "write",
        _names,
        '["old_key"]',
        "Hide keys from here on; ancestors keep theirs.",
    ),
    MemoryOperation(
        "archival",
        "write",
        _records,
        '[{"text": "8 threads are twice as fast as 4", "tags": ["PERFORMANCE"]}]',
        "Keep something for the long term; it is found by search. Name records that are no longer"
        ' true, by the id after #: "replaces": [7]. It can have "valid_from" and "valid_to", days.',
    ),
    MemoryOperation(
        "archival_update",
        "write",
        _changes,
        '[{"id": 7, "text": "..."}]',
        "Give a record another text or other tags, or end it with `valid_to`; the id is the number"
        " after #.",
    ),
    MemoryOperation(
        "archival_delete",
        "write",
        _ids,
        "[7]",
        "Hide records from here on, by the id after #; ancestors keep theirs.",
    ),
    MemoryOperation(
        "recall",
        "write",
        _event,
        '{"kind": "discovery", "content": "what happened"}',
        "Note an event.",
    ),
    MemoryOperation(
        "recall_evict",
        "write",
        _eviction,
        '{"oldest": 3}',
        "Move events to archival memory: the `oldest` N, all of a `kind`, or by `ids` (after #).",
    ),
    MemoryOperation(
        "recall_delete",
        "write",
        _ids,
        "[12]",
        "Hide events from here on, by the number after #, without keeping them.",
    ),
    MemoryOperation("core_get", "read", _names, '["key"]', "Read keys."),
    MemoryOperation(
        "archival_search",
        "read",
        _search,
        '{"query": "linker error", "k": 5, "tags": ["ERROR"]}',
        "Search archival memory; `tags` must all be there.",
    ),
    MemoryOperation(
        "recall_search",
        "read",
        _search,
        '{"query": "timeout", "k": 10}',
        "Search all events, those summed up too.",
    ),
    MemoryOperation("recall_summarize", "maintain", _wish, "true", "Sum old events up."),
    MemoryOperation(
        "consolidate",
        "maintain",
        _wish,
        "true",
        "Make room: archive unimportant keys, sum old events up.",
    ),
)
_BY_NAME = {name: op for op in OPERATIONS for name in op.names}


def check_updates(updates: object) -> dict[str, Any]:
    """Bring a block to one form: names of `OPERATIONS`, in their order, without null values.

    Raises:
        InvalidUpdate: If anything in it is wrong; the text has a line for each thing.
    """
    if not isinstance(updates, Mapping):
        raise InvalidUpdate("memory_update", "must be an object of operations")
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in updates.items():
        operation = _BY_NAME.get(name) if isinstance(name, str) else None
        if operation is None:
            known = ", ".join(op.name for op in OPERATIONS)
            problems.append(f"{name}: no such operation; there are {known}")
        elif value is None:
            continue
        elif operation.name in found:
            problems.append(f"{name}: given twice, as {operation.name} too")
        else:
            try:
                written = without_call(operation.name, name, value)
                found[operation.name] = operation.check(operation.name, written)
            except InvalidUpdate as error:
                problems.append(str(error))
    if problems:
        raise InvalidUpdate("memory_update", "\n".join(["nothing was applied.", *problems]))
    return {op.name: found[op.name] for op in OPERATIONS if op.name in found}


def has_reads(updates: Mapping[str, Any]) -> bool:
    """Return whether a checked block asks for something."""
    return any(_BY_NAME[name].step == "read" for name in updates)


_USUAL = ("core", "core_delete", "archival", "archival_update")
_USUAL_READS = ("core_get", "archival_search", "recall_search")


def brief_instructions(*, reads: int = 1) -> str:
    """Return the instructions of a prompt for a block that may be left out, in few words.

    They show the usual operations; all are accepted. A reply may read `reads` more times.
    """
    usual = {op.name: op.example for op in OPERATIONS}
    fields = ", ".join(f'"{name}": {usual[name]}' for name in _USUAL)
    text = (
        "Before or after your reply you may add one block, with one or more of these operations:\n"
        f"<memory_update>\n{{{fields}}}\n</memory_update>\n"
        "Core keys stand in every prompt, archival records are found by search. Keep parameters,"
        " limits and lessons with the numbers that show them, for attempts made from this one; not"
        " figures and errors, which are recorded anyway."
    )
    if reads <= 0:
        return text
    asks = ", ".join(f'"{name}": {usual[name]}' for name in _USUAL_READS)
    return f"{text} To read first, send a block with {asks} alone; you are asked again."


def instructions(*, is_required: bool = False, reads: int = 1) -> str:
    """Return the instructions of a prompt for the operations, of a block that `is_required` or not.

    A reply may read `reads` more times; without any, reading is not mentioned.
    """
    where = (
        "Begin your reply with exactly one <memory_update> block; {} is allowed."
        if is_required
        else "You may add one <memory_update> block before or after your reply."
    )
    times = "once" if reads == 1 else f"at most {reads} times"
    writes, asks, upkeep = (
        [f'- "{op.name}": {op.example}\n  {op.doc}' for op in OPERATIONS if op.step == step]
        for step in ("write", "read", "maintain")
    )
    reading = [
        "To read, when you need more than is shown. The rest of a reply that reads is not used: you"
        " are asked the same again, with what was found, and then give your whole reply. What the"
        f" block wrote is kept; do not write it again. You may read {times}.",
        *asks,
    ]
    return "\n".join(
        [
            f"{where} It holds one JSON object with any of these operations; all are applied, or"
            " none if one is wrong.",
            *writes,
            *upkeep,
            *(reading if reads > 0 else ()),
            "Keep parameters, best configurations, limits and lessons with the numbers that show"
            " them. Do not keep what the system records by itself (errors, metrics), large data,"
            " or common knowledge. A block looks like this:",
            "<memory_update>",
            '{"core": {"optimal_threads": "8"}, "archival": [{"text": "8 threads 2.1 s, 4 threads'
            ' 3.9 s", "tags": ["PERFORMANCE"]}]}',
            "</memory_update>",
        ]
    )


ENTRY_FIELDS = frozenset({"key", "value", "importance", "ttl"})
"""Arguments of ``mem_core_set``."""

_ONLY_ARGUMENTS = {
    "core_delete": ("key", "keys"),
    "core_get": ("keys", "key"),
    "recall": ("event",),
    "archival_delete": ("record_id", "id", "ids"),
    "recall_delete": ("event_id", "id", "ids"),
}


def without_call(name: str, given_as: str, value: Any) -> Any:
    """Return an operation in the form of a block: the value of a name.

    Raises:
        InvalidUpdate: If it may as well be a call as not.
    """
    if not isinstance(value, Mapping):
        return value
    if name == "core":
        return _written_entry(name, given_as, value)
    if name == "archival_update" and "record_id" in value and "id" not in value:
        return {"id": value["record_id"], **{k: v for k, v in value.items() if k != "record_id"}}
    for argument in _ONLY_ARGUMENTS.get(name, ()):
        if set(value) == {argument}:
            return value[argument]
    return value


def _written_entry(path: str, given_as: str, value: Mapping[str, Any]) -> Any:
    """Return core updates. One entry with a `key` and a `value` becomes a list, or is refused."""
    if "value" not in value or not isinstance(value.get("key"), str):
        return value
    if given_as != path and ENTRY_FIELDS.issuperset(value):
        return [value]
    raise InvalidUpdate(
        path,
        'has the keys "key" and "value". Write {"NAME": "VALUE"} to set the key NAME; to set keys'
        ' with these very names, write {"key": {"value": "..."}, "value": {"value": "..."}}',
    )
