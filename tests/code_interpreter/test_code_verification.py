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
STRICT = Policy(
    allowed_modules=["pandas", "numpy", "matplotlib", "scipy", "sklearn", "math", "typing"],
    blocked_functions=["eval", "exec", "compile", "open", "input", "__import__"],
)

REFUSED = [
    # by another name
    "e = eval; e('1')", "for h in (exec,):\n    h('1')", "@exec\ndef f(): pass",
    "max([1], key=eval)", "def f(g=compile): pass", "if (g := eval): pass",
    # by import
    "import subprocess", "import ctypes.util", "import os as o; o.system('id')",
    "from os import system", "from os import *", "from . import os",
    "import builtins; builtins.eval('1')",
    # through other libraries
    "from matplotlib import os", "pd.io.common.os.system('id')",
    "np.ctypeslib.ctypes.CDLL(None)", "m = pd; m.io.common.os.system('id')",
    # through the insides
    "b = __builtins__; b.exec", "print.__self__.exec", "(1).__reduce__", "g.gi_frame.f_builtins",
    "match x:\n    case object(__subclasses__=s):\n        pass",
    "x['__builtins__']", "getattr(x, '__globals__')", "copyright._Printer__setup()",
    # through the shell
    "!ls", "!echo pip install; touch M", "!touch M # pip install", "!pip install x; rm -rf /",
    "%run x.py", "%%bash\nls", "files = !ls", "get_ipython().system('ls')",
    "get_ipython().run_cell('x')", "ip = get_ipython()",
    # through what evaluates
    "pd.read_pickle('x')", "np.load('x', allow_pickle=True)", "import pickle; pickle.load(f)",
    "df.query(\"@pd.io.common.os.system('id')\")", "'{0.__class__.__globals__}'.format(x)",
    "'{0.sys.modules[os].environ[KEY]}'.format(typing)", "breakpoint()",
    # as the original refuses
    "with open('f.txt') as f:\n    lines = f.readlines()", "input('name')",
    "getattr(df, 'mean')()", "setattr(df, 'a', 1)", "vars(args)", "locals()",
    "obj.__class__", "obj['__class__']", "{'d': print}['d']()",
    # that takes files away, or writes over them
    "import os; os.remove('x')", "from os import rename",
    "from pathlib import Path; Path('x').unlink()",
    "from pathlib import Path; Path('x').write_text('')",
    "from pathlib import Path; Path('x').open('w')",
    "from pathlib import Path; Path('x').open(mode='rb+')",
    "import gzip; gzip.open('x', 'wb')", "import shutil; shutil.move('x', 'y')",
    # in a way that only a parser of its own would miss
    's = """\n#"""; __import__("os").system("x"); """\n"""',
    "x = (1\n% __import__('os').system('id') # pip install\n)",
]  # fmt: skip
DOORS = [
    # that evaluate
    "np.testing.runstring(\"__import__('os').system('id')\", {})",
    "from numpy.testing import runstring", "import typing; hints = typing.get_type_hints",
    "x: \"__import__('os').system('id')\" = 1",
    "def f() -> \"__import__('os').system('id')\": pass", "async def f(x: \"eval('1')\"): pass",
    "from pandas import read_pickle", "%timeit __import__('os').system('id')",
    "%%time\neval('1')", "%%timeit x = eval('1')\nx + 1", "%timeit -n 1 -r 1 %timeit exec('1')",
    "%config InlineBackend.figure_format = __import__('os').system('id')",
    "%matplotlib inline; !ls",
    # that unpickle, and that open
    "import joblib; joblib.load('m')", "import yaml; yaml.unsafe_load('x')",
    "from pickle import Unpickler", "import io; io.open('f')", "from io import FileIO",
    "import codecs; codecs.open('f', 'w')", "import dill; dill.loads(b'')",
    "import marshal; marshal.loads(b'')", "import shelve; shelve.open('x')",
    "import torch; torch.load('m')", "from typing import ForwardRef", "import os; os.open('f', 1)",
    "import linecache; linecache.getlines('/etc/passwd')",
    "import fileinput; fileinput.input('f', inplace=True)",
]  # fmt: skip
DELETES = [
    "import os; os.rename('x', 'y')", "from os import replace",
    "from pathlib import Path; Path('x').rmdir()", "import shutil; shutil.rmtree('x')",
    "import os; os.truncate('x', 0)", "import os; os.unlink('x')",
]  # fmt: skip
WRITES = [
    "df.to_csv('x.csv')", "df.to_csv(path_or_buf='x.csv')", "df.to_excel('x.xlsx')",
    "np.save('x.npy', a)", "np.memmap('x', mode='w+', shape=(1,))", "p.write_text('x')",
    "p.open('w')", "with pd.ExcelWriter('x.xlsx') as w: pass",
    "df.to_json('x.json')", "df.to_parquet('x.parquet')", "np.savez('x', a)",
    "np.savetxt('x', a)", "a.tofile('x')", "plt.savefig('x.png')",
    "pd.read_csv('https://example.org/x.csv')", "pd.read_json('s3://bucket/x.json')",
    "pd.read_html('http://127.0.0.1')",
]  # fmt: skip
ORDINARY = [
    "import json, os, re, math, sys, datetime, collections, itertools, functools",
    "from pathlib import Path\nrows = Path('x.txt').read_text().splitlines()",
    "import gzip; gzip.open('x', 'rb'); Image.open('wax.png')",
    "pd.eval('1 + 1'); df.eval('a + b'); re.compile('x')",
    "type(x).__name__, f.__doc__, pd.__version__, f.__qualname__",
    "fs['m']; fs['m'].run(1); df.rename(columns={}); text.replace('a', 'b')",
    't = """\n!hello\n%world\n"""', "x = (10\n% 3)", "df.query('a > @threshold and b in @names')",
    "%pip install pandas", "!pip install -q scikit-learn==1.5",
    "os.path.join('a', 'b'), os.listdir('.'), os.environ.get('HOME')",
    "print(f'{x:.2f} {y!r:>10}')", "'{:>10} {}'.format(1, 2)",
    "class A:\n    def __init__(self):\n        super().__init__()\n        self.__x = 1",
    "df.os.value_counts(), df.code.unique(), df['sys'].mean(), arr.ctypes.data",
    "model = sklearn.linear_model.LinearRegression().fit(x, y); model.score(x, y)",
    "lambda v: v.system", "await fetch()", "%timeit -n 10 -r 3 df['a'].mean()",
    "%%timeit\ndf.groupby('a').sum()", "%time df.sort_values('a')", "%matplotlib inline",
    "%%time\nmodel = fit(x, y)\nmodel.score(x, y)", "%whos DataFrame",
    "%config InlineBackend.figure_format = 'retina'",
    "df = pd.read_csv('https://example.org/x.csv')", "df.to_csv('out.csv', index=False)",
    "df.to_excel('out.xlsx'); df.to_parquet('out.parquet')", "np.save('a.npy', a)",
    "fig, ax = plt.subplots(); ax.plot(x); fig.savefig('x.png')",
    "def f(x: 'pd.DataFrame', n: 'int' = 1) -> 'pd.Series':\n    return x.iloc[n]",
    "import os\nos.makedirs('out', exist_ok=True)\nsorted(os.listdir('.'))",
    "import yaml; yaml.safe_load('a: 1')", "import shutil; shutil.copy('a.csv', 'b.csv')",
    "import sqlite3\ncon = sqlite3.connect('x.db')\npd.read_sql('select 1', con)",
    "from collections import namedtuple\nPoint = namedtuple('Point', 'x y'); Point(1, 2)._asdict()",
    "df.pipe(lambda d: d.assign(r=d.a.replace(0, 1))).rename(columns={'a': 'b'})",
    "import timeit; timeit.default_timer()", "img.save('x.png'); model.save('m.json')",
]  # fmt: skip
READS = [
    "print('https://example.org')", "df.url.str.startswith('https://')",
    "re.sub('https://', '', x)", "pd.read_csv('x.csv')", "df.to_csv()",
    "df.to_json(orient='records')", "np.load('a.npy')",
]  # fmt: skip


