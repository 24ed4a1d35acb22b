"""Playback of recorded replies: the same request gets the same reply, without a key.

The file is a YAML list, one entry per recorded request, appended as they come. A request is
known by the hash of its messages, schema and sampling parameters, whatever model answered. The
``## Environment`` section that ends a system prompt (today's date) does not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from taskweaver.llm.base import CompletionService
from taskweaver.llm.dialects.chat import tool_option
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.call_pieces import CallCollector, read_pieces
from taskweaver.llm.records import restored
from taskweaver.llm.types import ChatMessage, Chunk, FinishReason, ModelRequest, Usage
from taskweaver.utils.files import dump_yaml, read_yaml
from taskweaver.utils.redact import redact_secrets_in

RecordedMode = Literal["record", "play", "play_or_record"]

_ENVIRONMENT = "\n## Environment"
_SHOWN_CHARS = 60


class RecordedService:
    """Playback of recorded replies, and recording of new replies in some modes. Thread-safe.

    Requests are stored with secrets masked, since they are compared by their hash and shown to
    people. Replies are stored as they came, since the code in them runs again; so the file is its
    owner's alone.
    """

    def __init__(
        self, path: Path, mode: RecordedMode, connect: Callable[[], CompletionService]
    ) -> None:
        """Read the recordings when the first call needs a recording.

        Args:
            path: The file; made when the first reply is recorded.
            mode: Ask and record, play back only, or play back and record misses.
            connect: Makes the service that is asked when something is to be recorded.
        """
        self._path = path
        self._mode = mode
        self._connect = connect
        self._lock = threading.Lock()
        self._recordings: dict[str, dict[str, Any]] | None = None
        self._inner: CompletionService | None = None

    @property
    def model(self) -> str:
        """``recorded/`` and the name of the file."""
        return f"recorded/{self._path.name}"

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request from the recordings, or record the answer.

        Raises:
            ModelError: Of kind ``recording_miss``, if it must be played back and was never
                recorded; ``configuration``, if the file cannot be read or written; others when
                recording.
        """
        form = canonical(request)
        key = hashlib.sha256(_json(form).encode("utf-8", "replace")).hexdigest()
        recording = self._load().get(key) if self._mode != "record" else None
        if recording is not None:
            yield from _play(recording)
        elif self._mode == "play":
            raise self._miss(form)
        else:
            yield from self._record(request, key, form)

    def close(self) -> None:
        """Release the service that was asked."""
        if self._inner is not None:
            self._inner.close()

    def _load(self) -> dict[str, dict[str, Any]]:
        with self._lock:
            if self._recordings is None:
                self._recordings = self._read() if self._path.exists() else {}
            return self._recordings

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            entries = read_yaml(self._path)
            return {entry["key"]: _checked(entry) for entry in entries or ()}
        except (OSError, ValueError, TypeError, KeyError) as error:
            detail = f"{self._path} does not hold recordings: {error}"
            raise ModelError("configuration", detail, self.model) from error

    def _record(self, request: ModelRequest, key: str, form: dict[str, Any]) -> Iterator[Chunk]:
        with self._lock:
            self._inner = self._inner or self._connect()
        texts: list[str] = []
        last = Chunk()
        for chunk in self._inner.stream(request):
            if chunk.begins_again:
                texts.clear()
            texts.append(chunk.text)
            last = chunk
            yield chunk
        reply: dict[str, Any] = {"text": "".join(texts), "finish": last.finish}
        if last.calls:
            reply["calls"] = [call.to_dict() for call in last.calls]
        if last.usage is not None:
            reply["prompt_tokens"] = last.usage.prompt_tokens
            reply["completion_tokens"] = last.usage.completion_tokens
        told = redact_secrets_in(json.loads(_json(form)))
        self._append({"key": key, "model": self._inner.model, "request": told, "reply": reply})

    def _append(self, entry: dict[str, Any]) -> None:
        recordings = self._load()
        with self._lock:
            recordings[entry["key"]] = entry
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                text = dump_yaml([entry]).encode("utf-8", "replace")
                file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with os.fdopen(file, "wb") as out:
                    out.write(text)
            except (OSError, ValueError) as error:
                detail = f"{self._path} cannot be written: {error}"
                raise ModelError("configuration", detail, self.model) from error

    def _miss(self, form: dict[str, Any]) -> ModelError:
        told = redact_secrets_in(json.loads(_json(form)))
        near = [_difference(told, entry["request"]) for entry in self._load().values()]
        shown = max(near)[1] if near else "it holds no recordings"
        detail = f"{self._path} has no reply to this request; {shown}."
        hint = "Record it with llm.recorded.mode play_or_record."
        return ModelError("recording_miss", detail, self.model, hint)


