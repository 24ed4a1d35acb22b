"""Writing to the branched memory beside bare SQLite and LangGraph's SQLite saver, in one run.

Every store has a write-ahead log and the same `synchronous`, FULL unless a figure says NORMAL. The
stores take turns call by call, so a busy machine slows all of them alike. The saver is measured
where it is installed: ``pip install --group bench``. Run with ``python -m bench.branched_versus``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from time import perf_counter, thread_time

from bench.common import sized
from bench.versus.stores import Durability, Store, stores

APPENDS = sized(1000, 4)
FORKS, NODES, OPENINGS = sized((300, 60, 40), (3, 2, 2))
BRANCHES = sized(500, 3)
PROCESSES, BY_EACH = sized((4, 5000), (2, 20))
LEVELS, BY_LEVEL = sized((1000, 3), (5, 3))
VIEWS = sized((10, 10_000), (2, 6))
MANY_FORKS = sized(100_000, 20)
_GOALS = {
    "append_to_bare": "<= 2",
    "append_cpu_ours": "<= 0.15 ms",
    "append_to_langgraph": "< 1",
    "node_ours": "< 5 ms",
    "node_to_langgraph": "< 1",
    "node_at_once_to_langgraph": "< 1",
    "fork_ours": "<= 0.25 ms",
    "fork_to_langgraph": "< 1",
    "open_ours": "< 1.7 ms",
    "open_to_langgraph": "< 1",
    "processes_per_s_ours": "> 4,000",
    "processes_p999_ours": "<= 100 ms",
    "chain_to_bare": "<= 8",
    "append_depth_ratio": "<= 1.3",
    "append_view_ratio": "<= 1.3",
    "fork_depth_ratio": "<= 1.3",
}


def run() -> dict[str, float]:
    """Return times in seconds, rates in writes per second, and ratios of ours to the others'."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {
            **_appending(place, "FULL", ""),
            **_appending(place, "NORMAL", "_normal"),
            **_nodes(place),
            **_forks(place),
            **_opening(place),
            **_processes(place),
            **_chain(place),
            **_growth(place),
            **_many_forks(place),
        }


def _opened(place: Path, name: str, durability: Durability = "FULL") -> dict[str, Store]:
    opened = {kind: make(place / f"{name}-{kind}", durability) for kind, make in stores().items()}
    for store in opened.values():
        store.start()
    return opened


