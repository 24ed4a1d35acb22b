"""Values of JSON texts, and syntax trees of Python source.

Trees are built by one thread at a time where CPython requires that.

CPython 3.11.0 to 3.11.7 keep the recursion depth of the conversion to `ast` objects in one place
for all threads, and a garbage collection in it lets other threads run. A second conversion then
fails with ``SystemError: AST constructor recursion depth mismatch``
(https://github.com/python/cpython/issues/106905). Code of this package that runs outside of kernels
calls these functions instead of `ast.parse`, `ast.literal_eval` and `inspect.signature`.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

NEEDS_LOCK = sys.version_info < (3, 11, 8)
"""Whether this interpreter has the defect."""

# A collection inside a conversion can run code that parses, in the same thread: hence reentrant.
_CONVERSIONS: AbstractContextManager[Any] = threading.RLock() if NEEDS_LOCK else nullcontext()


def json_value(text: str) -> Any:
    """Return the value of a JSON text, with raw line breaks in its texts; None for other texts."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def parse(source: str, file_name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module, under a name for error messages.

    Raises:
        SyntaxError: If it is not Python.
        ValueError: If it has a null character.
        RecursionError: If it is nested too deeply.
        MemoryError: If it is nested too deeply for the parser.
    """
    with _CONVERSIONS:
        return ast.parse(source, file_name)


def compiles(code: str) -> bool:
    """Return whether a text is Python code."""
    try:
        parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parse_expression(source: str) -> ast.Expression:
    """Return the syntax tree of an expression.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: As `parse`.
    """
    with _CONVERSIONS:
        return ast.parse(source, mode="eval")


def literal_value(source: str | ast.expr) -> Any:
    """Return the value of an expression of literals, given as text or as a tree.

    Raises:
        TypeError: If it is a literal that cannot be built, e.g. a set of lists.
        SyntaxError, ValueError, RecursionError, MemoryError: As `parse`; a `ValueError` also if
            something in it is no literal.
    """
    with _CONVERSIONS:
        return ast.literal_eval(source)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a callable. The signature of a built-in callable is parsed.

    Raises:
        TypeError: If it is not callable, or of an unsupported kind.
        ValueError: If it has no signature.
    """
    with _CONVERSIONS:
        return inspect.signature(function)
