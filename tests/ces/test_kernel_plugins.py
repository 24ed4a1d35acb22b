"""Plugins and uploads in a kernel."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from kernels import answers, limited, run

from taskweaver.ces.common import Client
from taskweaver.ces.errors import KernelError, PluginLoadFailed


def test_a_plugin_that_hangs_while_loading_does_not_hold_the_stop(tmp_path: Path) -> None:
    manager = limited(tmp_path)
    client = manager.get_session_client("s")
    run(client, "1")
    failures: list[Exception] = []

    def load() -> None:
        try:
            client.load_plugin("slow", "while True: pass", {})
        except KernelError as error:
            failures.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    while client.state != "busy":
        assert thread.is_alive()
    manager.clean_up()
    thread.join(10)
    assert len(failures) == 1


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


def test_plugins_and_session_variables_survive_a_restart(fresh: Client) -> None:
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
    (failure,) = fresh.test_plugin("greet")
    assert failure.startswith("fails")
    assert fresh.test_plugin("nobody") == ["nobody is not loaded"]


@pytest.mark.parametrize(
    "source",
    [
        "def broken(:",
        "raise RuntimeError('no')",
        "x = 1",
        "import os; os._exit(1)",
        PLUGIN + PLUGIN,
    ],
    ids=["syntax", "raises", "registers nothing", "exits", "registers two"],
)
def test_a_plugin_that_does_not_load_is_named_and_the_kernel_goes_on(
    fresh: Client, source: str
) -> None:
    with pytest.raises(PluginLoadFailed, match="odd"):
        fresh.load_plugin("odd", source, {})
    assert answers(fresh)


def test_uploads_stay_in_the_working_directory(fresh: Client, tmp_path: Path) -> None:
    assert fresh.upload_file("a.txt", b"1") == "a.txt"
    assert run(fresh, "open('a.txt').read()").output == "1"
    (tmp_path / "cwd" / "link.txt").symlink_to(tmp_path / "outside.txt")
    fresh.upload_file("link.txt", b"2")
    assert not (tmp_path / "outside.txt").exists()
    for name in ("../b.txt", "/etc/b", "", "..", "a\0b"):
        with pytest.raises(ValueError, match="not the name of a file"):
            fresh.upload_file(name, b"1")
