"""Plugins and uploads in a kernel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kernels import Started, answers, run
from patience import PATIENCE_S

from taskweaver.ces.common import PluginCode
from taskweaver.ces.errors import KernelError, PluginLoadFailed
from taskweaver.ces.kernel.kernel import Kernel

pytestmark = pytest.mark.measured


def test_a_plugin_that_hangs_while_loading_does_not_hold_the_stop(started: Started) -> None:
    client = started()
    run(client, "1")
    with ThreadPoolExecutor(1) as thread:
        loading = thread.submit(client.load_plugin, "slow", "import time; time.sleep(600)", {})
        while client.state != "busy":
            assert not loading.done()
        client.stop()
        assert isinstance(loading.exception(PATIENCE_S), KernelError)


PLUGIN = """
from taskweaver.plugin import Plugin, register_plugin, test_plugin

@register_plugin
class Greeter(Plugin):
    def __call__(self, name):
        self.ctx.log("info", "greeter", f"greeting {name}")
        self.ctx.add_artifact("card", "card.txt", "txt", f"Hello {name}", "a card")
        return f"{self.config['word']} {name}, {self.ctx.get_session_var('mood', 'calm')}"

@test_plugin(name="greets")
def greets(plugin):
    assert plugin("you").startswith("Hi")

@test_plugin(name="fails")
def fails(plugin):
    assert plugin("you") == "never"
