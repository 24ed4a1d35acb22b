"""The IPython shell of kernels: results become files and text, whatever fails on the way.

Its ``%%bash`` and ``%%sh`` run a script in its own process. IPython's own magics keep a thread and
a socket for the rest of the session, which rules out a fork of the kernel; they pass the script on
the shell's standard input, so a command that reads input consumes the rest of the script; and
their errors are tracebacks through IPython. They are still used for a magic with options.
"""

from __future__ import annotations

import builtins
import codecs
import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ipykernel.zmqshell import ZMQInteractiveShell  # noqa: TID253 - runs inside the kernel
from IPython.core.error import TryNext, UsageError

from taskweaver.ces.inkernel.cell.current import ARTIFACTS, FOREIGN
from taskweaver.ces.inkernel.cell.display import FilePublisher, QuietDisplayHook
from taskweaver.utils.system.platform import signal_name
from taskweaver.utils.text import shorten

_MOST_NAMES, _MOST_SHOWN = 5_000, 5
_NAME_CHARS = 60
_LIKENESS = 0.7
_PART_CHARS = 4
_PIPE_BYTES = 1 << 16
_QUIET_S = 0.2
"""How long nothing may come from what a script left running, before it is left alone."""
_MOST_TRACE_CHARS = 1 << 20
"""Of a traceback: the message of an exception may have megabytes."""


def near_names(error: BaseException, namespace: Mapping[str, Any], folder: Path) -> str:
    """Return a line with the names that an error may be about, or "".

    Args:
        error: The error of a cell.
        namespace: The variables.
        folder: The working directory.
    """
    wanted, candidates = _question(error, namespace, folder)
    if not wanted:
        return ""
    places: dict[str, str] = {}
    for name, place in islice(candidates, _MOST_NAMES):
        places.setdefault(name, place)
    found = [name for name in places if name.lower() == wanted.lower() and name != wanted]
    if len(wanted) >= _PART_CHARS:
        found += [name for name in places if wanted.lower() in name.lower()]
    found += get_close_matches(wanted, places, _MOST_SHOWN, _LIKENESS)
    shown = [f"{name!r}{places[name]}" for name in dict.fromkeys(found) if name != wanted]
    return f"names like it: {', '.join(shown[:_MOST_SHOWN])}" if shown else ""


def _question(
    error: BaseException, namespace: Mapping[str, Any], folder: Path
) -> tuple[str, Iterator[tuple[str, str]]]:
    """Return the missing name, and the existing names, each with a place."""
    if isinstance(error, ModuleNotFoundError):
        name = error.name or ""
        return name.rpartition(".")[2], _without_place(_modules(name))
    if isinstance(error, FileNotFoundError):
        files = (path.name for path in islice(folder.iterdir(), _MOST_NAMES) if path.is_file())
        return Path(str(error.filename or "")).name, _without_place(files)
    if isinstance(error, NameError):
        visible = [name for name in namespace if not name.startswith("_")]
        name = error.name or str(error).partition("'")[2].partition("'")[0]
        return name, chain(_without_place([*visible, *dir(builtins)]), _keys(namespace))
    if isinstance(error, AttributeError) and error.name:
        columns = getattr(error.obj, "columns", ())
        return error.name, _without_place([*map(str, columns), *dir(error.obj)])
    if isinstance(error, KeyError) and error.args:
        key = error.args[0]
        return (key if isinstance(key, str) else "")[:_NAME_CHARS], _keys(namespace)
    return "", iter(())


