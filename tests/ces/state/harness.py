"""A process that runs cells and saves its namespace, or loads one: ``harness.py COMMAND FOLDER``.

``save`` runs ``FOLDER/cells.py``, and saves twice, in forked children. ``load`` loads, runs the
checks of ``FOLDER/checks.json``, and saves again. Results are ``FOLDER/COMMAND.json``. ``serve``
forks a process for each line of input, ``COMMAND FOLDER``, and prints how it ended: that is faster
than to start each, as kernels are forked off a warm process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from taskweaver.ces.inkernel.namespace import add_usual_names, configure_libraries
from taskweaver.ces.inkernel.process import BASE
from taskweaver.ces.inkernel.state.chunks import HostChunks
from taskweaver.ces.inkernel.state.load import load_state
from taskweaver.ces.inkernel.state.pickling.reducers import note_classes
from taskweaver.ces.inkernel.state.save import Subject, save_state


class Folder(HostChunks):
    """Chunks as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "chunks"
        self.folder.mkdir(exist_ok=True)
        self.written: dict[str, int] = {}

    def missing(self, names: Sequence[str]) -> set[str]:
        return {name for name in names if not (self.folder / name).exists()}

    def write(self, name: str, data: memoryview) -> None:
        assert data.nbytes <= 1 << 20
        self.written[name] = data.nbytes
        (self.folder / name).write_bytes(data)

    def at(self, _variable: str) -> None:
        """Drop the progress."""

    def read(self, name: str, size: int, into: memoryview) -> None:
        data = (self.folder / name).read_bytes()
        if len(data) != size:
            raise ValueError(f"it has {len(data)} bytes")
        into[:] = data

    def damaged(self, name: str) -> None:
        """Drop the report: nothing is stored again here."""


def fresh_namespace() -> dict[str, Any]:
    """Return the namespace of a new ``__main__`` with a shell, as a kernel has it."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    shell = InteractiveShell.instance(config=config, user_module=main, user_ns=main.__dict__)
    for name in ("exit", "quit"):
        shell.user_ns.pop(name, None)
    add_usual_names(shell.user_ns)
    return shell.user_ns


def save_in_child(folder: Path, namespace: dict[str, Any], options: dict[str, Any]) -> Any:
    """Save in a forked child, as the product does; return manifest and counts."""
    note_classes(namespace)
    result = folder / "result.json"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            sink = Folder(folder)
            own = namespace["get_ipython"]().user_ns_hidden  # what has the shell's values still
            hidden = frozenset(name for name in own if namespace.get(name) is own[name])
            subject = Subject(namespace, hidden, options.get("made_by", {}), {}, 0)
            manifest = save_state(subject, sink)
            result.write_text(json.dumps({"manifest": manifest, "written": sink.written}))
            status = 0
        except BaseException:  # noqa: BLE001 - reported by the parent
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(result.read_text())


def save(folder: Path) -> Any:
    options = json.loads((folder / "options.json").read_text())
    namespace = fresh_namespace()
    BASE.note()
    os.chdir(folder)
    exec(compile((folder / "cells.py").read_text(), "cells", "exec", dont_inherit=True), namespace)
    configure_libraries()
    first = save_in_child(folder, namespace, options)
    if "change" in options:
        exec(options["change"], namespace)
    return {"first": first, "again": save_in_child(folder, namespace, options)}


def load(folder: Path) -> Any:
    saved = json.loads((folder / "save.json").read_text())
    options = json.loads((folder / "options.json").read_text())
    namespace = fresh_namespace()
    BASE.note()
    os.chdir(folder)
    state = saved["first" if "change" not in options else "again"]["manifest"]
    problems = load_state(state, namespace, Folder(folder))
    after = save_in_child(folder, namespace, options)
    results = {}
    for name, check in json.loads((folder / "checks.json").read_text()).items():
        try:
            exec(compile(check, f"check of {name}", "exec", dont_inherit=True), namespace)
            results[name] = ""
        except BaseException:  # noqa: BLE001 - reported by the test
            results[name] = traceback.format_exc(limit=-3)
    return {
        "problems": [[problem.name, problem.reason] for problem in problems],
        "results": results,
        "after": after,
    }


def do(command: str, place: Path) -> NoReturn:
    """Do what is asked, write the results, and end the process."""
    facts = {"save": save, "load": load}[command](place)
    (place / f"{command}.json").write_text(json.dumps(facts))
    sys.stdout.flush()
    os._exit(0)  # objects of the cells may leave threads behind


def forked(command: str, place: Path) -> int:
    """Do what is asked in a forked process, whose output is a file; return how it ended."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        output = os.open(place / f"{command}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        do(command, place)
    except BaseException:  # noqa: BLE001 - reported by the parent
        traceback.print_exc()
    finally:
        os._exit(1)


def serve() -> None:
    """Fork a process for each line of input."""
    for name in ("IPython.core.interactiveshell", "cloudpickle", "pandas"):
        importlib.import_module(name)
    for line in sys.stdin:
        command, _, place = line.rstrip("\n").partition(" ")
        print(forked(command, Path(place)), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        do(sys.argv[1], Path(sys.argv[2]))
