"""Other doors to what a policy forbids, and thirty harmless cells that the default one passes."""

from __future__ import annotations

import pytest

from taskweaver.code_interpreter.code_verification.policy_check import Policy, verify
from taskweaver.config.keys.known_keys import BY_NAME

DEFAULT = Policy(
    blocked_modules=BY_NAME["code_interpreter.blocked_modules"].default,
    blocked_functions=BY_NAME["code_interpreter.blocked_functions"].default,
)
STRICT = Policy(
    allowed_modules=["pandas", "numpy", "matplotlib", "scipy", "sklearn", "math", "typing"],
    blocked_functions=["eval", "exec", "compile", "open", "input", "__import__"],
)
DELETING = Policy(blocked_functions=["os.remove"])

EVALUATES = [
    "np.testing.runstring(\"__import__('os').system('id')\", {})",
    "from numpy.testing import runstring",
    "import typing\ndef f(x: \"__import__('os').system('id')\"): pass\ntyping.get_type_hints(f)",
    "import typing; hints = typing.get_type_hints",
    "from typing import ForwardRef",
    "x: \"__import__('os').system('id')\" = 1",
    "def f() -> \"__import__('os').system('id')\": pass",
    "async def f(x: \"eval('1')\"): pass",
    "pd.read_pickle('x')",
    "from pandas import read_pickle",
    "license._Printer__filenames = ['/etc/passwd']; license()",
    "copyright._Printer__setup()",
    "%timeit __import__('os').system('id')",
    "%%time\neval('1')",
    "%%timeit x = eval('1')\nx + 1",
    "%timeit -n 1 -r 1 %timeit exec('1')",
    "%run script.py",
    "%config InlineBackend.figure_format = __import__('os').system('id')",
    "%matplotlib inline; !ls",
]
UNPICKLES = [
    "import joblib; joblib.load('m')",
    "import dill; dill.loads(b'')",
    "import shelve; shelve.open('x')",
    "import yaml; yaml.unsafe_load('x')",
    "import torch; torch.load('m')",
    "from pickle import Unpickler",
    "import marshal; marshal.loads(b'')",
]
OPENS = [
    "open('f')",
    "import io; io.open('f')",
    "import codecs; codecs.open('f', 'w')",
    "import os; os.open('f', 1)",
    "from io import FileIO",
    "import linecache; linecache.getlines('/etc/passwd')",
    "import fileinput; fileinput.input('f', inplace=True)",
]
DELETES = [
    "import os; os.remove('x')",
    "import os; os.rename('x', 'y')",
    "from os import replace",
    "from pathlib import Path; Path('x').unlink()",
    "from pathlib import Path; Path('x').rmdir()",
    "import shutil; shutil.rmtree('x')",
    "import os; os.truncate('x', 0)",
]
WRITES = [
    "df.to_csv('x.csv')",
    "df.to_csv(path_or_buf='x.csv')",
    "df.to_json('x.json')",
    "df.to_excel('x.xlsx')",
    "df.to_parquet('x.parquet')",
    "np.save('x.npy', a)",
    "np.savez('x', a)",
    "np.savetxt('x', a)",
    "a.tofile('x')",
    "np.memmap('x', mode='w+', shape=(1,))",
    "plt.savefig('x.png')",
    "fig.savefig('x.png')",
    "p.write_text('x')",
    "p.open('w')",
    "with pd.ExcelWriter('x.xlsx') as w: pass",
]
CONNECTS = [
    "pd.read_csv('https://example.org/x.csv')",
    "pd.read_json('s3://bucket/x.json')",
    "pd.read_html('http://127.0.0.1')",
]
HARMLESS = [
    "%timeit sum(range(100))",
    "%timeit -n 10 -r 3 df['a'].mean()",
    "%%timeit\ndf.groupby('a').sum()",
    "%time df.sort_values('a')",
    "%%time\nmodel = fit(x, y)\nmodel.score(x, y)",
    "%matplotlib inline",
    "%config InlineBackend.figure_format = 'retina'",
    "%whos DataFrame",
    "import pandas as pd\ndf = pd.read_csv('x.csv')\ndf.describe()",
    "df = pd.read_csv('https://example.org/x.csv')",
    "df.to_csv('out.csv', index=False)",
    "df.to_excel('out.xlsx'); df.to_parquet('out.parquet')",
    "np.save('a.npy', a); np.load('a.npy')",
    "fig, ax = plt.subplots(); ax.plot(x); fig.savefig('x.png')",
    "df.to_json(); df.to_html(); df.to_string()",
    "text = 'see https://example.org'; print(text)",
    "def f(x: 'pd.DataFrame', n: 'int' = 1) -> 'pd.Series':\n    return x.iloc[n]",
    "count: 'int' = 3",
    "from pathlib import Path\nrows = Path('x.txt').read_text().splitlines()",
    "import json\ndata = json.loads(Path('x.json').read_text())",
    "import os\nos.makedirs('out', exist_ok=True)\nsorted(os.listdir('.'))",
    "import yaml; yaml.safe_load('a: 1')",
    "import sqlite3\ncon = sqlite3.connect('x.db')\npd.read_sql('select 1', con)",
    "import zipfile\nzipfile.ZipFile('x.zip').namelist()",
    "import shutil; shutil.copy('a.csv', 'b.csv')",
    "from collections import namedtuple\nPoint = namedtuple('Point', 'x y'); Point(1, 2)._asdict()",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 0\nA().x",
    "df.pipe(lambda d: d.assign(r=d.a.replace(0, 1))).rename(columns={'a': 'b'})",
    "from sklearn.model_selection import train_test_split\ntrain_test_split(x, y)",
    "class A:\n    def set(self):\n        self.__x = 1\n    def x(self): return self.__x",
    "import timeit; timeit.default_timer()",
    "img.save('x.png'); model.save('m.json')",
]  # fmt: skip


