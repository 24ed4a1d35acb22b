"""Stops thread pools and closes files that restart by themselves, right before a fork.

Each is looked for among the loaded modules and libraries; nothing is imported. A setting that the
user made is left alone.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_MOST_NAMES = 3
_PAUSE_HARD = 2
"""``omp_pause_hard`` of OpenMP 5.0, section 3.6.2: end all threads."""
_HANDLER_MODULES = {"logging", "logging.handlers"}
_log = logging.getLogger(__name__)


def holders(
    namespace: Mapping[str, Any], module: str, class_name: str
) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the variables of a class.

    The module is not imported: without it no object of the class exists.
    """
    class_: Any = vars(sys.modules[module]).get(class_name) if module in sys.modules else None
    if not isinstance(class_, type):
        return
    for name, value in list(namespace.items()):
        # The type alone: `isinstance` may run code of the object.
        if not name.startswith("_") and issubclass(type(value), class_):
            yield name, value


def names_of(namespace: Mapping[str, Any], module: str, class_name: str) -> str:
    """Return the names of the variables of a class for a message, or ""."""
    found = [f"`{name}`" for name, _ in holders(namespace, module, class_name)]
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more


def rest_native_pools(libraries: set[str]) -> None:
    """Make OpenBLAS and OpenMP end their idle threads, which start again when needed."""
    for path in libraries:
        name = path.rpartition("/")[2]  # there are hundreds
        if name.startswith("lib") and "openblas" in name:
            _call(path, "blas_thread_shutdown_")
        elif name.startswith("libgomp"):
            # It returns 0 also when a pool of another live thread stays: the threads are
            # counted afterwards.
            _call(path, "omp_pause_resource_all", _PAUSE_HARD)


def _call(path: str, function: str, *arguments: int) -> None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(path), function)
    except (OSError, AttributeError):
        return  # another build of the library: its threads, if any, are a reason to refuse
    found(*arguments)


def rest_python_libraries(namespace: Mapping[str, Any]) -> None:
    """End tqdm's monitor, the idle connections of SQLAlchemy's engines, and open log files."""
    for thread in threading.enumerate():
        if type(thread).__module__ == "tqdm._monitor":
            with _attempt("tqdm's monitor"):
                monitor: Any = thread
                monitor.exit()
                if monitor.tqdm_cls.monitor is monitor:
                    monitor.tqdm_cls.monitor = None  # the next progress bar starts another
    for name, engine in holders(namespace, "sqlalchemy.engine", "Engine"):
        with _attempt(f"the engine {name}"):
            _dispose(engine)
    close_log_files()


def close_log_files() -> None:
    """Close the files of `logging`'s handlers, which the next record opens again.

    So each side of a fork has a file of its own, and the lines of both arrive.
    """
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]  # noqa: SLF001
        handler = reference()
        if isinstance(handler, logging.FileHandler):
            with _attempt("a log file"):
                _close_file(handler)


@contextmanager
def _attempt(subject: str) -> Iterator[None]:
    """Log a failure and continue: the check that follows finds the part that still runs."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the code of a library may raise anything
        _log.debug("%s cannot be put to rest: %s", subject, error)


def _dispose(engine: Any) -> None:
    """Close the connections of an idle engine, which connects again when needed.

    An engine whose database lives in the memory of its connection is left alone.
    """
    pool = engine.pool
    queue_pool = sys.modules["sqlalchemy.pool"].QueuePool
    place = str(engine.url)
    is_in_memory = engine.dialect.name == "sqlite" and (
        not engine.url.database or ":memory:" in place or "mode=memory" in place
    )
    if not isinstance(pool, queue_pool) or is_in_memory:
        return
    if pool.checkedout():
        gc.collect()  # a connection that is dropped but not closed is in a cycle of references
    if not pool.checkedout():
        engine.dispose()


def _close_file(handler: logging.FileHandler) -> None:
    """Close a handler's file, which the next record on either side of the fork opens again.

    A handler whose file was moved, or that would truncate its file, is left alone.
    """
    if handler.mode != "a" or type(handler).emit.__module__ not in _HANDLER_MODULES:
        return
    with handler.lock or threading.RLock():
        stream: Any = handler.stream
        if stream is None or not os.path.samestat(
            os.fstat(stream.fileno()), Path(handler.baseFilename).stat()
        ):
            return
        stream.flush()
        stream.close()
        none: Any = None
        handler.stream = none
