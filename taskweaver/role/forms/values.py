"""Values in a reply: arguments of calls, code of cells, plans, and names of roles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Any

from taskweaver.llm.parsing.call_pieces import as_json
from taskweaver.llm.types import ToolCall
from taskweaver.role.forms.offer import ActionOffer
from taskweaver.utils.parsing import compiles, json_value

_ESCAPED = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|\\(?P<escape>[nt])""", re.DOTALL
)
_BREAKS = {"n": "\n", "t": "\t"}
_EMPTY = {"", "none", "n/a", "null", "empty"}
_MARKS = " \n\"'()[]{}<>.-"
_FILLER = re.compile(
    r"[\s\"'(\[<]*(?:none|nil|null|n/?a|empty|unused|nothing"
    r"|(?:none?|not|nothing|no \w+) (?:\w+ )?"
    r"(?:needed|used|required|necessary|available|applicable)"
    r")[\s\"')\]>.]*|[\d\W]+",
    re.IGNORECASE,
)

EMPTY_REPLY = "The reply was empty."
"""The problem of a reply that holds nothing."""


def call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; a single value, or a text that is no JSON, is its code.

    Raises:
        ValueError: If they cannot be read.
    """
    value = json_value(as_json(call.arguments))
    if isinstance(value, dict):
        return value
    if value is None and call.arguments.lstrip().startswith(("{", "[")):
        raise ValueError(f"The arguments of {call.name} are no JSON object: {call.arguments[:120]}")
    return {"code": call.arguments if value is None else str(value)}


def text_of(arguments: Mapping[str, Any], name: str) -> str:
    """Return a text argument.

    Raises:
        ValueError: If it is missing or empty.
    """
    text = str(arguments.get(name) or "").strip()
    if not text:
        raise ValueError(f"{name} is missing or empty.")
    return text


def words_of(arguments: Mapping[str, Any], name: str) -> str:
    """Return a text argument, also where it has another name and is the only one.

    Raises:
        ValueError: As `text_of`.
    """
    texts = [value for value in arguments.values() if isinstance(value, str)]
    is_other = not arguments.get(name) and len(texts) == 1
    return text_of({name: texts[0]} if is_other else arguments, name)


def only_text(arguments: Mapping[str, Any]) -> str:
    """Return the one text of a call whose argument has another name.

    Raises:
        ValueError: If there are none or several.
    """
    texts = [value for value in arguments.values() if isinstance(value, str)]
    if len(texts) != 1:
        raise ValueError("code is missing or empty.")
    return texts[0]


def plan_text(steps: object) -> str:
    """Return a plan as numbered lines, one a step."""
    if not isinstance(steps, list):
        return str(steps).strip()
    lines = [str(step).strip() for step in steps]
    return "\n".join(
        line if re.match(r"\d+[.)]", line) else f"{number}. {line}"
        for number, line in enumerate(lines, start=1)
    )


def plan_field(text: str) -> str:
    """Return the plan in a field, which some models write as a list."""
    steps = json_value(text) if text.lstrip().startswith("[") else None
    return plan_text(text if steps is None else steps)


def receiver(name: str, offer: ActionOffer) -> str:
    """Return the alias that a model means by a name, whatever its case, blanks and underscores.

    Raises:
        ValueError: If it means none.
    """
    known = {folded(alias): alias for alias in offer.recipients}
    found = known.get(folded(name))
    if found is None:
        raise ValueError(f"send_to is {name!r}, and must be one of {', '.join(offer.recipients)}.")
    return found


def is_yes(value: object) -> bool:
    """Return whether a value means yes, as a boolean or as a word."""
    return str(value).strip().lower() in {"true", "yes", "1"}


def folded(name: str) -> str:
    """Return a name in lower case, without blanks and underscores."""
    return re.sub(r"[\W_]+", "", name).lower()


def cell_code(code: str) -> str:
    """Return the code of a cell without a fence and a uniform indent.

    Raises:
        ValueError: If there is none.
    """
    match = re.match(r"\A\s*(`{3,})[\w+-]*\n(.*?)\n?\1\s*\Z", code, re.DOTALL)
    code = dedent(match[2] if match else code).strip("\n")
    if not code.strip():
        raise ValueError("code is missing or empty.")
    if "\n" in code or "\\" not in code or compiles(code):
        return code
    return next(filter(compiles, _decoded(code)), code)


def _decoded(code: str) -> Iterator[str]:
    """Yield readings of code whose line breaks are escaped: outside of texts, once, everywhere."""
    yield _ESCAPED.sub(lambda match: match["text"] or _BREAKS[match["escape"]], code)
    yield re.sub(r'\\([nt"\\])', lambda match: _BREAKS.get(match[1], match[1]), code)
    yield code.replace("\\n", "\n").replace("\\t", "\t")


def is_empty(text: str) -> bool:
    """Return whether a text in a field is nothing, or a word for nothing."""
    return text.strip(_MARKS).lower() in _EMPTY


def is_filler(text: str) -> bool:
    """Return whether a text in a field says that the field is not used."""
    return _FILLER.fullmatch(text) is not None


def is_prose(text: str) -> bool:
    """Return whether a text is words: neither it nor its first line is Python code."""
    first, _, _ = text.strip().partition("\n")
    return not (compiles(text) or compiles(first) or compiles(f"{first}\n    pass"))