@pytest.mark.parametrize("code", [*REFUSED, *DOORS, *DELETES])
def test_the_default_policy_refuses_the_other_doors(code: str) -> None:
    assert verify(code, DEFAULT) != []


@pytest.mark.parametrize("code", [*DOORS, *WRITES])
def test_a_policy_of_allowed_modules_refuses_the_other_doors(code: str) -> None:
    assert verify(code, STRICT) != []


@pytest.mark.parametrize("code", DELETES)
def test_a_policy_that_forbids_one_way_to_delete_forbids_the_others(code: str) -> None:
    assert verify(code, Policy(blocked_functions=["os.remove"])) != []


@pytest.mark.parametrize("code", ORDINARY)
def test_harmless_cells_pass_the_default_policy(code: str) -> None:
    assert verify(code, DEFAULT) == []


@pytest.mark.parametrize("code", READS)
def test_reading_data_and_making_text_pass_a_policy_that_forbids_writing(code: str) -> None:
    assert verify(code, STRICT) == []


def test_an_empty_policy_forbids_no_doors() -> None:
    for code in ("import joblib; joblib.load('m')", "open('f')", *DELETES, *WRITES):
        assert verify(code, Policy()) == []


ALWAYS = ["obj['__class__']", "obj.__class__", "{'d': eval}['d']()", "getattr(x, 'y')", "vars(x)"]


