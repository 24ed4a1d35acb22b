"""The form all benchmarks share: sizes, and the table of figures.

A benchmark is a module of this folder with a function `run` that returns figures by name, and
perhaps a function `show` that prints them with their goals. ``python -m bench`` and the smoke test
run every module of the folder; the smoke test sets `SMALL` in the environment.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from taskweaver.server.accounts import Accounts
from taskweaver.server.operations import Door

T = TypeVar("T")

SMALL = "TASKWEAVER_BENCH_SMALL"
"""Environment variable that makes all benchmarks tiny: their code runs, figures mean nothing."""


def sized(full: T, small: T) -> T:
    """Return the size a benchmark measures with, or the tiny one of the smoke test."""
    return small if os.environ.get(SMALL) else full


@contextmanager
def served(
    folder: Path,
    make_doors: Callable[[Accounts], Sequence[Door]],
    open_accounts: Callable[[Path], Accounts] = Accounts.at,
) -> Iterator[tuple[str, str]]:
    """Give address and token of a server in a thread of this process."""
    from taskweaver.logging.log import TelemetryLogger
    from taskweaver.server.accounts import new_token
    from taskweaver.server.gate import Gate
    from taskweaver.server.serving import Server, address_of, listen, make_application

    is_up, token = threading.Event(), new_token()
    with ExitStack() as stack:
        accounts = stack.enter_context(open_accounts(folder / "accounts.sqlite"))
        log = stack.enter_context(TelemetryLogger())
        listener = stack.enter_context(listen("127.0.0.1", 0))
        doors = make_doors(accounts)
        app = make_application(doors, Gate(accounts, token, log), (), log)
        server = Server(app, doors, is_up.set)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        is_up.wait()
        try:
            yield address_of(listener), token.text
        finally:
            server.should_exit = True
            thread.join()


def show(figures: Mapping[str, float]) -> None:
    """Print figures without comment."""
    for name, value in figures.items():
        print(f"  {name:<32} {value:>14,.6g}")
