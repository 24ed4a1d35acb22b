"""What a policy refuses, what it leaves alone, and that it takes any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.code_interpreter.code_verification.policy_check import (
    Policy,
    code_snippet_verification,
    kinds_of,
    policy_text,
    verify,
)
from taskweaver.code_interpreter.scope import plugin_call_problems
from taskweaver.config.keys.known_keys import BY_NAME

DEFAULT = Policy(
    blocked_modules=BY_NAME["code_interpreter.blocked_modules"].default,
    blocked_functions=BY_NAME["code_interpreter.blocked_functions"].default,
)

REFUSED = [
    # by another name
    "e = eval; e('1')",
    "for h in (exec,):\n    h('1')",
    "@exec\ndef f(): pass",
    "max([1], key=eval)",
    "series.map(exec)",
    "def f(g=compile): pass",
    "if (g := eval): pass",
    "class A:\n    __getitem__ = exec",
    # by import
    "import subprocess",
    "import ctypes.util",
    "import os; os.system('id')",
    "import os as o; o.system('id')",
    "from os import system",
    "from os import *",
    "from . import os",
    "import builtins; builtins.eval('1')",
    # through other libraries
    "from matplotlib import os",
    "pd.io.common.os.system('id')",
    "np.ctypeslib.ctypes.CDLL(None)",
    "m = pd; m.io.common.os.system('id')",
    # through the insides
    "b = __builtins__; b.exec",
    "print.__self__.exec",
    "f.__globals__",
    "(1).__reduce__",
    "g.gi_frame.f_builtins",
    "match x:\n    case object(__subclasses__=s):\n        pass",
    "x['__builtins__']",
    "getattr(x, '__globals__')",
    # through the shell
    "!ls",
    "!echo pip install; touch M",
    "!touch M # pip install",
    "!pip install x; rm -rf /",
    "%run x.py",
    "%%bash\nls",
    "files = !ls",
    "get_ipython().system('ls')",
    "get_ipython().run_cell('x')",
    "ip = get_ipython()",
    # through what evaluates
    "pd.read_pickle('x')",
    "np.load('x', allow_pickle=True)",
    "import pickle; pickle.load(f)",
    "df.query(\"@pd.io.common.os.system('id')\")",
    "'{0.__class__.__globals__}'.format(x)",
    "'{0.sys.modules[os].environ[KEY]}'.format(typing)",
    "breakpoint()",
    # as the original refuses
    "with open('f.txt') as f:\n    lines = f.readlines()",
    "input('name')",
    "getattr(df, 'mean')()",
    "setattr(df, 'a', 1)",
    "vars(args)",
    "locals()",
    "obj.__class__",
    "obj['__class__']",
    "obj.__dict__",
    "{'d': print}['d']()",
    "fs['m'](1)",
    # that takes files away, or writes over them
    "import os; os.remove('x')",
    "import os; os.unlink('x')",
    "from os import rename",
    "from pathlib import Path; Path('x').unlink()",
    "from pathlib import Path; Path('x').write_text('')",
    "from pathlib import Path; Path('x').open('w')",
    "from pathlib import Path; Path('x').open(mode='rb+')",
    "import gzip; gzip.open('x', 'wb')",
    "import shutil; shutil.move('x', 'y')",
    # in a way that only a parser of its own would miss
    's = """\n#"""; __import__("os").system("x"); """\n"""',
    "x = (1\n% __import__('os').system('id') # pip install\n)",
]

ORDINARY = [
    "import json, os, re, math, sys, datetime, collections, itertools, functools",
    "from pathlib import Path; Path('x').read_text()",
    "import gzip; gzip.open('x', 'rb'); Image.open('wax.png')",
    "pd.eval('1 + 1'); df.eval('a + b'); re.compile('x')",
    "type(x).__name__, f.__doc__, pd.__version__, f.__qualname__",
    "fs['m']; fs['m'].run(1); df.rename(columns={}); text.replace('a', 'b')",
    't = """\n!hello\n%world\n"""',
    "x = (10\n% 3)",
    "df.query('a > @threshold and b in @names')",
    "%pip install pandas",
    "!pip install -q scikit-learn==1.5",
    "os.path.join('a', 'b'), os.listdir('.'), os.environ.get('HOME')",
    "print(f'{x:.2f} {y!r:>10}')",
    "'{:>10} {}'.format(1, 2)",
    "class A:\n    def __init__(self):\n        super().__init__()",
    "df.groupby('a').agg({'b': 'sum'}).to_csv('x.csv')",
    "df.os.value_counts(), df.code.unique(), df['sys'].mean(), arr.ctypes.data",
    "plt.savefig('a.png'); plt.show()",
    "model = sklearn.linear_model.LinearRegression().fit(x, y); model.score(x, y)",
    "lambda v: v.system",
    "await fetch()",
]


@pytest.mark.parametrize("code", REFUSED)
def test_ways_around_a_policy_are_seen(code: str) -> None:
    assert verify(code, DEFAULT) != []


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_code_is_left_alone(code: str) -> None:
    assert verify(code, DEFAULT) == []


