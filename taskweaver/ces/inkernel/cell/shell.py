"""The IPython shell of kernels: what it shows becomes files and text, whatever fails on the way."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from ipykernel.zmqshell import ZMQInteractiveShell  # noqa: TID253 - runs inside the kernel
from IPython.core.error import TryNext, UsageError

from taskweaver.ces.inkernel.cell.artifacts import ARTIFACTS
from taskweaver.ces.inkernel.cell.display import FilePublisher, QuietDisplayHook
from taskweaver.ces.inkernel.cell.foreign import FOREIGN
from taskweaver.ces.inkernel.cell.near_names import near_names, with_hint
from taskweaver.utils.text import shorten

_MOST_CHARS = 1 << 20
"""Of a traceback: the message of an exception may have megabytes."""


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
        """Show an exception, also one whose own code raises, and one that IPython gives up on."""
        own: Any = self
        kind, error, trace = own._get_exc_info(exc_tuple)  # noqa: SLF001
        try:
            lines = self._trace(kind, error, trace, exception_only=options.get("exception_only"))
            lines = [line.rstrip("\n") for line in lines]
        except BaseException:  # noqa: BLE001 - the exception's own code, which may raise anything
            lines = [self._plain_trace(error, trace)]
        self._showtraceback(kind, error, lines)

    def print_traceback(self) -> None:
        """Print the last traceback: it is of an error that the cell does not end with."""
        for text in self.take_traceback():
            if not FOREIGN.is_running:
                sys.stderr.write(f"{text}\n")

    def take_traceback(self) -> list[str]:
        """Return the last traceback, and forget it."""
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
        """Keep a traceback for the reply, with names like the one that was not found."""
        try:
            hint = near_names(evalue, self.user_ns, ARTIFACTS.folder)
        except Exception as error:  # noqa: BLE001 - looks at objects of the user
            hint = f"looking for names like it failed: {type(error).__name__}"
        whole = "\n".join(line.rstrip("\n") for line in with_hint(stb, hint))
        text = shorten(whole, _MOST_CHARS).encode("utf-8", "replace").decode()
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