def _in_turns(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return how long each action took each time; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            since = perf_counter()
            action()
            times[name].append(perf_counter() - since)
    return times


def _figures(title: str, by_store: dict[str, float]) -> dict[str, float]:
    """Return a figure of each store, and the ratios of ours to the others'."""
    others = {name: value for name, value in by_store.items() if name != "ours"}
    return {f"{title}_{name}": value for name, value in by_store.items()} | {
        f"{title}_to_{name}": by_store["ours"] / value for name, value in others.items()
    }


def _medians(title: str, times: dict[str, list[float]]) -> dict[str, float]:
    return _figures(title, {name: statistics.median(taken) for name, taken in times.items()})


def _close(opened: dict[str, Store]) -> None:
    for store in opened.values():
        store.close()


def _appending(place: Path, durability: Durability, ending: str) -> dict[str, float]:
    opened = _opened(place, f"append{ending}", durability)
    numbers = count()

    def appending(store: Store) -> Callable[[], object]:
        return lambda: store.append("root", f"event {next(numbers)}")

    actions = {name: appending(store) for name, store in opened.items()}
    wall = _medians(f"append{ending}", _in_turns(actions, APPENDS))
    processor = {}
    for name, action in actions.items():
        since = thread_time()
        for _ in range(APPENDS):
            action()
        processor[f"append{ending}_cpu_{name}"] = (thread_time() - since) / APPENDS
    _close(opened)
    return {**wall, **processor}


def _named(opened: dict[str, Store], method: str) -> dict[str, Callable[[], object]]:
    """Return an action for each store that makes one more branch below its root."""

    def action(store: Store, names: Iterator[int]) -> Callable[[], object]:
        return lambda: getattr(store, method)("root", f"{method}{next(names)}")

    return {name: action(store, count()) for name, store in opened.items()}


def _nodes(place: Path) -> dict[str, float]:
    opened = _opened(place, "node")
    times = _in_turns(_named(opened, "node"), NODES)
    at_once = _in_turns(_named(opened, "node_at_once"), NODES)
    _close(opened)
    return {**_medians("node", times), **_medians("node_at_once", at_once)}


def _forks(place: Path) -> dict[str, float]:
    opened = _opened(place, "fork")
    times = _in_turns(_named(opened, "fork"), FORKS)
    _close(opened)
    return _medians("fork", times)


def _opening(place: Path) -> dict[str, float]:
    opened = _opened(place, "open", "NORMAL")
    for store in opened.values():
        for n in range(BRANCHES):
            store.fork("root", f"b{n}")
            store.append(f"b{n}", f"event of {n}")
    _close(opened)

    def read(kind: str) -> None:
        store = stores()[kind](place / f"open-{kind}", "FULL")
        store.read(f"b{BRANCHES // 2}")
        store.close()

    actions: dict[str, Callable[[], object]] = {kind: partial(read, kind) for kind in opened}
    return _medians("open", _in_turns(actions, OPENINGS))


def append_many(kind: str, path: Path, branch: str, start: Barrier) -> list[float]:
    """Append in a process of its own, and return how long each call took."""
    store = stores()[kind](path, "FULL")
    store.append(branch, f"the first of {branch}")
    start.wait()
    times = []
    for n in range(BY_EACH):
        since = perf_counter()
        store.append(branch, f"event {n} of {branch}")
        times.append(perf_counter() - since)
    store.close()
    return times


def _processes(place: Path) -> dict[str, float]:
    figures: dict[str, dict[str, float]] = {"per_s": {}, "p999": {}, "worst": {}}
    spawned = get_context("spawn")
    for kind in stores():
        path = place / f"processes-{kind}"
        store = stores()[kind](path, "FULL")
        store.start()
        for n in range(PROCESSES):
            store.fork("root", f"p{n}")
        store.close()
        with spawned.Manager() as manager, spawned.Pool(PROCESSES) as pool:
            start = manager.Barrier(PROCESSES + 1)
            jobs = [
                pool.apply_async(append_many, (kind, path, f"p{n}", start))
                for n in range(PROCESSES)
            ]
            start.wait()
            since = perf_counter()
            times = sorted(taken for job in jobs for taken in job.get())
            figures["per_s"][kind] = len(times) / (perf_counter() - since)
        figures["p999"][kind] = times[int(len(times) * 0.999)]
        figures["worst"][kind] = times[-1]
    return {
        name: value
        for title, by_store in figures.items()
        for name, value in _figures(f"processes_{title}", by_store).items()
    }


def _chain(place: Path) -> dict[str, float]:
    taken = {}
    for kind, store in _opened(place, "chain").items():
        since, name = perf_counter(), "root"
        for level in range(LEVELS):
            store.fork(name, f"c{level}")
            name = f"c{level}"
            for n in range(BY_LEVEL):
                store.append(name, f"event {n} of level {level}")
        taken[kind] = perf_counter() - since
        store.close()
    size = float((place / "chain-ours").stat().st_size)
    return {**_figures("chain", taken), "chain_bytes_ours": size}


def _growth(place: Path) -> dict[str, float]:
    """Return what appends and forks cost beside many events in view, and at a great depth."""
    ours = stores()["ours"](place / "growth", "NORMAL")
    ours.start()
    for name, events in zip(("few", "many"), VIEWS, strict=True):
        ours.fork("root", name)
        for n in range(events):
            ours.append(name, f"event {n} of {name}")
    name = "root"
    for depth in range(1, LEVELS + 1):
        ours.fork(name, f"d{depth}")
        name = f"d{depth}"
    numbers = count()
    shallow, deep = f"d{min(10, LEVELS)}", name

    def appending(branch: str) -> Callable[[], object]:
        return lambda: ours.append(branch, f"one more, {next(numbers)}")

    def forking(branch: str) -> Callable[[], object]:
        return lambda: ours.fork(branch, f"fork {next(numbers)}")

    views = _in_turns({"few": appending("few"), "many": appending("many")}, FORKS)
    depths = _in_turns({"shallow": appending(shallow), "deep": appending(deep)}, FORKS)
    forks = _in_turns({"shallow": forking(shallow), "deep": forking(deep)}, FORKS)
    ours.close()
    median = statistics.median
    return {
        "append_view_ratio": median(views["many"]) / median(views["few"]),
        "append_depth_ratio": median(depths["deep"]) / median(depths["shallow"]),
        "fork_depth_ratio": median(forks["deep"]) / median(forks["shallow"]),
    }


def _many_forks(place: Path) -> dict[str, float]:
    path = place / "many"
    ours = stores()["ours"](path, "NORMAL")
    ours.start()
    since = perf_counter()
    for n in range(MANY_FORKS):
        ours.fork("root", f"f{n}")
    taken = perf_counter() - since
    ours.close()
    return {
        "many_forks_each": taken / MANY_FORKS,
        "many_forks_bytes_each": path.stat().st_size / MANY_FORKS,
    }


def show(figures: dict[str, float]) -> None:
    """Print the figures beside their goals."""
    if "langgraph" not in stores():
        print("  LangGraph's saver is not installed: `pip install --group bench` adds its figures.")
    plain = ("_to_", "_ratio", "_bytes", "_per_s")
    for name, value in figures.items():
        is_plain = any(part in name for part in plain)
        shown = f"{value:12,.2f}   " if is_plain else f"{value * 1000:12.3f} ms"
        print(f"  {name:<34} {shown}  {_GOALS.get(name, '')}".rstrip())


if __name__ == "__main__":
    show(run())
