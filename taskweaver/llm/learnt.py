"""Facts learnt of models, kept for a week: the form of replies, refused parameters, the window.

Each model at each address has a file of its own in the folder of the user's state. There is no text
of a chat in it, and no key.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from taskweaver import __version__
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.utils.files import PRIVATE, PRIVATE_FOLDER, read_json, write_text
from taskweaver.utils.system.installation import state_folder

KEPT_S = 7 * 24 * 3600.0
"""Seconds after which a model is tried anew."""

MOST_TOKENS = 1 << 27
"""Largest number that is believed to be a window."""

_MAX_BYTES = 16 << 10
_MAX_NAMES = 32
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_NAMED = re.compile(r"[0-9a-f]{32}\.json")


StandIn = Literal["reasoning", "signature"]


@dataclass(frozen=True, slots=True)
class HistoryForm:
    """The form of past messages that a model takes.

    Attributes:
        has_records: Whether replies go back as they came.
        stand_ins: Fields that replies with calls get where they lack them.
        has_bridges: Whether a word of the model stands between results and a user's message.
    """

    has_records: bool = True
    stand_ins: frozenset[StandIn] = frozenset()
    has_bridges: bool = False


@dataclass(frozen=True, slots=True)
class LearntFacts:
    """Facts learnt of one model at one address. The last two are forgotten with the process.

    Attributes:
        form: Form of replies that is in force; empty for the usual one.
        response_format: Way to ask for JSON that is in force; empty for the usual one.
        dropped: Parameters that it refuses.
        renamed: Other names of parameters.
        is_effort_refused: Whether it takes tools only while it does not reason.
        efforts: Substitutes for efforts that it refuses; empty for none.
        longest_reply: Tokens of the longest reply that may be asked for; 0 where that is not known.
        window: Window that it named in a refusal; 0 without one.
        needs_responses: Whether it takes tools beside reasoning in Responses alone.
        are_images_refused: Whether it takes no images.
        reply_room: Tokens of the longest reply that had room beside a prompt; 0 for any.
        history: Form of past messages.
    """

    form: str = ""
    response_format: str = ""
    dropped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_effort_refused: bool = False
    efforts: Mapping[str, str] = field(default_factory=dict)
    longest_reply: int = 0
    window: int = 0
    needs_responses: bool = False
    are_images_refused: bool = False
    reply_room: int = 0
    history: HistoryForm = HistoryForm()


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """Learnt facts as stored.

    Attributes:
        address: Address of the model, without a user's name.
        model: Its name.
        at: Time of the newest part.
        facts: The facts.
    """

    address: str
    model: str
    at: float
    facts: LearntFacts


class LearntModel:
    """The facts learnt of one model, read once, and written when there are more. Thread-safe."""

    def __init__(self, endpoint: Endpoint | None = None) -> None:
        """Read the facts that earlier sessions learnt.

        Args:
            endpoint: The model; None to keep nothing of it.
        """
        self._lock = threading.Lock()
        self._known = LearntFacts()
        self._fixed: set[str] = set()
        self._file: Path | None = None
        folder = _folder() if endpoint else None
        if endpoint is None or folder is None:
            return
        self._address, self._model = endpoint.address, endpoint.model
        name = hashlib.sha256(f"{self._address}\n{self._model}".encode("utf-8", "replace"))
        self._file = folder / f"{name.hexdigest()[:32]}.json"
        kept = _read(self._file)
        if kept is not None and (kept.address, kept.model) == (self._address, self._model):
            self._known = kept.facts

    @property
    def known(self) -> LearntFacts:
        """The facts so far."""
        return self._known

    def fix(self, **changes: Any) -> None:
        """Set fields of `LearntFacts` in this process alone.

        These fields are not written from now on.
        """
        with self._lock:
            self._fixed |= changes.keys()
            self._known = replace(self._known, **changes)

    def note(self, **changes: Any) -> None:
        """Keep changes, given as fields of `LearntFacts`. A full disk keeps none of the changes."""
        with self._lock:
            known = replace(self._known, **changes)
            kept = {name: changes[name] for name in changes.keys() - self._fixed}
            if known == self._known:
                return
            self._known = known
            if self._file is not None and kept:
                stored = _read(self._file)  # another session may have learnt more
                facts = replace(stored.facts if stored else LearntFacts(), **kept)
                _write(self._file, self._address, self._model, facts)


def stored_facts() -> list[StoredFacts]:
    """Return the facts of all models, the newest first."""
    found = filter(None, map(_read, _files()))
    return sorted(found, key=lambda kept: kept.at, reverse=True)


def forget_models() -> int:
    """Delete the facts of all models, and return how many models had facts."""
    count = 0
    for file in _files():
        with suppress(OSError):
            file.unlink()
            count += 1
    return count


def _folder() -> Path | None:
    state = state_folder()
    return None if state is None else state / "models"


def _files() -> Iterator[Path]:
    folder = _folder()
    if folder is not None and folder.is_dir():
        yield from (file for file in sorted(folder.iterdir()) if _NAMED.fullmatch(file.name))


def _read(file: Path) -> StoredFacts | None:
    """Return the facts in a file, or None if old, of another version, or not readable."""
    try:
        value = read_json(file, _MAX_BYTES)
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.get("version") != __version__:
        return None
    at, address, model = value.get("at"), value.get("address"), value.get("model")
    if not isinstance(at, float) or not 0 <= time.time() - at <= KEPT_S:
        return None
    if not isinstance(address, str) or not isinstance(model, str):
        return None
    valid = {name: read(value.get(name)) for name, read in _KEPT.items()}
    return StoredFacts(address, model, at, LearntFacts(**valid))


def tokens_of(value: Any) -> int:
    """Return a number of tokens as servers write such numbers, or 0 for any other value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value <= MOST_TOKENS else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _names(value: Any) -> tuple[str, ...]:
    return tuple(filter(_text, value[:_MAX_NAMES])) if isinstance(value, list) else ()


def _pairs(value: Any) -> dict[str, str]:
    pairs = list(value.items())[:_MAX_NAMES] if isinstance(value, dict) else []
    return {name: other for name, other in pairs if _text(name) and other in ("", _text(other))}


_READERS: Mapping[type, Callable[[Any], Any]] = {
    str: _text,
    tuple: _names,
    dict: _pairs,
    bool: lambda value: value is True,
    int: tokens_of,
}
"""Readers of values in a file, by the type of the fact."""

_KEPT = {
    name: _READERS[type(usual)]
    for name, usual in asdict(LearntFacts()).items()
    if name not in {"reply_room", "history"}
}
"""The facts that are kept, each with the reader of its value in a file."""


def _write(file: Path, address: str, model: str, known: LearntFacts) -> None:
    """Replace a file as a whole, readable by the owner alone."""
    stamp = {"version": __version__, "at": time.time(), "address": address, "model": model}
    kept = {name: getattr(known, name) for name in _KEPT}
    text = json.dumps({**stamp, **kept})
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        write_text(file, text, mode=PRIVATE, is_synced=False)
