"""Loading 100 plugins into a fresh kernel, and choosing among 1000 for a request.

Loading stands beside one request for each plugin, choosing beside an index made anew for each
request; both in the same run. Run with ``python -m bench.plugins``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from bench.common import sized
from taskweaver.ces.common import PluginCode
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.code_interpreter.plugin_selection import PluginSelection
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm.api import LLMApi
from taskweaver.llm.services import ModelServices
from taskweaver.logging.log import TelemetryLogger
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry

ROUNDS = sized(5, 1)
LOADED, CHOSEN_FROM = sized((100, 1000), (4, 12))
TOPICS = "orders weather invoices sensors maps mails stocks images parcels rooms".split()
SOURCE = '''"""A plugin."""

from taskweaver.plugin import register_plugin


@register_plugin
def {name}(text: str, times: int = 1) -> str:
    """Look up {topic} number {number}, and return what is known of them.

    Args:
        text: What to look for.
        times: How often.
    """
    return text * times
'''


def _write(folder: Path, count: int) -> PluginRegistry:
    for number in range(count):
        topic = TOPICS[number % len(TOPICS)]
        name = f"{topic}_{number}"
        source = SOURCE.format(name=name, topic=topic, number=number)
        (folder / f"{name}.py").write_text(source)
    return PluginRegistry(folder)


def run() -> dict[str, float]:
    """Return seconds: ``load_100``, ``read_1000``, ``choose_1000``, baselines and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        plugins = Path(folder) / "plugins"
        plugins.mkdir()
        together, each = _load(folder, _codes(_write(plugins, LOADED)))
        registry = _write(plugins, CHOSEN_FROM)
        since = perf_counter()
        entries = list(registry.plugins.values())
        read = perf_counter() - since
        look = statistics.median(_timed(lambda: registry.plugins) for _ in range(ROUNDS))
        choose, anew = _choose(folder, entries)
    return {
        "load_100": together,
        "load_100_one_by_one": each,
        "load_times_faster": each / together,
        "read_1000": read,
        "look_for_changes_1000": look,
        "choose_1000": choose,
        "choose_1000_index_anew": anew,
        "choose_times_faster": anew / choose,
    }


def _timed(job: Callable[[], object]) -> float:
    since = perf_counter()
    job()
    return perf_counter() - since


def _codes(registry: PluginRegistry) -> list[PluginCode]:
    entries = registry.plugins.values()
    return [PluginCode(entry.name, entry.source(), {}, str(entry.path)) for entry in entries]


def _load(folder: str, codes: list[PluginCode]) -> tuple[float, float]:
    """Return the median seconds of one request for all, and of one for each."""
    together, each = [], []
    manager = code_execution_service_factory(folder)
    try:
        for number in range(ROUNDS):
            client = manager.get_session_client(f"together{number}")
            client.execute_code("x", "1")
            since = perf_counter()
            assert not client.load_plugins(codes)
            together.append(perf_counter() - since)
            client.stop()
            client = manager.get_session_client(f"each{number}")
            client.execute_code("x", "1")
            since = perf_counter()
            for code in codes:
                assert not client.load_plugins([code])
            each.append(perf_counter() - since)
            client.stop()
    finally:
        manager.clean_up()
    return statistics.median(together), statistics.median(each)


def _choose(folder: str, entries: list[PluginEntry]) -> tuple[float, float]:
    """Return the median seconds of a choice from a kept index, and from a new one."""
    src = AppConfigSource(None, {"llm.api_type": "offline"}, Path(folder))
    parts = (LLMApi(ModelServices(src)), "", TelemetryLogger(None))
    selection = PluginSelection(3, *parts)
    kept, anew = [], []
    for number in range(ROUNDS * 4):
        request = f"Please look up the weather of week {number}, and compare it with the stocks."
        assert len(selection.pool(entries, [], request)) == 3
        kept.append(_timed(partial(selection.pool, entries, [], request)))
        other = PluginSelection(3, *parts)
        anew.append(_timed(partial(other.pool, entries, [], request)))
        other.close()
    selection.close()
    return statistics.median(kept), statistics.median(anew)


def show(figures: dict[str, float]) -> None:
    """Print the figures."""
    load, each, faster = (
        figures[name] for name in ("load_100", "load_100_one_by_one", "load_times_faster")
    )
    print(f"load {LOADED} plugins into a fresh kernel: {load * 1e3:.0f} ms (goal 500 ms);")
    print(f"  one request for each {each * 1e3:.0f} ms, {faster:.1f} times as long")
    read, look = figures["read_1000"], figures["look_for_changes_1000"]
    print(f"read {CHOSEN_FROM} plugin files {read * 1e3:.0f} ms, once; look for changes in them")
    print(f"  {look * 1e3:.1f} ms, each turn")
    choose, anew = figures["choose_1000"], figures["choose_1000_index_anew"]
    print(f"choose among {CHOSEN_FROM}: {choose * 1e3:.2f} ms (goal 10 ms);")
    print(f"  with a new index each time {anew * 1e3:.1f} ms")


if __name__ == "__main__":
    show(run())