def canonical(request: ModelRequest) -> dict[str, Any]:
    """Return the identity of a request, as plain data. Tools count only where there are tools.

    Ids of calls are made anew in each session, and records are of one endpoint: calls are numbered
    instead, and records left out.
    """
    offered = {"tools": tool_option(request.tools), "tool_choice": request.tool_choice}
    return {
        "messages": _told(restored(request.messages, "")),
        "schema": request.schema,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "top_p": request.top_p,
        "stop": list(request.stop) if request.stop is not None else None,
        "extra": dict(request.extra),
        **(offered if request.tools else {}),
        **({"reasoning_effort": effort} if (effort := request.reasoning_effort) else {}),
    }


def _told(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    numbers: dict[str, str] = {}
    found = []
    for message in messages:
        content = message["content"]
        if message["role"] == "system" and isinstance(content, str):
            content = content.partition(_ENVIRONMENT)[0]
        told: dict[str, Any] = {**message, "content": content}
        told.pop("is_error", None)  # its text says so
        if "tool_calls" in message:
            told["tool_calls"] = [_numbered(call, numbers) for call in message["tool_calls"]]
        if "tool_call_id" in message:
            told["tool_call_id"] = numbers.get(message["tool_call_id"], message["tool_call_id"])
        found.append(told)
    return found


def _numbered(call: Mapping[str, Any], numbers: dict[str, str]) -> dict[str, Any]:
    number = numbers.setdefault(str(call.get("id")), f"call {len(numbers) + 1}")
    return {**call, "id": number}


def _json(form: Any) -> str:
    return json.dumps(form, sort_keys=True, ensure_ascii=True, default=str)


def _checked(entry: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(entry["reply"]["text"], str) or "messages" not in entry["request"]:
        raise ValueError(f"the entry {entry['key']!r} has no reply")
    if not isinstance(entry["reply"].get("calls", []), list):
        raise ValueError(f"the calls of the entry {entry['key']!r} are no list")
    return entry


def _play(recording: dict[str, Any]) -> Iterator[Chunk]:
    reply = recording["reply"]
    if reply["text"] or not reply.get("calls"):
        yield Chunk(reply["text"])
    collector = CallCollector(recording["key"])
    for piece in read_pieces({"tool_calls": reply.get("calls", [])}):
        delta = collector.add(piece)
        if delta is not None:
            yield Chunk(call=delta)
    usage = None
    if "prompt_tokens" in reply:
        usage = Usage(reply["prompt_tokens"], reply["completion_tokens"], calls=1)
    finish = cast("FinishReason", reply.get("finish") or "stop")
    yield Chunk("", finish, usage, calls=collector.finish())


def _difference(asked: dict[str, Any], known: dict[str, Any]) -> tuple[tuple[int, int], str]:
    """Return how far two requests agree, and the first difference in words."""
    for at, (mine, theirs) in enumerate(zip(asked["messages"], known["messages"], strict=False)):
        if mine != theirs:
            mine_text, theirs_text = str(mine["content"]), str(theirs["content"])
            same = len(os.path.commonprefix([mine_text, theirs_text]))  # noqa: RUF071 - no paths
            begin = max(same - 20, 0)
            return (at, same), (
                f"the nearest differs in message {at + 1} ({mine['role']}) at character {same + 1}:"
                f" {mine_text[begin : same + _SHOWN_CHARS]!r} is asked,"
                f" {theirs_text[begin : same + _SHOWN_CHARS]!r} was recorded"
            )
    count = min(len(asked["messages"]), len(known["messages"]))
    if len(asked["messages"]) != len(known["messages"]):
        words = f"{len(asked['messages'])} messages are asked, {len(known['messages'])} recorded"
        return (count, 0), f"the nearest agrees as far as it goes: {words}"
    names = [name for name in asked if asked[name] != known.get(name)]
    return (count, 1), f"the nearest differs in {', '.join(names) or 'nothing that is shown'}"
