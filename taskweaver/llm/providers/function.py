"""A Python callable as a model: for tests, for glue, for models we know nothing of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.llm.images import after_results
from taskweaver.llm.parsing.call_pieces import CallCollector, id_seed, read_pieces
from taskweaver.llm.records import restored
from taskweaver.llm.types import Chunk, ModelRequest
from taskweaver.utils.parsing import signature_of


class FunctionService:
    """A model that is a callable.

    The callable gets the messages, and the `ModelRequest` too if it takes two arguments. It
    returns the reply as a text, an iterator of its pieces, or a message with ``content`` and
    ``tool_calls`` as endpoints return it; a piece may be such a message too. Its exceptions are
    passed on unchanged.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_request = _takes_two(function)

    @property
    def model(self) -> str:
        """Name of the callable."""
        name = getattr(self._function, "__name__", type(self._function).__name__)
        return f"function/{name}"

    def stream(self, request: ModelRequest) -> Iterator[Chunk]:
        """Answer a request.

        Raises:
            ModelError: If the callable does not return text, or the call is cancelled.
        """
        messages = after_results(restored(request.messages, ""))
        request = replace(request, messages=messages)
        arguments: tuple[Any, ...] = (request.messages,)
        if self._takes_request:
            arguments += (request,)
        self._check(request)
        reply = self._function(*arguments)
        calls = CallCollector(id_seed(request.messages))
        pieces = iter([reply]) if isinstance(reply, str | Mapping) else reply
        if not isinstance(pieces, Iterator):
            raise self._not_text(reply)
        for piece in pieces:
            self._check(request)
            yield from self._read(piece, calls)
        found = calls.finish()
        yield Chunk(finish="tool_calls" if found else "stop", calls=found)

    def close(self) -> None:
        """Nothing to release."""

    def _check(self, request: ModelRequest) -> None:
        if request.cancel.cancelled:
            raise ModelError("cancelled", "the call was given up.", self.model)

    def _read(self, piece: Any, calls: CallCollector) -> Iterator[Chunk]:
        if isinstance(piece, str):
            yield Chunk(piece)
            return
        if not isinstance(piece, Mapping) or not {"content", "tool_calls"} & piece.keys():
            raise self._not_text(piece)
        text = piece.get("content") or ""
        if not isinstance(text, str):
            raise self._not_text(text)
        yield Chunk(text, reasoning=str(piece.get("reasoning_content") or ""))
        for delta in map(calls.add, read_pieces(piece)):
            if delta is not None:
                yield Chunk(call=delta)

    def _not_text(self, value: object) -> ModelError:
        detail = f"the function returned {type(value).__name__}, not text."
        return ModelError("malformed", detail, self.model)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have none
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is p.empty and p.kind in by_place for p in parameters) == 2