@pytest.mark.parametrize("code", ALWAYS)
def test_some_code_is_refused_whatever_the_lists(code: str) -> None:
    assert code_snippet_verification(code, True) != []
    assert code_snippet_verification(code, True, blocked_functions=[]) != []
    assert code_snippet_verification(code) is None


def test_findings_name_the_line_the_act_and_what_is_allowed() -> None:
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
    assert verify("np.testing.runstring('1', {})", DEFAULT) == [
        "Line 1: 'testing.runstring' runs text as code, which the policy forbids."
    ]
    assert verify("df.to_csv('x')", STRICT) == [
        "Line 1: 'to_csv' with a path writes a file, which the policy forbids."
    ]
    assert "Line 1: this is not Python" in verify("x = = 1", DEFAULT)[0]


def test_imports_of_earlier_cells_still_hold() -> None:
    assert verify("o.system('x')", DEFAULT) == []
    assert verify("o.system('x')", DEFAULT, ["import os as o"]) != []
    assert verify("x = 1", DEFAULT, ["pip list"]) == []


ODD = ['=%"""', "%time " * 3000, "a" + ".b" * 20_000, "1" + "+1" * 20_000, "-" * 20_000 + "1",
       "\ud800", "\0", "(" * 3000, ""]  # fmt: skip


@pytest.mark.parametrize("code", ODD, ids=range(len(ODD)))
def test_odd_texts_are_findings_and_no_errors(code: str) -> None:
    for found in (verify(code, DEFAULT), verify("1", DEFAULT, [code])):
        assert all(isinstance(problem, str) for problem in found)
    assert all(isinstance(problem, str) for problem in plugin_call_problems(code, ["x"], [code]))


def test_a_text_that_no_parser_reads_is_refused_with_the_reason() -> None:
    assert verify('=%"""', DEFAULT)[0].startswith("The code cannot be read: IndexError")
    assert plugin_call_problems('=%"""', [])[0].startswith("The code cannot be read: IndexError")


PIECES = [
    "eval", "(", ")", "\n", "    ", "def f", ":", "import ", "os", ".", "%", "!", "x", "=", '"""',
    "@", "[", "]", "{", "}", "lambda", "match x", "case", "\\", "#", "f'", "'", "\t", "\x0c", "é",
    "\u2028", "%%time\n", "%time ", "!!", "??", "?", "$x", "'''", '=%"""', ";", "\r", "\ud800",
    "\0", "%%bash\n", "/f ", ",f ", "b'", "0x", 'f"{', "!ls {", ">>> ", "In [1]: ",
]  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join)))
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
    own = "read_table = 3\npd.read_table('a.txt')"
    assert verify(own, Policy(blocked_functions=("open",))) == []
    policy = Policy(blocked_functions=(".read_csv",))
    assert verify("read_table('a.csv')", policy) == [
        "Line 1: 'read_table' reads a file, which the policy forbids."
    ]
    assert verify("f = profile_tables", policy) != []