def test_the_check_is_off_unless_asked_for() -> None:
    assert code_snippet_verification("eval('1')") is None
    assert code_snippet_verification("x = 1", True) == []


ALWAYS = ["obj['__class__']", "obj.__class__", "{'d': eval}['d']()", "getattr(x, 'y')", "vars(x)"]


@pytest.mark.parametrize("code", ALWAYS)
def test_some_code_is_refused_whatever_the_lists(code: str) -> None:
    assert code_snippet_verification(code, True) != []
    assert code_snippet_verification(code, True, blocked_functions=[]) != []
    assert code_snippet_verification(code, False) is None


def test_lists_of_the_allowed_refuse_everything_else() -> None:
    found = code_snippet_verification(
        "import os\nimport numpy as np\nrows = load('x')\nother = run(rows)",
        True,
        allowed_modules=["numpy"],
        allowed_functions=["load"],
        allowed_variables=["rows"],
    )
    assert found == [
        "Line 1: importing 'os' is not allowed; allowed are numpy.",
        "Line 4: assigning 'other' is not allowed.",
        "Line 4: calling 'run' is not allowed; allowed are load.",
    ]
    assert code_snippet_verification("import os", True, allowed_modules=[]) == [
        "Line 1: importing 'os' is not allowed; allowed are none."
    ]


def test_imports_of_earlier_cells_still_hold() -> None:
    assert verify("o.system('x')", DEFAULT) == []
    assert verify("o.system('x')", DEFAULT, ["import os as o"]) != []


def test_an_error_of_syntax_is_one_finding() -> None:
    (found,) = verify("x = = 1", DEFAULT)
    assert "Line 1: this is not Python" in found


ODD = [
    '=%"""',
    "%time " * 3000,
    "a" + ".b" * 20_000,
    "1" + "+1" * 20_000,
    "-" * 20_000 + "1",
    "\ud800",
    "\0",
    "(" * 3000,
    "",
]


@pytest.mark.parametrize("code", ODD, ids=range(len(ODD)))
def test_odd_texts_are_findings_and_no_errors(code: str) -> None:
    for found in (verify(code, DEFAULT), verify("1", DEFAULT, [code])):
        assert all(isinstance(problem, str) for problem in found)
    assert all(isinstance(problem, str) for problem in plugin_call_problems(code, ["x"], [code]))


def test_a_text_that_no_parser_reads_is_refused_with_the_reason() -> None:
    assert verify('=%"""', DEFAULT)[0].startswith("The code cannot be read: IndexError")
    assert plugin_call_problems('=%"""', [])[0].startswith("The code cannot be read: IndexError")


def test_an_earlier_cell_that_is_no_python_refuses_nothing() -> None:
    assert verify("x = 1", DEFAULT, ["pip list"]) == []


_PIECES = st.sampled_from(
    [
        *("eval", "(", ")", "\n", "    ", "def f", ":", "import ", "os", ".", "%", "!", "x", "="),
        *('"""', "@", "[", "]", "{", "}", "lambda", "match x", "case", "\\", "#", "f'", "'", "\t"),
        *(
            "\x0c",
            "é",
            "\u2028",
            "%%time\n",
            "%time ",
            "!!",
            "??",
            "?",
            "$x",
            "'''",
            '=%"""',
            ";",
            "\r",
        ),
        *("\ud800", "\0", "%%bash\n", "/f ", ",f ", "b'", "0x", 'f"{', "!ls {", ">>> ", "In [1]: "),
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=25).map("".join)))
@settings(max_examples=examples(400))
def test_no_text_raises(code: str) -> None:
    assert isinstance(verify(code, DEFAULT), list)
    assert "code" in kinds_of(code, ["x"])
    assert isinstance(plugin_call_problems(code, ["x"], [code]), list)
    assert isinstance(verify("1", DEFAULT, [code]), list)


def test_what_a_cell_is_called_when_a_person_is_asked() -> None:
    assert kinds_of("x = 1", ["sql"]) == {"code"}
    assert kinds_of("sql('select 1')", ["sql", "other"]) == {"code", "plugin sql"}
    assert kinds_of("!ls", []) == {"code", "shell"}
    assert kinds_of("x = = 1", []) == {"code", "shell"}


def test_a_policy_is_told_in_words() -> None:
    text = policy_text(Policy(allowed_modules=["numpy"], blocked_functions=["eval"]))
    assert "- Import only numpy." in text
    assert "- Do not use eval." in text


def test_functions_that_read_tables_are_allowed_where_reading_is() -> None:
    cell = "frame = read_table('a.csv')\nprofile_tables('a.csv')"

    assert verify(cell, Policy(blocked_functions=("open", "eval"))) == []
    assert (
        verify("read_table = 3\npd.read_table('a.txt')", Policy(blocked_functions=("open",))) == []
    )


def test_functions_that_read_tables_are_refused_where_reading_is() -> None:
    policy = Policy(blocked_functions=(".read_csv",))

    assert verify("read_table('a.csv')", policy) == [
        "Line 1: 'read_table' reads a file, which the policy forbids."
    ]
    assert verify("f = profile_tables", policy) != []