@pytest.mark.parametrize("code", [*EVALUATES, *UNPICKLES, *OPENS, *DELETES])
def test_the_default_policy_refuses_the_other_doors(code: str) -> None:
    assert verify(code, DEFAULT) != []


@pytest.mark.parametrize(
    "code", [*EVALUATES, *UNPICKLES, *OPENS, *WRITES, *CONNECTS], ids=lambda code: code[:40]
)
def test_a_policy_of_allowed_modules_refuses_the_other_doors(code: str) -> None:
    assert verify(code, STRICT) != []


@pytest.mark.parametrize("code", DELETES)
def test_a_policy_that_forbids_one_way_to_delete_forbids_the_others(code: str) -> None:
    assert verify(code, DELETING) != []


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless_cells_pass_the_default_policy(code: str) -> None:
    assert verify(code, DEFAULT) == []


READS = [
    "print('https://example.org')",
    "df.url.str.startswith('https://')",
    "df.url.str.contains('http://', regex=False)",
    "re.sub('https://', '', x)",
    "pd.read_csv('x.csv')",
    "df.to_csv()",
    "df.to_json(orient='records')",
    "np.load('a.npy')",
]


@pytest.mark.parametrize("code", READS)
def test_reading_data_and_making_text_pass_a_policy_that_forbids_writing(code: str) -> None:
    assert verify(code, STRICT) == []


def test_the_reason_names_the_act() -> None:
    assert verify("np.testing.runstring('1', {})", DEFAULT) == [
        "Line 1: 'testing.runstring' runs text as code, which the policy forbids."
    ]
    assert verify("df.to_csv('x')", STRICT) == [
        "Line 1: 'to_csv' with a path writes a file, which the policy forbids."
    ]


def test_an_empty_policy_forbids_no_doors() -> None:
    for code in (*UNPICKLES, *OPENS, *DELETES, *WRITES, *CONNECTS):
        assert verify(code, Policy()) == []
