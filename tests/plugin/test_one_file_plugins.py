"""Plugins of one file: what is read off the code, and said when it cannot be one."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from taskweaver.plugin import temp_context
from taskweaver.plugin.register import collect
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.files import write_yaml

HEAD = "from taskweaver.plugin import Plugin, register_plugin\n"


def put(folder: Path, body: str, name: str = "shout.py") -> PluginRegistry:
    (folder / name).write_text(HEAD + dedent(body))
    return PluginRegistry(folder)


def entry(folder: Path, body: str) -> PluginEntry:
    registry = put(folder, body)
    assert registry.broken == {}
    (found,) = registry.plugins.values()
    return found


GOOGLE = '''
    @register_plugin
    def shout(text: str, times: int = 1, mark="!") -> str:
        """Make a text loud.

        All of it.

        Args:
            text: What to say,
                in a line.
            times: How often.

        Returns:
            The text, loud.

        Examples:
            loud = shout("hello", times=2)
        """
        return (text.upper() + mark) * times
'''
SPHINX = '''
    @register_plugin(examples='loud = shout("hello", times=2)')
    def shout(text: str, times: int = 1, mark="!") -> str:
        """Make a text loud.

        All of it.

        :param text: What to say,
            in a line.
        :param times: How often.
        :returns: The text, loud.
        """
'''
STUB = """\
# Make a text loud.
#
# All of it.
# Examples:
# loud = shout("hello", times=2)
# Returns result: The text, loud.
def shout(
    # What to say, in a line.
    text: str,
    # How often.
    times: int = 1,
    mark: Any = '!',
) -> str: ..."""


@pytest.mark.parametrize("body", [GOOGLE, SPHINX], ids=["google", "sphinx"])
def test_signature_and_docstring_are_read_and_nothing_is_run(tmp_path: Path, body: str) -> None:
    assert entry(tmp_path, "raise SystemExit(3)\n" + dedent(body)).format_prompt() == STUB


def test_parts_of_a_tuple_have_the_names_the_docstring_gives(tmp_path: Path) -> None:
    found = entry(
        tmp_path,
        '''
        @register_plugin
        def split(text) -> tuple[str, int]:
            """Split.

            Returns
            -------
            head : str
                The first word.
            rest : int
                How many follow.
            """
        ''',
    )
    parts = [(part.name, part.type) for part in found.spec.returns]
    assert parts == [("head", "str"), ("rest", "int")]


def test_nothing_returned_and_nothing_said_differ(tmp_path: Path) -> None:
    nothing = entry(tmp_path, GOOGLE.replace("-> str", "-> None")).format_prompt()
    assert nothing.endswith("-> None: ...")
    unsaid = entry(tmp_path, GOOGLE.replace(" -> str", "")).format_prompt()
    assert unsaid.endswith("-> Any: ...")


def test_every_kind_of_parameter_is_shown_as_python(tmp_path: Path) -> None:
    body = '''
        import math
        @register_plugin
        def odd(a, /, b: "list[int]", c=math.pi, *rest: str, d, e: float = 0.5, **more) -> None:
            """Odd."""
    '''
    stub = entry(tmp_path, body).format_prompt()
    (node,) = ast.parse(stub).body
    assert isinstance(node, ast.FunctionDef)
    shown = "a: Any, /, b: list[int], c: Any=..., *rest: str, d: Any, e: float=0.5, **more: Any"
    assert ast.unparse(node.args) == shown
    only_names = entry(tmp_path, body.replace("*rest: str", "*"))
    assert "*, d: Any" in ast.unparse(ast.parse(only_names.format_prompt()))
    assert only_names.spec.plugin_description().endswith("a: Any, b: list[int], d: Any")


def test_a_class_is_called_like_its_file(tmp_path: Path) -> None:
    found = entry(
        tmp_path,
        '''
        @register_plugin(configurations={"mark": "?"})
        class Shouter(Plugin):
            """Make a text loud."""
            def __call__(self, text: str) -> str:
                """Shout.

                Args:
                    text: What to say.
                """
                return text.upper() + self.config["mark"]
        ''',
    )
    assert (found.name, found.config) == ("shout", {"mark": "?"})
    assert [(arg.name, arg.description) for arg in found.spec.args] == [("text", "What to say.")]
    made = collect(found.source(), found.name, str(found.path))
    with temp_context() as ctx:
        assert made.factory(found.name, ctx, found.config)("a") == "A?"


def test_the_docstring_of_call_will_do(tmp_path: Path) -> None:
    found = entry(
        tmp_path,
        '''
        import taskweaver.plugin as kit
        @kit.register_plugin
        class Shouter(kit.Plugin):
            def __call__(self, text):
                """Make a text loud."""
        ''',
    )
    assert found.spec.description == "Make a text loud."


@pytest.mark.parametrize(
    ("body", "line", "problem"),
    [
        ("@register_plugin\ndef f(x): return x", 3, "f has no docstring. Its first line tells"),
        ("@register_plugin\ndef f(x):\n '''  '''", 3, "f has no docstring"),
        ("@register_plugin\nclass F(Plugin):\n '''A.'''", 3, "F must define __call__"),
        ("@register_plugin\nasync def f():\n '''A.'''", 3, "must be a plain function"),
        ("if 1:\n @register_plugin\n def f():\n  '''A.'''", 4, "outermost level"),
        ("@register_plugin\ndef f(): 'A.'\n@register_plugin\ndef g(): 'B.'", 5,
         "registers a second plugin after line 3"),
        ("def f(): 1\nregister_plugin(f)", 1, "nothing has the line @register_plugin"),
        ("@register_plugin\ndef f(:", 3, "shout.py is not Python"),
        ("@register_plugin(colour=1)\ndef f(): '''A.'''", 2, "register_plugin has no 'colour'"),
        ("@register_plugin(enabled=x)\ndef f(): '''A.'''", 2, "written out as a bool"),
        ("@register_plugin(configurations={'a': {1}})\ndef f(): '''A.'''", 2, "plain data"),
        ("@register_plugin(configurations={'a': 1})\ndef f(): '''A.'''", 3, "only a class"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_plugin_is_told_with_file_and_line(
    tmp_path: Path, body: str, line: int, problem: str
) -> None:
    registry = put(tmp_path, body)
    assert registry.plugins == {}
    assert str(registry.broken["shout"]).startswith(f"Plugin {tmp_path / 'shout.py'}:{line}: ")
    assert problem in str(registry.broken["shout"])


def test_a_name_that_cells_need_cannot_be_had(tmp_path: Path) -> None:
    for name in ("print", "pd", "get_ipython", "_hidden"):
        registry = put(tmp_path, f'@register_plugin\ndef {name}():\n    """A."""\n')
        assert registry.plugins == {}
        assert repr(name) in str(registry.broken["shout"])
        assert str(tmp_path / "shout.py") in str(registry.broken["shout"])


def test_which_files_are_plugins(tmp_path: Path) -> None:
    described = {"name": "loud", "description": "x", "code": "impl"}
    write_yaml(tmp_path / "loud.yaml", described | {"parameters": [], "returns": []})
    plain = '@register_plugin\ndef {}():\n    """A."""\n'
    put(tmp_path, plain.format("a"), "impl.py")
    put(tmp_path, plain.format("b"), "_helper.py")
    put(tmp_path, plain.format("c"), "free.py")
    put(tmp_path, '@register_plugin(enabled=False)\ndef off():\n    """A."""\n', "off.py")
    (tmp_path / "broken_words.py").write_text("def (")
    (tmp_path / "latin.py").write_bytes(b"\xff\xfe")
    (tmp_path / "no_plugin.py").write_text("# nothing to register_plugin here")
    registry = PluginRegistry(tmp_path)
    assert sorted(registry.plugins) == ["c", "loud"]
    assert list(registry.broken) == ["latin"]


def test_a_plugin_changes_with_the_helpers_it_imports(tmp_path: Path) -> None:
    put(tmp_path, GOOGLE.replace("def shout", "def one"), "one.py")
    registry = put(tmp_path, "import _tools\n" + dedent(GOOGLE), "two.py")
    one, two = registry.plugins["one"], registry.plugins["shout"]
    (tmp_path / "_tools.py").write_text("x = 1")
    after = registry.plugins
    assert after["one"] == one
    assert after["shout"] != two
