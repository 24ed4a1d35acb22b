"""Plugin code: collected from source, made, called, and tried alone."""

from __future__ import annotations

import traceback
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest

from taskweaver.plugin import PluginError, temp_context
from taskweaver.plugin.register import collect

HEAD = "from taskweaver.plugin import Plugin, register_plugin, test_plugin\n"


def source(body: str) -> str:
    return HEAD + dedent(body)


CLASS = source(
    """
    from dataclasses import dataclass

    @dataclass
    class Note:
        text: "str"

    @register_plugin
    class Greet(Plugin):
        def __call__(self, who):
            self.log("info", f"greeting {who}")
            return Note(self.config.get("word", "Hello") + " " + who)

    @test_plugin(name="it greets", description="It says hello.")
    def try_it(plugin):
        assert plugin("you").text == "Hello you"

    @test_plugin()
    def try_again(plugin):
        \"\"\"Fails.\"\"\"
        raise AssertionError("on purpose")
    """
)
FUNCTION = source(
    '''
    @register_plugin
    def double(x: int) -> int:
        """Twice as much."""
        if x < 0:
            raise ValueError("too small")
        return 2 * x
    '''
)


def test_tests_come_with_the_plugin() -> None:
    found = collect(CLASS, "greet")
    labels = [(test.name, test.description) for test in found.tests]
    assert labels == [("it greets", "It says hello."), ("try_again", "Fails.")]
    with temp_context() as ctx:
        plugin = found.factory("greet", ctx, {})
        found.tests[0].run(plugin)
        with pytest.raises(AssertionError, match="on purpose"):
            found.tests[1].run(plugin)


def test_a_function_becomes_a_plugin_that_looks_like_it() -> None:
    with temp_context() as ctx:
        plugin = collect(FUNCTION, "double", "double.py").factory("double", ctx, {})
        assert plugin(4) == 8
        assert plugin.__doc__ == "Twice as much."
        with pytest.raises(ValueError, match="too small") as caught:
            plugin(-1)
        assert ctx.logs == [("error", "double", "ValueError: too small")]
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "double.py"' in text
    assert 'raise ValueError("too small")' in text


def test_loading_twice_gives_two_modules() -> None:
    counting = source(
        "count = []\n@register_plugin\ndef f():\n    count.append(1)\n    return len(count)"
    )
    with temp_context() as ctx:
        first = collect(counting, "f").factory("f", ctx, {})
        assert (first(), first()) == (1, 2)
        assert collect(counting, "f").factory("f", ctx, {})() == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "registers 0 plugins"),
        ("@register_plugin\ndef a(): ...\n@register_plugin\ndef b(): ...", "registers 2 plugins"),
        ("1 / 0", "does not load: ZeroDivisionError"),
        ("def (", "does not load: SyntaxError"),
        ("raise SystemExit(3)", "does not load: SystemExit"),
        ("@register_plugin\nclass A: ...", "must be a subclass of Plugin"),
        ("@register_plugin\nclass A(Plugin): ...", "must define __call__"),
    ],
)
def test_code_that_is_no_plugin_is_an_error(body: str, problem: str) -> None:
    with pytest.raises(PluginError, match=problem) as caught:
        collect(HEAD + body, "odd")
    assert "odd" in str(caught.value)


def test_a_failed_reload_keeps_the_module_of_the_working_plugin() -> None:
    import sys

    collect(FUNCTION, "keeps")
    working = sys.modules["taskweaver_plugin_keeps"]
    with pytest.raises(PluginError):
        collect("1/0", "keeps")
    assert sys.modules["taskweaver_plugin_keeps"] is working


def test_artifacts_are_written_where_they_can_be_looked_at(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1, 2]})
    (tmp_path / "there.txt").write_text("from a file")
    with temp_context(tmp_path) as ctx:
        first = ctx.add_artifact("table", "t.csv", "df", table, "two rows")
        ctx.add_artifact("text", "t.txt", "txt", "hällo")
        ctx.add_artifact("raw", "t.bin", "file", b"\x00\x01")
        ctx.add_artifact("copied", "c.txt", "file", tmp_path / "there.txt")
        ctx.add_artifact("chart", "c.json", "chart", {"x": [1]})
        id_, path = ctx.create_artifact_path("own", "own.png", "image", "a picture")
        Path(path).write_bytes(b"png")
    made = {artifact.name: artifact for artifact in ctx.artifacts}
    assert made["table"].id == first
    assert made["table"].desc == "two rows"
    assert made["table"].path.read_text() == "a\n1\n2\n"
    assert made["text"].path.read_text("utf-8") == "hällo"
    assert made["raw"].path.read_bytes() == b"\x00\x01"
    assert made["copied"].path.read_text() == "from a file"
    assert made["chart"].path.read_text() == '{\n  "x": [\n    1\n  ]\n}'
    assert made["own"].id == id_
    with pytest.raises(TypeError):
        ctx.add_artifact("odd", "o.json", "chart", object())


def test_an_artifact_stays_in_its_folder_and_a_temporary_one_is_removed() -> None:
    with temp_context() as ctx:
        with pytest.raises(PluginError, match="without folders"):
            ctx.add_artifact("x", "../x.txt", "txt", "x")
        ctx.add_artifact("x", "x.txt", "txt", "x")
        path = ctx.artifacts[0].path
        assert path.exists()
    assert not path.parent.exists()


def test_a_context_knows_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with temp_context() as ctx:
        ids = ctx.env_id, ctx.session_id, ctx.execution_id
        assert ids == ("test-env", "test-session", "test-execution")
        ctx.session_vars["user"] = "ann"
        assert ctx.get_session_var("user") == "ann"
        assert ctx.get_session_var("other", "x") == "x"
        assert "text" in ctx.wrap_text_with_delimiter_temporal("text")
        plugin = collect(FUNCTION, "double").factory("double", ctx, {})
        with pytest.raises(PluginError, match="PLUGIN_double_KEY"):
            plugin.get_env("KEY")
        monkeypatch.setenv("PLUGIN_double_KEY", "k")
        assert plugin.get_env("KEY") == "k"