"""


def test_plugins_and_session_variables_survive_a_restart(fresh: Kernel) -> None:
    fresh.update_session_var({"mood": "glad"})
    fresh.load_plugin("greet", PLUGIN, {"word": "Hi"})
    result = run(fresh, "greet('Ann')")
    assert result.output == "Hi Ann, glad"
    assert result.log == [("info", "greeter", "greeting Ann")]
    assert [(a.type, a.original_name, a.preview) for a in result.artifact] == [
        ("txt", "card.txt", "a card")
    ]
    run(fresh, "import os; os._exit(1)")
    assert run(fresh, "greet('Ann')").output == "Hi Ann, glad"
    passed, (failed, failure) = fresh.test_plugin("greet")
    assert (passed, failed) == (["greets", ""], "fails")
    assert "AssertionError" in failure
    assert fresh.test_plugin("nobody")[0][1] == "nobody is not loaded"


def test_a_plugin_that_does_not_load_is_named_and_the_kernel_goes_on(fresh: Kernel) -> None:
    sources = "def broken(:", "raise RuntimeError('no')", "x = 1", "import os; os._exit(1)"
    for source in (*sources, PLUGIN + PLUGIN):
        with pytest.raises(PluginLoadFailed, match="odd"):
            fresh.load_plugin("odd", source, {})
        assert answers(fresh)


def test_uploads_stay_in_the_working_directory(fresh: Kernel, tmp_path: Path) -> None:
    assert fresh.upload_file("a.txt", b"1") == "a.txt"
    assert run(fresh, "open('a.txt').read()").output == "1"
    (tmp_path / "cwd" / "link.txt").symlink_to(tmp_path / "outside.txt")
    fresh.upload_file("link.txt", b"2")
    assert not (tmp_path / "outside.txt").exists()
    for name in ("../b.txt", "/etc/b", "", "..", "a\0b"):
        with pytest.raises(ValueError, match="not the name of a file"):
            fresh.upload_file(name, b"1")


def code(name: str, body: str, file: Path | None = None) -> PluginCode:
    head = "from taskweaver.plugin import Plugin, register_plugin\n@register_plugin\n"
    return PluginCode(name, head + body, {}, str(file or ""))


def test_plugins_that_do_not_load_are_named_and_the_others_work(started: Started) -> None:
    client = started(cell_timeout_s=2.0)
    run(client, "taken = 1")
    bodies = {
        "one": "def one(): return 1",
        "slow": "def slow(): ...\nimport threading; threading.Event().wait()",
        "taken": "def taken(): ...",
        "leaves": "def leaves(): ...\nraise SystemExit(3)",
        "two": "def two(): return 2",
    }
    problems = client.load_plugins([code(name, body) for name, body in bodies.items()])
    assert sorted(problems) == ["leaves", "slow", "taken"]
    assert problems["slow"] == "it did not load within 2 s"
    assert "variable called 'taken'" in problems["taken"]
    assert run(client, "one() + two() + taken").output == 4


def test_one_that_cannot_be_stopped_ends_the_kernel_and_is_found(started: Started) -> None:
    client = started(cell_timeout_s=1.0)
    stubborn = (
        "def stubborn(): ...\nimport select\n"
        "while True:\n    try:\n        select.select([], [], [], 60)\n"
        "    except BaseException: pass"
    )
    problems = client.load_plugins([code("a", "def a(): return 1"), code("stubborn", stubborn)])
    assert list(problems) == ["stubborn"]
    assert "ended the Python session" in problems["stubborn"]
    assert run(client, "a()").output == 1


def test_one_that_is_not_loaded_after_a_restart_is_told_with_the_cell(
    fresh: Kernel, tmp_path: Path
) -> None:
    mark = tmp_path / "seen"
    once = f"def once(): return 1\nfrom pathlib import Path\nPath({str(mark)!r}).mkdir()"
    assert fresh.load_plugins([code("once", once), code("good", "def good(): return 5")]) == {}
    assert run(fresh, "once()").output == 1
    run(fresh, "import os; os._exit(1)")
    result = run(fresh, "good()")
    assert result.output == 5
    ((level, tag, message),) = result.log
    assert (level, tag) == ("error", "once")
    assert "FileExistsError" in message
    assert run(fresh, "good()").log == []


def test_changed_plugins_take_the_place_of_the_old_and_removed_ones_go(fresh: Kernel) -> None:
    first = [code("a", "def a(): return 1"), code("b", "def b(): return 1")]
    assert fresh.load_plugins(first) == {}
    run(fresh, "kept = a()")
    assert fresh.load_plugins([code("a", "def a(): return 2")], removed=["b"]) == {}
    assert run(fresh, "(kept, a(), 'b' in dir())").output == "(1, 2, False)"
    run(fresh, "import os; os._exit(1)")
    assert run(fresh, "(a(), 'b' in dir())").output == "(2, False)"


def test_files_beside_a_plugin_can_be_imported_as_they_are_now(
    fresh: Kernel, tmp_path: Path
) -> None:
    (tmp_path / "_words.py").write_text("WORD = 'old'")
    body = "def say():\n    from _words import WORD\n    return WORD"
    plugin = code("say", body, tmp_path / "say.py")
    fresh.load_plugins([plugin])
    assert run(fresh, "say()").output == "old"
    (tmp_path / "_words.py").write_text("WORD = 'newer'")
    fresh.load_plugins([replace(plugin, helpers="changed")])
    assert run(fresh, "say()").output == "newer"


def test_a_file_that_is_too_large_is_told_with_its_plugin(tmp_path: Path, started: Started) -> None:
    client = started(artifact_limit_bytes=1 << 20)
    body = (
        "class Huge(Plugin):\n"
        "    def __call__(self):\n"
        "        _, path = self.ctx.create_artifact_path('h', 'huge.bin', 'file', '')\n"
        "        open(path, 'wb').truncate(2 << 30)\n"
    )
    client.load_plugins([code("huge", body, tmp_path / "huge.py")])
    result = run(client, "huge()\nopen('other.bin', 'wb').truncate(2 << 30)\nopen('a.txt', 'w')")
    assert [artifact.file_name for artifact in result.artifact] == ["a.txt"]
    by_plugin, other = (message for _, _, message in result.log)
    assert f"huge.bin of plugin huge ({tmp_path / 'huge.py'})" in by_plugin
    assert "2,048.0 MiB, and execution.artifact_limit_mb allows 1" in by_plugin
    assert other.startswith("other.bin is left out")


def test_a_value_that_cannot_be_shown_is_told_with_its_plugin(
    fresh: Kernel, tmp_path: Path
) -> None:
    body = "def odd(): return Odd()\nclass Odd:\n    def __repr__(self): raise ValueError('no')"
    fresh.load_plugins([code("odd", body, tmp_path / "odd.py")])
    shown = run(fresh, "odd()").output
    assert shown == f"<Odd of plugin odd ({tmp_path / 'odd.py'}), cannot be shown: ValueError: no>"