def _keys(namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns of tables and the keys of dictionaries among the variables."""
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        columns = getattr(value, "columns", None) if "DataFrame" in type(value).__name__ else None
        keys = value if type(value) is dict else columns
        for key in islice(keys if keys is not None else (), _MOST_NAMES):
            if isinstance(key, str):
                yield key, f" in {name}"


def _modules(name: str) -> Iterable[str]:
    package, _, _ = name.rpartition(".")
    if not package:
        return [*sys.stdlib_module_names, *(found.name for found in pkgutil.iter_modules())]
    paths = getattr(sys.modules.get(package), "__path__", [])
    return [found.name for found in pkgutil.iter_modules(paths)]


def _without_place(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((name, "") for name in names)


class ScriptFailed(Exception):
    """A script ended with an exit status that is not 0."""

    def _render_traceback_(self) -> list[str]:
        """Return the message alone: the Python stack says nothing about the script."""
        return [str(self)]


def add_script_magics(shell: Any) -> None:
    """Register the magics with an IPython shell."""
    for program in ("bash", "sh"):
        shell.register_magic_function(partial(_magic, shell, program), "cell", program)


def _magic(shell: Any, program: str, line: str, cell: str) -> None:
    if line.strip():
        shell.run_cell_magic("script", f"{program} {line}", cell)
    else:
        run_script(program, cell)


def run_script(program: str, script: str) -> None:
    """Run a script, and pass the output on meanwhile.

    Raises:
        ScriptFailed: If its exit status is not 0.
        OSError: If it cannot be started.
    """
    with subprocess.Popen(
        [program, "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            _pass_output_on(process)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    status = process.returncode
    if status:
        failure = f"exit status {status}" if status > 0 else f"ended by {signal_name(-status)}"
        raise ScriptFailed(failure)


def _pass_output_on(process: subprocess.Popen[bytes]) -> None:
    """Pass output on until the script ends."""
    with selectors.DefaultSelector() as selector:
        for pipe, stream in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            selector.register(pipe, selectors.EVENT_READ, (stream, decoder))  # type: ignore[arg-type]
        while selector.get_map():
            ready = selector.select(_QUIET_S)
            if not ready and process.poll() is not None:
                return
            for key, _ in ready:
                stream, decoder = key.data
                data = os.read(key.fd, _PIPE_BYTES)
                stream.write(decoder.decode(data, final=not data))
                stream.flush()
                if not data:
                    selector.unregister(key.fd)
    process.wait()


class CellShell(ZMQInteractiveShell):
    """An IPython shell that writes displayed data to files."""

    displayhook_class = QuietDisplayHook
    display_pub_class = FilePublisher
    _last_traceback: list[str] | None = None

    def enable_matplotlib(self, gui: str | None = None) -> Any:
        """Keep the kernels' own backend, unless another client asks: others show nothing here."""
        own: Any = super()
        return own.enable_matplotlib(gui) if FOREIGN.is_running else (gui, "that of TaskWeaver")

    def init_hooks(self) -> None:
        """Print what the shell pages, such as the answer to ``name?``."""
        super().init_hooks()
        own: Any = self
        own.set_hook("show_in_pager", _print_page, 0)

    def showtraceback(self, exc_tuple: Any = None, *_: Any, **options: Any) -> None:
        """Show an exception, even if the exception's own code raises, or IPython gives up."""
        own: Any = self
        kind, error, trace = own._get_exc_info(exc_tuple)  # noqa: SLF001
        try:
            lines = self._trace(kind, error, trace, exception_only=options.get("exception_only"))
            lines = [line.rstrip("\n") for line in lines]
        except BaseException:  # noqa: BLE001 - the exception's own code, which may raise anything
            lines = [self._plain_trace(error, trace)]
        self._showtraceback(kind, error, lines)

    def print_traceback(self) -> None:
        """Print the last traceback, of an error that the cell does not end with."""
        for text in self.take_traceback():
            if not FOREIGN.is_running:
                sys.stderr.write(f"{text}\n")

    def take_traceback(self) -> list[str]:
        """Return the last traceback, once."""
        kept, self._last_traceback = self._last_traceback or [], None
        return kept

    def _trace(self, kind: Any, error: Any, trace: Any, *, exception_only: bool | None) -> Any:
        """Return the lines of IPython's traceback, in the mode that is set."""
        own: Any = self
        if kind is UsageError:
            return [f"UsageError: {error}"]
        if exception_only:
            return own.InteractiveTB.get_exception_only(kind, error)
        if hasattr(error, "_render_traceback_"):
            return error._render_traceback_()
        if isinstance(error, BaseExceptionGroup):
            raise TypeError("IPython does not show the exceptions in a group")
        return own.InteractiveTB.structured_traceback(kind, error, trace)

    def _plain_trace(self, error: BaseException, trace: Any) -> str:
        """Return the traceback of Python itself, from the first line of a cell on."""
        own: Any = self
        names: dict[str, int] = own.compile._filename_map  # noqa: SLF001
        first = trace
        while first is not None and first.tb_frame.f_code.co_filename not in names:
            first = first.tb_next
        try:
            shown = traceback.TracebackException(type(error), error, first or trace, compact=True)
            text = "".join(shown.format())
        except BaseException as again:  # noqa: BLE001 - its notes and names are its own code, too
            failed = object.__repr__(again)
            return f"{object.__repr__(error)} was raised, and cannot be shown: {failed}"
        for name, number in names.items():
            text = text.replace(f'File "{name}"', f"Cell In[{number}]")
        return text.rstrip("\n")

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        """Keep a traceback for the reply, with names like the missing name."""
        try:
            hint = near_names(evalue, self.user_ns, ARTIFACTS.folder)
        except Exception as error:  # noqa: BLE001 - looks at objects of the user
            hint = f"looking for names like it failed: {type(error).__name__}"
        whole = "\n".join(line.rstrip("\n") for line in stb)
        if hint and whole:
            whole = f"{whole.rstrip()} ({hint})"
        text = shorten(whole, _MOST_TRACE_CHARS).encode("utf-8", "replace").decode()
        self.print_traceback()
        if FOREIGN.is_running:
            super()._showtraceback(etype, text.rpartition("\n")[2].partition(": ")[2], [text])
        self._last_traceback = [text]

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Store nothing: IPython would format the exception again."""
        return {}


def _print_page(_shell: Any, data: Any, *_: Any, **__: Any) -> None:
    if FOREIGN.is_running:
        raise TryNext
    text = data.get("text/plain", "") if isinstance(data, dict) else data
    sys.stdout.write(f"{text}\n")
