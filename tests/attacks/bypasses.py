"""Code that a reader of code lets pass: each snippet is run, and its effect looked for outside.

Most make a file outside, by ways that do not name the function; the others read a file or
reach a listener by plain calls of libraries.
"""

from __future__ import annotations

from collections.abc import Iterator

from attacks.attack import Attack, Effect, called_out, found_the_secret, left_a_file

GROUP = "bypasses of the code check"
_OPEN = "open('@MARK@', 'w').close()"
_TEXT = f'"{_OPEN}"'

MAGICS = (
    "!touch @MARK@ # pip install",
    "!echo pip install; touch @MARK@",
    "!!touch @MARK@",
    "files = !touch @MARK@",
    "%sx touch @MARK@",
    "%system touch @MARK@",
    "%%bash\ntouch @MARK@",
    "%%sh\ntouch @MARK@",
    "%%script sh\ntouch @MARK@",
    "%%writefile @MARK@\nx",
    f"%%capture\n{_OPEN}",
    f"%timeit -n1 -r1 {_OPEN}",
    "get_ipython().system('touch @MARK@')",
    "get_ipython().run_cell('!touch @MARK@')",
    "get_ipython().run_cell_magic('bash', '', 'touch @MARK@')",
)
PARSERS = (
    "s = '''\n#'''; __import__('os').system('touch @MARK@'); '''\n'''",
    "x = (1\n% __import__('os').system('touch @MARK@') # pip install\n)",
    "import \\\nos as \\\no; o.system('touch @MARK@')",
    "ｏｐｅｎ('@MARK@', 'w').close()",  # noqa: RUF001 - letters that Python takes for others
    "\x0cif 1:\n\t__import__('os').system('touch @MARK@')",
)
ALIASES = (
    f"e = eval; e({_TEXT})",
    f"for h in (exec,):\n    h({_TEXT})",
    f"max([{_TEXT}], key=lambda t, e=eval: str(e(t)))",
    f"max([{_TEXT}, {_TEXT}], key=lambda t: str(eval(t)))",
    f"list(map(exec, [{_TEXT}]))",
    f"def f(g=exec):\n    g({_TEXT})\nf()",
    f"@exec\n@(lambda f: {_TEXT})\ndef g(): pass",
    f"class A:\n    __class_getitem__ = exec\nA[{_TEXT}]",
    f"if (g := exec): g({_TEXT})",
    f"import functools; functools.partial(exec, {_TEXT})()",
    f"import operator; operator.call(exec, {_TEXT})",
    f"list(filter(eval, [{_TEXT}]))",
    f"(lambda f: f({_TEXT}))(exec)",
    f"{{'d': exec}}['d']({_TEXT})",
    f"[exec][0]({_TEXT})",
    f"import builtins; getattr(builtins, 'ex' + 'ec')({_TEXT})",
    f"f, *_ = (exec, 1); f({_TEXT})",
    f"(exec if 1 else print)({_TEXT})",
    f"match exec:\n    case f: f({_TEXT})",
    f"e = eval; c = {_TEXT}; f'{{e(c)}}'",
    f"import threading; t = threading.Thread(target=exec, args=({_TEXT},)); t.start(); t.join()",
    f"import contextlib\nwith contextlib.ExitStack() as s: s.callback(exec, {_TEXT})",
    f"class B:\n    def __del__(self, e=exec): e({_TEXT})\nb = B(); del b",
)
INSIDES = (
    f"b = __builtins__; b.exec({_TEXT})",
    f"print.__self__.exec({_TEXT})",
    f"def f(): pass\nf.__globals__['__builtins__'].exec({_TEXT})",
    f"g = (i for i in 'x'); g.gi_frame.f_builtins['exec']({_TEXT})",
    "try: 1 / 0\nexcept ZeroDivisionError as e:\n"
    f"    e.__traceback__.tb_frame.f_builtins['exec']({_TEXT})",
    (
        "match object:\n    case type(__subclasses__=s):\n"
        "        w = [c for c in s() if c.__name__ == '_wrap_close'][0]\n"
        "        w.__init__.__globals__['system']('touch @MARK@')"
    ),
    (
        "s = ().__class__.__base__.__subclasses__()\n"
        "w = [c for c in s if c.__name__ == '_wrap_close'][0]\n"
        "w.__init__.__globals__['system']('touch @MARK@')"
    ),
    "__builtins__.__loader__.load_module('posix').system('touch @MARK@')",
    f"(lambda: 0).__globals__['__builtins__'].exec({_TEXT})",
    (f"import warnings; warnings.catch_warnings()._module.__builtins__['exec']({_TEXT})"),
    f"(1).__reduce_ex__(2)[0].__globals__['__builtins__']['exec']({_TEXT})",
    (f"async def c(): pass\nx = c(); f = x.cr_frame.f_builtins['exec']; x.close()\nf({_TEXT})"),
    f"import sys; sys._getframe().f_builtins['exec']({_TEXT})",
    f"object.__getattribute__(print.__self__, 'exec')({_TEXT})",
    f"import sys; vars(sys.modules['builtins'])['exec']({_TEXT})",
)
OTHERS_IMPORTS = (
    "from matplotlib import os; os.system('touch @MARK@')",
    "pd.io.common.os.system('touch @MARK@')",
    "np.ctypeslib.ctypes.CDLL(None).system(b'touch @MARK@')",
    f"np.testing.runstring({_TEXT}, {{}})",
    "import matplotlib; matplotlib.subprocess.call(['touch', '@MARK@'])",
    "import matplotlib.cbook as c; c.os.system('touch @MARK@')",
    "p = __package__; __package__ = 'matplotlib'; from . import os\n"
    "__package__ = p; os.system('touch @MARK@')",
    "import matplotlib.font_manager as m; m.subprocess.call(['touch', '@MARK@'])",
    "import pandas.io.clipboard as c; c.subprocess.call(['touch', '@MARK@'])",
    "import matplotlib.animation as a; a.subprocess.call(['touch', '@MARK@'])",
)
EVALUATORS = (
    "import typing\ndef f(x: \"open('@MARK@', 'w').close()\"): pass\ntyping.get_type_hints(f)",
    "import os\npd.DataFrame({'a': ['touch @MARK@']}).query('@os.system(a[0]) == 0')",
    (
        "import pickle\nclass P:\n    def __reduce__(self): return exec, ("
        f"{_TEXT},)\nopen('p', 'wb').write(pickle.dumps(P())); pd.read_pickle('p')"
    ),
    (
        "class P:\n    def __reduce__(self): return exec, ("
        f"{_TEXT},)\n"
        "a = np.empty(1, object); a[0] = P(); np.save('a', a); np.load('a.npy', allow_pickle=True)"
    ),
    f"pd.Series([{_TEXT}]).map(exec)",
    "import asyncio\nawait (await asyncio.create_subprocess_shell('touch @MARK@')).wait()",
    f"np.vectorize(exec, otypes=[object])([{_TEXT}])",
    f"import timeit; timeit.timeit({_TEXT}, number=1)",
)
PLAIN: tuple[tuple[str, Effect], ...] = (
    ("pd.DataFrame({'a': [1]}).to_csv('@MARK@')", left_a_file),
    ("plt.plot([1]); plt.savefig('@MARK@', format='svg'); plt.close()", left_a_file),
    ("np.memmap('@MARK@', mode='w+', shape=1)", left_a_file),
    ("found = np.fromfile('@CANARY@', np.uint8).tobytes().decode()", found_the_secret),
    ("found = str(list(pd.read_csv('@CANARY@').columns))", found_the_secret),
    (
        "license._Printer__filenames = ['@CANARY@']; license._Printer__lines = None\n"
        "license._Printer__setup(); found = ''.join(license._Printer__lines)",
        found_the_secret,
    ),
    (
        "import typing\n"
        "found = '{0.sys.modules[os].environ}'.format(typing) + open('@CANARY@').read()",
        found_the_secret,
    ),
    (
        "import socket; socket.setdefaulttimeout(0.3)\n"
        "try: pd.read_csv('http://127.0.0.1:@PORT@/@SLUG@;')\n"
        "finally: socket.setdefaulttimeout(None)",
        called_out,
    ),
)
DIRECT: tuple[tuple[str, Effect], ...] = (
    (_OPEN, left_a_file),
    ("import os; os.system('touch @MARK@')", left_a_file),
    ("import subprocess; subprocess.run(['touch', '@MARK@'])", left_a_file),
    (f"eval({_TEXT})", left_a_file),
    (f"exec({_TEXT})", left_a_file),
    ("__import__('os').system('touch @MARK@')", left_a_file),
    (f"exec(compile({_TEXT}, 'x', 'exec'))", left_a_file),
    ("from pathlib import Path; Path('@MARK@').touch()", left_a_file),
    ("import shutil; open('seed', 'w'); shutil.copy('seed', '@MARK@')", left_a_file),
    (
        "import socket; s = socket.create_connection(('127.0.0.1', @PORT@), 2); s.send(b'@SLUG@;')",
        called_out,
    ),
)


def _attacks() -> Iterator[Attack]:
    snippets = {
        "magic": MAGICS, "parser": PARSERS, "alias": ALIASES, "insides": INSIDES,
        "re-export": OTHERS_IMPORTS, "evaluator": EVALUATORS,
    }  # fmt: skip
    rows = [(kind, code, left_a_file) for kind, codes in snippets.items() for code in codes]
    rows += [("plain call", *row) for row in PLAIN] + [("direct", *row) for row in DIRECT]
    counts = dict[str, int]()
    for kind, code, effect in rows:
        counts[kind] = counts.get(kind, 0) + 1
        yield Attack(f"{kind} {counts[kind]}", code, effect, GROUP)


ATTACKS = tuple(_attacks())
